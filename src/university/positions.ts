import type { Queryable } from '../db/database.ts';
import { APPOINTED_TO } from './entities.ts';

export const POSITION_KINDS = ['student', 'subgroup', 'teacher', 'teaching', 'appointment'] as const;

/** What a person is or was in the university, as its data say. */
export type Position = {
  kind: (typeof POSITION_KINDS)[number];
  /** Id of the record in the university's systems. */
  external_id: string;
  /** Where: an object, by its type in the graph. */
  object_type: string;
  object_id: string;
  object_name: string | null;
  /** Status of a student, title of a teacher, course that is taught, office that is held. */
  title: string | null;
  start_date: string | null;
  end_date: string | null;
  /** Whether it counts today. */
  holds: boolean;
};

/** How a person can be reached; null where the data do not say. */
export type PersonContact = { email: string | null; phone: string | null; is_active: boolean };

const DATES = 'p.start_date::text, p.end_date::text, p.holds';

const appointedTo = (of: (row: { type: string; table: string }) => string): string =>
  `CASE p.object_type ${Object.entries(APPOINTED_TO)
    .map(([name, row]) => `WHEN '${name}' THEN ${of(row)}`)
    .join(' ')} END`;

const POSITIONS = `
  SELECT 'student' AS kind, p.external_id, 'study_group' AS object_type, o.external_id AS object_id, o.name AS object_name,
    p.status AS title, ${DATES}
  FROM student_positions p JOIN groups o ON o.external_id = p.group_external_id WHERE p.person_external_id = $1
  UNION ALL
  SELECT 'subgroup', p.external_id, 'subgroup', o.external_id, o.name, NULL, ${DATES}
  FROM student_subgroups p JOIN subgroups o ON o.external_id = p.subgroup_external_id WHERE p.person_external_id = $1
  UNION ALL
  SELECT 'teacher', p.external_id, 'department', o.external_id, o.name, p.title, ${DATES}
  FROM teacher_positions p JOIN departments o ON o.external_id = p.department_external_id WHERE p.person_external_id = $1
  UNION ALL
  SELECT 'teaching', p.external_id, 'stream', o.external_id, o.name, c.name, s.start_date::text, s.end_date::text, p.holds
  FROM teaching_assignments p JOIN streams o ON o.external_id = p.stream_external_id
    JOIN courses c ON c.external_id = p.course_external_id JOIN semesters s ON s.external_id = p.semester_external_id
  WHERE p.person_external_id = $1
  UNION ALL
  SELECT 'appointment', p.external_id, ${appointedTo(({ type }) => `'${type}'`)}, p.object_external_id,
    ${appointedTo(({ table }) => `(SELECT o.name FROM ${table} o WHERE o.external_id = p.object_external_id)`)}, p.role, ${DATES}
  FROM administrative_appointments p WHERE p.person_external_id = $1`;

/** Lists the positions of a person, those that count today first. @param limit how many at most */
export async function listPositions(db: Queryable, externalId: string, limit: number): Promise<Position[]> {
  const { rows } = await db.query<Position>(
    `SELECT * FROM (${POSITIONS}) p ORDER BY holds DESC, start_date DESC NULLS LAST, kind, external_id LIMIT $2`,
    [externalId, limit],
  );
  return rows;
}

/** @returns undefined when the data have no such person */
export async function findContact(db: Queryable, externalId: string): Promise<PersonContact | undefined> {
  const text = 'SELECT email, phone, is_active FROM persons WHERE external_id = $1';
  return (await db.query<PersonContact>(text, [externalId])).rows[0];
}
