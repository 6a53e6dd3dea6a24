import { LIMITS } from '../base/limits.ts';
import { assertAskable, type Graph } from '../graph/graph.ts';
import { type GraphCheck, GraphError } from '../graph/graph-store.ts';
import type { GraphAnswer, GraphMemo } from './policy.ts';

const objectOf = ({ permission, resourceId, resourceType }: GraphCheck): string =>
  [resourceType, resourceId, permission].join('\0');

/** Objects whose users are kept; checks of further ones are asked one by one. */
const OBJECTS_MAX = 1000;

/** The facts of one evaluation. There is one for each user and policy, so it is made of little. */
class Memo implements GraphMemo {
  readonly #known: ReadonlyMap<string, ReadonlySet<string>>;
  #answers: Map<string, GraphAnswer> | null = null;

  constructor(known: ReadonlyMap<string, ReadonlySet<string>>) {
    this.#known = known;
  }

  get size(): number {
    return this.#answers?.size ?? 0;
  }

  get(key: string, check: GraphCheck): GraphAnswer | undefined {
    const answer = this.#answers?.get(key);
    if (answer !== undefined || this.size >= LIMITS.policyChecksMax) return answer;
    const allowed = this.#known.get(objectOf(check))?.has(check.subjectId);
    // It counts like one that was asked for.
    if (allowed !== undefined) this.set(key, allowed);
    return allowed;
  }

  set(key: string, answer: GraphAnswer): void {
    this.#answers ??= new Map();
    this.#answers.set(key, answer);
  }
}

/**
 * Answers checks of a policy for many users: most policies name one object, so its users are looked up once instead of
 * asking for each user. It keeps what it has seen, so it lives no longer than one question of an administrator.
 */
export class PermittedUsers {
  readonly #graph: Pick<Graph, 'check' | 'lookupUsers'>;
  readonly #users = new Map<string, Promise<ReadonlySet<string>>>();
  /** The answers that have come. */
  readonly #known = new Map<string, ReadonlySet<string>>();

  constructor(graph: Pick<Graph, 'check' | 'lookupUsers'>) {
    this.#graph = graph;
  }

  /** Answers for one evaluation, which is over at once where all users that it asks about are known. */
  memo(): GraphMemo {
    return new Memo(this.#known);
  }

  /** Whether a user has a permission. @throws GraphError */
  async check(check: GraphCheck): Promise<boolean> {
    assertAskable(check);
    const { permission, resourceId, resourceType, subjectId, subjectType } = check;
    const key = objectOf(check);
    let users = this.#users.get(key);
    if (users === undefined) {
      if (subjectType !== 'user' || this.#users.size >= OBJECTS_MAX) return await this.#graph.check(check);
      users = this.#graph.lookupUsers(resourceType, resourceId, permission).then(ids => {
        const found = new Set(ids);
        this.#known.set(key, found);
        return found;
      });
      this.#users.set(key, users);
    }
    try {
      return (await users).has(subjectId);
    } catch (error) {
      // More users than the store lists in time: each is asked about.
      if (error instanceof GraphError && error.kind === 'unavailable') return await this.#graph.check(check);
      throw error;
    }
  }
}
