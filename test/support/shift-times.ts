import type { Database } from '../../src/db/database.ts';

/** Leaves what a step of the database's clock leaves: every stored time lies that much further ahead of it. The audit log can only grow. */
export async function shiftTimes(db: Database, schemas: readonly string[], seconds: number): Promise<void> {
  const { rows } = await db.query<{ of: string; sets: string }>(
    `SELECT format('%I.%I', c.table_schema, c.table_name) AS of,
       string_agg(format('%1$I = %1$I + make_interval(secs => %2$s)', c.column_name, $2::int), ', ') AS sets
     FROM information_schema.columns c JOIN information_schema.tables t USING (table_schema, table_name)
     WHERE c.table_schema = ANY ($1) AND t.table_type = 'BASE TABLE' AND c.data_type LIKE 'timestamp%' AND c.is_generated = 'NEVER'
       AND c.table_name <> 'audit_log'
       AND NOT (SELECT relispartition FROM pg_class WHERE oid = format('%I.%I', c.table_schema, c.table_name)::regclass)
     GROUP BY 1`,
    [schemas, seconds],
  );
  for (const { of, sets } of rows) await db.query(`UPDATE ${of} SET ${sets}`);
}
