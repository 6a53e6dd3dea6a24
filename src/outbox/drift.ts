import { type Actor, appendAudit } from '../audit/audit-log.ts';
import type { Queryable } from '../db/database.ts';
import type { GraphSchema } from '../graph/graph-schema.ts';
import type { GraphUpdate } from '../graph/graph-store.ts';
import { type Tuple, tupleKey } from '../graph/tuple.ts';
import { LIMITS } from '../limits.ts';
import type { Deliverer } from './deliver.ts';
import type { DeliveryStore } from './fenced-store.ts';
import { eachRelationship } from './mirror.ts';
import { markDelivered, readPendingKeys } from './stream.ts';

/** What the store and the database do not have in common. */
export type Drift = {
  /** In the database, not in the store: somebody lacks a right. */
  missing: Tuple[];
  /** In the store, not in the database: somebody has a right too many. */
  extra: Tuple[];
  /** Tuples that were compared, and those left out because something that names them still waits for delivery. */
  compared: number;
  pending: number;
  repaired: boolean;
};

type DriftParts = { deliverer: Deliverer; schema: GraphSchema };

/**
 * Compares the graph store with `authz_tuples` while nothing is delivered.
 *
 * @throws GraphError when the store does not answer
 */
export function findDrift(parts: DriftParts, store: DeliveryStore): Promise<Drift> {
  return parts.deliverer.withRest(client => compare(parts, store, client));
}

/**
 * The same, and mends the store.
 *
 * @throws GraphError when the store does not answer
 */
export function repairDrift(parts: DriftParts, store: DeliveryStore, by: Actor): Promise<Drift> {
  return parts.deliverer.withRest(async (client, writeTo) => {
    const write = await writeTo(store);
    const drift = await compare(parts, store, client);
    const updates: GraphUpdate[] = [
      ...drift.extra.map((tuple): GraphUpdate => ({ operation: 'delete', tuple })),
      ...drift.missing.map((tuple): GraphUpdate => ({ operation: 'touch', tuple })),
    ];
    if (updates.length === 0) return drift;
    await appendAudit(client, by, {
      action: 'graph.repair',
      objectType: 'graph',
      objectId: 'store',
      after: { given: drift.missing.length, taken: drift.extra.length },
    });
    // Nobody knows whose groups these were.
    await markDelivered(client, [], { token: await write(updates), users: null }, null);
    return { ...drift, repaired: true };
  });
}

async function compare({ schema }: DriftParts, store: DeliveryStore, client: Queryable): Promise<Drift> {
  const found = new Map<string, Tuple>();
  for (const type of schema.types.values()) {
    if (type.relations.size === 0) continue;
    for await (const page of store.pages({ resourceType: type.name }))
      for (const tuple of page) found.set(tupleKey(tuple), tuple);
  }
  const wanted = new Map<string, Tuple>();
  await eachRelationship(client, LIMITS.graphUpdatesMax, async page => {
    for (const tuple of page) wanted.set(tupleKey(tuple), tuple);
  });
  // Read last: what was committed until the mirror was read is in it.
  const busy = await readPendingKeys(client);
  const waits = (t: Tuple): boolean =>
    busy.has(`${t.resourceType}:${t.resourceId}`) || busy.has(`${t.subjectType}:${t.subjectId}`);
  let pending = 0;
  const only = (these: Map<string, Tuple>, those: Map<string, Tuple>): Tuple[] =>
    [...these].flatMap(([text, tuple]) => {
      if (those.has(text)) return [];
      if (!waits(tuple)) return [tuple];
      pending++;
      return [];
    });
  const [missing, extra] = [only(wanted, found), only(found, wanted)];
  return { missing, extra, compared: wanted.size, pending, repaired: false };
}
