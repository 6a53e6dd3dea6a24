import { type Actor, appendAudit } from '../audit/audit-log.ts';
import { LIMITS } from '../base/limits.ts';
import type { Database, Queryable } from '../db/database.ts';
import { readMarks } from '../graph/graph.ts';
import type { GraphSchema } from '../graph/graph-schema.ts';
import { GraphError, type GraphUpdate } from '../graph/graph-store.ts';
import { type Tuple, tupleKey } from '../graph/tuple.ts';
import type { Deliverer } from './deliver.ts';
import { type DeliveryStore, isRefusal, newestRevision } from './fenced-store.ts';
import { readMirror, readWanted } from './mirror.ts';
import { markDelivered, readPendingKeys } from './stream.ts';

/** Tuples that only the store or only the database has. */
export type Drift = {
  /** In the database, not in the store: a user lacks a right. */
  missing: Tuple[];
  /** In the store, not in the database: a user has a right too many. */
  extra: Tuple[];
  /** Tuples that were compared, and those left out because something that names them still waits for delivery. */
  compared: number;
  pending: number;
  repaired: boolean;
};

/** The store that was compared is not delivered to any more, so what differs says nothing. */
export class ReplacedStoreError extends GraphError {}

type DriftParts = { db: Database; deliverer: Deliverer; schema: GraphSchema };

/** Differences confirmed, and mended, in one turn of the stream: so long a revocation may have to wait. */
const CONFIRMED_AT_ONCE = 500;
const READS_AT_ONCE = 16;

/**
 * Compares the graph store with `authz_tuples`. Both are read while deliveries go on; only what differs is looked at again while nothing is
 * delivered, a few hundred tuples at a time.
 *
 * @throws GraphError when the store does not answer; ReplacedStoreError when another store has taken its place
 */
export function findDrift(parts: DriftParts, store: DeliveryStore): Promise<Drift> {
  return drift(parts, store, null);
}

/**
 * Compares the graph store with `authz_tuples` as `findDrift` does, and writes to the store what it lacks or has too much.
 *
 * @throws GraphError when the store does not answer; ReplacedStoreError when another store has taken its place
 */
export function repairDrift(parts: DriftParts, store: DeliveryStore, by: Actor): Promise<Drift> {
  return drift(parts, store, by);
}

async function drift(parts: DriftParts, store: DeliveryStore, repairedBy: Actor | null): Promise<Drift> {
  const marks = new Set((await readMarks(store, 'loaded')).map(mark => mark.subjectId));
  const { compared, differing } = await readBoth(parts, store);
  const found: Drift = { missing: [], extra: [], compared, pending: 0, repaired: false };
  for (let k = 0; k < differing.length; k += CONFIRMED_AT_ONCE) {
    const some = differing.slice(k, k + CONFIRMED_AT_ONCE);
    await parts.deliverer.withRest(async (client, writeTo, mark) => {
      if (mark === null || !marks.has(mark))
        throw new ReplacedStoreError(
          'unavailable',
          'the graph store was replaced while it was compared; compare again',
          null,
        );
      const { extra, missing, pending } = await confirm(parts, store, client, some);
      found.pending += pending;
      found.missing.push(...missing);
      found.extra.push(...extra);
      if (repairedBy === null || missing.length + extra.length === 0) return;
      const write = await writeTo(store);
      await appendAudit(client, repairedBy, {
        action: 'graph.repair',
        objectType: 'graph',
        objectId: 'store',
        after: { given: missing.length, taken: extra.length },
      });
      const token = await write([
        ...extra.map((tuple): GraphUpdate => ({ operation: 'delete', tuple })),
        ...missing.map((tuple): GraphUpdate => ({ operation: 'touch', tuple })),
      ]);
      // Which users these groups belong to is not known.
      await markDelivered(client, [], { token, users: null }, null);
      found.repaired = true;
    });
  }
  return found;
}

/** Tuples that only the store or only the mirror has; those delivered meanwhile may be among them. */
async function readBoth(
  { db, schema }: DriftParts,
  store: DeliveryStore,
): Promise<{ compared: number; differing: Tuple[] }> {
  const revision = await newestRevision(store);
  const differing = new Map<string, Tuple>();
  for (const type of schema.types.values()) {
    if (type.relations.size === 0) continue;
    const at = revision === '' ? 'latest' : { exactly: revision };
    for await (const page of store.pages({ resourceType: type.name }, at))
      for (const tuple of page) differing.set(tupleKey(tuple), tuple);
  }
  let compared = 0;
  await readMirror(db, LIMITS.graphUpdatesMax, async page => {
    compared += page.length;
    for (const tuple of page) if (!differing.delete(tupleKey(tuple))) differing.set(tupleKey(tuple), tuple);
  });
  return { compared, differing: [...differing.values()] };
}

/** A store with the schema of another release holds nothing of what it does not know. */
function noneIfRefused(error: unknown): Tuple[] {
  if (isRefusal(error)) return [];
  throw error;
}

/** Which of these tuples differ while nothing is delivered; what something waits to change is left out. */
async function confirm(
  { schema }: DriftParts,
  store: DeliveryStore,
  client: Queryable,
  tuples: readonly Tuple[],
): Promise<Pick<Drift, 'missing' | 'extra' | 'pending'>> {
  const inStore = new Set<string>();
  const queue = tuples.filter(t => schema.types.get(t.resourceType)?.relations.has(t.relation) === true);
  const reader = async (): Promise<void> => {
    for (let t = queue.pop(); t !== undefined; t = queue.pop())
      for (const found of await store.read(t).catch(noneIfRefused)) inStore.add(tupleKey(found));
  };
  await Promise.all(Array.from({ length: READS_AT_ONCE }, reader));
  const wanted = await readWanted(client, tuples);
  // Read last: what was committed until the mirror was read is in it.
  const busy = await readPendingKeys(client);
  const confirmed: Pick<Drift, 'missing' | 'extra' | 'pending'> = { missing: [], extra: [], pending: 0 };
  for (const tuple of tuples) {
    const [has, wants] = [inStore.has(tupleKey(tuple)), wanted.has(tupleKey(tuple))];
    if (has === wants) continue;
    if (busy.has(`${tuple.resourceType}:${tuple.resourceId}`) || busy.has(`${tuple.subjectType}:${tuple.subjectId}`))
      confirmed.pending++;
    else (wants ? confirmed.missing : confirmed.extra).push(tuple);
  }
  return confirmed;
}
