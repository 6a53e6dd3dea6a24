import fs from 'node:fs';
import path from 'node:path';
import t from 'tap';
import { authzDrift } from '../../src/cli/local/authz-commands.ts';
import { loadConfig } from '../../src/config/load.ts';
import { GraphStore } from '../../src/graph/graph-store.ts';
import { Deliverer } from '../../src/outbox/deliver.ts';
import { findDrift, repairDrift } from '../../src/outbox/drift.ts';
import { findNewestComparison, GraphComparison } from '../../src/outbox/graph-comparison.ts';
import { startGraphStore, tuple } from '../support/graph.ts';
import { append, bothGraphs, deliverAll, outboxDatabase, remove, schema, storeWith, touch } from '../support/outbox.ts';

const member = (user: string): string => `study_group:g1#member@user:${user}`;
const members = (n: number): string[] => Array.from({ length: n }, (_, k) => member(`m${k}`));
const BY = { kind: 'command_line', userId: null, name: 'test', requestId: 'r', address: '' } as const;

t.test('a comparison delays no revocation, and an entry delivered meanwhile is not a difference', async t => {
  const { store } = await startGraphStore(t);
  const { db, open } = await outboxDatabase(t);
  const all = members(1500);
  for (let k = 0; k < all.length; k += 500) await append(db, touch(...all.slice(k, k + 500)));
  const deliverer = new Deliverer(db, schema);
  await deliverer.prepare(store);
  await store.write([
    { operation: 'touch', tuple: tuple(member('stranger')) },
    { operation: 'delete', tuple: tuple(all[7] ?? '') },
  ]);
  const comparing = open();
  let pages = 0;
  const results: string[] = [];
  const slow = storeWith(store, {
    async *pages(filter, freshness) {
      for await (const page of store.pages(filter, freshness)) {
        // While it reads, a right is taken back and another one given: both arrive at once.
        if (pages++ === 0) {
          await append(db, remove(all[3] ?? ''), touch(member('later')));
          results.push((await deliverAll(deliverer, store)).kind);
          results.push(String((await bothGraphs(db, store)).found.includes(all[3] ?? '')));
        }
        yield page;
      }
    },
  });
  const parts = { db: comparing, deliverer: new Deliverer(comparing, schema), schema };
  const drift = await findDrift(parts, slow);
  t.same(results, ['idle', 'false'], 'the revocation was delivered in the middle of the comparison');
  t.same(drift, {
    missing: [tuple(all[7] ?? '')],
    extra: [tuple(member('stranger'))],
    compared: 1500,
    pending: 0,
    repaired: false,
  });
  t.match(await repairDrift(parts, store, BY), { repaired: true, missing: { length: 1 }, extra: { length: 1 } });
  const { found, wanted } = await bothGraphs(db, store);
  t.same(found, wanted);
  await append(db, remove(all[9] ?? ''));
  await db.query('UPDATE authz_stream SET worked_at = NULL');
  await deliverAll(deliverer, store);
  t.match(await findDrift(parts, store), { missing: [], extra: [], repaired: false });
});

t.test(
  'a store that is replaced while it is compared is not compared to its end, but the one in its place',
  async t => {
    const [old, fresh] = [(await startGraphStore(t)).store, (await startGraphStore(t)).store];
    const { db } = await outboxDatabase(t);
    await append(db, touch(member('a'), member('b')));
    const deliverer = new Deliverer(db, schema);
    await deliverer.prepare(old);
    let inUse = old;
    const replaced = storeWith(old, {
      async *pages(filter, freshness) {
        if (inUse === old) {
          inUse = fresh;
          await new Deliverer(db, schema).prepare(fresh);
          // The old store never learns of it.
          await append(db, remove(member('b')));
          await deliverAll(new Deliverer(db, schema), fresh);
        }
        yield* old.pages(filter, freshness);
      },
    });
    const parts = { db, deliverer, schema };
    await t.rejects(findDrift(parts, replaced), { message: /was replaced while it was compared; compare again/ });
    inUse = old;
    const graph = {
      get store() {
        return inUse === old ? replaced : fresh;
      },
    };
    t.match(await new GraphComparison({ ...parts, graph }).run(null), { missing: [], extra: [], compared: 1 });
    t.match(await findNewestComparison(db), { missing: 0, extra: 0 });
  },
);

t.test(
  '`authz drift` works on the command line: it names what differs, mends it, and says what to do without a store',
  async t => {
    const { directory, spicedb, store } = await startGraphStore(t);
    const { db, url } = await outboxDatabase(t);
    await append(db, touch(member('a'), member('b')));
    await new Deliverer(db, schema).prepare(store);
    await store.write([{ operation: 'delete', tuple: tuple(member('b')) }]);
    const configOf = (more: Record<string, string>) =>
      loadConfig(null, { BOT_DATABASE_URL: url, BOT_DATA_DIR: directory, ...more });
    const remote = configOf({
      BOT_SPICEDB_ENDPOINT: spicedb.endpoint,
      BOT_SPICEDB_TOKEN: 'any',
      BOT_SPICEDB_TLS: 'false',
    });
    const run = (config: typeof remote, repair: boolean, json: boolean): Promise<string> =>
      authzDrift(config, { repair, json }, () => {});
    t.equal(
      await run(remote, false, false),
      `missing in the store: ${member('b')}\n2 relationships compared, 1 differ`,
    );
    t.same(JSON.parse(await run(remote, false, true)), {
      missing: [member('b')],
      extra: [],
      compared: 2,
      pending: 0,
      repaired: false,
    });
    const embedded = configOf({});
    await t.rejects(run(embedded, false, false), { message: /lives as long as the service runs/ });
    fs.writeFileSync(path.join(directory, 'spicedb.endpoint'), `${spicedb.endpoint}\n`);
    t.match(await run(embedded, true, false), /1 differ and were mended/);
    t.equal(await run(embedded, false, false), '2 relationships compared, 0 differ');
    t.ok(store instanceof GraphStore);
  },
);
