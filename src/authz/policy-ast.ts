import type { ASTNode } from '@marcbachmann/cel-js';
import { RE2JS } from 're2js';
import { boundedCache } from '../base/bounded-cache.ts';

/** The nodes of a policy, and patterns of `re_match`. */
export type { ASTNode };

/** A mistake in a policy: its position in characters, and what is wrong. */
export class PolicyError extends Error {
  override readonly name = 'PolicyError';
  readonly start: number;
  readonly end: number;
  /** All mistakes found, in order of position; this one is the first. */
  readonly all: readonly PolicyError[];

  constructor(message: string, start: number, end: number, others: readonly PolicyError[] = []) {
    super(message);
    this.start = start;
    this.end = end;
    this.all = [this, ...others];
  }
}

/** Functions that iterate over a list. */
export const COMPREHENSIONS: ReadonlySet<string> = new Set(['all', 'exists', 'exists_one', 'map', 'filter']);
/** Limit on counted repetitions, because they multiply the size of a compiled pattern. */
const REPETITION_MAX = 50;
const PATTERN_CHARS_MAX = 100;
const PATTERNS_MAX = 1000;
const patterns = boundedCache<string, RE2JS>({ max: PATTERNS_MAX });

export function patternOf(text: string): RE2JS {
  const known = patterns.get(text);
  if (known !== undefined) return known;
  const made = RE2JS.compile(text);
  patterns.set(text, made);
  return made;
}

export const rangeOf = (node: { range: { start: number; end: number } }): [number, number] => [
  node.range.start,
  node.range.end,
];

/** The child nodes of a node. */
export function childrenOf(node: ASTNode): ASTNode[] {
  const out: ASTNode[] = [];
  const collect = (value: unknown): void => {
    if (Array.isArray(value)) for (const v of value) collect(v);
    else if (isNode(value)) out.push(value);
  };
  collect(node.args);
  return out;
}

const isNode = (value: unknown): value is ASTNode =>
  typeof value === 'object' && value !== null && 'op' in value && 'range' in value && 'args' in value;

export const isComprehension = (node: ASTNode): boolean => node.op === 'rcall' && COMPREHENSIONS.has(node.args[0]);

/** The first node of a tree for which `wanted` is true. */
export function find(node: ASTNode, wanted: (n: ASTNode) => boolean): ASTNode | undefined {
  if (wanted(node)) return node;
  for (const child of childrenOf(node)) {
    const found = find(child, wanted);
    if (found !== undefined) return found;
  }
  return undefined;
}

/** The mistake in the pattern of a `re_match` call, or null. */
export function patternError(call: ASTNode): PolicyError | null {
  const pattern = childrenOf(call).at(-1);
  if (pattern?.op !== 'value' || typeof pattern.args !== 'string')
    return new PolicyError('the pattern of re_match must be a literal text', ...rangeOf(pattern ?? call));
  if (pattern.args.length > PATTERN_CHARS_MAX)
    return new PolicyError(`the pattern has more than ${PATTERN_CHARS_MAX} characters`, ...rangeOf(pattern));
  const counts = [...pattern.args.matchAll(/\{(\d+)(?:,(\d*))?\}/g)];
  if (counts.length > 1 || counts.some(([, least, most]) => Number(most || least) > REPETITION_MAX))
    return new PolicyError(
      `a pattern may have one counted repetition, of at most ${REPETITION_MAX}`,
      ...rangeOf(pattern),
    );
  try {
    patternOf(pattern.args);
    return null;
  } catch (error) {
    return new PolicyError(error instanceof Error ? error.message : String(error), ...rangeOf(pattern));
  }
}

/** For the position of each parenthesis, the position of its counterpart. Ignores parentheses in texts and comments. */
function parentheses(source: string): Map<number, number> {
  const pairs = new Map<number, number>();
  const open: number[] = [];
  const tokens =
    /\/\/[^\n]*|"{3}(?:\\[\s\S]|[^\\])*?"{3}|'{3}(?:\\[\s\S]|[^\\])*?'{3}|"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'|[()]/g;
  for (const { 0: token, index } of source.matchAll(tokens)) {
    if (token === '(') open.push(index);
    const start = token === ')' ? open.pop() : undefined;
    if (start === undefined) continue;
    pairs.set(start, index);
    pairs.set(index, start);
  }
  return pairs;
}

/**
 * The extent of nodes including the parentheses that belong to them. The library's ranges may leave out parentheses
 * around the first or last part of a node.
 *
 * @returns for each node the position of its first character and the position after its last one
 */
export function extents(source: string): (node: ASTNode) => [number, number] {
  const pairs = parentheses(source);
  return node => {
    let [start, end] = rangeOf(node);
    for (let k = start; k < end; k++) {
      const other = pairs.get(k);
      if (other === undefined) continue;
      if (other >= end) end = other + 1;
      if (other < start) [start, k] = [other, other];
    }
    return [start, end];
  };
}
