import t from 'tap';
import { openDatabase } from '../../src/db/database.ts';
import { makeDatabase } from '../support/database.ts';

t.test('a connection lost between two queries of a transaction fails only that transaction', async t => {
  const { drop, url } = await makeDatabase();
  t.teardown(drop);
  const db = openDatabase(url, 1, () => {});
  const other = openDatabase(url, 1, () => {});
  t.teardown(() => Promise.all([db.close(), other.close()]));
  const work = db.withTransaction(async client => {
    const { rows } = await client.query<{ pid: number }>('SELECT pg_backend_pid() AS pid');
    await other.query('SELECT pg_terminate_backend($1)', [rows[0]?.pid]);
    for (let left = 1; left > 0; )
      left = (await other.query('SELECT 1 FROM pg_stat_activity WHERE pid = $1', [rows[0]?.pid])).rows.length;
    // The client learns of it while no query is under way.
    await new Promise(resolve => setImmediate(() => setImmediate(resolve)));
    await client.query('SELECT 1');
  });
  await t.rejects(work);
  const { rows } = await db.query<{ one: number }>('SELECT 1 AS one');
  t.same(rows, [{ one: 1 }], 'the pool has replaced the connection');
});

t.test('times, bytes and numbers are read right from a server that writes them in another style', async t => {
  const { drop, url } = await makeDatabase();
  t.teardown(drop);
  const owner = openDatabase(url, 1, () => {});
  const name = new URL(url).pathname.slice(1);
  for (const style of [
    'datestyle TO German',
    "timezone TO 'Asia/Vladivostok'",
    'bytea_output TO escape',
    'intervalstyle TO iso_8601',
    'extra_float_digits TO 0',
  ])
    await owner.query(`ALTER DATABASE "${name}" SET ${style}`);
  await owner.close();
  const db = openDatabase(url, 2, () => {});
  t.teardown(() => db.close());
  const READ = `SELECT '2026-01-31T23:30:00.25Z'::timestamptz AS at, '\\x00ff5c'::bytea AS bytes, 1546130668394913822::int8 AS id`;
  const want = {
    at: new Date('2026-01-31T23:30:00.25Z'),
    bytes: Buffer.from('00ff5c', 'hex'),
    id: '1546130668394913822',
  };
  for (const { rows } of await Promise.all([db.query(READ), db.query(READ)])) t.same(rows, [want]);
  await db.withTransaction(async client => t.same((await client.query(READ)).rows, [want]));
});
