import { EXACT_JSON_TYPES, type Queryable } from '../db/database.ts';
import { forgetBookmark } from './bookmarks.ts';
import { ENTITIES } from './entities.ts';

/** Tables that name a person, those that refer to others first. */
const OF_A_PERSON = [
  'student_subgroups',
  'student_positions',
  'teacher_positions',
  'teaching_assignments',
  'administrative_appointments',
] as const;

type Rows = Array<Record<string, unknown>>;

/** Everything the university's data say of a person, by table; numbers keep their digits. */
export async function readPersonRecords(
  db: Queryable,
  externalId: string,
): Promise<{ persons: Rows } & Record<string, Rows>> {
  const rowsOf = async (table: string, column: string): Promise<Rows> => {
    const text = `SELECT * FROM ${table} WHERE ${column} = $1`;
    return (await db.query<Rows[number]>({ text, values: [externalId], types: EXACT_JSON_TYPES })).rows;
  };
  const found: { persons: Rows } & Record<string, Rows> = { persons: await rowsOf('persons', 'external_id') };
  for (const table of OF_A_PERSON) found[table] = await rowsOf(table, 'person_external_id');
  return found;
}

/**
 * Removes a person from the university's data, inside the caller's transaction. A source that still has the person brings the
 * records back: its lists are read again although they have not changed.
 *
 * @returns how many records
 */
export async function erasePersonRecords(client: Queryable, externalId: string): Promise<number> {
  let removed = 0;
  for (const table of OF_A_PERSON) {
    const { rowCount } = await client.query(`DELETE FROM ${table} WHERE person_external_id = $1`, [externalId]);
    removed += rowCount ?? 0;
  }
  for (const { table, type } of ENTITIES)
    if (table === 'persons' || OF_A_PERSON.some(t => t === table)) await forgetBookmark(client, type, true);
  const { rowCount } = await client.query('DELETE FROM persons WHERE external_id = $1', [externalId]);
  return removed + (rowCount ?? 0);
}
