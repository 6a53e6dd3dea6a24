import t from 'tap';
import { openDatabase } from '../../src/db/database.ts';
import { listApplied, migrate, migrationStates, postgresProblem, readMigrations } from '../../src/db/migrate.ts';
import { makeDatabase, makeEmptyDatabase } from '../support/database.ts';

/**
 * Every database that exists was made by exactly these files, and a service refuses to start on one whose files have changed:
 * what is to be different is a new file at the end.
 */
const RELEASED: ReadonlyArray<readonly [name: string, sha256: string]> = [
  ['001_schema.sql', '3d82ed754c4367218f76f4794a80522d2c99d4a1e2b0d6309895cad531158ee4'],
  ['002_recordings.sql', '451527a0aaa50ca011bc95d3db3dd60c844ccdc31d2bff50081b3892f10d792f'],
  ['003_outbox_requeued.sql', 'fc03b1298ab8162523e5d65e3379b80931eec5dd704212cd3fd59839f6627bcc'],
];

t.test('released migrations are unchanged, and new ones come after them', async t => {
  const found = readMigrations();
  t.same(
    found.map(m => [m.name, m.sha256]),
    RELEASED,
  );
  t.same(
    found.map(m => m.number),
    found.map((_, k) => k + 1),
  );
});

/** The first migration that has to say whether releases before it run on. */
const FIRST_WITH_KIND = 2;

/** What leaves releases before it working: new tables, indexes, columns that need no value. */
const ADDS = [
  /^CREATE (UNIQUE )?INDEX\b/,
  /^CREATE (UNLOGGED )?TABLE\b/,
  /^ALTER TABLE \w+ ALTER COLUMN \w+ SET STORAGE \w+$/,
  /^ALTER TABLE \w+ ADD COLUMN \w+ (?!.*\bNOT NULL\b(?!.*\bDEFAULT\b))[^,]*$/s,
  /^CREATE (OR REPLACE )?(FUNCTION|VIEW)\b/,
  /^INSERT INTO\b/,
];

/** The statements of a migration. */
const statementsOf = (sql: string): string[] =>
  sql
    .replace(/--.*$/gm, '')
    .replace(/\$\$.*?\$\$/gs, '$$$$')
    .split(/;\s*$/m)
    .map(s => s.trim())
    .filter(s => s !== '');

const ADDED_CHECK = /^ALTER TABLE (\w+) ADD CONSTRAINT (\w+)\s+CHECK \(\w+ IN \(([^)]*)\)\)$/;
const wordsIn = (list: string): string[] => [...list.matchAll(/'([^']*)'/g)].map(m => m[1] ?? '');

/** The statements by which a check of a migration before takes more words than it did, and none fewer. */
function wideningOf(sql: string, before: string): string[] {
  const statements = statementsOf(sql);
  return statements.flatMap(added => {
    const [, table = '', name = '', list = ''] = ADDED_CHECK.exec(added) ?? [];
    const dropped = `ALTER TABLE ${table} DROP CONSTRAINT ${name}`;
    if (name === '' || !statements.includes(dropped)) return [];
    const old = statementsOf(before)
      .map(s => ADDED_CHECK.exec(s))
      .filter(m => m?.[2] === name)
      .at(-1)?.[3];
    const words = wordsIn(list);
    return old !== undefined && wordsIn(old).every(w => words.includes(w)) ? [dropped, added] : [];
  });
}

/** The statements that a release of before may not survive. */
const contractingOf = (sql: string, before = ''): string[] => {
  const widening = wideningOf(sql, before);
  return statementsOf(sql).filter(s => !ADDS.some(p => p.test(s)) && !widening.includes(s));
};

t.test('a migration says whether releases before it run on, and one that says so only adds', async t => {
  const all = readMigrations();
  for (const { name, number, sql } of all.filter(m => m.number >= FIRST_WITH_KIND)) {
    t.match(
      sql,
      /^-- (Expands: a release before this one runs on\.|Contracts: since release [\d.]+ nothing uses \S.*)\n/,
      name,
    );
    const before = all.filter(m => m.number < number).map(m => m.sql);
    if (/^-- Expands/.test(sql))
      t.same(contractingOf(sql, before.join('\n')), [], `${name} (${number}) changes what is there`);
  }
  const changes = [
    'DROP TABLE plugins',
    'ALTER TABLE plugins DROP COLUMN enabled',
    'ALTER TABLE plugins RENAME COLUMN enabled TO active',
    'ALTER TABLE plugins ADD COLUMN owner text NOT NULL',
    'ALTER TABLE plugins ALTER COLUMN enabled TYPE text',
    'ALTER TABLE plugins ADD COLUMN a text, DROP COLUMN enabled',
    "UPDATE plugins SET enabled = false WHERE id = ''",
  ];
  for (const change of changes) t.same(contractingOf(`${change};\n`), [change]);
  const check = (words: string): string =>
    `ALTER TABLE plugins DROP CONSTRAINT c;\nALTER TABLE plugins ADD CONSTRAINT c\n  CHECK (kind IN (${words}));\n`;
  t.same(contractingOf(check("'a', 'b', 'c'"), check("'a', 'b'")), [], 'a check that takes one word more');
  t.equal(contractingOf(check("'a', 'c'"), check("'a', 'b'")).length, 2, 'a check that takes one word no longer');
  t.same(
    contractingOf("ALTER TABLE plugins ADD COLUMN owner text NOT NULL DEFAULT '';\nCREATE INDEX i ON plugins (owner);"),
    [],
  );
});

t.test('a release runs on a database that a newer one has only added to, and on no other', async t => {
  const database = await makeDatabase();
  const db = openDatabase(database.url, 1, () => {});
  t.teardown(async () => {
    await db.close();
    await database.drop();
  });
  await db.query(
    "INSERT INTO schema_migrations (number, name, sha256, expands) VALUES (901, '901_adds.sql', 'x', true)",
  );
  t.same(await migrate(db), []);
  t.match((await migrationStates(db)).at(-1), { name: '901_adds.sql', state: 'unknown', expands: true });
  await db.query(
    "INSERT INTO schema_migrations (number, name, sha256, expands) VALUES (902, '902_drops.sql', 'x', false)",
  );
  await t.rejects(migrate(db), /the database has migration 902_drops\.sql, which this release does not know/);
});

t.test('a PostgreSQL that is too old is refused in words', async t => {
  t.equal(
    postgresProblem(140_019),
    'the database is PostgreSQL 14, and the service needs 15 or newer: upgrade it, or name another one in database.url',
  );
  t.same([postgresProblem(150_000), postgresProblem(180_004)], [null, null]);
  const database = await makeEmptyDatabase();
  t.teardown(() => database.drop());
  const db = openDatabase(database.url, 1, () => {});
  t.teardown(() => db.close());
  await db.query(
    "CREATE SCHEMA old; CREATE FUNCTION old.current_setting(text) RETURNS text LANGUAGE sql AS $$ SELECT '140019' $$",
  );
  const url = new URL(database.url);
  url.searchParams.set('options', '-c search_path=old,pg_catalog,public');
  const old = openDatabase(url.href, 1, () => {});
  t.teardown(() => old.close());
  await t.rejects(migrate(old), /PostgreSQL 14, and the service needs 15 or newer/);
  t.same((await db.query("SELECT to_regclass('public.schema_migrations') AS made")).rows, [{ made: null }]);
});

t.test('a database of a version before the first release is left as it is, in words', async t => {
  const database = await makeDatabase();
  const db = openDatabase(database.url, 1, () => {});
  t.teardown(async () => {
    await db.close();
    await database.drop();
  });
  await db.query(`DELETE FROM schema_migrations WHERE number > 1;
    UPDATE schema_migrations SET name = '001_plugins.sql', sha256 = 'x', expands = false;
    INSERT INTO schema_migrations (number, name, sha256, expands) VALUES (2, '002_trace_ids.sql', 'x', false),
      (49, '049_passwordless_login.sql', 'x', true)`);
  const words = /made by a version before 0\.1\.0 \(001_plugins\.sql\).*name an empty database/;
  for (const look of [migrate, migrationStates, listApplied])
    await t.rejects(async () => void (await look(db)), words, look.name);
});

t.test('a migration that fails half way leaves the database as it was', async t => {
  const database = await makeDatabase();
  const db = openDatabase(database.url, 1, () => {});
  t.teardown(async () => {
    await db.close();
    await database.drop();
  });
  // Its first table is gone and may be made again; the next one stands in the way.
  await db.query('DELETE FROM schema_migrations; DROP TABLE installation');
  await t.rejects(migrate(db), {
    message:
      /^migration 001_schema\.sql failed: relation "host_processes" already exists; the database is as it was before/,
  });
  const { rows } = await db.query("SELECT to_regclass('installation')::text AS name");
  t.same(rows, [{ name: null }]);
  t.equal((await migrationStates(db)).find(m => m.state === 'pending')?.name, '001_schema.sql');
});
