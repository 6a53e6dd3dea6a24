import t, { type Test } from 'tap';
import { type Database, openDatabase } from '../../src/db/database.ts';
import { makeKvReads } from '../../src/host/kv-reads.ts';
import { type KvWrites, makeKvWrites } from '../../src/host/kv-writes.ts';
import { callerPlugin, callHost } from '../support/caller.ts';
import { makeDatabase } from '../support/database.ts';
import { MANY_LANES, startTestService } from '../support/service.ts';

/** docs/RATIONALE.md "Why do reads and writes of the key-value store share statements?" */

const KV = [{ kind: 'kv', description: 'k' }];
const NEVER = Number.POSITIVE_INFINITY;
const bytes = (text: string): Buffer => Buffer.from(text);

type World = {
  db: Database;
  /** Names of the statements since the last call. */
  statements(): string[];
  value(key: string, plugin?: string): Promise<string | null>;
};

/** A database of its own, with the plugins `p` and `q`. */
async function world(t: Test): Promise<World> {
  const { drop, url } = await makeDatabase();
  const real = openDatabase(url, 8, () => {});
  t.teardown(async () => {
    await real.close();
    await drop();
  });
  const seen: string[] = [];
  const query: Database['query'] = (text, values) => {
    if (typeof text !== 'string') seen.push(text.name ?? text.text);
    return real.query(text, values);
  };
  await real.query(`INSERT INTO plugins (id) VALUES ('p'), ('q')`);
  return {
    db: { ...real, query },
    statements: () => seen.splice(0),
    async value(key, plugin = 'p') {
      const { rows } = await real.query<{ value: Buffer }>(
        'SELECT value FROM plugin_kv WHERE plugin_id = $1 AND key = $2',
        [plugin, key],
      );
      return rows[0]?.value.toString() ?? null;
    },
  };
}

/** Makes the database refuse, or wait for, writes of some keys. */
const onWrite = (db: Database, body: string) =>
  db.query(`CREATE OR REPLACE FUNCTION probe() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN ${body} RETURN NEW; END $$;
    CREATE OR REPLACE TRIGGER probe BEFORE INSERT OR UPDATE ON plugin_kv FOR EACH ROW EXECUTE FUNCTION probe()`);

const set = (w: KvWrites, key: string, value = key, plugin = 'p'): Promise<void> =>
  w.set(plugin, key, bytes(value), 0, NEVER);

t.test('reads of one turn are one statement, and each caller gets the value of its own key', async t => {
  const { db, statements } = await world(t);
  const large = 'x'.repeat(100_000);
  await db.query(
    `INSERT INTO plugin_kv (plugin_id, key, value, expires_at) VALUES
       ('p', 'a', 'of p', NULL), ('q', 'a', 'of q', NULL), ('p', 'large', $1, NULL), ('p', 'empty', '', NULL),
       ('p', 'gone', 'x', now() - interval '1 second'), ('p', 'lives', 'y', now() + interval '1 hour')`,
    [bytes(large)],
  );
  statements();
  const read = makeKvReads(db);
  const asked = [
    ['p', 'a'],
    ['q', 'a'],
    ['p', 'a'],
    ['p', 'absent'],
    ['p', 'gone'],
    ['p', 'lives'],
    ['p', 'empty'],
    ['p', 'large'],
    ['p', "'; DROP TABLE plugin_kv --"],
  ] as const;
  const answers = await Promise.all(asked.map(([plugin, key]) => read(plugin, key, NEVER)));
  t.same(
    answers.map(a => a?.toString()),
    ['of p', 'of q', 'of p', undefined, undefined, 'y', '', large, undefined],
  );
  t.same(statements(), ['kv_get_together', 'kv_get', 'kv_get'], 'one for p, one for q, and the large value by itself');
  t.equal((await read('p', 'a', NEVER))?.toString(), 'of p');
  t.same(statements(), ['kv_get'], 'one read is a plain one');
  const many = await Promise.all(
    Array.from({ length: 250 }, (_, k) => read(k % 2 === 0 ? 'p' : 'q', `k${k % 130}`, NEVER)),
  );
  t.ok(many.every(v => v === undefined));
  t.equal(statements().length, 4, 'a hundred reads a statement');
});

t.test('reads of many callers at random times are each their own', async t => {
  const { db } = await world(t);
  const seed = Date.now() % 1_000_000;
  t.comment(`seed ${seed}`);
  let state = seed;
  const below = (n: number): number => {
    state = (Math.imul(state, 1103515245) + 12345) & 0x7fffffff;
    return state % n;
  };
  await db.query(
    `INSERT INTO plugin_kv (plugin_id, key, value) SELECT p, 'k' || n, convert_to(p || n, 'UTF8')
     FROM unnest(ARRAY['p', 'q']) p, generate_series(0, 99) n`,
  );
  const read = makeKvReads(db);
  const wrong: string[] = [];
  await Promise.all(
    Array.from({ length: 40 }, async () => {
      for (let round = 0; round < 50; round++) {
        const [plugin, n] = [below(2) === 0 ? 'p' : 'q', below(120)];
        const value = (await read(plugin, `k${n}`, NEVER))?.toString();
        if (value !== (n < 100 ? `${plugin}${n}` : undefined)) wrong.push(`${plugin} k${n}: ${value}`);
        if (below(3) === 0) await new Promise(resolve => setImmediate(resolve));
      }
    }),
  );
  t.same(wrong, []);
});

/** How a promise ended; a promise that has not ended by then has been forgotten. */
const outcomeOf = (promise: Promise<unknown>): Promise<string> =>
  Promise.race([
    promise.then(
      () => 'fulfilled',
      (error: unknown) => (error instanceof Error ? error.name : String(error)),
    ),
    new Promise<string>(resolve => setTimeout(resolve, 30_000, 'forgotten').unref()),
  ]);

t.test('every read is answered: one past its deadline, and all of a statement that fails', async t => {
  const { db } = await world(t);
  const read = makeKvReads(db);
  const late = [read('p', 'a', performance.now() - 1), read('p', 'b', NEVER)];
  t.same(await Promise.all(late.map(outcomeOf)), ['CallTooLate', 'fulfilled']);
  const away = makeKvReads({ ...db, query: () => Promise.reject(new RangeError('the database is away')) });
  for (const keys of [['a'], ['a', 'a'], ['a', 'b', 'b']])
    t.same(
      await Promise.all(keys.map(key => outcomeOf(away('p', key, NEVER)))),
      keys.map(() => 'RangeError'),
      keys.join(' '),
    );
});

t.test('writes of one turn are one statement for each plugin, and the writes of one key keep their order', async t => {
  const { db, statements, value } = await world(t);
  const w = makeKvWrites(db);
  await Promise.all([
    set(w, 'b'),
    set(w, 'a'),
    set(w, 'c'),
    set(w, 'a', 'second'),
    set(w, 'a', 'third'),
    set(w, 'a', 'q', 'q'),
  ]);
  t.same(statements(), ['kv_set_together', 'kv_set']);
  t.same([await value('a'), await value('b'), await value('c'), await value('a', 'q')], ['third', 'b', 'c', 'q']);
  statements();
  const erase = (key: string): Promise<boolean> => w.delete('p', key, NEVER);
  const answers = await Promise.all([
    erase('a'),
    erase('b'),
    erase('a'),
    set(w, 'a', 'after both deletions'),
    erase('absent'),
    set(w, 'c', 'again'),
    erase('c'),
  ]);
  t.same(answers, [true, true, false, undefined, false, undefined, true]);
  t.same([await value('a'), await value('b'), await value('c')], ['after both deletions', null, null]);
  t.equal(await value('a', 'q'), 'q', 'a deletion takes nothing of another plugin');
  t.ok(statements().length <= 5, 'fewer statements than writes');
  await w.set('p', 'short', bytes('x'), 1, NEVER);
  await Promise.all([w.set('p', 'short', bytes('y'), 3600, NEVER), w.set('p', 'long', bytes('z'), 0, NEVER)]);
  const { rows } = await db.query<{ key: string; hours: number | null }>(
    `SELECT key, round(extract(epoch FROM expires_at - now()) / 3600)::int AS hours FROM plugin_kv WHERE key IN ('short', 'long') ORDER BY key`,
  );
  t.same(rows, [
    { key: 'long', hours: null },
    { key: 'short', hours: 1 },
  ]);
});

t.test('deletions find what another transaction changes meanwhile', async t => {
  const { db, value } = await world(t);
  const w = makeKvWrites(db);
  await Promise.all([set(w, 'a'), set(w, 'b')]);
  const other = await db.pool.connect();
  await other.query('BEGIN');
  await other.query("UPDATE plugin_kv SET value = 'changed' WHERE key = 'a'");
  const answers = Promise.all([w.delete('p', 'a', NEVER), w.delete('p', 'b', NEVER)]);
  const waits = async (): Promise<boolean> =>
    (await db.query(`SELECT FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()`))
      .rows.length > 0;
  while (!(await waits()));
  await other.query('COMMIT');
  other.release();
  t.same(await answers, [true, true]);
  t.same([await value('a'), await value('b')], [null, null]);
});

t.test('writes that wait behind a locked row are given up at the deadlines of their executions', async t => {
  const { db, value } = await world(t);
  const w = makeKvWrites(db);
  await set(w, 'locked', 'before');
  const other = await db.pool.connect();
  await other.query('BEGIN');
  await other.query("SELECT FROM plugin_kv WHERE key = 'locked' FOR UPDATE");
  const first = set(w, 'locked', 'after');
  await new Promise(resolve => setImmediate(resolve));
  const late = t.rejects(w.set('p', 'late', bytes('x'), 0, performance.now() + 1), { name: 'CallTooLate' });
  await new Promise(resolve => setTimeout(resolve, 5));
  const last = set(w, 'last');
  await late;
  await other.query('COMMIT');
  other.release();
  await Promise.all([first, last]);
  t.same([await value('locked'), await value('late'), await value('last')], ['after', null, 'last']);
});

t.test('a write that the database refuses fails alone', async t => {
  const { db, value } = await world(t);
  await onWrite(db, `IF NEW.key = 'bad' THEN RAISE EXCEPTION 'not this one'; END IF;`);
  const w = makeKvWrites(db);
  const outcomes = await Promise.allSettled(['a', 'bad', 'c', 'd'].map(key => set(w, key)));
  t.same(
    outcomes.map(o => o.status),
    ['fulfilled', 'rejected', 'fulfilled', 'fulfilled'],
  );
  t.match(outcomes[1], { reason: /not this one/ });
  t.same([await value('a'), await value('bad'), await value('c'), await value('d')], ['a', null, 'c', 'd']);
});

t.test('of writes that are done one by one, those whose deadline has passed meanwhile are not done', async t => {
  const { db, value } = await world(t);
  await onWrite(
    db,
    `IF NEW.key = 'bad' THEN RAISE EXCEPTION 'not this one'; END IF; IF NEW.key = 'slow' THEN PERFORM pg_sleep(1); END IF;`,
  );
  const w = makeKvWrites(db);
  const outcomes = [
    set(w, 'slow'),
    set(w, 'bad'),
    w.set('p', 'late', bytes('x'), 0, performance.now() + 800),
    set(w, 'c'),
  ];
  t.same(await Promise.all(outcomes.map(outcomeOf)), ['fulfilled', 'error', 'CallTooLate', 'fulfilled']);
  t.same([await value('slow'), await value('late'), await value('c')], ['slow', null, 'c']);
});

t.test('after a lost connection no write is repeated, and the next ones go through', async t => {
  const { db, statements, value } = await world(t);
  await onWrite(db, `IF NEW.key = 'slow' THEN PERFORM pg_sleep(60); END IF;`);
  const w = makeKvWrites(db);
  const outcomes = Promise.allSettled(['a', 'slow', 'z'].map(key => set(w, key)));
  const cut = async (): Promise<boolean> =>
    (
      await db.query<{ cut: boolean }>(
        `SELECT pg_terminate_backend(pid) AS cut FROM pg_stat_activity WHERE wait_event = 'PgSleep' AND datname = current_database()`,
      )
    ).rows.length > 0;
  while (!(await cut()));
  t.same(
    (await outcomes).map(o => o.status),
    ['rejected', 'rejected', 'rejected'],
  );
  t.same(
    statements().filter(s => s.startsWith('kv_')),
    ['kv_set_together'],
  );
  await Promise.all([set(w, 'a', 'later'), set(w, 'b', 'later')]);
  t.same([await value('a'), await value('b'), await value('slow'), await value('z')], ['later', 'later', null, null]);
});

t.test('a write of an execution past its deadline is not begun', async t => {
  const { db, value } = await world(t);
  const w = makeKvWrites(db);
  const outcomes = await Promise.allSettled([
    set(w, 'a'),
    w.set('p', 'late', bytes('x'), 0, performance.now() - 1),
    set(w, 'c'),
  ]);
  t.match(outcomes[1], { status: 'rejected', reason: { name: 'CallTooLate' } });
  t.same([await value('a'), await value('late'), await value('c')], ['a', null, 'c']);
});

t.test('executions that are killed while their writes wait take no write of a neighbour along', async t => {
  const s = await startTestService({ ...MANY_LANES, BOT_EXECUTION_TIMEOUT_MS: '3000' });
  t.teardown(() => s.stop());
  const db = openDatabase(s.databaseUrl, 4, () => {});
  t.teardown(() => db.close());
  for (const id of ['one', 'two']) await s.install(callerPlugin({ id, requirements: KV }));
  await callHost(s, 'one', [['kv_set', 'locked', 'before', 0]]);
  // What runs first on a lane takes longer than the deadline allows on a busy machine.
  await callHost(s, 'two', [['kv_set', 'free', 'before', 0]]);
  const client = await db.pool.connect();
  // The pool waits for it at its end, also when an assertion has ended this test.
  t.teardown(() => client.release(true));
  await client.query('BEGIN');
  await client.query("SELECT FROM plugin_kv WHERE key = 'locked' FOR UPDATE");
  const stuck = await Promise.all(
    [0, 1].map(k => callHost(s, 'one', [['kv_set', 'locked', `of ${k}`, 0]]).catch((error: unknown) => String(error))),
  );
  for (const answer of stuck) t.match(answer, /504/, 'the deadline ends it');
  const [written] = await callHost(s, 'two', [['kv_set', 'free', 'of two', 0]]);
  t.equal(written?.code, 0, 'another plugin writes meanwhile');
  await client.query('COMMIT');
  const [after, read] = await callHost(s, 'one', [
    ['kv_set', 'later', 'of one', 0],
    ['kv_get', 'locked'],
  ]);
  t.equal(after?.code, 0, 'the plugin writes again');
  t.match(read?.bytes.toString(), /^(before|of [01])$/, 'a killed write was done or was not');
});
