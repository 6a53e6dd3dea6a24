import t from 'tap';
import { maySetName } from '../../src/db/custom-settings.ts';
import { openDatabase } from '../../src/db/database.ts';
import { type HeldConnection, PluginDatabases } from '../../src/db/plugin-databases.ts';
import { makeDatabase } from '../support/database.ts';

t.test('a statement that may set a name with a dot is distinguished from one that does not', t => {
  const may = [
    "SET app.owner = '1'",
    "set local app.owner to '1'",
    'SET SESSION "App"."User" = 1',
    'SET /* = */ app.owner TO 1',
    'SET -- =\n app . user = 1',
    'SET app.owner FROM CURRENT',
    "SELECT set_config('app.owner', '1', false)",
    'SELECT SET_CONFIG($1, $2, $3)',
    "SELECT u&\"set\\005fconfig\"('a.b', '', false)",
    "DO $$ BEGIN PERFORM set_config('a.b', '', false); END $$",
    'DO $$ BEGIN SET LOCAL a.b = 1; END $$',
    "DO $$ BEGIN EXECUTE 'S' || 'ET a' || '.b = 1'; END $$",
    "DO $$ DECLARE set text := 'SE'; BEGIN EXECUTE set || 'T a.b = 1'; END $$",
    'CREATE FUNCTION f() RETURNS void LANGUAGE sql SET app.owner = 1 AS $$ SELECT $$',
  ];
  for (const text of may) t.equal(maySetName(text), true, text);
  const not = [
    'SELECT 1',
    'UPDATE marks SET mark = other.mark FROM other WHERE other.id = marks.id',
    'INSERT INTO marks VALUES (1) ON CONFLICT (id) DO UPDATE SET name = EXCLUDED.name, mark = EXCLUDED.mark',
    'UPDATE marks SET (name, mark) = (SELECT o.name, o.mark FROM other o)',
    "SET statement_timeout = '1.5s'",
    "SET TIME ZONE 'Europe/Moscow'",
    'SELECT * FROM app.settings LIMIT 5 OFFSET 10',
    "SELECT current_setting('app.owner', true)",
    'SET search_path TO a, b',
  ];
  for (const text of not) t.equal(maySetName(text), false, text);
  t.end();
});

t.test('a session that may know a name with a dot is not used again; all other sessions are', async t => {
  const own = await makeDatabase();
  t.teardown(() => own.drop());
  const db = openDatabase(own.url, 1, () => {});
  t.teardown(() => db.close());
  let databases = new PluginDatabases();
  t.teardown(() => databases.close());
  const LOOK = "SELECT pg_backend_pid()::text, (current_setting('app.owner', true) IS NOT NULL)::text";
  /** Begins an execution. @returns the session it has, and whether that knows the name */
  const begin = async (): Promise<{ held: HeldConnection; pid: string; known: boolean }> => {
    const held = await databases.take('p/default', own.url, performance.now() + 60_000);
    const { rows } = await held.connection.query(LOOK, [], 1);
    return { held, pid: rows[0]?.[0] ?? '', known: rows[0]?.[1] === 'true' };
  };
  /** Whether the session of an execution serves a later one, which never knows the name; else the session ends. */
  const isUsedAgain = async (...statements: string[]): Promise<boolean> => {
    const first = await begin();
    t.equal(first.known, false, `${statements.join('; ')}: it begins without the name`);
    for (const text of statements) await first.held.connection.exec(text, []);
    first.held.giveBack();
    const others: HeldConnection[] = [];
    try {
      for (;;) {
        const { rows } = await db.query<{ isReset: boolean }>(
          `SELECT state = 'idle' AND query ~ 'set_config.''statement_timeout''|FROM unnest' AS "isReset" FROM pg_stat_activity WHERE pid = $1`,
          [first.pid],
        );
        if (rows[0] === undefined) return false;
        if (rows[0].isReset) {
          const next = await begin();
          others.push(next.held);
          t.equal(next.known, false, `${statements.join('; ')}: no later execution finds the name`);
          if (next.pid === first.pid) return true;
        }
        await new Promise(r => setTimeout(r, 20));
      }
    } finally {
      for (const held of others) held.giveBack();
    }
  };
  t.equal(
    await isUsedAgain('SELECT 1', "SET work_mem = '77MB'", 'BEGIN'),
    true,
    'what a reset takes away costs no session',
  );
  t.equal(await isUsedAgain("SET app.owner = '1'"), false);
  t.equal(await isUsedAgain("SELECT set_config('app.owner', '1', false)"), false);
  t.equal(await isUsedAgain('BEGIN', "SET LOCAL app.owner = '1'", 'ROLLBACK'), false, 'the name outlives a rollback');
  t.equal(await isUsedAgain("DO $$ BEGIN PERFORM set_config('app' || '.owner', '1', true); END $$"), false);

  // Code in the database, made by others: known from the next connection on.
  const again = async (code: string): Promise<void> => {
    await databases.close();
    await db.query(code);
    databases = new PluginDatabases();
  };
  await again(
    "CREATE FUNCTION sets() RETURNS void LANGUAGE plpgsql AS $$ BEGIN PERFORM set_config('app.owner', '1', true); END $$",
  );
  t.equal(await isUsedAgain('SELECT 1'), true, 'a function that is not called costs nothing');
  t.equal(await isUsedAgain('SELECT sets()'), false, 'one that is called is noticed by the name it leaves');
  await again(`CREATE TABLE audited (n int);
    CREATE FUNCTION fired() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN SET LOCAL app.owner = '1'; RETURN NEW; END $$;
    CREATE TRIGGER fires BEFORE INSERT ON audited FOR EACH ROW EXECUTE FUNCTION fired()`);
  t.equal(await isUsedAgain('INSERT INTO audited VALUES (1)'), false, 'a trigger too');
  await again(`CREATE FUNCTION clause() RETURNS int LANGUAGE sql SET app.owner = '1' AS $$ SELECT 1 $$`);
  t.equal(await isUsedAgain('SELECT clause()'), false, 'and a clause of a function');
  t.equal(await isUsedAgain('SELECT 1'), true);
  await again("CREATE VIEW sly AS SELECT set_config('app.owner', '1', false)");
  t.equal(await isUsedAgain('SELECT * FROM sly'), false, 'a view that calls set_config');
  await again(
    "DROP VIEW sly; CREATE FUNCTION computed(n text) RETURNS void LANGUAGE plpgsql AS $$ BEGIN PERFORM set_config('app.' || n, '1', false); END $$",
  );
  t.equal(await isUsedAgain("SELECT computed('own' || 'er')"), false, 'a name that is put together');
  await again('DROP FUNCTION computed(text)');
  t.equal(await isUsedAgain('SELECT 1'), true);

  // A name that every session knows is set by no execution.
  await again("DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET app.other = 1', current_database()); END $$");
  await again("CREATE FUNCTION other() RETURNS text LANGUAGE sql AS $$ SELECT set_config('app.other', '2', true) $$");
  t.equal(await isUsedAgain('SELECT other()'), true, 'a name of the database itself is no trace');
  t.equal(
    await isUsedAgain(
      "CREATE FUNCTION mine() RETURNS text LANGUAGE sql AS $$ SELECT set_config('app.owner', '1', true) $$",
    ),
    false,
  );
  t.equal(await isUsedAgain('SELECT mine()'), false, 'code a plugin makes is known at once');
});
