import { createHash } from 'node:crypto';
import fs from 'node:fs';
import type { Database, Queryable } from './database.ts';
import { LOCKS, lockForTransaction } from './locks.ts';

const DIRECTORY = new URL('../../sql/', import.meta.url);

export type Migration = { number: number; name: string; sql: string; sha256: string };

/** The numbered files of `sql/`, in order. They are immutable once released. */
export function readMigrations(): Migration[] {
  return fs
    .readdirSync(DIRECTORY)
    .filter(f => /^\d{3}_.*\.sql$/.test(f))
    .sort()
    .map(f => {
      const sql = fs.readFileSync(new URL(f, DIRECTORY), 'utf8');
      return { number: Number(f.slice(0, 3)), name: f, sql, sha256: createHash('sha256').update(sql).digest('hex') };
    });
}

/** Names of the migrations a database lacks; changes nothing. */
export async function pendingMigrations(db: Queryable): Promise<string[]> {
  const { rows: found } = await db.query<{ there: boolean }>(
    "SELECT to_regclass('schema_migrations') IS NOT NULL AS there",
  );
  if (found[0]?.there !== true) return readMigrations().map(m => m.name);
  const { rows } = await db.query<{ number: number }>('SELECT number FROM schema_migrations');
  const applied = new Set(rows.map(r => r.number));
  return readMigrations().flatMap(m => (applied.has(m.number) ? [] : [m.name]));
}

/**
 * Brings the schema up to date, each file in a transaction of its own.
 *
 * @returns names of the files applied now
 * @throws Error when the database was migrated by a newer release, or an applied file has changed since
 */
export async function migrate(db: Database): Promise<string[]> {
  const all = readMigrations();
  return await db.withTransaction(async client => {
    await lockForTransaction(client, LOCKS.migration);
    const { rows: found } = await client.query<{ there: boolean }>(
      "SELECT to_regclass('schema_migrations') IS NOT NULL AS there",
    );
    // The role of the serving process may not create tables.
    if (found[0]?.there !== true)
      await client.query(
        'CREATE TABLE schema_migrations (number integer PRIMARY KEY, name text NOT NULL, sha256 text NOT NULL, applied_at timestamptz NOT NULL DEFAULT now())',
      );
    const { rows } = await client.query<{ number: number; name: string; sha256: string }>(
      'SELECT number, name, sha256 FROM schema_migrations ORDER BY number',
    );
    const applied = new Map(rows.map(r => [r.number, r]));
    const newest = all.at(-1)?.number ?? 0;
    const unknown = rows.find(r => r.number > newest);
    if (unknown !== undefined)
      throw new Error(
        `the database has migration ${unknown.name}, which this release does not know: run the release that wrote it, or a newer one`,
      );
    const done: string[] = [];
    for (const m of all) {
      const before = applied.get(m.number);
      if (before !== undefined) {
        if (before.sha256 !== m.sha256)
          throw new Error(
            `migration ${m.name} was changed after it had been applied; applied migrations must stay as they are`,
          );
        continue;
      }
      try {
        await client.query(m.sql);
      } catch (error) {
        if (!(error instanceof Error && 'code' in error && error.code === '42501')) throw error;
        throw new Error(
          `migration ${m.name} needs a role that owns the tables (${error.message}): set database.owner_url (BOT_DATABASE_OWNER_URL)`,
          { cause: error },
        );
      }
      await client.query('INSERT INTO schema_migrations (number, name, sha256) VALUES ($1, $2, $3)', [
        m.number,
        m.name,
        m.sha256,
      ]);
      done.push(m.name);
    }
    return done;
  });
}
