import t from 'tap';
import { openDatabase } from '../../src/db/database.ts';
import { findRow, findRows, loadRow } from '../../src/db/rows.ts';
import { makeDatabase } from '../support/database.ts';

t.test('rows are read as the code uses them', async t => {
  const made = await makeDatabase();
  const db = openDatabase(made.url, 2, () => {});
  t.teardown(async () => {
    await db.close();
    await made.drop();
  });
  t.strictSame(
    await findRows(
      db,
      `SELECT n::int8 AS global_user_id, to_timestamp(n) AS created_at, NULL::int8 AS made_by, '{"inner_name": 1}'::jsonb AS old_sha256
       FROM generate_series($1::int, 2) AS n ORDER BY n`,
      [1],
    ),
    [1, 2].map(n => ({
      ...{ globalUserId: n, createdAt: new Date(n * 1000), madeBy: null, oldSha256: { inner_name: 1 } },
    })),
    'names in camelCase, int8 as a number, JSON as it is stored',
  );
  t.strictSame(await findRow(db, { name: 'a.name', text: 'SELECT $1::int AS a', values: [3] }), { a: 3 });
  t.equal(await findRow(db, 'SELECT 1 WHERE false'), undefined);
  await t.rejects(loadRow(db, 'SELECT 1 WHERE false'), /the statement returned no row/);
  await t.rejects(findRow(db, 'SELECT 9007199254740993 AS id'), /the integer 9007199254740993/);
});
