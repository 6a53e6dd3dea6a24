import { type ASTNode, childrenOf, extents, isComprehension, PolicyError, rangeOf } from './policy-ast.ts';
import { OBJECTS, subsetErrors, typeErrors } from './policy-subset.ts';

/** Mistakes of one policy that are told. */
const ERRORS_MAX = 20;

/** A policy that was parsed, with the check of its types. */
export type Parsed = { ast: ASTNode; check(): { valid: boolean; type?: string; error?: unknown } };

/** Parses policies in which `MENDED` may stand for anything. */
export type MendingParser = (text: string) => Parsed;

/** Stands where a mistake was, so that the rest is looked at: a name no policy may use. */
export const MENDED = '_';

/** The library's errors carry the place and a one-line summary beside a picture of the source. */
export function policyErrorOf(error: unknown, source: string): PolicyError {
  if (error instanceof PolicyError) return error;
  const [start, end] =
    error instanceof Error && 'range' in error && isRange(error.range)
      ? [error.range.start, error.range.end]
      : [0, source.length];
  const summary = error instanceof Error && 'summary' in error ? String(error.summary) : '';
  const message = summary !== '' ? summary : error instanceof Error ? error.message : String(error);
  return new PolicyError(message, start, end);
}

const isRange = (value: unknown): value is { start: number; end: number } =>
  typeof value === 'object' &&
  value !== null &&
  'start' in value &&
  'end' in value &&
  typeof value.start === 'number' &&
  typeof value.end === 'number';

/** Every mistake of a policy that was parsed, as one error; null for none. */
export function findMistakes(source: string, run: Parsed, parse: MendingParser): PolicyError | null {
  const found = subsetErrors(run.ast);
  const types = found.length === 0 ? checkTypes(source, run, parse) : mendAndCheck(source, run.ast, found, parse);
  return together([...found, ...types]);
}

/** Mistakes as one error, in the order of their places. */
export function together(errors: readonly PolicyError[]): PolicyError | null {
  const [first, ...rest] = [...errors].sort((a, b) => a.start - b.start).slice(0, ERRORS_MAX);
  return first === undefined ? null : new PolicyError(first.message, first.start, first.end, rest);
}

function checkTypes(source: string, run: Parsed, parse: MendingParser): PolicyError[] {
  const checked = run.check();
  if (!checked.valid) {
    const error = policyErrorOf(checked.error ?? new Error('the expression is not valid'), source);
    return [error, ...mendAndCheck(source, run.ast, [error], parse)];
  }
  if (checked.type !== 'bool')
    return [new PolicyError(`a policy must be true or false; this is ${checked.type}`, ...rangeOf(run.ast))];
  return typeErrors(run.ast);
}

/**
 * Looks for further mistakes of types: the library stops at the first. What is wrong is taken out, the rest is checked again.
 *
 * @returns the mistakes beside those that are known
 */
function mendAndCheck(
  source: string,
  root: ASTNode,
  known: readonly PolicyError[],
  parse: MendingParser,
): PolicyError[] {
  const more: PolicyError[] = [];
  const extentOf = extents(source);
  let text = source;
  let wrong: readonly PolicyError[] = known;
  while (known.length + more.length < ERRORS_MAX) {
    for (const error of wrong) {
      const [start, end] = extentOf(nodeAround(root, error));
      const part = text.slice(start, end);
      // Places stay what they are: as many characters, and lines end where they did.
      text = `${text.slice(0, start)}${MENDED}${part.slice(1).replace(/[^\n]/g, ' ')}${text.slice(end)}`;
    }
    let next: unknown;
    try {
      next = parse(text).check().error;
    } catch {
      // What is left cannot be read: the mistakes found so far are told.
      return more;
    }
    if (next === undefined) return more;
    const error = policyErrorOf(next, source);
    if ([...known, ...more].some(e => e.start === error.start && e.end === error.end)) return more;
    more.push(error);
    wrong = [error];
  }
  return more;
}

/** The smallest node that a mistake is in, with a value of its own: not a part of an access, nor the name of an element. */
function nodeAround(root: ASTNode, { end, start }: PolicyError): ASTNode {
  let node = root;
  for (;;) {
    const inner: ASTNode | undefined = childrenOf(node).find(n => n.range.start <= start && n.range.end >= end);
    if (inner === undefined || (isComprehension(node) && inner === childrenOf(node)[1])) return node;
    if ((node.op === '.' || node.op === '[]') && inner.op === 'id' && Object.hasOwn(OBJECTS, inner.args)) return node;
    // `has` looks at its argument without a value.
    if (node.op === 'call' && node.args[0] === 'has') return node;
    node = inner;
  }
}
