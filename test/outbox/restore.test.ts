import { randomBytes } from 'node:crypto';
import t from 'tap';
import { openDatabase } from '../../src/db/database.ts';
import { GraphError, type GraphStore } from '../../src/graph/graph-store.ts';
import type { Tuple } from '../../src/graph/tuple.ts';
import { Deliverer } from '../../src/outbox/deliver.ts';
import { startGraphStore } from '../support/graph.ts';
import { append, bothGraphs, deliverAll, outboxDatabase, remove, schema, storeWith, touch } from '../support/outbox.ts';
import { startTestService } from '../support/service.ts';
import { until } from '../support/until.ts';

const member = (user: string): string => `study_group:g1#member@user:${user}`;

/**
 * A backup of a database, as a database of its own. Its connections are ended, and it takes no new one until it is
 * copied: PostgreSQL copies a database alone that nothing is connected to.
 */
async function backup(t: { teardown(fn: () => unknown): void }, url: string): Promise<string> {
  const name = `b_${randomBytes(8).toString('hex')}`;
  const from = new URL(url).pathname.slice(1);
  const server = openDatabase(process.env.TEST_DATABASE_URL ?? '', 1, () => {});
  await server.query(`ALTER DATABASE ${from} ALLOW_CONNECTIONS false`);
  await server.query('SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = $1', [from]);
  await server.query(`CREATE DATABASE ${name} TEMPLATE ${from}`);
  await server.query(`ALTER DATABASE ${from} ALLOW_CONNECTIONS true`);
  await server.close();
  t.teardown(async () => {
    const again = openDatabase(process.env.TEST_DATABASE_URL ?? '', 1, () => {});
    await again.query(`DROP DATABASE IF EXISTS ${name} WITH (FORCE)`);
    await again.close();
  });
  return url.replace(`/${from}?`, `/${name}?`);
}

async function everything(store: GraphStore): Promise<Tuple[]> {
  const types = [...schema.types.values()].filter(type => type.relations.size > 0).map(type => type.name);
  const all: Tuple[] = [];
  for (const type of [...types, 'outbox_fence']) all.push(...(await store.read({ resourceType: type })));
  return all;
}

/** Puts a store back to what it held once. */
async function restore(store: GraphStore, to: readonly Tuple[]): Promise<void> {
  for (const tuple of await everything(store)) await store.write([{ operation: 'delete', tuple }]);
  await store.write(to.map(tuple => ({ operation: 'touch', tuple })));
}

t.test(
  'rights the store got after the backup a database was restored from are taken back before it is asked',
  async t => {
    const { store } = await startGraphStore(t);
    const { db, url } = await outboxDatabase(t);
    const before = new Deliverer(db, schema);
    await before.prepare(store);
    await append(db, touch(member('old')));
    await deliverAll(before, store);
    const restoredUrl = await backup(t, url);
    await append(db, touch(member('newer')), remove(member('old')));
    await deliverAll(before, store);

    const restored = await outboxDatabase(t, restoredUrl);
    // Changes of the new history have the numbers of the lost ones.
    await append(restored.db, touch(member('other')), touch(member('another')));
    const after = new Deliverer(restored.db, schema);
    t.match(await after.prepare(store), { filled: true, restored: true });
    await deliverAll(after, store);
    const graphs = await bothGraphs(restored.db, store);
    t.same(graphs.found, [member('another'), member('old'), member('other')].sort());
    t.same(graphs.found, graphs.wanted);
    t.match(await new Deliverer(restored.db, schema).prepare(store), { filled: false }, 'now they are of one history');
  },
);

/** A store that was put back to before a right was taken: it has `a` and `b`, the database says `b`. */
async function storeFromBefore(t: Parameters<typeof outboxDatabase>[0] & Parameters<typeof startGraphStore>[0]) {
  const { store } = await startGraphStore(t);
  const { db } = await outboxDatabase(t);
  const deliverer = new Deliverer(db, schema);
  await deliverer.prepare(store);
  await append(db, touch(member('a'), member('b')));
  await deliverAll(deliverer, store);
  const earlier = await everything(store);
  await append(db, remove(member('a')));
  await deliverAll(deliverer, store);
  await restore(store, earlier);
  return { db, deliverer, store };
}

t.test('a store restored alone is filled again, at the start and while it is written', async t => {
  const { db, deliverer, store } = await storeFromBefore(t);
  t.match(await new Deliverer(db, schema).prepare(store), { filled: true, restored: true });
  t.same((await bothGraphs(db, store)).found, [member('b')]);

  // The other one has just worked; without this the first would wait a second for its turn.
  await db.query('UPDATE authz_stream SET worked_at = NULL');
  t.same(await deliverer.cycle(store), { kind: 'fenced' }, 'it was filled by another one');
  await deliverAll(deliverer, store);
  const again = await everything(store);
  await append(db, remove(member('b')));
  await deliverAll(deliverer, store);
  await restore(store, again);
  await append(db, touch(member('c')));
  t.same(await deliverer.cycle(store), { kind: 'fenced' }, 'the next write finds it');
  await deliverAll(deliverer, store);
  const graphs = await bothGraphs(db, store);
  t.same(graphs.found, [member('c')]);
  t.same(graphs.found, graphs.wanted);
});

t.test('a filling that broke off before it took away what is too much takes it away the next time', async t => {
  const { db, store } = await storeFromBefore(t);
  let isAway = true;
  const breaksOff = storeWith(store, {
    async read(filter) {
      if (!isAway || filter.resourceType !== 'study_group') return await store.read(filter);
      isAway = false;
      throw new GraphError('unavailable', 'away for a moment', null);
    },
  });
  const next = new Deliverer(db, schema);
  await t.rejects(next.prepare(breaksOff), { message: 'away for a moment' });
  t.match(await next.prepare(breaksOff), { filled: true });
  await deliverAll(next, store);
  const graphs = await bothGraphs(db, store);
  t.same(graphs.found, [member('b')], 'a right that was taken does not come back');
  t.same(graphs.found, graphs.wanted);
});

t.test('a database that was put back under a running deliverer is found at its next turn', async t => {
  const { store } = await startGraphStore(t);
  const { db } = await outboxDatabase(t);
  const deliverer = new Deliverer(db, schema);
  await deliverer.prepare(store);
  await append(db, touch(member('a')));
  await deliverAll(deliverer, store);
  const { rows } = await db.query('SELECT * FROM authz_stream');
  await append(db, touch(member('b')));
  await deliverAll(deliverer, store);
  // What a restore of both tables to that moment leaves.
  await db.query('DELETE FROM authz_outbox WHERE id > $1', [rows[0]?.last_id]);
  await db.query("DELETE FROM authz_tuples WHERE subject_id = 'b'");
  await db.query('UPDATE authz_stream SET (tick, position, last_id) = ($1, $2, $3)', [
    rows[0]?.tick,
    rows[0]?.position,
    rows[0]?.last_id,
  ]);
  await append(db, touch(member('c')));
  t.same(await deliverer.cycle(store), { kind: 'fenced' });
  await deliverAll(deliverer, store);
  t.same((await bothGraphs(db, store)).found, [member('a'), member('c')]);
});

t.test('a service on a restored database never lets in who was let in after the backup', async t => {
  const { spicedb } = await startGraphStore(t);
  const env = { BOT_SPICEDB_ENDPOINT: spicedb.endpoint, BOT_SPICEDB_TOKEN: 'any', BOT_SPICEDB_TLS: 'false' };
  const first = await startTestService(env);
  t.teardown(() => first.stop());
  const right = { resource_type: 'system_role', resource_id: 'boss', relation: 'member', subject_id: 'e1' };
  const items = async (s: typeof first) =>
    await s.admin('GET', '/relationships/lookup?resource_type=system_role&permission=is_member&user=e1');
  await until(async () => (await items(first)).status === 200);
  const url = await backup(t, first.databaseUrl);
  let given = await first.admin('POST', '/relationships', right);
  for (let k = 0; k < 200 && given.status !== 201; k++) {
    await new Promise(resolve => setTimeout(resolve, 50));
    given = await first.admin('POST', '/relationships', right);
  }
  t.equal(given.status, 201);
  for (let k = 0; k < 200; k++) {
    const found = await items(first);
    if (Array.isArray(found.json.items) && found.json.items.length === 1) break;
    await new Promise(resolve => setTimeout(resolve, 50));
  }
  await first.service.authz.outbox.close();
  const second = await startTestService({ ...env, BOT_DATABASE_URL: url }, first);
  t.teardown(() => second.stop());
  const seen = new Set<string>();
  for (let status = 0; status !== 200; ) {
    const answer = await items(second);
    status = answer.status;
    seen.add(status === 200 ? JSON.stringify(answer.json.items) : String(status));
  }
  t.notOk(
    [...seen].some(answer => answer.includes('boss')),
    [...seen].join(' '),
  );
});
