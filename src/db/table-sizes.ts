import type { Queryable } from './database.ts';
import { findRows } from './rows.ts';

export type TableSize = { table: string; rows: number; bytes: number };

/** The tables of the service and of its job queue, the largest first; rows are the estimate of the planner. */
export async function tableSizes(db: Queryable): Promise<TableSize[]> {
  return await findRows<TableSize>(
    db,
    `SELECT c.oid::regclass::text AS table, greatest(c.reltuples, 0)::bigint AS rows, pg_total_relation_size(c.oid) AS bytes
     FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
     WHERE n.nspname IN ('public', 'pgboss') AND c.relkind = 'r' ORDER BY bytes DESC`,
  );
}
