import type { Queryable } from '../db/database.ts';
import { APPOINTED_TO } from './entities.ts';

/** An object of the graph, with the name it has in the university's data. */
export type NamedObject = { id: string; name: string | null };

/** Where names of objects stand, by their type in the graph. */
const NAMED = new Map<string, string>([
  ['user', 'SELECT external_id AS id, display_name AS name FROM global_users WHERE external_id IS NOT NULL'],
  ['subgroup', 'SELECT external_id AS id, name FROM subgroups'],
  ...Object.values(APPOINTED_TO).map(
    ({ table, type }) => [type, `SELECT external_id AS id, name FROM ${table}`] as const,
  ),
]);

/** Objects without a name in the university's data, such as roles: known as long as a relationship names them. */
const OTHERS = 'SELECT DISTINCT resource_id AS id, NULL::text AS name FROM authz_tuples WHERE resource_type = $1';

const ofType = (type: string): string =>
  `SELECT o.id, o.name FROM (${NAMED.get(type) ?? OTHERS}) o WHERE $1::text <> ''`;

/** Objects of a type whose name has this part, or whose id begins so. */
export async function searchObjects(
  db: Queryable,
  type: string,
  search: string,
  limit: number,
): Promise<NamedObject[]> {
  const { rows } = await db.query<NamedObject>(
    `${ofType(type)} AND ($2 = '' OR strpos(lower(o.name), lower($2)) > 0 OR starts_with(o.id, $2)) ORDER BY o.id = $2 DESC, o.name, o.id LIMIT $3`,
    [type, search, limit],
  );
  return rows;
}

/** The names of these objects, as far as they are known. */
export async function nameObjects(db: Queryable, type: string, ids: readonly string[]): Promise<NamedObject[]> {
  const { rows } = await db.query<NamedObject>(`${ofType(type)} AND o.id = ANY($2)`, [type, ids]);
  return rows;
}
