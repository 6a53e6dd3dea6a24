import { createHash } from 'node:crypto';
import fs from 'node:fs';
import { OperatorError } from '../base/errors.ts';
import { type Database, isUnavailable, type Queryable } from './database.ts';
import { LOCKS, lockForTransaction } from './locks.ts';
import { findRows, loadRow } from './rows.ts';

/** The oldest PostgreSQL that the service is tried with. */
const OLDEST_POSTGRES = 15;

const DIRECTORY = new URL('../../sql/', import.meta.url);

/** `expands`: releases before it run on, because it only adds what they do not look at (docs/contributing.md "Add a migration or a table"). */
export type Migration = { number: number; name: string; sql: string; sha256: string; expands: boolean };

/** First line of a migration that only adds. */
const EXPANDS = /^-- Expands: /;

/** What a database knows of a migration. */
type AppliedRow = { number: number; name: string; sha256: string; appliedAt: Date; expands: boolean };

/** Why a PostgreSQL cannot be used; null when it can. @param version its `server_version_num` */
export function postgresProblem(version: number): string | null {
  const major = Math.floor(version / 10_000);
  if (major >= OLDEST_POSTGRES) return null;
  return `the database is PostgreSQL ${major}, and the service needs ${OLDEST_POSTGRES} or newer: upgrade it, or name another one in database.url`;
}

/** @throws OperatorError for a PostgreSQL that is too old */
export async function assertPostgres(db: Queryable): Promise<void> {
  const { version } = await loadRow<{ version: number }>(
    db,
    "SELECT current_setting('server_version_num')::int AS version",
  );
  const problem = postgresProblem(version);
  if (problem !== null) throw new OperatorError(problem);
}

/** The numbered files of `sql/`, in order. They are immutable once released. */
export function readMigrations(): Migration[] {
  return fs
    .readdirSync(DIRECTORY)
    .filter(f => /^\d{3}_.*\.sql$/.test(f))
    .sort()
    .map(f => {
      const sql = fs.readFileSync(new URL(f, DIRECTORY), 'utf8');
      const sha256 = createHash('sha256').update(sql).digest('hex');
      return { number: Number(f.slice(0, 3)), name: f, sql, sha256, expands: EXPANDS.test(sql) };
    });
}

/** Whether a database or a backup was made before 0.1.0, when the schema was made in 49 steps: its first migration has another name. */
export const isBeforeFirstRelease = (first: { name: string } | undefined): boolean =>
  first !== undefined && first.name !== readMigrations()[0]?.name;

/**
 * What the database says was applied, in order.
 *
 * @throws OperatorError for a database that a version before the first release has made
 */
export async function listApplied(db: Queryable): Promise<AppliedRow[]> {
  const { isThere } = await loadRow<{ isThere: boolean }>(
    db,
    "SELECT to_regclass('schema_migrations') IS NOT NULL AS is_there",
  );
  if (!isThere) return [];
  const rows = await findRows<AppliedRow>(db, 'SELECT * FROM schema_migrations ORDER BY number');
  if (isBeforeFirstRelease(rows[0]))
    throw new OperatorError(
      `the database was made by a version before 0.1.0 (${rows[0]?.name}), which no release continues: name an empty database in database.url, or another data.dir for the embedded one, and install the plugins again`,
    );
  return rows;
}

/** `unknown`: of a newer release. `expands`: this release runs on it, or a release before it would. */
export type MigrationState = {
  name: string;
  state: 'applied' | 'pending' | 'unknown';
  expands: boolean;
  appliedAt: Date | null;
};

/** The migrations of this release and of the database, in order; changes nothing. */
export async function migrationStates(db: Queryable): Promise<MigrationState[]> {
  const applied = await listApplied(db);
  const known = readMigrations();
  const states = known.map(({ expands, name, number }): MigrationState => {
    const row = applied.find(r => r.number === number);
    return { name, expands, appliedAt: row?.appliedAt ?? null, state: row === undefined ? 'pending' : 'applied' };
  });
  const unknown = applied
    .filter(r => r.number > (known.at(-1)?.number ?? 0))
    .map(({ appliedAt, expands, name }): MigrationState => ({ name, expands, appliedAt, state: 'unknown' }));
  return [...states, ...unknown];
}

/** Names of the migrations a database lacks; changes nothing. */
export const pendingMigrations = async (db: Queryable): Promise<string[]> =>
  (await migrationStates(db)).filter(m => m.state === 'pending').map(m => m.name);

/** The role of the serving process may not make it. */
async function makeTable(client: Queryable): Promise<void> {
  await client.query(
    `CREATE TABLE IF NOT EXISTS schema_migrations (number integer PRIMARY KEY, name text NOT NULL, sha256 text NOT NULL,
       applied_at timestamptz NOT NULL DEFAULT now(), expands boolean NOT NULL)`,
  );
}

async function apply(client: Queryable, { expands, name, number, sha256, sql }: Migration): Promise<void> {
  try {
    await client.query(sql);
  } catch (error) {
    if (!(error instanceof Error) || isUnavailable(error)) throw error;
    if ('code' in error && error.code === '42501') throw ownerNeeded(name, error);
    throw new OperatorError(
      `migration ${name} failed: ${error.message}; the database is as it was before, and the release before this one runs on it`,
      { cause: error },
    );
  }
  await client.query('INSERT INTO schema_migrations (number, name, sha256, expands) VALUES ($1, $2, $3, $4)', [
    number,
    name,
    sha256,
    expands,
  ]);
}

const ownerNeeded = (name: string, error: Error): Error =>
  new Error(
    `migration ${name} needs a role that owns the tables (${error.message}): set database.owner_url (BOT_DATABASE_OWNER_URL)`,
    { cause: error },
  );

/**
 * Brings the schema up to date, all files in one transaction. Migrations of a newer release that only add are left as they
 * are.
 *
 * @returns names of the files applied now
 * @throws Error when a newer release migrated the database in a way this one does not run on, or an applied file has
 *   changed since
 */
export const migrate = (db: Database): Promise<string[]> => db.withTransaction(client => migrateIn(client));

/**
 * Brings the schema up to date inside the caller's transaction, as `migrate` does.
 *
 * @param most how many of the files, from the first; a backup is restored into the schema it was made of
 */
export async function migrateIn(client: Queryable, most = Number.POSITIVE_INFINITY): Promise<string[]> {
  const all = readMigrations();
  await assertPostgres(client);
  await lockForTransaction(client, LOCKS.migration);
  const rows = await listApplied(client);
  const applied = new Map(rows.map(r => [r.number, r]));
  const newest = all.at(-1)?.number ?? 0;
  const unknown = rows.find(r => r.number > newest && !r.expands);
  if (unknown !== undefined)
    throw new Error(
      `the database has migration ${unknown.name}, which this release does not know: run the release that wrote it, or a newer one`,
    );
  const changed = all.find(m => (applied.get(m.number)?.sha256 ?? m.sha256) !== m.sha256);
  if (changed !== undefined)
    throw new Error(
      `migration ${changed.name} was changed after it had been applied; applied migrations must stay as they are`,
    );
  const pending = all.filter((m, k) => k < most && !applied.has(m.number));
  if (pending[0] === undefined) return [];
  await makeTable(client).catch((error: unknown) => {
    if (!(error instanceof Error && 'code' in error && error.code === '42501')) throw error;
    throw ownerNeeded(pending[0]?.name ?? '', error);
  });
  for (const m of pending) await apply(client, m);
  return pending.map(m => m.name);
}
