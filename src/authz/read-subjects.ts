import type { Queryable } from '../db/database.ts';
import { withoutGroups } from './policy.ts';
import { FACTS, type FactsSql, factsOf, type SubjectContext } from './subject-context.ts';

/** A user with the facts policies use, and names for administrators. */
export type NamedSubject = {
  id: number;
  displayName: string;
  externalId: string;
  /** Study groups by id and name; an id that no import has named is its own name. */
  groups: Array<{ id: string; name: string }>;
  context: SubjectContext;
};

type SubjectSql = FactsSql & { display_name: string; groups: NamedSubject['groups'] };

/**
 * Groups come from the mirror of the graph in the database, for many users in one statement: `view_own_data` of a study
 * group is its relation `member`, which names users alone (docs/authorization.md "Relationship graph").
 */
const SUBJECTS = `SELECT ${FACTS}, u.display_name,
    coalesce((SELECT jsonb_agg(jsonb_build_object('id', a.resource_id, 'name', coalesce(g.name, a.resource_id))
        ORDER BY a.resource_id)
      FROM authz_tuples a LEFT JOIN groups g ON g.external_id = a.resource_id
      WHERE a.subject_type = 'user' AND a.subject_id = u.external_id AND a.resource_type = 'study_group'
        AND a.relation = 'member'), '[]') AS groups
  FROM global_users u`;

function toSubject(r: SubjectSql, assembledAt: number): NamedSubject {
  const user = { ...factsOf(r), groups: r.groups.map(g => g.id) };
  return {
    id: Number(r.id),
    displayName: r.display_name,
    externalId: user.external_id,
    groups: r.groups,
    context: { user, roles: new Set(r.roles), hasGroups: true, assembledAt },
  };
}

/** Which users: those with ids above `above`, in the order of their ids. */
export type Part = { above: number; limit: number };

/** Users without names and groups, which take most of the time: for policies that do not read them. */
export async function readContexts(db: Queryable, part: Part): Promise<Array<Pick<NamedSubject, 'id' | 'context'>>> {
  const assembledAt = performance.now();
  const { rows } = await db.query<FactsSql>(
    `SELECT ${FACTS} FROM global_users u WHERE u.id > $1 ORDER BY u.id LIMIT $2`,
    [part.above, part.limit],
  );
  return rows.map(r => ({
    id: Number(r.id),
    context: { user: withoutGroups(factsOf(r)), roles: new Set(r.roles), hasGroups: false, assembledAt },
  }));
}

export async function readSubjects(db: Queryable, part: Part): Promise<NamedSubject[]> {
  const assembledAt = performance.now();
  const { rows } = await db.query<SubjectSql>(`${SUBJECTS} WHERE u.id > $1 ORDER BY u.id LIMIT $2`, [
    part.above,
    part.limit,
  ]);
  return rows.map(r => toSubject(r, assembledAt));
}

/** These users, in the order of their ids, as far as they are still there. */
export async function readSubjectsById(db: Queryable, ids: readonly number[]): Promise<NamedSubject[]> {
  const assembledAt = performance.now();
  const { rows } = await db.query<SubjectSql>(`${SUBJECTS} WHERE u.id = ANY($1::bigint[]) ORDER BY u.id`, [ids]);
  return rows.map(r => toSubject(r, assembledAt));
}
