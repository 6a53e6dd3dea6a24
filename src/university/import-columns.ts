import type { Queryable } from '../db/database.ts';

/** The field that each column of a file is, by its name; null: the column is left out. */
export type ImportColumns = Record<string, string | null>;

/** What administrators have said of the columns of their files, by type of records. */
export async function readImportColumns(db: Queryable): Promise<ReadonlyMap<string, ImportColumns>> {
  const { rows } = await db.query<{ type: string; column_name: string; field: string | null }>(
    'SELECT type, column_name, field FROM import_columns ORDER BY type, column_name',
  );
  const found = new Map<string, ImportColumns>();
  for (const { column_name, field, type } of rows) found.set(type, { ...found.get(type), [column_name]: field });
  return found;
}

/** Keeps what columns of a type mean in the place of all that was kept of it. */
export async function replaceImportColumns(client: Queryable, type: string, columns: ImportColumns): Promise<void> {
  await client.query('DELETE FROM import_columns WHERE type = $1', [type]);
  await client.query(
    'INSERT INTO import_columns (type, column_name, field) SELECT $1, name, field FROM unnest($2::text[], $3::text[]) AS c (name, field)',
    [type, Object.keys(columns), Object.values(columns)],
  );
}
