import { Environment, type ParseResult } from '@marcbachmann/cel-js';
import { boundedCache } from '../base/bounded-cache.ts';
import { LIMITS } from '../base/limits.ts';
import type { ServicePrincipal } from '../base/principal.ts';
import { checkKey } from '../graph/graph.ts';
import type { GraphSchema } from '../graph/graph-schema.ts';
import { type GraphCheck, GraphError } from '../graph/graph-store.ts';
import { type ASTNode, childrenOf, extents, isComprehension, PolicyError, patternOf } from './policy-ast.ts';
import { findMistakes, MENDED, policyErrorOf, together } from './policy-mistakes.ts';
import { OBJECTS, schemaErrors } from './policy-subset.ts';

/** The object `user` of policies (docs/authorization.md "What a policy knows"). Unknown attributes are empty texts. */
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

/** The caller in a policy. A service key is not a user (docs/access.md "The decision"). */
export type PolicySubject = { kind: 'user'; user: PolicyUser; roles: ReadonlySet<string> } | ServicePrincipal;

/** The result of one pass over a policy. */
export type PolicyPass =
  | { kind: 'result'; allowed: boolean }
  /**
   * It depends on the graph: make these checks, store the answers in the memo, pass again. `groups`: the user's groups
   * are needed too.
   */
  | { kind: 'needs'; checks: ReadonlyMap<string, GraphCheck>; groups: boolean }
  | { kind: 'failed'; error: PolicyError };

export type CompiledPolicy = {
  source: string;
  run: ParseResult;
};

/** What the graph says to a check; a refusal is an error of that check alone, as a division by zero is of the division. */
export type GraphAnswer = boolean | GraphError;

/** Answers of the graph by check, for one evaluation: those that were asked for, and those that are known without. */
export type GraphMemo = {
  get(key: string, check: GraphCheck): GraphAnswer | undefined;
  set(key: string, answer: GraphAnswer): void;
  readonly size: number;
};

const LIMIT_OPTIONS = { maxAstNodes: 400, maxDepth: 24, maxListElements: 64, maxMapEntries: 16, maxCallArguments: 16 };
/** Longest text for `re_match`; RE2 takes time linear in the text. */
const MATCHED_CHARS_MAX = 200;
/** Largest number of parts whose values are shown, and time to compute them. */
const PARTS_MAX = 100;
const PARTS_MS = 250;
/**
 * Compiled policies in the cache. They do not expire (docs/authorization.md "Caches"); the number is more than
 * administrators write.
 */
const COMPILED_MAX = 10_000;

/** Thrown where an answer of the graph is missing. One object for all, because its contents are not read. */
const UNKNOWN = new Error('not asked yet');
const NO_USER = new Error('a service key is not a user; check principal.kind first');

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
  if (current === null) throw new Error('bug: a policy was evaluated outside of passPolicy');
  const { memo, needs, subject } = current;
  if (subject.kind === 'service') throw NO_USER;
  // A user without a university record is not in the graph.
  if (subject.user.external_id === '') return false;
  const check: GraphCheck = {
    resourceType,
    resourceId,
    permission,
    subjectType: 'user',
    subjectId: subject.user.external_id,
  };
  const key = checkKey(check);
  const known = memo.get(key, check);
  if (known instanceof GraphError) throw known;
  if (known !== undefined) return known;
  if (memo.size + needs.size >= LIMITS.policyChecksMax) current.tooMany = true;
  else needs.set(key, check);
  throw UNKNOWN;
}

/**
 * A user whose groups are not looked up yet, because that costs a call to the graph and not every result depends on
 * them.
 */
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
/** Compiled policies, or the mistakes of invalid ones, by text. */
const compiled = boundedCache<string, CompiledPolicy | PolicyError>({ max: COMPILED_MAX });

/**
 * Compiles a policy. Caches the result by text, also for an invalid policy.
 *
 * @throws PolicyError if it is not CEL, uses an unknown name, is not boolean, could cost too much, or uses a construct
 * that the
 *   library evaluates differently from the CEL specification; `all` has every mistake
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
 * Compiles a policy before it is saved, and checks that the graph schema has the types and permissions it names.
 *
 * @throws PolicyError with all mistakes in `all`
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
    // The policy cannot be parsed, which is reported already.
    return [];
  }
}

function variablesOf(subject: PolicySubject) {
  return subject.kind === 'user'
    ? { user: subject.user, principal: { kind: 'user', service_key_id: 0n } }
    : { principal: { kind: 'service', service_key_id: BigInt(subject.keyId) } };
}

/** Whether an evaluation may read the groups of the user, which cost more than all other facts. */
export function mayReadGroups(source: string): boolean {
  const reads = (node: ASTNode): boolean => {
    if (node.op === 'id') return node.args === 'user';
    const [object, attribute] = node.op === '.' ? node.args : [];
    if (object?.op === 'id' && object.args === 'user') return attribute === 'groups';
    return childrenOf(node).some(reads);
  };
  return source !== '' && reads(compilePolicy(source).run.ast);
}

/** Runs a policy once. @returns its result, and the answers that were missing */
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
 * Evaluates a policy with the known answers. Returns a result if it does not depend on missing answers. Otherwise
 * returns all checks that may be needed, so that one call to the graph answers them together
 * (docs/authorization.md "Asking the graph").
 */
export function passPolicy(policy: CompiledPolicy, subject: PolicySubject, memo: GraphMemo): PolicyPass {
  const { error, pass, value } = passOver(policy.run, subject, memo);
  if (error === null) return { kind: 'result', allowed: value === true };
  if (pass.tooMany)
    return {
      kind: 'failed',
      error: new PolicyError(
        `a policy may make ${LIMITS.policyChecksMax} graph checks (policyChecksMax)`,
        0,
        policy.source.length,
      ),
    };
  if (pass.needs.size > 0 || pass.groups) return { kind: 'needs', checks: pass.needs, groups: pass.groups };
  return { kind: 'failed', error: policyErrorOf(error, policy.source) };
}

/** A part of a policy and its value; a part that was not needed has none. */
export type PartValue = { expression: string; start: number; end: number; value?: unknown; error?: string };

/**
 * The parts of a policy with their values, outermost first. Leaves out parts that depend on a variable of all, exists,
 * map or filter. The expression of a part is its text in the source.
 */
export function partsOf(policy: CompiledPolicy, subject: PolicySubject, memo: GraphMemo): PartValue[] {
  const { source } = policy;
  const out: PartValue[] = [];
  const extentOf = extents(source);
  const until = performance.now() + PARTS_MS;
  const visit = (node: ASTNode): void => {
    if (node.op === 'value' || node.op === 'id' || out.length >= PARTS_MAX) return;
    // Each part is evaluated separately, on the main thread, so the time is bounded.
    if (performance.now() > until) return;
    const [start, end] = extentOf(node);
    const expression = source.slice(start, end);
    out.push({ expression, start, end, ...partValue(expression, subject, memo) });
    // The list is a part; the body has no single value.
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

/** A CEL value for JSON; whole numbers beyond 2^53 become text. */
function plain(value: unknown): unknown {
  if (typeof value === 'bigint') return Number.isSafeInteger(Number(value)) ? Number(value) : String(value);
  if (Array.isArray(value)) return value.map(plain);
  if (['string', 'number', 'boolean'].includes(typeof value) || value === null) return value;
  return String(value);
}
