import type { Readable, Writable } from 'node:stream';
import { from as copyFrom, to as copyTo } from 'pg-copy-streams';
import type { Database, Queryable } from './database.ts';

/** Whole tables in and out of a database, as text of COPY (https://www.postgresql.org/docs/current/sql-copy.html). */

export type CopiedTable = { name: string; columns: string[] };

/** A connection with a transaction, on which tables are copied. */
export type CopyClient = Queryable & {
  copyOut(table: CopiedTable): Readable;
  copyIn(table: CopiedTable): Writable;
};

/** Written while a service runs, or by migrating: not part of what is kept. */
const LEFT_OUT: ReadonlySet<string> = new Set(['schema_migrations', 'host_processes']);

const quoted = (name: string): string => `"${name.replaceAll('"', '""')}"`;
const columnsOf = ({ columns }: CopiedTable): string => columns.map(quoted).join(', ');

/**
 * Works in one transaction on one connection.
 *
 * @param begin how the transaction begins
 */
export async function withCopyClient<T>(
  db: Database,
  begin: string,
  work: (client: CopyClient) => Promise<T>,
): Promise<T> {
  const client = await db.pool.connect();
  let broken: Error | undefined;
  const lost = (error: Error): void => {
    broken = error;
  };
  client.on('error', lost);
  try {
    await client.query(begin);
    const result = await work({
      query: (text, values) => client.query(text, values),
      copyOut: table => client.query(copyTo(`COPY (SELECT ${columnsOf(table)} FROM ${quoted(table.name)}) TO STDOUT`)),
      copyIn: table => client.query(copyFrom(`COPY ${quoted(table.name)} (${columnsOf(table)}) FROM STDIN`)),
    });
    await client.query('COMMIT');
    return result;
  } catch (error) {
    await client.query('ROLLBACK').catch((e: Error) => {
      broken = e;
    });
    throw error;
  } finally {
    client.off('error', lost);
    client.release(broken);
  }
}

/** The tables of the service with the columns that hold values of their own. */
export async function listCopiedTables(client: Queryable): Promise<CopiedTable[]> {
  const { rows } = await client.query<CopiedTable>(
    `SELECT c.relname AS name, array_agg(a.attname::text ORDER BY a.attnum) AS columns
     FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated = ''
     WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p') AND NOT c.relispartition GROUP BY c.relname ORDER BY c.relname`,
  );
  return rows.filter(t => !LEFT_OUT.has(t.name));
}

export type SequenceState = { name: string; value: string };

/** The last number each sequence has given. */
export async function listSequences(client: Queryable): Promise<SequenceState[]> {
  const { rows } = await client.query<SequenceState>(
    `SELECT sequencename::text AS name, last_value::text AS value FROM pg_sequences
     WHERE schemaname = 'public' AND last_value IS NOT NULL ORDER BY sequencename`,
  );
  return rows;
}

export async function setSequences(client: Queryable, sequences: readonly SequenceState[]): Promise<void> {
  for (const { name, value } of sequences)
    await client.query('SELECT setval($1::regclass, $2::bigint)', [`public.${quoted(name)}`, value]);
}

/** Whether the database holds no table of the service, or of anything else in its schema. */
export async function isEmptyDatabase(client: Queryable): Promise<boolean> {
  const { rowCount } = await client.query(
    "SELECT 1 FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p') LIMIT 1",
  );
  return rowCount === 0;
}

/**
 * Fills the tables, in any order: what ties them together is taken away meanwhile, and holds again afterwards for every
 * row.
 *
 * @param fill writes one table
 */
export async function fillTables(
  client: Queryable,
  tables: readonly CopiedTable[],
  fill: (table: CopiedTable) => Promise<void>,
): Promise<void> {
  const { rows: ties } = await client.query<{ table: string; name: string; definition: string }>(
    `SELECT conrelid::regclass::text AS table, conname AS name, pg_get_constraintdef(oid) AS definition
     FROM pg_constraint WHERE contype = 'f' AND connamespace = 'public'::regnamespace`,
  );
  for (const t of ties) await client.query(`ALTER TABLE ${t.table} DROP CONSTRAINT ${quoted(t.name)}`);
  const setTriggers = async (state: 'DISABLE' | 'ENABLE'): Promise<void> => {
    for (const { name } of tables) await client.query(`ALTER TABLE ${quoted(name)} ${state} TRIGGER USER`);
  };
  await setTriggers('DISABLE');
  // Rows that migrations have made are those of the backup then.
  await client.query(`TRUNCATE ${tables.map(t => quoted(t.name)).join(', ')}`);
  for (const table of tables) await fill(table);
  await setTriggers('ENABLE');
  for (const t of ties) await client.query(`ALTER TABLE ${t.table} ADD CONSTRAINT ${quoted(t.name)} ${t.definition}`);
}
