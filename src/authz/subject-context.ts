import { type BoundedCache, boundedCache } from '../base/bounded-cache.ts';
import { LIMITS } from '../base/limits.ts';
import type { Queryable } from '../db/database.ts';
import type { Graph } from '../graph/graph.ts';
import { GraphError } from '../graph/graph-store.ts';
import { type PolicyUser, withoutGroups } from './policy.ts';

/** What policies know of a user, as it was at one moment (docs/authorization.md "What a policy knows"). */
export type SubjectContext = {
  user: PolicyUser;
  roles: ReadonlySet<string>;
  /** Whether `user.groups` was looked up; it costs a question to the graph, and not every policy asks. */
  hasGroups: boolean;
  assembledAt: number;
};

type FactsSql = {
  id: string;
  external_id: string | null;
  primary_channel: string | null;
  locale: string;
  nationality_type: string | null;
  funding_type: string | null;
  education_form: string | null;
  roles: string[];
};

/** Attributes and roles in one statement. */
const FACTS = `SELECT u.id, u.external_id, u.primary_channel, u.locale, u.nationality_type, u.funding_type, u.education_form,
    ARRAY(SELECT role FROM user_roles r WHERE r.global_user_id = u.id ORDER BY role) AS roles
  FROM global_users u WHERE u.id = $1`;

/**
 * Contexts of users, remembered for 30 s (docs/authorization.md "Caches") and forgotten at once when something they hold changes: roles and
 * attributes when the change is committed, groups when it has reached the graph.
 */
export class SubjectContexts {
  readonly #db: Queryable;
  readonly #graph: Pick<Graph, 'lookupResources'>;
  readonly #now: () => number;
  readonly #cache: BoundedCache<number, SubjectContext>;
  /** Cached users by their names in the graph. */
  readonly #byExternalId = new Map<string, number>();
  /** Those being assembled: who asks meanwhile waits for the same. */
  readonly #loading = new Map<string, Promise<SubjectContext | null>>();
  /** Grows with every change: what was read before it is not remembered. */
  #changes = 0;

  constructor(db: Queryable, graph: Pick<Graph, 'lookupResources'>, now: () => number) {
    this.#db = db;
    this.#graph = graph;
    this.#now = now;
    this.#cache = boundedCache({
      max: LIMITS.subjectContextsMax,
      ttlMs: LIMITS.subjectContextMs,
      now,
      dropped: c => void this.#byExternalId.delete(c.user.external_id),
    });
  }

  /** The context, when it was assembled a moment ago; with groups if a policy needed them. */
  peek(userId: number): SubjectContext | undefined {
    return this.#cache.get(userId);
  }

  /**
   * Assembles a context.
   *
   * @returns null when there is no such user
   * @throws GraphError when the groups are wanted and the graph does not answer
   */
  load(userId: number, withGroups: boolean): Promise<SubjectContext | null> {
    const key = `${userId} ${withGroups} ${this.#changes}`;
    const loading =
      this.#loading.get(key) ?? this.#assemble(userId, withGroups).finally(() => this.#loading.delete(key));
    this.#loading.set(key, loading);
    return loading;
  }

  async #assemble(userId: number, withGroups: boolean): Promise<SubjectContext | null> {
    const changes = this.#changes;
    const assembledAt = this.#now();
    const { rows } = await this.#db.query<FactsSql>(FACTS, [userId]);
    const facts = rows[0];
    if (facts === undefined) return null;
    const externalId = facts.external_id ?? '';
    const user = {
      id: BigInt(facts.id),
      external_id: externalId,
      roles: facts.roles,
      primary_channel: facts.primary_channel ?? '',
      locale: facts.locale,
      nationality_type: facts.nationality_type ?? '',
      funding_type: facts.funding_type ?? '',
      education_form: facts.education_form ?? '',
    };
    const context: SubjectContext = {
      user: withGroups ? { ...user, groups: await this.lookupGroups(externalId) } : withoutGroups(user),
      roles: new Set(facts.roles),
      hasGroups: withGroups,
      assembledAt,
    };
    if (changes !== this.#changes) return context;
    // One with groups serves both kinds of policies.
    if (withGroups || this.#cache.peek(userId)?.hasGroups !== true) {
      this.#cache.set(userId, context);
      if (externalId !== '') this.#byExternalId.set(externalId, userId);
    }
    return context;
  }

  /** The study groups of a user by the name in the graph (docs/authorization.md "Relationship graph"). @throws GraphError */
  async lookupGroups(externalId: string): Promise<string[]> {
    if (externalId === '') return [];
    const groups = await this.#graph.lookupResources('study_group', 'view_own_data', externalId);
    // What a policy does with them must have a bound; no student has so many.
    if (groups.length > LIMITS.userGroupsMax)
      throw new GraphError('refused', `${externalId} is in more than ${LIMITS.userGroupsMax} study groups`, null);
    return groups.sort();
  }

  /** Something of a user changed; null: perhaps of everybody. */
  invalidateUser(userId: number | null): void {
    this.#changes++;
    if (userId === null) this.#cache.clear();
    else this.#cache.delete(userId);
  }

  /** Tuples of users by their names in the graph changed; null: perhaps everybody's. */
  invalidateGroups(externalIds: readonly string[] | null): void {
    if (externalIds === null) return this.invalidateUser(null);
    if (externalIds.length === 0) return;
    this.#changes++;
    for (const externalId of externalIds) {
      const userId = this.#byExternalId.get(externalId);
      if (userId !== undefined) this.#cache.delete(userId);
    }
  }
}
