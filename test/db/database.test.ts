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
