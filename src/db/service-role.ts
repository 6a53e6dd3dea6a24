import { type Database, openDatabase, type Queryable } from './database.ts';
import { migrate } from './migrate.ts';

/** The roles of owner and service do not fit together; the message says what to change. */
export class RoleError extends Error {
  override readonly name = 'RoleError';
}

/** Role of the serving process in the embedded database. */
export const EMBEDDED_ROLE = 'plugin_host_service';

/** Creates the role of the serving process, or sets its password. The role has no rights until they are granted. */
export async function makeServiceRole(owner: Queryable, role: string, password: string): Promise<void> {
  const { rows } = await owner.query<{ statement: string }>(
    `SELECT format('%s ROLE %I WITH LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE NOREPLICATION NOBYPASSRLS PASSWORD %L',
       CASE WHEN EXISTS (SELECT 1 FROM pg_roles WHERE rolname = $1) THEN 'ALTER' ELSE 'CREATE' END, $1::text, $2::text) AS statement`,
    [role, password],
  );
  await owner.query(rows[0]?.statement ?? '');
}

/**
 * The role reads and writes rows. It owns none of the service's tables, and owns the schema of the job queue. It may only append to the
 * audit log, whose entries get their number and their time from the database. Other roles of the server, as those of plugins' databases,
 * may not connect; where the owner of the tables does not own the database, PostgreSQL warns and leaves that as it is.
 */
const GRANTS = `
  REVOKE CONNECT, TEMPORARY ON DATABASE :database FROM PUBLIC;
  GRANT CONNECT ON DATABASE :database TO :role;
  GRANT USAGE ON SCHEMA public TO :role;
  GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO :role;
  GRANT USAGE, SELECT, UPDATE ON ALL SEQUENCES IN SCHEMA public TO :role;
  REVOKE ALL ON audit_log, audit_seals, schema_migrations FROM :role;
  GRANT SELECT ON audit_seals TO :role;
  REVOKE ALL ON SEQUENCE audit_log_id_seq FROM :role;
  GRANT SELECT, INSERT (actor_kind, actor_user_id, actor_key_id, actor_name, action, object_type, object_id, before, after,
    request_id, address) ON audit_log TO :role;
  GRANT SELECT ON schema_migrations TO :role;`;

/** Gives the role all objects of the job queue's schema, because the library changes its own tables at an upgrade. */
const JOB_QUEUE_OBJECTS = `
  SELECT format('ALTER SCHEMA %I OWNER TO %I', nspname, $1::text) AS statement FROM pg_namespace
    WHERE nspname = 'pgboss' AND pg_get_userbyid(nspowner) <> $1
  UNION ALL
  SELECT format('ALTER %s %s OWNER TO %I', CASE relkind WHEN 'v' THEN 'VIEW' WHEN 'm' THEN 'MATERIALIZED VIEW' ELSE 'TABLE' END,
      c.oid::regclass, $1::text) FROM pg_class c
    WHERE relnamespace = 'pgboss'::regnamespace AND relkind IN ('r', 'p', 'v', 'm') AND pg_get_userbyid(relowner) <> $1
  UNION ALL
  SELECT format('ALTER ROUTINE %s OWNER TO %I', p.oid::regprocedure, $1::text) FROM pg_proc p
    WHERE pronamespace = 'pgboss'::regnamespace AND pg_get_userbyid(proowner) <> $1
  UNION ALL
  SELECT format('ALTER TYPE %s OWNER TO %I', t.oid::regtype, $1::text) FROM pg_type t
    WHERE typnamespace = 'pgboss'::regnamespace AND typtype = 'e' AND pg_get_userbyid(typowner) <> $1`;

/** Grants the role the rights that serving needs. Runs at every start, because a migration may have added tables. */
export async function grantServiceRole(owner: Database, role: string): Promise<void> {
  await owner.withTransaction(async client => {
    const { rows: quoted } = await client.query<{ name: string; database: string; isMe: boolean }>(
      'SELECT quote_ident($1) AS name, quote_ident(current_database()) AS database, current_user = $1 AS "isMe"',
      [role],
    );
    if (quoted[0]?.isMe !== false)
      throw new RoleError(
        `database.url and database.owner_url name the same role "${role}"; name another one in database.url`,
      );
    await client.query(GRANTS.replaceAll(':role', quoted[0].name).replaceAll(':database', quoted[0].database));
    const { rows } = await client.query<{ statement: string }>(JOB_QUEUE_OBJECTS, [role]);
    try {
      for (const { statement } of rows) await client.query(statement);
    } catch (error) {
      throw new RoleError(
        `the role of database.owner_url cannot give the schema pgboss to "${role}": make it a member with GRANT ${quoted[0].name} TO CURRENT_USER, as an administrator of the database`,
        { cause: error },
      );
    }
  });
}

/**
 * Brings the database up to date as its owner and lets the serving role use it.
 *
 * @param roleOf the role, asked once the owner's connection is there
 * @returns names of the migrations applied now
 */
export async function prepareDatabase(
  ownerUrl: string,
  roleOf: (owner: Database) => Promise<string>,
): Promise<string[]> {
  const owner = openDatabase(ownerUrl, 1, () => {});
  try {
    const applied = await migrate(owner);
    await grantServiceRole(owner, await roleOf(owner));
    return applied;
  } finally {
    await owner.close();
  }
}

/** The role a connection string logs in as. */
export async function roleOfUrl(url: string): Promise<string> {
  const db = openDatabase(url, 1, () => {});
  try {
    const { rows } = await db.query<{ name: string }>('SELECT current_user AS name');
    return rows[0]?.name ?? '';
  } finally {
    await db.close();
  }
}

/** What keeps the connected role from migrating; null when nothing does. */
export async function ownerProblem(owner: Queryable): Promise<string | null> {
  const { rows } = await owner.query<{ name: string; owns: boolean | null; owner: string | null; creates: boolean }>(
    `SELECT current_user AS name, has_schema_privilege('public', 'CREATE') AS creates,
       (SELECT pg_has_role(relowner, 'USAGE') FROM pg_class WHERE oid = to_regclass('schema_migrations')) AS owns,
       (SELECT pg_get_userbyid(relowner) FROM pg_class WHERE oid = to_regclass('schema_migrations')) AS owner`,
  );
  const row = rows[0];
  if (row?.owns === false)
    return `the role "${row.name}" of database.owner_url cannot migrate: the tables belong to "${row.owner}"; name that role in it`;
  if (row?.creates === false)
    return `the role "${row.name}" of database.owner_url may not make tables: run GRANT CREATE ON SCHEMA public TO ${row.name} as the owner of the database`;
  return null;
}

/** Names a right of the connected role that the serving process must not have; null when it has none. */
export async function roleWeakness(db: Queryable): Promise<string | null> {
  const { rows } = await db.query<{ name: string; super: boolean; owner: boolean }>(
    `SELECT current_user AS name, (SELECT rolsuper FROM pg_roles WHERE rolname = current_user) AS super,
       pg_has_role(current_user, (SELECT relowner FROM pg_class WHERE oid = to_regclass('audit_log')), 'MEMBER') AS owner`,
  );
  const row = rows[0];
  if (row === undefined || (!row.super && !row.owner)) return null;
  const what = row.super ? 'is a superuser' : 'owns the audit log and could switch off its triggers';
  return `the role "${row.name}" of database.url ${what}: set database.owner_url (BOT_DATABASE_OWNER_URL) to that role, and database.url to one without such rights`;
}

/** The address of a database with another login. */
export function withUser(url: string, name: string, password: string): string {
  const changed = new URL(url);
  changed.username = name;
  changed.password = password;
  return changed.href;
}
