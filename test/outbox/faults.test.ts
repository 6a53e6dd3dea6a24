import pg from 'pg';
import t from 'tap';
import { Graph, readMarks } from '../../src/graph/graph.ts';
import { GraphError, type GraphUpdate } from '../../src/graph/graph-store.ts';
import { tupleText } from '../../src/graph/tuple.ts';
import { Deliverer } from '../../src/outbox/deliver.ts';
import { netUpdates, type OutboxEntry } from '../../src/outbox/plan.ts';
import { type Delivered, OUTBOX_DELIVERED, parseDelivered } from '../../src/outbox/stream.ts';
import { startGraphStore, tuple } from '../support/graph.ts';
import { append, bothGraphs, deliverAll, outboxDatabase, remove, schema, storeWith, touch } from '../support/outbox.ts';
import { until } from '../support/until.ts';

const away = (): GraphError => new GraphError('unavailable', 'injected', null);
const member = (user: string): string => `study_group:g1#member@user:${user}`;
/** Many members of one group, so that a filling takes several writes. */
const members = (n: number): string[] => Array.from({ length: n }, (_, k) => member(`m${String(k).padStart(5, '0')}`));

const isData = (u: GraphUpdate): boolean => !u.tuple.resourceType.startsWith('outbox_');

t.test(
  'a write whose answer was lost is done again, and the store is not taken for one of another history',
  async t => {
    const { store } = await startGraphStore(t);
    const { db } = await outboxDatabase(t);
    const deliverer = new Deliverer(db, schema);
    await deliverer.prepare(store);
    let data = 0;
    let lose: 'before' | 'after' | null = null;
    const lossy = storeWith(store, {
      async write(updates, conditions) {
        if (updates.some(isData)) data++;
        else return await store.write(updates, conditions);
        const lost = lose;
        lose = null;
        if (lost === 'before') throw away();
        const token = await store.write(updates, conditions);
        if (lost === 'after') throw away();
        return token;
      },
    });
    for (const when of ['before', 'after'] as const) {
      const user = `u_${when}`;
      await append(db, touch(member(user)));
      const asked = data;
      lose = when;
      t.match(await deliverer.cycle(lossy), { kind: 'paused' });
      const { rows } = await db.query('SELECT 1 FROM authz_outbox WHERE processed_at IS NULL AND dead_at IS NULL');
      t.equal(rows.length, 1, `lost ${when}: it stays in the line`);
      await db.query('UPDATE authz_stream SET paused_until = NULL');
      // Another host goes on with it as well as this one.
      const next = when === 'after' ? new Deliverer(db, schema) : deliverer;
      t.match(await next.prepare(store), { filled: false });
      await db.query('UPDATE authz_stream SET worked_at = NULL');
      await deliverAll(next, lossy);
      t.equal(data, asked + 2, `lost ${when}: it was written again`);
      t.ok((await bothGraphs(db, store)).found.includes(member(user)));
    }
  },
);

t.test('a removal whose answer was lost is announced: its groups are read again on every host', async t => {
  const { store } = await startGraphStore(t);
  const { db, url } = await outboxDatabase(t);
  const heard: Delivered[] = [];
  const listener = new pg.Client({ connectionString: url });
  await listener.connect();
  t.teardown(() => listener.end());
  listener.on('notification', n => heard.push(parseDelivered(n.payload ?? '')));
  await listener.query(`LISTEN ${OUTBOX_DELIVERED}`);
  let lose = false;
  const lossy = storeWith(store, {
    async write(updates, conditions) {
      const token = await store.write(updates, conditions);
      if (!lose || !updates.some(isData)) return token;
      lose = false;
      throw away();
    },
  });
  const deliverer = new Deliverer(db, schema);
  await deliverer.prepare(lossy);
  await append(db, touch(member('a')));
  await deliverAll(deliverer, lossy);
  lose = true;
  const filter = { subjectType: 'user', subjectId: 'a', resourceType: 'study_group', relation: 'member' };
  await append(db, { operation: 'DELETE_BY_SUBJECT', filter });
  t.match(await deliverer.cycle(lossy), { kind: 'paused' });
  t.same((await store.read({ resourceType: 'study_group' })).length, 0, 'it has reached the store');
  heard.length = 0;
  await db.query('UPDATE authz_stream SET paused_until = NULL, worked_at = NULL');
  t.match(await deliverer.cycle(lossy), { kind: 'delivered' });
  await until(() => heard.length > 0);
  t.same(heard, [{ token: '', users: null }], 'nothing says whose, so all may be meant');
});

const FENCE = { resourceType: 'outbox_fence', resourceId: 'main', relation: 'epoch', subjectType: 'outbox_epoch' };

t.test('a write that was not answered cannot come late: the next one has another epoch', async t => {
  const { store } = await startGraphStore(t);
  const { db } = await outboxDatabase(t);
  const deliverer = new Deliverer(db, schema);
  await deliverer.prepare(store);
  await append(db, touch(member('one')));
  let late: (() => Promise<string>) | null = null;
  const silent = storeWith(store, {
    async write(updates, conditions) {
      if (!updates.some(isData)) return await store.write(updates, conditions);
      late = () => store.write(updates, conditions);
      throw away();
    },
  });
  t.match(await deliverer.cycle(silent), { kind: 'paused' });
  await db.query('UPDATE authz_stream SET paused_until = NULL');
  await append(db, remove(member('one')));
  await deliverAll(deliverer, store);
  const come: unknown = late;
  if (typeof come !== 'function') throw new Error('nothing was written');
  const refused: unknown = await Promise.resolve(come()).catch((error: unknown) => error);
  t.match(refused, { kind: 'refused' });
  t.same((await bothGraphs(db, store)).found, []);
});

t.test('nor can a repair, which moves no position', async t => {
  const { store } = await startGraphStore(t);
  const { db } = await outboxDatabase(t);
  const deliverer = new Deliverer(db, schema);
  await deliverer.prepare(store);
  await append(db, touch(member('one')));
  await deliverAll(deliverer, store);
  const extra = tuple(member('extra'));
  const late: Array<() => Promise<string>> = [];
  const silent = storeWith(store, {
    write(updates, conditions) {
      late.push(() => store.write(updates, conditions));
      return Promise.reject(away());
    },
  });
  const repair = deliverer.withRest(async (_client, writeTo) => {
    const write = await writeTo(silent);
    await write([{ operation: 'touch', tuple: extra }]);
  });
  await t.rejects(repair, { message: 'injected' });
  await append(db, touch(member('two')));
  await deliverAll(deliverer, store);
  t.equal(late.length, 1);
  const refused: unknown = await late[0]?.().catch((error: unknown) => error);
  t.match(refused, { kind: 'refused' });
  t.notOk((await bothGraphs(db, store)).found.includes(member('extra')));
});

t.test('a filling that is refused because the store is another’s by now blames no relationship', async t => {
  const { store } = await startGraphStore(t);
  const { db } = await outboxDatabase(t);
  await append(db, touch(...members(20)));
  let writes = 0;
  const taken = storeWith(store, {
    async write(updates, conditions) {
      if (!updates.some(isData)) return await store.write(updates, conditions);
      if (++writes === 1) {
        const own = await store.read(FENCE);
        const other = { ...FENCE, subjectId: '4711', subjectRelation: '' };
        await store.write([
          ...own.map((one): GraphUpdate => ({ operation: 'delete', tuple: one })),
          { operation: 'touch', tuple: other },
        ]);
      }
      return await store.write(updates, conditions);
    },
  });
  await t.rejects(new Deliverer(db, schema).prepare(taken), { message: /another epoch/ });
  t.equal(writes, 1, 'its parts are not tried one by one');
  t.match(await new Deliverer(db, schema).prepare(store), { filled: true });
  t.equal((await bothGraphs(db, store)).found.length, 20);
});

t.test(
  'a store that was filled in part is not taken for full: it answers nothing and is filled to the end',
  async t => {
    const { connect, store } = await startGraphStore(t);
    const { db } = await outboxDatabase(t);
    const all = members(2200);
    for (let k = 0; k < all.length; k += 500) await append(db, touch(...all.slice(k, k + 500)));
    let writes = 0;
    const breaking = storeWith(store, {
      async write(updates, conditions) {
        if (updates.some(isData) && ++writes === 2) throw away();
        return await store.write(updates, conditions);
      },
    });
    await t.rejects(new Deliverer(db, schema).prepare(breaking), { message: /injected|filled/ });
    const half = (await store.read({ resourceType: 'study_group' })).length;
    t.ok(half > 0 && half < all.length, `${half} of ${all.length}`);
    t.same(await readMarks(store, 'loaded'), []);
    const graph = new Graph(() => performance.now());
    t.teardown(() => graph.close());
    graph.useStore(connect());
    const check = { resourceType: 'study_group', resourceId: 'g1', permission: 'member', subjectType: 'user' };
    for (const subjectId of ['m00000', 'm02199', 'stranger'])
      await t.rejects(graph.check({ ...check, subjectId }), { message: /injected|filled/ });
    t.match(await new Deliverer(db, schema).prepare(store), { filled: true });
    t.equal(await graph.check({ ...check, subjectId: 'm02199' }), true);
    t.equal((await bothGraphs(db, store)).found.length, all.length);
  },
);

t.test(
  'the fence holds during a filling: a host that lost its session writes nothing behind its successor',
  async t => {
    const { connect, store } = await startGraphStore(t);
    const { db, open } = await outboxDatabase(t);
    const all = members(2500);
    for (let k = 0; k < all.length; k += 500) await append(db, touch(...all.slice(k, k + 500)));
    const slowDb = open();
    let arrive = (): void => {};
    let release = (): void => {};
    const arrived = new Promise<void>(resolve => {
      arrive = resolve;
    });
    const released = new Promise<void>(resolve => {
      release = resolve;
    });
    const slowStore = connect();
    let writes = 0;
    const slow = storeWith(slowStore, {
      async write(updates, conditions) {
        if (updates.some(isData) && ++writes === 2) {
          arrive();
          await released;
        }
        return await slowStore.write(updates, conditions);
      },
    });
    const hanging = new Deliverer(slowDb, schema).prepare(slow).then(
      () => 'filled',
      (error: unknown) => (error instanceof Error ? error.message : String(error)),
    );
    await arrived;
    // Its sessions end, as when its host is cut off.
    await db.query(
      `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
     WHERE datname = current_database() AND pid <> pg_backend_pid() AND state = 'idle in transaction'`,
    );
    const successor = new Deliverer(db, schema);
    t.match(await successor.prepare(store), { filled: true });
    // What the other one is about to write is taken back.
    for (let k = 1000; k < 2000; k += 500) await append(db, remove(...all.slice(k, k + 500)));
    await deliverAll(successor, store);
    release();
    t.not(await hanging, 'filled');
    const { found, wanted } = await bothGraphs(db, store);
    t.equal(found.length, 1500);
    t.same(found, wanted);
  },
);

t.test('what is committed while the mirror is read is delivered behind it', async t => {
  for (const begun of [false, true]) {
    const { store } = await startGraphStore(t);
    const { db } = await outboxDatabase(t);
    const all = members(2200);
    for (let k = 0; k < all.length; k += 500) await append(db, touch(...all.slice(k, k + 500)));
    const deliverer = new Deliverer(db, schema);
    if (begun) {
      // An earlier attempt has written the first page and was broken off.
      let first = 0;
      const breaking = storeWith(store, {
        async write(updates, conditions) {
          if (updates.some(isData) && ++first === 2) throw away();
          return await store.write(updates, conditions);
        },
      });
      await t.rejects(deliverer.prepare(breaking));
      await append(db, remove(all[1] ?? ''));
    }
    let writes = 0;
    const busy = storeWith(store, {
      async write(updates, conditions) {
        const token = await store.write(updates, conditions);
        if (updates.some(isData) && ++writes === 1)
          await append(
            db,
            remove(all[0] ?? '', all.at(-1) ?? ''),
            touch(member('later'), 'study_group:g0#member@user:x'),
          );
        return token;
      },
    });
    t.match(await deliverer.prepare(busy), { filled: true });
    await deliverAll(deliverer, store);
    const { found, wanted } = await bothGraphs(db, store);
    t.same(found, wanted, begun ? 'into a store that was filled in part' : 'into an empty store');
    t.notOk(found.includes(all[0] ?? ''));
    t.ok(found.includes(member('later')));
    if (begun) t.notOk(found.includes(all[1] ?? ''));
  }
});

t.test('rights are taken before they are given where one write does not hold both', async t => {
  const { store } = await startGraphStore(t);
  const { db } = await outboxDatabase(t);
  const deliverer = new Deliverer(db, schema);
  await deliverer.prepare(store);
  const old = members(900);
  for (let k = 0; k < old.length; k += 450) await append(db, touch(...old.slice(k, k + 450)));
  await deliverAll(deliverer, store);
  const given = Array.from({ length: 400 }, (_, k) => member(`a${k}`));
  await append(db, {
    operation: 'REPLACE',
    filter: { resourceType: 'study_group', resourceId: 'g1', relation: 'member' },
    tuples: given.map(tuple),
  });
  const order: string[] = [];
  const watched = storeWith(store, {
    async write(updates, conditions) {
      order.push(...updates.filter(isData).map(u => u.operation));
      return await store.write(updates, conditions);
    },
  });
  await deliverAll(deliverer, watched);
  t.equal(order.length, 1300);
  t.equal(order.lastIndexOf('delete') < order.indexOf('touch'), true);
  t.same((await bothGraphs(db, store)).found, [...given].sort());
  const entry = (id: number, operation: 'TOUCH' | 'DELETE', text: string): OutboxEntry => ({
    ...{ id, operation, tuples: [tuple(text)], filter: null, removed: null, keys: [], attempts: 0, parkedMs: 0 },
    mark: '',
  });
  const { updates } = netUpdates([entry(1, 'TOUCH', member('x')), entry(2, 'DELETE', member('y'))], new Map(), 1000);
  t.same(
    updates.map(u => `${u.operation} ${tupleText(u.tuple)}`),
    [`delete ${member('y')}`, `touch ${member('x')}`],
  );
});
