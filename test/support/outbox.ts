import { type Database, openDatabase } from '../../src/db/database.ts';
import { readGraphSchema } from '../../src/graph/graph-schema.ts';
import type { GraphStore } from '../../src/graph/graph-store.ts';
import { tupleText } from '../../src/graph/tuple.ts';
import { appendGraphChanges, type GraphChange } from '../../src/outbox/append.ts';
import type { CycleResult, Deliverer } from '../../src/outbox/deliver.ts';
import type { DeliveryStore } from '../../src/outbox/fenced-store.ts';
import { readMirror } from '../../src/outbox/mirror.ts';
import { makeDatabase } from './database.ts';
import { tuple } from './graph.ts';

export const schema = readGraphSchema();

/** A database of the test's own, closed and dropped with it; `open` opens it once more. */
export async function outboxDatabase(t: { teardown(fn: () => unknown): void }, url?: string) {
  const database = url === undefined ? await makeDatabase() : { url, drop: async () => {} };
  const opened: Database[] = [];
  const open = (): Database => {
    const db = openDatabase(database.url, 3, () => {});
    opened.push(db);
    return db;
  };
  t.teardown(async () => {
    for (const db of opened) await db.close();
    await database.drop();
  });
  return { url: database.url, db: open(), open };
}

export const append = (db: Database, ...changes: GraphChange[]) =>
  db.withTransaction(client => appendGraphChanges(client, schema, 'import', changes));

export const touch = (...texts: string[]): GraphChange => ({ operation: 'TOUCH', tuples: texts.map(tuple) });
export const remove = (...texts: string[]): GraphChange => ({ operation: 'DELETE', tuples: texts.map(tuple) });

/** Adds an entry that was given up: it would write one relationship. */
export async function addDeadEntry(databaseUrl: string, text: string): Promise<void> {
  const { relation, resourceId, resourceType, subjectId, subjectType } = tuple(text);
  const written = {
    ...{ resource_type: resourceType, resource_id: resourceId, relation },
    ...{ subject_type: subjectType, subject_id: subjectId },
  };
  const db = openDatabase(databaseUrl, 1, () => {});
  await db.query(
    `INSERT INTO authz_outbox (operation, payload, keys, attempts, last_error, dead_at)
     VALUES ('TOUCH', $1, ARRAY[$2], 10, 'the store refused it', now())`,
    [JSON.stringify({ tuples: [written] }), `${resourceType}:${resourceId}`],
  );
  await db.close();
}

/** Delivers until nothing may go; the last result. A store that is not ours is prepared, as the outbox does. */
export async function deliverAll(deliverer: Deliverer, store: DeliveryStore): Promise<CycleResult> {
  for (let k = 0; k < 50; k++) {
    const result = await deliverer.cycle(store);
    if (result.kind === 'fenced') await deliverer.prepare(store);
    else if (result.kind !== 'delivered') return result;
  }
  throw new Error('it delivers without end');
}

/** What the store holds of the graph, and what the database wants it to hold. */
export async function bothGraphs(db: Database, store: DeliveryStore) {
  const found: string[] = [];
  for (const type of schema.types.values())
    if (type.relations.size > 0) found.push(...(await store.read({ resourceType: type.name })).map(tupleText));
  const wanted: string[] = [];
  await readMirror(db, 1000, async page => void wanted.push(...page.map(tupleText)));
  return { found: found.sort(), wanted: wanted.sort() };
}

/** A store with some of its functions replaced. */
export const storeWith = (inner: GraphStore, own: Partial<DeliveryStore>): DeliveryStore => ({
  isOurs: false,
  readSchema: () => inner.readSchema(),
  writeSchema: s => inner.writeSchema(s),
  pages: (f, freshness) => inner.pages(f, freshness),
  revision: f => inner.revision(f),
  read: f => inner.read(f),
  write: (updates, conditions) => inner.write(updates, conditions),
  ...own,
});
