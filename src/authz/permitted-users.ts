import { assertAskable, type Graph } from '../graph/graph.ts';
import type { GraphCheck } from '../graph/graph-store.ts';

/** Objects whose users are kept; checks of further ones are asked one by one. */
const OBJECTS_MAX = 1000;

/**
 * Answers checks of a policy for many users: most policies name one object, so its users are looked up once instead of
 * asking for each user. It keeps what it has seen, so it lives no longer than one question of an administrator.
 */
export class PermittedUsers {
  readonly #graph: Pick<Graph, 'check' | 'lookupUsers'>;
  readonly #users = new Map<string, Promise<ReadonlySet<string>>>();

  constructor(graph: Pick<Graph, 'check' | 'lookupUsers'>) {
    this.#graph = graph;
  }

  /** Whether a user has a permission. @throws GraphError */
  async check(check: GraphCheck): Promise<boolean> {
    assertAskable(check);
    const { permission, resourceId, resourceType, subjectId, subjectType } = check;
    const key = [resourceType, resourceId, permission].join('\0');
    let users = this.#users.get(key);
    if (users === undefined) {
      if (subjectType !== 'user' || this.#users.size >= OBJECTS_MAX) return await this.#graph.check(check);
      users = this.#graph.lookupUsers(resourceType, resourceId, permission).then(ids => new Set(ids));
      this.#users.set(key, users);
    }
    return (await users).has(subjectId);
  }
}
