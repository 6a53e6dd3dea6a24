import { randomInt } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import t from 'tap';
import { openDatabase } from '../../src/db/database.ts';
import { readGraphSchema } from '../../src/graph/graph-schema.ts';
import { GraphError, type GraphStore } from '../../src/graph/graph-store.ts';
import { matchesFilter, type Tuple, tupleText } from '../../src/graph/tuple.ts';
import { appendGraphChanges, type EntityFilter, type GraphChange, type Origin } from '../../src/outbox/append.ts';
import { Deliverer } from '../../src/outbox/deliver.ts';
import { findDrift } from '../../src/outbox/drift.ts';
import type { DeliveryStore } from '../../src/outbox/fenced-store.ts';
import { readMirror } from '../../src/outbox/mirror.ts';
import { makeDatabase } from '../support/database.ts';
import { random, startGraphStore } from '../support/graph.ts';

const schema = readGraphSchema();
const ROUNDS = Number(process.env.MODEL_ROUNDS ?? 200);
const seed = Number(process.env.MODEL_SEED ?? randomInt(2 ** 31));

type Done = { id: number; origin: Origin; change: GraphChange };

/**
 * What the operations mean, one after the other (docs/outbox.md "Entries", docs/university.md): an import leaves what
 * was given by hand.
 */
function applyTo(graph: Map<string, { tuple: Tuple; origin: Origin }>, { change, origin }: Done): void {
  const mine = (o: Origin): boolean => origin === 'manual' || o === 'import';
  if ('filter' in change)
    for (const [text, entry] of graph)
      if (matchesFilter(change.filter, entry.tuple) && mine(entry.origin)) graph.delete(text);
  if (!('tuples' in change)) return;
  for (const tuple of change.tuples) {
    const text = tupleText(tuple);
    const before = graph.get(text);
    if (change.operation !== 'DELETE')
      graph.set(text, { tuple, origin: before?.origin === 'manual' ? 'manual' : origin });
    else if (before !== undefined && mine(before.origin)) graph.delete(text);
  }
}

t.test(`with random operations, failures, lost sessions and two hosts the graph becomes what it should be`, async t => {
  t.comment(`seed ${seed}, MODEL_SEED=${seed} repeats it`);
  const rnd = random(seed);
  const pick = <T>(list: readonly T[]): T => list[Math.floor(rnd() * list.length)] as T;
  const { connect, store } = await startGraphStore(t);
  const database = await makeDatabase();
  const open = (size: number) => openDatabase(database.url, size, () => {});
  const producersDb = open(4);
  const hosts = [open(3), open(3)];
  t.teardown(async () => {
    for (const db of [producersDb, ...hosts]) await db.close();
    await database.drop();
  });
  // The same order of times as in service, two hundred times faster.
  await producersDb.query(
    "CREATE OR REPLACE FUNCTION authz_backoff(attempts int) RETURNS interval LANGUAGE sql IMMUTABLE AS $$ SELECT interval '10 ms' * least(attempts, 3) $$",
  );

  const group = () => `g${Math.floor(rnd() * 4)}`;
  const user = () => `u${Math.floor(rnd() * 5)}`;
  const anyTuple = (): Tuple => {
    const about = (resourceType: string, relation: string, subjectType: string, subjectId: string): Tuple => ({
      resourceType,
      resourceId: group(),
      relation,
      subjectType,
      subjectId,
      subjectRelation: '',
    });
    return pick([
      () => about('study_group', 'member', 'user', user()),
      () => about('study_group', 'teacher', 'user', user()),
      () => about('study_group', 'parent', 'stream', group()),
      () => about('system_role', 'member', 'user', user()),
    ])();
  };
  const anyChange = (): GraphChange => {
    const one = anyTuple();
    const tuples = [one, ...(rnd() < 0.4 ? [anyTuple()] : [])];
    const object: EntityFilter = { resourceType: one.resourceType, resourceId: one.resourceId };
    const subject: EntityFilter = {
      ...(rnd() < 0.5 ? { resourceType: one.resourceType, relation: one.relation } : {}),
      subjectType: one.subjectType,
      subjectId: one.subjectId,
    };
    return pick<() => GraphChange>([
      () => ({ operation: 'TOUCH', tuples }),
      () => ({ operation: 'TOUCH', tuples }),
      () => ({ operation: 'DELETE', tuples }),
      () => ({ operation: 'DELETE_BY_OBJECT', filter: object }),
      () => ({ operation: 'DELETE_BY_SUBJECT', filter: subject }),
      () => ({ operation: 'REPLACE', filter: { ...object, relation: one.relation }, tuples: [one] }),
    ])();
  };

  /** Writes that come too late, as those of a deliverer that hangs. */
  const late = new Set<Promise<unknown>>();
  const counts = { before: 0, after: 0, late: 0, refused: 0, sessions: 0, takeovers: 0, fenced: 0 };
  const away = (): GraphError => new GraphError('unavailable', 'injected', null);
  // The deletions of a filter are sent to an embedded store; a remote store is searched for them.
  const isOurs = rnd() < 0.5;
  const faulty = (inner: GraphStore): DeliveryStore => ({
    isOurs,
    readSchema: () => inner.readSchema(),
    writeSchema: s => inner.writeSchema(s),
    pages: (f, freshness) => inner.pages(f, freshness),
    revision: f => inner.revision(f),
    async read(f) {
      if (rnd() < 0.01) throw away();
      return await inner.read(f);
    },
    async write(updates, conditions) {
      const dice = rnd();
      if (dice < 0.04) {
        counts.before++;
        throw away();
      }
      if (dice < 0.1) {
        counts.late++;
        const write = sleep(rnd() * 60).then(() => inner.write(updates, conditions).catch(() => counts.fenced++));
        late.add(write);
        void write.then(() => late.delete(write));
        throw away();
      }
      if (dice < 0.13) {
        counts.refused++;
        throw new GraphError('refused', 'injected', null);
      }
      const token = await inner.write(updates, conditions);
      if (rnd() < 0.05) {
        counts.after++;
        throw away();
      }
      return token;
    },
  });

  const deliverers = hosts.map(db => ({ db, deliverer: new Deliverer(db, schema), store: faulty(connect()) }));
  await new Deliverer(producersDb, schema).prepare(store);
  const model = new Map<string, { tuple: Tuple; origin: Origin }>();

  for (let round = 0; round < ROUNDS; round++) {
    const done: Done[] = [];
    const produce = async (): Promise<void> => {
      for (let n = 0; n < 6; n++) {
        const changes = Array.from({ length: 1 + Math.floor(rnd() * 3) }, anyChange);
        const origin = pick<Origin>(['import', 'import', 'manual']);
        const rollBack = rnd() < 0.1;
        await producersDb
          .withTransaction(async client => {
            if (rnd() < 0.6) await sleep(rnd() * 15);
            const { firstId } = await appendGraphChanges(client, schema, origin, changes);
            if (rollBack) throw new Error('rolled back');
            return firstId;
          })
          .then(
            firstId => changes.forEach((change, k) => void done.push({ id: firstId + k, origin, change })),
            (error: unknown) => {
              if (!rollBack) throw error;
            },
          );
      }
    };
    let produced = false;
    const deliver = async (host: (typeof deliverers)[number]): Promise<void> => {
      for (;;) {
        const ended = produced;
        if (rnd() < 0.05) {
          // A deliverer that is killed: the next one knows nothing of it.
          host.deliverer = new Deliverer(host.db, schema);
          await producersDb.query('UPDATE authz_stream SET worked_at = NULL');
          counts.takeovers++;
        }
        const result = await host.deliverer.cycle(host.store).catch(() => ({ kind: 'lost' as const }));
        if (result.kind === 'fenced') await host.deliverer.prepare(host.store).catch(() => {});
        if (rnd() < 0.3) await sleep(rnd() * 5);
        if (result.kind === 'idle' && ended) return;
        if (result.kind === 'not_our_turn') {
          const { rows } = await producersDb.query<{ n: string }>(
            'SELECT count(*) AS n FROM authz_outbox WHERE processed_at IS NULL AND dead_at IS NULL',
          );
          if (ended && Number(rows[0]?.n) === 0) return;
          await producersDb.query('UPDATE authz_stream SET worked_at = NULL');
        }
      }
    };
    const disturb = async (): Promise<void> => {
      while (!produced) {
        await sleep(rnd() * 30);
        if (rnd() > 0.3) continue;
        counts.sessions++;
        await producersDb.query(
          "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND state = 'idle in transaction' AND query LIKE '%authz_outbox%' LIMIT 1",
        );
      }
    };
    const work = [...deliverers.map(deliver), disturb()];
    await Promise.all([produce(), produce(), produce()]);
    produced = true;
    await Promise.all(work);
    // Until every entry that waits for its attempt had it.
    for (;;) {
      const { rows } = await producersDb.query<{ n: string }>(
        'SELECT count(*) AS n FROM authz_outbox WHERE processed_at IS NULL AND dead_at IS NULL',
      );
      if (Number(rows[0]?.n) === 0) break;
      await producersDb.query('UPDATE authz_stream SET worked_at = NULL');
      await Promise.all(deliverers.map(deliver));
    }
    await Promise.all(late);

    for (const entry of done.sort((a, b) => a.id - b.id)) applyTo(model, entry);
    const wanted = [...model.keys()].sort();
    const mirror: string[] = [];
    await readMirror(producersDb, 1000, async page => void mirror.push(...page.map(tupleText)));
    const found: string[] = [];
    for (const type of ['study_group', 'system_role'])
      found.push(...(await store.read({ resourceType: type })).map(tupleText));
    t.same(mirror.sort(), wanted, `round ${round}: the database is the model`);
    t.same(found.sort(), wanted, `round ${round}: the graph is the model`);
    if (!t.passing()) break;
  }
  t.comment(`seed ${seed}, ${isOurs ? 'a store of ours' : 'a store of others'}: ${JSON.stringify(counts)}`);
  const { rows } = await producersDb.query<{ dead: string }>(
    'SELECT count(*) AS dead FROM authz_outbox WHERE dead_at IS NOT NULL',
  );
  t.equal(Number(rows[0]?.dead), 0, 'no entry died of failures that pass');
  t.ok(counts.late > 0 && counts.after > 0 && counts.takeovers > 0, 'there were failures of each kind');
  const drift = await findDrift({ db: producersDb, deliverer: new Deliverer(producersDb, schema), schema }, store);
  t.same([drift.missing, drift.extra], [[], []]);
});
