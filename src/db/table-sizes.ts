import type { Queryable } from './database.ts';

export type TableSize = { table: string; rows: number; bytes: number };

/** The tables of the service and of its job queue, the largest first; rows are the estimate of the planner. */
export async function tableSizes(db: Queryable): Promise<TableSize[]> {
  const { rows } = await db.query<{ table: string; rows: string; bytes: string }>(
    `SELECT c.oid::regclass::text AS table, greatest(c.reltuples, 0)::bigint AS rows, pg_total_relation_size(c.oid) AS bytes
     FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
     WHERE n.nspname IN ('public', 'pgboss') AND c.relkind = 'r' ORDER BY bytes DESC`,
  );
  return rows.map(r => ({ table: r.table, rows: Number(r.rows), bytes: Number(r.bytes) }));
}
