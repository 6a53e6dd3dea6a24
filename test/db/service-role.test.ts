import t from 'tap';
import { openDatabase } from '../../src/db/database.ts';
import { migrate, readMigrations } from '../../src/db/migrate.ts';
import { makeServiceRole, prepareDatabase, roleOfUrl, roleWeakness, withUser } from '../../src/db/service-role.ts';
import { makeDatabase, makeEmptyDatabase } from '../support/database.ts';

const ENTRY =
  "INSERT INTO audit_log (actor_kind, actor_name, action, object_type, object_id, request_id, address) VALUES ('setup', 'a', 'b', 'c', 'd', 'e', 'f')";

t.test('the role that serves writes rows, and cannot touch tables, the audit log or migrations', async t => {
  const database = await makeDatabase();
  t.teardown(() => database.drop());
  const service = openDatabase(database.serviceUrl, 1, () => {});
  t.teardown(() => service.close());
  t.equal(await roleWeakness(service), null);
  await service.query("INSERT INTO plugins (id) VALUES ('p')");
  await service.query(ENTRY);
  t.same(await migrate(service), [], 'an up to date database is seen without rights to change it');
  for (const [statement, refusal] of [
    ['ALTER TABLE audit_log DISABLE TRIGGER ALL', /must be owner/],
    ['DROP TRIGGER audit_log_append_only ON audit_log', /must be owner/],
    ['DELETE FROM audit_log', /permission denied/],
    ["UPDATE audit_log SET actor_name = 'x'", /permission denied/],
    ['TRUNCATE audit_log', /permission denied/],
    ["SELECT setval('audit_log_id_seq', 1)", /permission denied/],
    [`${ENTRY.replace('(', '(at, ').replace("('setup'", "('2020-01-01', 'setup'")}`, /permission denied/],
    [`${ENTRY.replace('(', '(id, ').replace('VALUES (', 'OVERRIDING SYSTEM VALUE VALUES (1, ')}`, /permission denied/],
    ['DROP TABLE plugins', /must be owner/],
    ['CREATE TABLE mine (a int)', /permission denied/],
    ["UPDATE schema_migrations SET sha256 = ''", /permission denied/],
    ['ALTER ROLE plugin_host_service SUPERUSER', /permission denied/],
    ['SET session_replication_role = replica', /permission denied/],
  ] as const)
    await t.rejects(service.query(statement), refusal, statement);
  const owner = openDatabase(database.url, 1, () => {});
  t.teardown(() => owner.close());
  t.match(await roleWeakness(owner), /is a superuser: set database\.owner_url \(BOT_DATABASE_OWNER_URL\)/);
});

/** A database whose tables are the owner's, with a role that serves and owns none. */
async function ownedWorld(t: { teardown(fn: () => unknown): void }, make: typeof makeEmptyDatabase) {
  const database = await make();
  t.teardown(() => database.drop());
  const owner = openDatabase(database.url, 1, () => {});
  t.teardown(() => owner.close());
  const role = `t_role_${process.pid}_${++roles}`;
  await makeServiceRole(owner, role, 'x');
  const url = withUser(database.url, role, 'x');
  t.teardown(async () => {
    const again = openDatabase(process.env.TEST_DATABASE_URL ?? '', 1, () => {});
    await again.query(`DROP ROLE IF EXISTS ${role}`).catch(() => {});
    await again.close();
  });
  const service = openDatabase(url, 1, () => {});
  t.teardown(() => service.close());
  return { database, owner, role, service, prepare: () => prepareDatabase(database.url, () => roleOfUrl(url)) };
}
let roles = 0;

t.test('migrations are done as the owner, and their tables are there for the role that serves', async t => {
  const { database, owner, prepare, service } = await ownedWorld(t, makeEmptyDatabase);
  t.same(
    await prepare(),
    readMigrations().map(m => m.name),
  );
  await service.query("INSERT INTO plugins (id) VALUES ('p')");
  await t.rejects(
    prepareDatabase(database.url, () => roleOfUrl(database.url)),
    /database\.url and database\.owner_url name the same role/,
  );
  // Without rights it says what is missing, not only that it is.
  await owner.query('DELETE FROM schema_migrations');
  await t.rejects(
    migrate(service),
    /migration 001_schema\.sql needs a role that owns the tables.*BOT_DATABASE_OWNER_URL/,
  );
});

t.test('the job queue that a start without database.owner_url has made goes to the role that serves', async t => {
  const { owner, prepare, role, service } = await ownedWorld(t, makeDatabase);
  await owner.query(`ALTER SCHEMA pgboss OWNER TO CURRENT_USER;
    DO $$ DECLARE name text; BEGIN
      FOR name IN SELECT oid::regclass::text FROM pg_class WHERE relnamespace = 'pgboss'::regnamespace AND relkind IN ('r', 'p')
      LOOP EXECUTE format('ALTER TABLE %s OWNER TO CURRENT_USER', name); END LOOP; END $$`);
  const owners = async (): Promise<unknown[]> =>
    (
      await service.query(
        `SELECT pg_get_userbyid(relowner) AS owner, count(*)::int > 3 AS several FROM pg_class
         WHERE relnamespace = 'pgboss'::regnamespace AND relkind IN ('r', 'p') GROUP BY 1`,
      )
    ).rows;
  t.match(await owners(), [{ owner: new URL(process.env.TEST_DATABASE_URL ?? '').username, several: true }]);
  t.same(await prepare(), []);
  t.same(await owners(), [{ owner: role, several: true }]);
});
