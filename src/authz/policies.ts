import { type BoundedCache, boundedCache } from '../base/bounded-cache.ts';
import { messageOf } from '../base/errors.ts';
import { LIMITS } from '../base/limits.ts';
import type { Principal } from '../base/principal.ts';
import { checkText, type Graph } from '../graph/graph.ts';
import { type GraphCheck, GraphError } from '../graph/graph-store.ts';
import type { PermittedUsers } from './permitted-users.ts';
import {
  type CompiledPolicy,
  compilePolicy,
  type GraphMemo,
  type PartValue,
  type PolicyPass,
  type PolicySubject,
  partsOf,
  passPolicy,
  withoutGroups,
} from './policy.ts';
import { PolicyError } from './policy-ast.ts';
import type { SubjectContext, SubjectContexts } from './subject-context.ts';

/** A graph check, and how long the call with it took; 0 if the answer was cached. */
export type AskedCheck = { check: string; allowed: boolean; ms: number };

/** The result of a policy, and how it was reached. */
export type PolicyVerdict = {
  kind: 'allowed' | 'denied' | 'failed' | 'unavailable';
  /** Why it failed, or what is unavailable; otherwise empty. */
  reason: string;
  /** Position in the policy at which it failed. */
  start?: number;
  end?: number;
  rounds: number;
  checks: readonly AskedCheck[];
  /** Age of the user's context; null for a service key. */
  contextAgeMs: number | null;
};

/** A verdict with the values of all parts, for administrators. */
export type PolicyTrial = { verdict: PolicyVerdict; parts: PartValue[]; context: SubjectContext };

const NO_CHECKS: readonly AskedCheck[] = [];
/** Interval between reports of the same policy that does not compile. */
const REPORT_MS = 60_000;

/** Where answers of the graph come from; `recall`: cached ones count. */
type Answers = { recall: boolean; check(check: GraphCheck): Promise<boolean> };

type Evaluation = {
  answers: Answers;
  policy: CompiledPolicy;
  subject: PolicySubject;
  memo: GraphMemo;
  checks: AskedCheck[];
  assembledAt: number | null;
  /** The user whose groups are looked up if the result depends on them; null for none. */
  userId: number | null;
};

/**
 * Evaluates policies. Decides synchronously if all needed answers are cached; otherwise asks the graph, with all
 * missing checks in one call, at most four times (docs/authorization.md "Asking the graph").
 */
export class Policies {
  readonly #contexts: SubjectContexts;
  readonly #graph: Pick<Graph, 'check' | 'peek'>;
  readonly #answers: Answers;
  readonly #now: () => number;
  readonly #report: (source: string, reason: string) => void;
  /** Policies reported within the last minute. */
  readonly #reported: BoundedCache<string, object>;

  /** @param report called for a stored policy that does not compile, at most once a minute */
  constructor(
    contexts: SubjectContexts,
    graph: Pick<Graph, 'check' | 'peek'>,
    now: () => number,
    report: (source: string, reason: string) => void = () => {},
  ) {
    this.#contexts = contexts;
    this.#graph = graph;
    this.#answers = { recall: true, check: c => graph.check(c) };
    this.#now = now;
    this.#report = report;
    this.#reported = boundedCache({ max: 1000, ttlMs: REPORT_MS, now });
  }

  /** Decides whether a policy admits a caller; a policy that cannot be evaluated does not. */
  decide(source: string, caller: Principal): PolicyVerdict | Promise<PolicyVerdict> {
    let policy: CompiledPolicy;
    try {
      policy = compilePolicy(source);
    } catch (error) {
      return this.#broken(source, error);
    }
    if (caller.kind === 'service') return this.#first(policy, caller, null, null);
    const context = this.#contexts.peek(caller.userId);
    if (context === undefined) return this.#decideLater(policy, caller.userId, false);
    return this.#first(policy, subjectOf(context), context.assembledAt, caller.userId);
  }

  /**
   * Decides about a user whose context the caller has read, with groups where the policy reads them.
   *
   * @param permitted answers of the graph, instead of those of `decide`
   */
  decideFor(
    source: string,
    context: SubjectContext,
    permitted: PermittedUsers,
  ): PolicyVerdict | Promise<PolicyVerdict> {
    let policy: CompiledPolicy;
    try {
      policy = compilePolicy(source);
    } catch (error) {
      return this.#broken(source, error);
    }
    const live = { recall: false, check: (check: GraphCheck) => permitted.check(check) };
    return this.#first(policy, subjectOf(context), context.assembledAt, null, permitted.memo(), live);
  }

  /** The verdict of a stored policy that does not compile in this release: it admits no caller. */
  #broken(source: string, error: unknown): PolicyVerdict {
    const place = error instanceof PolicyError ? error : undefined;
    const reason = `the stored policy does not compile: ${messageOf(error)}`;
    if (this.#reported.get(source) === undefined) {
      this.#reported.set(source, {});
      this.#report(source, reason);
    }
    return failed(0, NO_CHECKS, null, reason, place);
  }

  async #decideLater(policy: CompiledPolicy, userId: number, withGroups: boolean): Promise<PolicyVerdict> {
    try {
      const context = await this.#contexts.load(userId, withGroups);
      if (context === null) return failed(0, NO_CHECKS, null, `there is no user ${userId}`);
      return await this.#first(policy, subjectOf(context), context.assembledAt, userId);
    } catch (error) {
      if (!(error instanceof GraphError)) throw error;
      return unanswered(error, 0, NO_CHECKS, null);
    }
  }

  /** @param userId user whose groups are looked up if the result depends on them; null for none */
  #first(
    policy: CompiledPolicy,
    subject: PolicySubject,
    assembledAt: number | null,
    userId: number | null,
    memo: GraphMemo = new Map(),
    answers: Answers = this.#answers,
  ): PolicyVerdict | Promise<PolicyVerdict> {
    let pass = passPolicy(policy, subject, memo);
    if (pass.kind === 'needs' && pass.groups)
      return userId === null ? unanswered(NO_GROUPS, 0, NO_CHECKS, null) : this.#decideLater(policy, userId, true);
    const checks: AskedCheck[] = [];
    // If all answers are cached, decides without a promise.
    while (pass.kind === 'needs' && answers.recall && this.#recall(pass.checks, memo, checks))
      pass = passPolicy(policy, subject, memo);
    if (pass.kind === 'needs')
      return this.#ask({ answers, policy, subject, memo, checks, assembledAt, userId }, pass.checks);
    const age = assembledAt === null ? null : this.#now() - assembledAt;
    if (pass.kind === 'failed') return failed(0, checks, age, pass.error.message, pass.error);
    return { kind: pass.allowed ? 'allowed' : 'denied', reason: '', rounds: 0, checks, contextAgeMs: age };
  }

  /** Copies cached answers into the memo. @returns whether all needed answers were cached */
  #recall(needs: ReadonlyMap<string, GraphCheck>, memo: GraphMemo, checks: AskedCheck[]): boolean {
    const found = new Map<string, boolean>();
    const before = checks.length;
    for (const [key, check] of needs) {
      const allowed = this.#graph.peek(check);
      if (allowed === undefined) {
        checks.length = before;
        return false;
      }
      checks.push({ check: checkText(check), allowed, ms: 0 });
      found.set(key, allowed);
    }
    for (const [key, allowed] of found) memo.set(key, allowed);
    return true;
  }

  async #ask(e: Evaluation, firstNeeds: ReadonlyMap<string, GraphCheck>): Promise<PolicyVerdict> {
    const age = e.assembledAt === null ? null : this.#now() - e.assembledAt;
    let needs = firstNeeds;
    for (let rounds = 1; ; rounds++) {
      if (rounds > LIMITS.policyRoundsMax || e.memo.size + needs.size > LIMITS.policyChecksMax)
        return failed(
          rounds - 1,
          e.checks,
          age,
          `a policy may ask the graph ${LIMITS.policyRoundsMax} times, ${LIMITS.policyChecksMax} questions in all`,
        );
      const startedAt = performance.now();
      const asked = [...needs];
      try {
        const answers = await Promise.all(asked.map(([, check]) => e.answers.check(check).catch(refusal)));
        const ms = performance.now() - startedAt;
        asked.forEach(([key, check], k) => {
          const answer = answers[k] ?? false;
          e.memo.set(key, answer);
          if (typeof answer === 'boolean') e.checks.push({ check: checkText(check), allowed: answer, ms });
        });
      } catch (error) {
        if (!(error instanceof GraphError)) throw error;
        return unanswered(error, rounds, e.checks, age);
      }
      const pass = await this.#passWithGroups(e);
      if (pass instanceof GraphError) return unanswered(pass, rounds, e.checks, age);
      if (pass.kind === 'result')
        return { kind: pass.allowed ? 'allowed' : 'denied', reason: '', rounds, checks: e.checks, contextAgeMs: age };
      if (pass.kind === 'failed') return failed(rounds, e.checks, age, pass.error.message, pass.error);
      needs = pass.checks;
    }
  }

  /** One pass; looks up the groups if the answers of the graph have made the result depend on them. */
  async #passWithGroups(e: Evaluation): Promise<PolicyPass | GraphError> {
    const pass = passPolicy(e.policy, e.subject, e.memo);
    if (pass.kind !== 'needs' || !pass.groups) return pass;
    if (e.userId === null) return NO_GROUPS;
    try {
      const context = await this.#contexts.load(e.userId, true);
      if (context === null) return NO_GROUPS;
      e.subject = subjectOf(context);
    } catch (error) {
      if (error instanceof GraphError) return error;
      throw error;
    }
    return passPolicy(e.policy, e.subject, e.memo);
  }

  /**
   * Evaluates a policy like `decide`, and returns the values of all parts.
   *
   * @param overrides attributes that replace the user's own
   * @returns null if there is no such user
   * @throws PolicyError
   */
  async tryOut(
    source: string,
    userId: number,
    overrides: Partial<SubjectContext['user']>,
  ): Promise<PolicyTrial | null> {
    const policy = compilePolicy(source);
    const context = await this.#contexts.load(userId, false);
    if (context === null) return null;
    const externalId = overrides.external_id ?? context.user.external_id;
    const groups = overrides.groups ?? (await this.#contexts.lookupGroups(externalId).catch(notKnown));
    const facts = { ...context.user, ...overrides };
    const user = groups === null ? withoutGroups(facts) : { ...facts, groups };
    const subject: PolicySubject = { kind: 'user', user, roles: new Set(user.roles) };
    const memo: GraphMemo = new Map();
    const live = { ...this.#answers, recall: false };
    const verdict = await this.#first(policy, subject, context.assembledAt, null, memo, live);
    return {
      verdict,
      parts: partsOf(policy, subject, memo),
      context: { ...context, user, hasGroups: groups !== null },
    };
  }
}

const NO_GROUPS = new GraphError('unavailable', 'the groups of the user cannot be looked up', null);

/** Continues without groups that cannot be looked up; a policy that does not use them can still be tried. */
function notKnown(error: unknown): null {
  if (error instanceof GraphError) return null;
  throw error;
}

const subjectOf = (c: SubjectContext): PolicySubject => ({ kind: 'user', user: c.user, roles: c.roles });

function failed(
  rounds: number,
  checks: readonly AskedCheck[],
  contextAgeMs: number | null,
  reason: string,
  place?: PolicyError,
): PolicyVerdict {
  const where = place === undefined ? {} : { start: place.start, end: place.end };
  return { kind: 'failed', reason, ...where, rounds, checks, contextAgeMs };
}

/**
 * The verdict without an answer: `unavailable` if the store is unavailable, `failed` if it refuses the check as wrong.
 */
/** The refusal of one check, which the rest of the policy may do without. */
function refusal(error: unknown): GraphError {
  if (error instanceof GraphError && error.kind === 'refused') return error;
  throw error;
}

function unanswered(
  error: GraphError,
  rounds: number,
  checks: readonly AskedCheck[],
  age: number | null,
): PolicyVerdict {
  if (error.kind === 'refused') return failed(rounds, checks, age, error.message);
  return { kind: 'unavailable', reason: error.message, rounds, checks, contextAgeMs: age };
}
