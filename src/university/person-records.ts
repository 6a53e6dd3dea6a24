import type { Queryable } from '../db/database.ts';

/** Tables that name a person, those that refer to others first. */
const OF_A_PERSON = [
  'student_subgroups',
  'student_positions',
  'teacher_positions',
  'teaching_assignments',
  'administrative_appointments',
] as const;

type Rows = Array<Record<string, unknown>>;

/** Everything the university's data say of a person, by table. */
export async function readPersonRecords(
  db: Queryable,
  externalId: string,
): Promise<{ persons: Rows } & Record<string, Rows>> {
  const found: { persons: Rows } & Record<string, Rows> = {
    persons: (await db.query('SELECT * FROM persons WHERE external_id = $1', [externalId])).rows,
  };
  for (const table of OF_A_PERSON)
    found[table] = (await db.query(`SELECT * FROM ${table} WHERE person_external_id = $1`, [externalId])).rows;
  return found;
}

/** Removes a person from the university's data, inside the caller's transaction. @returns how many records */
export async function erasePersonRecords(client: Queryable, externalId: string): Promise<number> {
  let removed = 0;
  for (const table of OF_A_PERSON) {
    const { rowCount } = await client.query(`DELETE FROM ${table} WHERE person_external_id = $1`, [externalId]);
    removed += rowCount ?? 0;
  }
  const { rowCount } = await client.query('DELETE FROM persons WHERE external_id = $1', [externalId]);
  return removed + (rowCount ?? 0);
}
