import { z } from 'zod';
import { LIMITS } from '../base/limits.ts';
import type { Queryable } from '../db/database.ts';
import { findRows } from '../db/rows.ts';
import type { Graph } from '../graph/graph.ts';

/** Which students a message is for (docs/messengers.md "Notifications"): where they study, by the graph, and what they are, by the database. */

const ids = z.array(z.string().min(1).max(LIMITS.externalIdCharsMax)).max(200).optional();
/** One value, or a list of those that will do. */
const oneOf = <T extends string>(values: readonly T[]) =>
  z.preprocess(v => (typeof v === 'string' ? [v] : v), z.array(z.enum(values)).min(1)).optional();

export const studentFilter = z
  .strictObject({
    streams: ids,
    groups: ids,
    subgroups: ids,
    nationality_type: oneOf(['domestic', 'foreign']),
    funding_type: oneOf(['budget', 'contract']),
    education_form: oneOf(['full_time', 'part_time', 'remote']),
    locale: oneOf(['ru', 'en']),
    primary_channel: oneOf(['TELEGRAM', 'VK']),
    /** Says that it is meant for every student. */
    all: z.literal(true).optional(),
  })
  .refine(
    f => Object.keys(f).length > 0,
    'must name streams, groups, subgroups or an attribute; {"all": true} is every student',
  );
export type StudentFilter = z.infer<typeof studentFilter>;

/** Questions put to the graph together. */
const LOOKUPS_AT_ONCE = 8;

/** External ids of those who study in one of these places; null: wherever they study. @throws GraphError */
async function membersOf(db: Queryable, graph: Pick<Graph, 'lookupUsers'>, f: StudentFilter): Promise<string[] | null> {
  if (f.streams === undefined && f.groups === undefined && f.subgroups === undefined) return null;
  const { rows } = await db.query<{ external_id: string }>(
    'SELECT external_id FROM groups WHERE stream_external_id = ANY ($1) AND is_active',
    [f.streams ?? []],
  );
  const places = [...new Set([...(f.groups ?? []), ...rows.map(r => r.external_id)])].map(
    id => ['study_group', id] as const,
  );
  const all = [...places, ...(f.subgroups ?? []).map(id => ['subgroup', id] as const)];
  const found = new Set<string>();
  for (let k = 0; k < all.length; k += LOOKUPS_AT_ONCE)
    for (const members of await Promise.all(
      all.slice(k, k + LOOKUPS_AT_ONCE).map(([type, id]) => graph.lookupUsers(type, id, 'member')),
    ))
      for (const externalId of members) found.add(externalId);
  return [...found];
}

/**
 * Users who are students and whom the filter means.
 *
 * @throws GraphError when the graph does not answer
 */
export async function findStudents(
  db: Queryable,
  graph: Pick<Graph, 'lookupUsers'>,
  f: StudentFilter,
): Promise<number[]> {
  const members = await membersOf(db, graph, f);
  const rows = await findRows<{ id: number }>(
    db,
    `SELECT u.id FROM global_users u
     WHERE ($1::text[] IS NULL OR u.external_id = ANY ($1))
       AND ($1::text[] IS NOT NULL OR EXISTS (SELECT 1 FROM student_positions s WHERE s.person_external_id = u.external_id AND s.holds))
       AND ($2::text[] IS NULL OR u.nationality_type = ANY ($2)) AND ($3::text[] IS NULL OR u.funding_type = ANY ($3))
       AND ($4::text[] IS NULL OR u.education_form = ANY ($4)) AND ($5::text[] IS NULL OR u.locale = ANY ($5))
       AND ($6::text[] IS NULL OR u.primary_channel = ANY ($6))
     ORDER BY u.id LIMIT $7`,
    [
      members,
      f.nationality_type ?? null,
      f.funding_type ?? null,
      f.education_form ?? null,
      f.locale ?? null,
      f.primary_channel ?? null,
      LIMITS.studentsToldMax + 1,
    ],
  );
  return rows.map(r => r.id);
}
