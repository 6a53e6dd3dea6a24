import { type BoundedCache, boundedCache } from '../base/bounded-cache.ts';
import { LIMITS } from '../base/limits.ts';
import type { Queryable } from '../db/database.ts';
import type { Graph } from '../graph/graph.ts';
import { GraphError } from '../graph/graph-store.ts';
import { type PolicyUser, withoutGroups } from './policy.ts';

/** A snapshot of the facts about a user that policies use (docs/authorization.md "What a policy knows"). */
export type SubjectContext = {
  user: PolicyUser;
  roles: ReadonlySet<string>;
  /** Whether `user.groups` was looked up. That costs a call to the graph, and not every policy uses it. */
  hasGroups: boolean;
  assembledAt: number;
};

export type FactsSql = {
  id: string;
  external_id: string | null;
  primary_channel: string | null;
  locale: string;
  nationality_type: string | null;
  funding_type: string | null;
  education_form: string | null;
  roles: string[];
};

/** Attributes of a user `u`; the roles come with them in the same statement. */
export const FACTS =
  'u.id, u.external_id, u.primary_channel, u.locale, u.nationality_type, u.funding_type, u.education_form';
const ROLES = 'ARRAY(SELECT role FROM user_roles r WHERE r.global_user_id = u.id ORDER BY role) AS roles';

/** The attributes as policies name them; one that is not set is an empty text. */
export const factsOf = (r: FactsSql): Omit<PolicyUser, 'groups'> => ({
  id: BigInt(r.id),
  external_id: r.external_id ?? '',
  roles: r.roles,
  primary_channel: r.primary_channel ?? '',
  locale: r.locale,
  nationality_type: r.nationality_type ?? '',
  funding_type: r.funding_type ?? '',
  education_form: r.education_form ?? '',
});

/**
 * Caches contexts of users for 30 s (docs/authorization.md "Caches"), and removes them at once when their facts change:
 * roles and attributes at the commit, groups when the change has reached the graph.
 */
export class SubjectContexts {
  readonly #db: Queryable;
  readonly #graph: Pick<Graph, 'lookupResources'>;
  readonly #now: () => number;
  readonly #cache: BoundedCache<number, SubjectContext>;
  /** Cached users by their ids in the graph. */
  readonly #byExternalId = new Map<string, number>();
  /** Contexts being loaded; concurrent callers share one load. */
  readonly #loading = new Map<string, Promise<SubjectContext | null>>();
  /** Grows with every change; a context read before a change is not cached. */
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

  /** The cached context, if any; with groups if a policy needed them. */
  peek(userId: number): SubjectContext | undefined {
    return this.#cache.get(userId);
  }

  /**
   * Loads a context.
   *
   * @returns null if there is no such user
   * @throws GraphError if the groups are needed and the graph does not answer
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
    const { rows } = await this.#db.query<FactsSql>(`SELECT ${FACTS}, ${ROLES} FROM global_users u WHERE u.id = $1`, [
      userId,
    ]);
    const facts = rows[0];
    if (facts === undefined) return null;
    const user = factsOf(facts);
    const externalId = user.external_id;
    const context: SubjectContext = {
      user: withGroups ? { ...user, groups: await this.lookupGroups(externalId) } : withoutGroups(user),
      roles: new Set(facts.roles),
      hasGroups: withGroups,
      assembledAt,
    };
    if (changes !== this.#changes) return context;
    // A context with groups also serves policies that do not need them.
    if (withGroups || this.#cache.peek(userId)?.hasGroups !== true) {
      this.#cache.set(userId, context);
      if (externalId !== '') this.#byExternalId.set(externalId, userId);
    }
    return context;
  }

  /** The study groups of a user, by id in the graph (docs/authorization.md "Relationship graph"). @throws GraphError */
  async lookupGroups(externalId: string): Promise<string[]> {
    if (externalId === '') return [];
    const groups = await this.#graph.lookupResources('study_group', 'view_own_data', externalId);
    // Bounds the work of a policy; no student is in so many groups.
    if (groups.length > LIMITS.userGroupsMax)
      throw new GraphError('refused', `${externalId} is in more than ${LIMITS.userGroupsMax} study groups`, null);
    return groups.sort();
  }

  /** Removes the context of a user; null: of all users. */
  invalidateUser(userId: number | null): void {
    this.#changes++;
    if (userId === null) this.#cache.clear();
    else this.#cache.delete(userId);
  }

  /** Removes contexts after a change of tuples, by ids in the graph; null: of all users. */
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
