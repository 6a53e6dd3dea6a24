import t from 'tap';
import { openDatabase } from '../../src/db/database.ts';
import { migrate } from '../../src/db/migrate.ts';
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

t.test('migrations are done as the owner, and their tables are there for the role that serves', async t => {
  const database = await makeEmptyDatabase();
  t.teardown(() => database.drop());
  const owner = openDatabase(database.url, 1, () => {});
  t.teardown(() => owner.close());
  const role = `t_role_${process.pid}`;
  await makeServiceRole(owner, role, 'x');
  const url = withUser(database.url, role, 'x');
  t.teardown(async () => {
    const again = openDatabase(process.env.TEST_DATABASE_URL ?? '', 1, () => {});
    await again.query(`DROP ROLE IF EXISTS ${role}`).catch(() => {});
    await again.close();
  });
  const service = openDatabase(url, 1, () => {});
  t.teardown(() => service.close());
  t.same(await prepareDatabase(database.url, () => roleOfUrl(url)), ['001_schema.sql']);
  await service.query("INSERT INTO plugins (id) VALUES ('p')");
  // As after a start without database.owner_url: the job queue is the owner's.
  await owner.query('CREATE TABLE pgboss.queue (); ALTER SCHEMA pgboss OWNER TO CURRENT_USER');
  t.same(await prepareDatabase(database.url, () => roleOfUrl(url)), []);
  const { rows } = await service.query<{ owner: string }>(
    "SELECT DISTINCT pg_get_userbyid(relowner) AS owner FROM pg_class WHERE relnamespace = 'pgboss'::regnamespace",
  );
  t.same(rows, [{ owner: role }], 'the job queue is its own');
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
