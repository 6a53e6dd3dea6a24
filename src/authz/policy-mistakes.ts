import { type ASTNode, childrenOf, extents, isComprehension, PolicyError, rangeOf } from './policy-ast.ts';
import { OBJECTS, subsetErrors, typeErrors } from './policy-subset.ts';

/** Largest number of mistakes reported for one policy. */
const ERRORS_MAX = 20;

/** A parsed policy with its type check. */
export type Parsed = { ast: ASTNode; check(): { valid: boolean; type?: string; error?: unknown } };

/** Parses policies in which `MENDED` is a value of any type. */
export type MendingParser = (text: string) => Parsed;

/** How the library says that the text ends where more must follow. */
const END_UNEXPECTED = /^(Unexpected token:|Expected \w+, got) EOF$/;

/** Replaces a mistake, so that the rest of the policy is checked. No policy may use this name. */
export const MENDED = '_';

/**
 * Converts an error of the library, which has the position and a one-line summary as well as an excerpt of the source.
 */
export function policyErrorOf(error: unknown, source: string): PolicyError {
  if (error instanceof PolicyError) return error;
  const [start, end] =
    error instanceof Error && 'range' in error && isRange(error.range)
      ? [error.range.start, error.range.end]
      : [0, source.length];
  const summary = error instanceof Error && 'summary' in error ? String(error.summary) : '';
  if (END_UNEXPECTED.test(summary))
    return new PolicyError('the policy ends here too early: something is missing after this', start, end);
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

/** All mistakes of a parsed policy as one error; null if there are none. */
export function findMistakes(source: string, run: Parsed, parse: MendingParser): PolicyError | null {
  const found = subsetErrors(run.ast);
  const types = found.length === 0 ? checkTypes(source, run, parse) : mendAndCheck(source, run.ast, found, parse);
  return together([...found, ...types]);
}

/** Joins mistakes into one error, in order of position. */
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
 * Finds further type mistakes, because the library stops at the first: replaces each mistake and checks the rest again.
 *
 * @returns the mistakes that were not known yet
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
      // Keeps all positions: the replacement has as many characters and the same line ends.
      text = `${text.slice(0, start)}${MENDED}${part.slice(1).replace(/[^\n]/g, ' ')}${text.slice(end)}`;
    }
    let next: unknown;
    try {
      next = parse(text).check().error;
    } catch {
      // The rest cannot be parsed, so only the mistakes found so far are reported.
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

/** The smallest node around a mistake that has a value: not part of a member access, and not the name of an element. */
function nodeAround(root: ASTNode, { end, start }: PolicyError): ASTNode {
  let node = root;
  for (;;) {
    const inner: ASTNode | undefined = childrenOf(node).find(n => n.range.start <= start && n.range.end >= end);
    if (inner === undefined || (isComprehension(node) && inner === childrenOf(node)[1])) return node;
    if ((node.op === '.' || node.op === '[]') && inner.op === 'id' && Object.hasOwn(OBJECTS, inner.args)) return node;
    // The argument of `has` is not evaluated.
    if (node.op === 'call' && node.args[0] === 'has') return node;
    node = inner;
  }
}
