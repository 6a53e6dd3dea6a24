import { Environment, type ParseResult } from '@marcbachmann/cel-js';
import { boundedCache } from '../base/bounded-cache.ts';
import { LIMITS } from '../base/limits.ts';
import { checkKey } from '../graph/graph.ts';
import type { GraphSchema } from '../graph/graph-schema.ts';
import type { GraphCheck } from '../graph/graph-store.ts';
import { type ASTNode, childrenOf, extents, isComprehension, PolicyError, patternOf } from './policy-ast.ts';
import { findMistakes, MENDED, policyErrorOf, together } from './policy-mistakes.ts';
import { OBJECTS, schemaErrors } from './policy-subset.ts';

/** What a policy knows as `user` (docs/authorization.md "What a policy knows"). Unknown attributes are empty texts. */
export type PolicyUser = {
  id: bigint;
  external_id: string;
  groups: readonly string[];
  roles: readonly string[];
  primary_channel: string;
  locale: string;
  nationality_type: string;
  funding_type: string;
  education_form: string;
};

/** Who calls, as a policy sees it. A service key is no user (docs/access.md "The decision"). */
export type PolicySubject =
  | { kind: 'user'; user: PolicyUser; roles: ReadonlySet<string> }
  | { kind: 'service'; serviceKeyId: number };

/** What one pass over a policy came to. */
export type PolicyPass =
  | { kind: 'result'; allowed: boolean }
  /** It depends on the graph; ask, remember, and pass again. `groups`: on the groups of the user, which were not looked up. */
  | { kind: 'needs'; checks: ReadonlyMap<string, GraphCheck>; groups: boolean }
  | { kind: 'failed'; error: PolicyError };

export type CompiledPolicy = {
  source: string;
  run: ParseResult;
};

/** Answers of the graph by question, for one evaluation. */
export type GraphMemo = Map<string, boolean>;

const LIMIT_OPTIONS = { maxAstNodes: 400, maxDepth: 24, maxListElements: 64, maxMapEntries: 16, maxCallArguments: 16 };
/** RE2 takes time in proportion to the text. */
const MATCHED_CHARS_MAX = 200;
/** Parts of a policy whose values are shown, and the time to find them. */
const PARTS_MAX = 100;
const PARTS_MS = 250;
/** Kept without a time (docs/authorization.md "Caches"), as many as no administrator writes. */
const COMPILED_MAX = 10_000;

/** Raised where an answer of the graph is missing; made once, because its contents are not read. */
const UNKNOWN = new Error('not asked yet');
const NO_USER = new Error('a service key is no user; ask principal.kind first');

/** Set for the duration of one synchronous pass. */
type Pass = {
  subject: PolicySubject;
  memo: GraphMemo;
  needs: Map<string, GraphCheck>;
  groups: boolean;
  tooMany: boolean;
};
let current: Pass | null = null;

function askGraph(permission: string, resourceType: string, resourceId: string): boolean {
  if (current === null) throw new Error('policies are evaluated by Policies alone');
  const { memo, needs, subject } = current;
  if (subject.kind === 'service') throw NO_USER;
  // A user whom the university does not know has no name in the graph.
  if (subject.user.external_id === '') return false;
  const check: GraphCheck = {
    resourceType,
    resourceId,
    permission,
    subjectType: 'user',
    subjectId: subject.user.external_id,
  };
  const key = checkKey(check);
  const known = memo.get(key);
  if (known !== undefined) return known;
  if (memo.size + needs.size >= LIMITS.policyChecksMax) current.tooMany = true;
  else needs.set(key, check);
  throw UNKNOWN;
}

/** A user whose groups were not looked up: it costs a question to the graph, and not every answer depends on them. */
export function withoutGroups(user: Omit<PolicyUser, 'groups'>): PolicyUser {
  return Object.defineProperty({ ...user, groups: [] }, 'groups', {
    enumerable: true,
    get(): readonly string[] {
      if (current === null) return [];
      current.groups = true;
      throw UNKNOWN;
    },
  });
}

function hasRole(...names: string[]): boolean {
  const subject = current?.subject;
  if (subject?.kind !== 'user') throw NO_USER;
  return names.some(name => subject.roles.has(name));
}

function makeEnvironment(): Environment {
  const env = new Environment({ limits: LIMIT_OPTIONS });
  for (const [name, schema] of Object.entries(OBJECTS)) env.registerVariable({ name, schema: { ...schema } });
  const sync = { async: false };
  env.registerFunction('check(string, string, string): bool', askGraph, sync);
  env.registerFunction(
    'is_member(string, string): bool',
    (type: string, id: string) => askGraph('member', type, id),
    sync,
  );
  env.registerFunction('has_role(string): bool', hasRole, sync);
  for (let n = 1; n <= LIMIT_OPTIONS.maxCallArguments; n++)
    env.registerFunction(`has_any_role(${Array(n).fill('string').join(', ')}): bool`, hasRole, sync);
  env.registerFunction(
    're_match(string, string): bool',
    (text: string, pattern: string) => {
      if (text.length > MATCHED_CHARS_MAX) throw new Error(`a text of more than ${MATCHED_CHARS_MAX} characters`);
      return patternOf(pattern).test(text);
    },
    sync,
  );
  return env;
}

const env = makeEnvironment();
const mendingEnv = env.clone().registerVariable(MENDED, 'dyn');
/** Policies by their text, and what is wrong with those that may not be. */
const compiled = boundedCache<string, CompiledPolicy | PolicyError>({ max: COMPILED_MAX });

/**
 * Compiles a policy; the result is remembered by its text, a refusal as well.
 *
 * @throws PolicyError when it is not CEL, names something unknown, is not boolean, could cost too much, or holds what the
 *   library evaluates in another way than CEL says; every mistake is in `all`
 */
export function compilePolicy(source: string): CompiledPolicy {
  let known = compiled.get(source);
  if (known === undefined) {
    known = compile(source);
    compiled.set(source, known);
  }
  if (known instanceof PolicyError) throw known;
  return known;
}

function compile(source: string): CompiledPolicy | PolicyError {
  if (source.length > LIMITS.policyCharsMax)
    return new PolicyError(
      `a policy has at most ${LIMITS.policyCharsMax} characters`,
      LIMITS.policyCharsMax,
      source.length,
    );
  try {
    const run = env.parse(source);
    const errors = findMistakes(source, run, text => mendingEnv.parse(text));
    return errors === null ? { source, run } : errors;
  } catch (error) {
    return policyErrorOf(error, source);
  }
}

/**
 * Compiles a policy that is to be saved: what it asks the graph must be something the graph has.
 *
 * @throws PolicyError with every mistake in `all`
 */
export function compileForSaving(source: string, schema: GraphSchema): CompiledPolicy {
  let policy: CompiledPolicy | null = null;
  let wrong: readonly PolicyError[] = [];
  try {
    policy = compilePolicy(source);
  } catch (error) {
    if (!(error instanceof PolicyError)) throw error;
    wrong = error.all;
  }
  const error = together([...wrong, ...graphMistakes(source, policy, schema)]);
  if (error !== null) throw error;
  if (policy === null) throw new Error('a policy that does not compile has a mistake');
  return policy;
}

function graphMistakes(source: string, policy: CompiledPolicy | null, schema: GraphSchema): PolicyError[] {
  try {
    const tooLong = source.length > LIMITS.policyCharsMax;
    return tooLong ? [] : schemaErrors(policy?.run.ast ?? env.parse(source).ast, schema);
  } catch {
    // It cannot be parsed, which is told already.
    return [];
  }
}

function variablesOf(subject: PolicySubject) {
  return subject.kind === 'user'
    ? { user: subject.user, principal: { kind: 'user', service_key_id: 0n } }
    : { principal: { kind: 'service', service_key_id: BigInt(subject.serviceKeyId) } };
}

/** @returns what it came to, and what it stumbled over */
function passOver(
  run: ParseResult,
  subject: PolicySubject,
  memo: GraphMemo,
): { value: unknown; error: unknown; pass: Pass } {
  const pass: Pass = { subject, memo, needs: new Map(), groups: false, tooMany: false };
  current = pass;
  try {
    return { value: run(variablesOf(subject)), error: null, pass };
  } catch (error) {
    return { value: undefined, error, pass };
  } finally {
    current = null;
  }
}

/**
 * Evaluates a policy with what is known. An answer that does not depend on what is unknown comes at once; otherwise every
 * check that may be needed is named, so that one question to the graph answers them together (docs/authorization.md "Asking the graph").
 */
export function passPolicy(policy: CompiledPolicy, subject: PolicySubject, memo: GraphMemo): PolicyPass {
  const { error, pass, value } = passOver(policy.run, subject, memo);
  if (error === null) return { kind: 'result', allowed: value === true };
  if (pass.tooMany)
    return {
      kind: 'failed',
      error: new PolicyError(`a policy may ask the graph ${LIMITS.policyChecksMax} questions`, 0, policy.source.length),
    };
  if (pass.needs.size > 0 || pass.groups) return { kind: 'needs', checks: pass.needs, groups: pass.groups };
  return { kind: 'failed', error: policyErrorOf(error, policy.source) };
}

/** A part of a policy and what it came to; a part that was not needed has no value. */
export type PartValue = { expression: string; start: number; end: number; value?: unknown; error?: string };

/**
 * Every part of a policy by itself, outermost first; those that hang on a variable of all, exists, map or filter are left out.
 * A part is read out of the source as it stands there.
 */
export function partsOf(policy: CompiledPolicy, subject: PolicySubject, memo: GraphMemo): PartValue[] {
  const { source } = policy;
  const out: PartValue[] = [];
  const extentOf = extents(source);
  const until = performance.now() + PARTS_MS;
  const visit = (node: ASTNode): void => {
    if (node.op === 'value' || node.op === 'id' || out.length >= PARTS_MAX) return;
    // Each part is evaluated by itself, on the thread that answers everybody.
    if (performance.now() > until) return;
    const [start, end] = extentOf(node);
    const expression = source.slice(start, end);
    out.push({ expression, start, end, ...partValue(expression, subject, memo) });
    // The list is a part; the body has no value of its own.
    if (isComprehension(node)) return void childrenOf(node).slice(0, 1).forEach(visit);
    childrenOf(node).forEach(visit);
  };
  visit(policy.run.ast);
  return out;
}

function partValue(expression: string, subject: PolicySubject, memo: GraphMemo): Pick<PartValue, 'value' | 'error'> {
  try {
    const { error, pass, value } = passOver(env.parse(expression), subject, memo);
    if (error === null) return { value: plain(value) };
    if (pass.needs.size > 0 || pass.groups) return {};
    return { error: policyErrorOf(error, expression).message };
  } catch (error) {
    return { error: policyErrorOf(error, expression).message };
  }
}

/** A value of CEL as JSON shows it: whole numbers beyond 2^53 as text. */
function plain(value: unknown): unknown {
  if (typeof value === 'bigint') return Number.isSafeInteger(Number(value)) ? Number(value) : String(value);
  if (Array.isArray(value)) return value.map(plain);
  if (['string', 'number', 'boolean'].includes(typeof value) || value === null) return value;
  return String(value);
}
