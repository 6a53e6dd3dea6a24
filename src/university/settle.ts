import type { Queryable } from '../db/database.ts';
import { findRows } from '../db/rows.ts';
import type { GraphSchema } from '../graph/graph-schema.ts';
import { type Tuple, tupleKey } from '../graph/tuple.ts';
import { endWithAccount } from '../identity/end-with-account.ts';
import { setImportedRole } from '../identity/user-roles.ts';
import { linkPersons, setStudies } from '../identity/users.ts';
import { appendGraphChanges, type GraphChange } from '../outbox/append.ts';
import type { Columns, Entity, GraphRule } from './entities.ts';

/** A record that is written, and what it was: null for a new one. */
export type Change = { id: string; before: Columns | null; after: Columns };

const textOrNull = (value: unknown): string | null => (typeof value === 'string' ? value : null);

/**
 * Makes persons users, or users persons, before they are written. A person who is another user now takes along what the
 * positions give; what was opened with an account that is another person's now ends.
 *
 * @returns by the id of the person: why its account cannot be linked; such a person must not be written
 */
export async function settlePersons(
  client: Queryable,
  changes: readonly Change[],
): Promise<ReadonlyMap<string, string>> {
  if (changes.length === 0) return new Map();
  const { conflicts, moved, relinked } = await linkPersons(
    client,
    changes.map(({ after, before, id }) => ({
      externalId: id,
      displayName: [after.last_name, after.first_name, after.middle_name].filter(part => part !== null).join(' '),
      locale: after.locale === 'ru' || after.locale === 'en' ? after.locale : null,
      nationalityType:
        after.nationality_type === 'domestic' || after.nationality_type === 'foreign' ? after.nationality_type : null,
      primaryChannel:
        after.primary_channel === 'TELEGRAM' || after.primary_channel === 'VK' ? after.primary_channel : null,
      idpAccountsId: textOrNull(after.idp_account_id),
      formerIdpAccountsId: textOrNull(before?.idp_account_id),
    })),
  );
  for (const id of relinked) await endWithAccount(client, Number(id));
  await settlePositions(client, moved);
  return conflicts;
}

/**
 * Gives users what the positions of persons give, and takes from them what those do not; by external id.
 *
 * @returns those who study
 */
export async function settlePositions(client: Queryable, persons: readonly string[]): Promise<ReadonlySet<string>> {
  const students = await settleStudies(client, persons);
  await settleTeaching(client, persons);
  return students;
}

const STUDY_COLUMNS = ['person_external_id', 'holds', 'funding_type', 'education_form', 'start_date'];

/** Persons whose records changed in what they give. */
function personsOf(changes: readonly Change[], columns: readonly string[]): string[] {
  const out = new Set<string>();
  for (const { after, before } of changes) {
    if (before !== null && columns.every(c => before[c] === after[c])) continue;
    for (const r of [before, after]) if (r !== null) out.add(String(r.person_external_id));
  }
  return [...out];
}

type Study = { person: string; groupId: string; fundingType: string | null; educationForm: string | null };

/** Positions that hold, of each person the one that began last first. */
async function studiesOf(client: Queryable, persons: readonly string[]): Promise<Map<string, Study[]>> {
  const rows = await findRows<Study>(
    client,
    `SELECT person_external_id AS person, group_external_id AS group_id, funding_type, education_form
     FROM student_positions WHERE person_external_id = ANY($1) AND holds
     ORDER BY person_external_id, start_date DESC NULLS LAST, external_id`,
    [persons],
  );
  return Map.groupBy(rows, r => r.person);
}

/** What a policy asks of a student, from the position that began last. @returns those who study */
async function settleStudies(client: Queryable, persons: readonly string[]): Promise<ReadonlySet<string>> {
  if (persons.length === 0) return new Set();
  const studies = await studiesOf(client, persons);
  await setStudies(
    client,
    persons.map(externalId => {
      const first = studies.get(externalId)?.[0];
      return { externalId, fundingType: first?.fundingType ?? null, educationForm: first?.educationForm ?? null };
    }),
  );
  const students = new Set(studies.keys());
  await setImportedRole(client, 'student', persons, students);
  return students;
}

async function settleTeaching(client: Queryable, persons: readonly string[]): Promise<void> {
  if (persons.length === 0) return;
  const { rows } = await client.query<{ person: string }>(
    'SELECT DISTINCT person_external_id AS person FROM teacher_positions WHERE person_external_id = ANY($1) AND holds',
    [persons],
  );
  await setImportedRole(client, 'teacher', persons, new Set(rows.map(r => r.person)));
}

function parentChanges(rule: Extract<GraphRule, { kind: 'parent' }>, changes: readonly Change[]): GraphChange[] {
  const out: GraphChange[] = [];
  const linked = (r: Columns | null): string | null => (r?.is_active === true ? String(r[rule.parentColumn]) : null);
  for (const { after, before, id } of changes) {
    const parent = linked(after);
    if (parent === linked(before)) continue;
    const tuple: Tuple = {
      resourceType: rule.childType,
      resourceId: id,
      relation: 'parent',
      subjectType: rule.parentType,
      subjectId: parent ?? '',
      subjectRelation: '',
    };
    out.push({
      operation: 'REPLACE',
      filter: { resourceType: rule.childType, resourceId: id, relation: 'parent' },
      tuples: parent === null ? [] : [tuple],
    });
  }
  return out;
}

async function studentChanges(client: Queryable, changes: readonly Change[]): Promise<GraphChange[]> {
  const persons = personsOf(changes, ['person_external_id', 'group_external_id', 'holds']);
  // Nothing was given, and nothing is: a position that never held.
  const before = new Set(changes.filter(c => c.before?.holds === true).map(c => String(c.before?.person_external_id)));
  const studies = await studiesOf(client, persons);
  const out: GraphChange[] = [];
  for (const person of persons) {
    const groups = new Set(studies.get(person)?.map(s => s.groupId));
    if (groups.size === 0 && !before.has(person)) continue;
    out.push({
      operation: 'DELETE_BY_SUBJECT',
      filter: { subjectType: 'user', subjectId: person, resourceType: 'study_group', relation: 'member' },
    });
    if (groups.size > 0)
      out.push({
        operation: 'TOUCH',
        tuples: [...groups].map(group => ({
          resourceType: 'study_group',
          resourceId: group,
          relation: 'member',
          subjectType: 'user',
          subjectId: person,
          subjectRelation: '',
        })),
      });
  }
  return out;
}

/** A tuple goes when the last record that gives it does. */
async function tupleChanges(
  client: Queryable,
  entity: Entity,
  rule: Extract<GraphRule, { kind: 'tuple' }>,
  changes: readonly Change[],
): Promise<GraphChange[]> {
  const given = (r: Columns | null): Tuple | null => (r?.holds === true ? rule.tupleOf(r) : null);
  const [gone, come] = [new Map<string, { tuple: Tuple; row: Columns }>(), new Map<string, Tuple>()];
  for (const { after, before } of changes) {
    const [was, is] = [given(before), given(after)];
    if (was !== null && is !== null && tupleKey(was) === tupleKey(is)) continue;
    if (was !== null && before !== null) gone.set(tupleKey(was), { tuple: was, row: before });
    if (is !== null) come.set(tupleKey(is), is);
  }
  const list = rule.columns.join(', ');
  const { rows } =
    gone.size === 0
      ? { rows: [] }
      : await client.query<Record<string, unknown>>(
          `SELECT DISTINCT ${list} FROM ${entity.table} JOIN jsonb_to_recordset($1::jsonb) AS g (${rule.columns.map(c => `${c} text`).join(', ')})
           USING (${list}) WHERE holds`,
          [JSON.stringify([...gone.values()].map(g => g.row))],
        );
  const stays = new Set(rows.map(r => tupleKey(rule.tupleOf(r))));
  return [
    ...[...gone]
      .filter(([key]) => !stays.has(key))
      .map(([, { tuple }]) => ({ operation: 'DELETE' as const, tuples: [tuple] })),
    ...[...come.values()].map(tuple => ({ operation: 'TOUCH' as const, tuples: [tuple] })),
  ];
}

/**
 * Applies the effects of changed records outside their own table: attributes and roles of users, and the graph, whose
 * change comes last in its transaction (docs/university.md "Tuples").
 */
export async function settleChanges(
  client: Queryable,
  schema: GraphSchema,
  entity: Entity,
  changes: readonly Change[],
): Promise<void> {
  if (entity.type === 'student_position') await settleStudies(client, personsOf(changes, STUDY_COLUMNS));
  if (entity.type === 'teacher_position')
    await settleTeaching(client, personsOf(changes, ['person_external_id', 'holds']));
  const rule = entity.graph;
  if (rule === undefined) return;
  const graphChanges =
    rule.kind === 'parent'
      ? parentChanges(rule, changes)
      : rule.kind === 'student'
        ? await studentChanges(client, changes)
        : await tupleChanges(client, entity, rule, changes);
  if (graphChanges.length > 0) await appendGraphChanges(client, schema, 'import', graphChanges);
}
