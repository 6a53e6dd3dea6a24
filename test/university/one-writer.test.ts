import t from 'tap';
import { type Database, openDatabase } from '../../src/db/database.ts';
import { readGraphSchema } from '../../src/graph/graph-schema.ts';
import { ENTITIES } from '../../src/university/entities.ts';
import { importRecords } from '../../src/university/import-records.ts';
import { deactivate, settleDates } from '../../src/university/sync.ts';
import { makeDatabase } from '../support/database.ts';

const TODAY = '2026-10-01';
const entityOf = (path: string) => {
  const found = ENTITIES.find(e => e.path === path);
  if (found === undefined) throw new Error(path);
  return found;
};
async function* listOf(...records: unknown[]): AsyncGenerator<unknown> {
  yield* records;
}

t.test('two imports never write at once: whatever writes waits until the other one has committed', async t => {
  const { drop, url } = await makeDatabase();
  t.teardown(drop);
  const db: Database = openDatabase(url, 6, () => {});
  t.teardown(() => db.close());
  const parts = { db, schema: readGraphSchema() };
  const take = (path: string, ...records: unknown[]) =>
    importRecords(parts, entityOf(path), listOf(...records), {
      dryRun: false,
      isPaced: false,
      today: TODAY,
      onErrors: () => Promise.resolve(),
      onProgress: () => Promise.resolve(),
    });
  const person = (id: string, name: string) => ({ external_id: id, last_name: name, first_name: 'A' });
  t.match(await take('persons', person('e1', 'Before')), { created: 1 });
  await take('faculties', { external_id: 'f1', name: 'F' });
  await take('admin-appointments', {
    external_id: 'a1',
    person_external_id: 'e1',
    object_type: 'faculty',
    object_external_id: 'f1',
    role: 'dean',
    start_date: TODAY,
  });
  const waiting = async (): Promise<boolean> =>
    (
      await db.query(
        `SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND NOT granted
           AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`,
      )
    ).rowCount === 1;
  const writers: Array<[string, () => Promise<unknown>]> = [
    ['records that come in', () => take('persons', person('e1', 'After'))],
    ['records that are missing', () => deactivate(parts, entityOf('courses'), ['c0', 'none'])],
    ['days that begin and end positions', () => settleDates(parts, entityOf('admin-appointments'), '2026-01-01', 100)],
  ];
  for (const [name, write] of writers) {
    let isOver = false;
    let writing: Promise<unknown> = Promise.resolve();
    await db.withTransaction(async client => {
      // An import under way: it holds its lock until it commits.
      await importRecords(
        { ...parts, db: { ...db, withTransaction: work => work(client) } },
        entityOf('courses'),
        listOf({ external_id: 'c0', name }),
        {
          dryRun: false,
          isPaced: false,
          today: TODAY,
          onErrors: () => Promise.resolve(),
          onProgress: () => Promise.resolve(),
        },
      );
      writing = write().finally(() => {
        isOver = true;
      });
      while (!isOver && !(await waiting())) await new Promise(r => setImmediate(r));
      t.equal(isOver, false, `${name}: it waits`);
    });
    await writing;
    t.equal(isOver, true, `${name}: and is done then`);
  }
  const { rows } = await db.query(
    `SELECT (SELECT last_name FROM persons) AS person, (SELECT is_active FROM courses WHERE external_id = 'c0') AS course,
       (SELECT holds FROM administrative_appointments) AS dean`,
  );
  t.same(rows, [{ person: 'After', course: true, dean: false }]);
});
