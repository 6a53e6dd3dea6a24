import type { ASTNode } from '@marcbachmann/cel-js';
import { RE2JS } from 're2js';
import { boundedCache } from '../bounded-cache.ts';
import type { GraphSchema } from '../graph/graph-schema.ts';

/** What a policy must not hold although it is CEL, and what can be read from it without evaluating it. */

/** A mistake in a policy: where it is, in characters, and what is wrong. */
export class PolicyError extends Error {
  override readonly name = 'PolicyError';
  readonly start: number;
  readonly end: number;

  constructor(message: string, start: number, end: number) {
    super(message);
    this.start = start;
    this.end = end;
  }
}

const COMPREHENSIONS = new Set(['all', 'exists', 'exists_one', 'map', 'filter']);
/** An unknown answer in their body ends them, so each element would take a question of its own. */
const ONE_BY_ONE = new Set(['exists_one', 'map', 'filter']);
const GRAPH_FUNCTIONS = new Set(['check', 'is_member']);
/** What may be called: nothing here makes a value larger than what it is given, or costs more than a look at it. */
const OFFERED = new Set([
  ...[
    'check',
    'is_member',
    'has_role',
    'has_any_role',
    're_match',
    'has',
    'size',
    'string',
    'int',
    'bool',
    'dyn',
    'type',
  ],
  ...['startsWith', 'endsWith', 'contains', ...COMPREHENSIONS],
]);
const INSTEAD = new Map([['matches', 're_match(text, pattern)']]);
/** Counted repetitions multiply the size of a compiled pattern. */
const REPETITION_MAX = 50;
const NESTING_MAX = 2;
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

/** Nodes directly below a node. */
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

/** What the library lets through and we do not, because of what it could cost. @throws PolicyError */
export function assertAllowed(node: ASTNode, nesting: number): void {
  let depth = nesting;
  if (node.op === 'rcall' || node.op === 'call') {
    const [name] = node.args;
    if (!OFFERED.has(name)) {
      const instead = INSTEAD.get(name);
      throw new PolicyError(
        `${name} is not offered${instead === undefined ? '' : `; use ${instead}`}`,
        ...rangeOf(node),
      );
    }
    if (isComprehension(node)) {
      if (++depth > NESTING_MAX)
        throw new PolicyError(`all, exists, map and filter nest ${NESTING_MAX} deep at most`, ...rangeOf(node));
      assertComprehension(node, name);
    }
    if (name === 're_match') {
      if (nesting > 1) throw new PolicyError('re_match stands in one all or exists at most', ...rangeOf(node));
      assertPattern(node);
    }
  }
  if (node.op === '+' && nesting > 0)
    throw new PolicyError('nothing is added up inside all, exists, map and filter', ...rangeOf(node));
  for (const child of childrenOf(node)) assertAllowed(child, depth);
}

/** A list that is put together first could have any length; a check in some of them would be asked one by one. */
function assertComprehension(node: ASTNode, name: string): void {
  const [list, ...body] = childrenOf(node);
  const sum = list === undefined ? undefined : find(list, n => n.op === '+');
  if (sum !== undefined) throw new PolicyError('lists are not added up here; go through each of them', ...rangeOf(sum));
  if (!ONE_BY_ONE.has(name)) return;
  for (const part of body) {
    const check = find(part, n => n.op === 'call' && GRAPH_FUNCTIONS.has(n.args[0]));
    if (check !== undefined)
      throw new PolicyError(`${name} would ask the graph once for each element; use exists or all`, ...rangeOf(check));
  }
}

/** The first node in a tree that is looked for. */
function find(node: ASTNode, wanted: (n: ASTNode) => boolean): ASTNode | undefined {
  if (wanted(node)) return node;
  for (const child of childrenOf(node)) {
    const found = find(child, wanted);
    if (found !== undefined) return found;
  }
  return undefined;
}

function assertPattern(call: ASTNode): void {
  const pattern = childrenOf(call).at(-1);
  if (pattern?.op !== 'value' || typeof pattern.args !== 'string')
    throw new PolicyError('the pattern of re_match must be a text written here', ...rangeOf(pattern ?? call));
  if (pattern.args.length > PATTERN_CHARS_MAX)
    throw new PolicyError(`the pattern has more than ${PATTERN_CHARS_MAX} characters`, ...rangeOf(pattern));
  const counts = [...pattern.args.matchAll(/\{(\d+)(?:,(\d*))?\}/g)];
  if (counts.length > 1 || counts.some(([, least, most]) => Number(most || least) > REPETITION_MAX))
    throw new PolicyError(
      `one counted repetition, of ${REPETITION_MAX} at most, stands in a pattern`,
      ...rangeOf(pattern),
    );
  try {
    patternOf(pattern.args);
  } catch (error) {
    throw new PolicyError(error instanceof Error ? error.message : String(error), ...rangeOf(pattern));
  }
}

/** Names that are computed are left to the moment of the question. */
export function assertInSchema(call: ASTNode, schema: GraphSchema): void {
  const name = call.op === 'call' ? call.args[0] : '';
  if (name !== 'check' && name !== 'is_member') return;
  const texts = childrenOf(call).map(n => ({
    node: n,
    text: n.op === 'value' && typeof n.args === 'string' ? n.args : null,
  }));
  const [permission, object] = name === 'check' ? texts : [{ node: call, text: 'member' }, texts[0]];
  if (object === undefined || object.text === null) return;
  const type = schema.types.get(object.text);
  const names = (list: Iterable<string>): string => [...list].join(', ');
  if (type === undefined)
    throw new PolicyError(
      `there is no object type "${object.text}"; there are ${names(schema.types.keys())}`,
      ...rangeOf(object.node),
    );
  if (permission === undefined || permission.text === null) return;
  const known = [...type.permissions.keys(), ...type.relations.keys()];
  if (!known.includes(permission.text))
    throw new PolicyError(
      `a ${type.name} has no permission or relation "${permission.text}"; it has ${names(known)}`,
      ...rangeOf(permission.node),
    );
}
