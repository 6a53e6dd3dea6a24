import type { Queryable } from '../db/database.ts';
import { findRows } from '../db/rows.ts';
import { withoutGroups } from './policy.ts';
import { FACTS, type FactsSql, factsOf, type SubjectContext } from './subject-context.ts';

/** A user with the facts policies use. */
export type Subject = { id: number; context: SubjectContext };

/** A user with names for administrators. */
export type SubjectName = {
  id: number;
  displayName: string;
  externalId: string;
  /** Study groups by id and name; an id that no import has named is its own name. */
  groups: Array<{ id: string; name: string }>;
};

const NO_ROLES: ReadonlySet<string> = new Set();

/** Which users: those with ids above `above`, in the order of their ids, at most `limit`; or those with these ids. */
export type Part = { above: number; limit: number };
type Which = Part | { ids: readonly number[] };

/**
 * Groups come from the mirror of the graph in the database, for many users in one statement: `view_own_data` of a study
 * group is its relation `member`, which names users alone (docs/authorization.md "Relationship graph").
 */
const GROUPS = `ARRAY(SELECT a.resource_id FROM authz_tuples a
    WHERE a.subject_type = 'user' AND a.subject_id = u.external_id AND a.resource_type = 'study_group'
      AND a.relation = 'member' ORDER BY a.resource_id) AS groups`;

/** Users as `u`, with the values it takes. A part is read in one go, and roles are joined to it: one by one they take twice the time. */
const usersOf = (which: Which): { users: string; roles: string; values: unknown[] } =>
  'ids' in which
    ? {
        users: 'SELECT * FROM global_users WHERE id = ANY($1::bigint[])',
        roles: 'global_user_id = ANY($1::bigint[])',
        values: [which.ids],
      }
    : {
        users: 'SELECT * FROM global_users WHERE id > $1 ORDER BY id LIMIT $2',
        roles: 'global_user_id > $1 AND global_user_id <= (SELECT max(id) FROM u)',
        values: [which.above, which.limit],
      };

/**
 * Reads users, in the order of their ids, as far as they are there.
 *
 * @param withGroups whether a policy may read the groups, which take most of the time
 */
export async function readSubjects(db: Queryable, which: Which, withGroups: boolean): Promise<Subject[]> {
  const assembledAt = performance.now();
  const { roles, users, values } = usersOf(which);
  const { rows } = await db.query<FactsSql & { groups: string[] }>(
    `WITH u AS MATERIALIZED (${users}),
       r AS (SELECT global_user_id, array_agg(role ORDER BY role) AS roles FROM user_roles WHERE ${roles} GROUP BY 1)
     SELECT ${FACTS}, coalesce(r.roles, '{}') AS roles, ${withGroups ? GROUPS : "'{}'::text[] AS groups"}
     FROM u LEFT JOIN r ON r.global_user_id = u.id ORDER BY u.id`,
    values,
  );
  return rows.map(r => {
    const facts = factsOf(r);
    return {
      id: Number(r.id),
      context: {
        user: withGroups ? { ...facts, groups: r.groups } : withoutGroups(facts),
        ...{ roles: r.roles.length === 0 ? NO_ROLES : new Set(r.roles), hasGroups: withGroups, assembledAt },
      },
    };
  });
}

/** The names of users, in the order of their ids, as far as they are still there. */
export async function nameSubjects(db: Queryable, ids: readonly number[]): Promise<SubjectName[]> {
  if (ids.length === 0) return [];
  const rows = await findRows<Omit<SubjectName, 'groups'> & { groups: string[] }>(
    db,
    `SELECT u.id, coalesce(u.external_id, '') AS external_id, u.display_name, ${GROUPS} FROM global_users u WHERE u.id = ANY($1::bigint[]) ORDER BY u.id`,
    [ids],
  );
  const known = await db.query<{ external_id: string; name: string }>(
    'SELECT external_id, name FROM groups WHERE external_id = ANY($1)',
    [[...new Set(rows.flatMap(r => r.groups))]],
  );
  const names = new Map(known.rows.map(g => [g.external_id, g.name]));
  return rows.map(r => ({
    ...r,
    groups: r.groups.map(id => ({ id, name: names.get(id) ?? id })),
  }));
}
