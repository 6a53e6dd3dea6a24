import { z } from 'zod';
import { LIMITS } from '../base/limits.ts';
import type { Tuple } from '../graph/tuple.ts';

/** The fourteen types of university data (docs/university.md "Types"), in the order in which they are imported. */
export type EntityType =
  | 'person'
  | 'course'
  | 'semester'
  | 'faculty'
  | 'department'
  | 'program'
  | 'stream'
  | 'group'
  | 'subgroup'
  | 'teacher_position'
  | 'student_position'
  | 'student_subgroup'
  | 'teaching_assignment'
  | 'admin_appointment';

/** A record as its columns hold it. */
export type Columns = Readonly<Record<string, unknown>>;

/** What a record means in the graph (docs/university.md "Tuples"). */
export type GraphRule =
  /** REPLACE of the one link to what it belongs to. */
  | { kind: 'parent'; childType: string; parentType: string; parentColumn: string }
  /** DELETE_BY_SUBJECT of all groups of a person, then TOUCH of those that are left. */
  | { kind: 'student' }
  /** TOUCH of a tuple that other records may give as well; DELETE when the last of them is gone. */
  | { kind: 'tuple'; columns: readonly string[]; tupleOf(row: Columns): Tuple };

/** One row: everything the host knows of a type of record. */
export type Entity = {
  type: EntityType;
  /** Last segment of its batch endpoint, and of its list at the source. */
  path: string;
  table: string;
  /** Dependency order (docs/university.md "Types"). */
  phase: 1 | 2 | 3 | 4;
  /** By the name in the record, which is the name of the column: its check and the type of the column. */
  fields: Readonly<Record<string, Field>>;
  /** Whether it holds only from its `start_date` to its `end_date`, and as long as it is active. */
  dated?: true;
  graph?: GraphRule;
};

export type Field = {
  check: z.ZodType;
  sql: 'text' | 'int' | 'numeric' | 'boolean' | 'date' | 'jsonb';
  /** The table whose records the field names. */
  references?: string;
};

/** Half a surrogate pair, or NUL: no text of the database holds them. */
const isText = (text: string): boolean => text.isWellFormed() && !text.includes('\0');
const words = (charsMax: number) =>
  z
    .string()
    .min(1)
    .max(charsMax, `must have at most ${charsMax} characters`)
    .refine(isText, 'must not hold a NUL character or half of a surrogate pair');

export const externalId = words(LIMITS.externalIdCharsMax);

const name: Field = { check: words(500), sql: 'text' };
const optional = ({ check, ...field }: Field): Field => ({ ...field, check: check.nullable().default(null) });
const text = (charsMax = 500): Field => optional({ check: words(charsMax), sql: 'text' });
const oneOf = (...values: [string, ...string[]]): Field => ({
  check: z.enum(values, `must be one of ${values.join(', ')}`),
  sql: 'text',
});
const byDefault = ({ check, ...field }: Field, value: string | boolean): Field => ({
  ...field,
  check: check
    .nullable()
    .default(null)
    .transform(given => given ?? value),
});
const flag: Field = byDefault({ check: z.boolean('must be true or false'), sql: 'boolean' }, false);
const whole = (min: number, max: number): Field =>
  optional({
    check: z
      .int(`must be a whole number from ${min} to ${max}`)
      .min(min, `must be at least ${min}`)
      .max(max, `must be at most ${max}`),
    sql: 'int',
  });
const amount = (max: number): Field =>
  optional({
    check: z.number('must be a number').min(0, 'must not be negative').max(max, `must be at most ${max}`),
    sql: 'numeric',
  });
const date: Field = {
  check: z.iso.date('must be a date like 2026-09-01').refine(day => day >= '0001', 'must be a date like 2026-09-01'),
  sql: 'date',
};
const dates = { start_date: optional(date), end_date: optional(date) };
const refersTo = (table: string): Field => ({ check: externalId, sql: 'text', references: table });
const year = whole(1900, 2200);
const nameInLanguages: Field = optional({
  // Names in further languages are kept.
  check: z.looseObject({ ru: words(500).optional(), en: words(500).optional() }),
  sql: 'jsonb',
});
const named = { name, name_i18n: nameInLanguages };
const educationForm = optional(oneOf('full_time', 'part_time', 'remote'));
const channel = z.enum(['TELEGRAM', 'VK'], 'must be TELEGRAM or VK');

const userTuple = (resourceType: string, resourceId: unknown, relation: string, person: unknown): Tuple => ({
  resourceType,
  resourceId: String(resourceId),
  relation,
  subjectType: 'user',
  subjectId: String(person),
  subjectRelation: '',
});

/** Where appointments are made: the type in the graph, its table, and which roles there are (docs/authorization.md "Relationship graph"). */
export const APPOINTED_TO: Readonly<Record<string, { type: string; table: string; roles: readonly string[] }>> = {
  faculty: { type: 'faculty', table: 'faculties', roles: ['dean', 'staff'] },
  department: { type: 'department', table: 'departments', roles: ['head', 'staff'] },
  program: { type: 'program', table: 'programs', roles: ['director', 'staff'] },
  stream: { type: 'stream', table: 'streams', roles: ['curator'] },
  group: { type: 'study_group', table: 'groups', roles: ['curator'] },
};

const parent = (childType: string, parentType: string, parentColumn: string): GraphRule => ({
  kind: 'parent',
  childType,
  parentType,
  parentColumn,
});

export const ENTITIES: readonly Entity[] = [
  {
    type: 'person',
    path: 'persons',
    table: 'persons',
    phase: 1,
    fields: {
      last_name: name,
      first_name: name,
      middle_name: text(),
      name_i18n: nameInLanguages,
      email: text(),
      phone: text(100),
      locale: optional(oneOf('ru', 'en')),
      nationality_type: optional(oneOf('domestic', 'foreign')),
      citizenship: text(100),
      idp_account_id: text(255),
      primary_channel: optional({ check: channel, sql: 'text' }),
      channels: {
        check: z
          .array(z.looseObject({ channel, external_id: externalId }))
          .max(10, 'must have at most 10 entries')
          .nullable()
          .default([])
          .transform(given => given ?? []),
        sql: 'jsonb',
      },
    },
  },
  {
    type: 'course',
    path: 'courses',
    table: 'courses',
    phase: 1,
    fields: {
      ...named,
      code: text(100),
      description: text(20_000),
      credits: amount(1000),
      hours: amount(100_000),
      // Departments come later, so that it is not looked up.
      department_external_id: optional({ check: externalId, sql: 'text' }),
    },
  },
  {
    type: 'semester',
    path: 'semesters',
    table: 'semesters',
    phase: 1,
    fields: {
      ...named,
      academic_year: { check: words(50), sql: 'text' },
      kind: optional(oneOf('autumn', 'spring', 'summer')),
      start_date: date,
      end_date: date,
      is_current: flag,
    },
  },
  {
    type: 'faculty',
    path: 'faculties',
    table: 'faculties',
    phase: 1,
    fields: { ...named, short_name: text(), code: text(100) },
  },
  {
    type: 'department',
    path: 'departments',
    table: 'departments',
    phase: 2,
    fields: { ...named, faculty_external_id: refersTo('faculties'), short_name: text(), code: text(100) },
    graph: parent('department', 'faculty', 'faculty_external_id'),
  },
  {
    type: 'program',
    path: 'programs',
    table: 'programs',
    phase: 2,
    fields: {
      ...named,
      department_external_id: refersTo('departments'),
      code: text(100),
      degree: text(100),
      education_form: educationForm,
      duration_years: amount(20),
    },
    graph: parent('program', 'department', 'department_external_id'),
  },
  {
    type: 'stream',
    path: 'streams',
    table: 'streams',
    phase: 2,
    fields: {
      ...named,
      program_external_id: refersTo('programs'),
      admission_year: year,
      study_year: whole(0, 20),
      is_foreign: flag,
    },
    graph: parent('stream', 'program', 'program_external_id'),
  },
  {
    type: 'group',
    path: 'groups',
    table: 'groups',
    phase: 2,
    fields: { ...named, stream_external_id: refersTo('streams'), admission_year: year, language: text(100) },
    graph: parent('study_group', 'stream', 'stream_external_id'),
  },
  {
    type: 'subgroup',
    path: 'subgroups',
    table: 'subgroups',
    phase: 2,
    fields: { ...named, group_external_id: refersTo('groups'), kind: text(100) },
    graph: parent('subgroup', 'study_group', 'group_external_id'),
  },
  {
    type: 'teacher_position',
    path: 'teacher-positions',
    table: 'teacher_positions',
    phase: 3,
    fields: {
      person_external_id: refersTo('persons'),
      department_external_id: refersTo('departments'),
      title: name,
      rate: amount(10),
      is_primary: flag,
      ...dates,
    },
    dated: true,
  },
  {
    type: 'student_position',
    path: 'student-positions',
    table: 'student_positions',
    phase: 3,
    fields: {
      person_external_id: refersTo('persons'),
      group_external_id: refersTo('groups'),
      record_book: text(100),
      status: byDefault(oneOf('studying', 'leave', 'expelled', 'graduated'), 'studying'),
      funding_type: optional(oneOf('budget', 'contract')),
      education_form: educationForm,
      ...dates,
    },
    dated: true,
    graph: { kind: 'student' },
  },
  {
    type: 'student_subgroup',
    path: 'student-subgroups',
    table: 'student_subgroups',
    phase: 3,
    fields: {
      person_external_id: refersTo('persons'),
      subgroup_external_id: refersTo('subgroups'),
      semester_external_id: optional(refersTo('semesters')),
      ...dates,
    },
    dated: true,
    graph: {
      kind: 'tuple',
      columns: ['subgroup_external_id', 'person_external_id'],
      tupleOf: r => userTuple('subgroup', r.subgroup_external_id, 'member', r.person_external_id),
    },
  },
  {
    type: 'teaching_assignment',
    path: 'teaching-assignments',
    table: 'teaching_assignments',
    phase: 4,
    fields: {
      person_external_id: refersTo('persons'),
      stream_external_id: refersTo('streams'),
      course_external_id: refersTo('courses'),
      semester_external_id: refersTo('semesters'),
      kind: optional(oneOf('lecture', 'seminar', 'lab')),
      audience: byDefault(oneOf('all', 'foreign'), 'all'),
    },
    dated: true,
    graph: {
      kind: 'tuple',
      columns: ['stream_external_id', 'person_external_id', 'audience'],
      tupleOf: r =>
        userTuple(
          'stream',
          r.stream_external_id,
          r.audience === 'foreign' ? 'foreign_teacher' : 'teacher',
          r.person_external_id,
        ),
    },
  },
  {
    type: 'admin_appointment',
    path: 'admin-appointments',
    table: 'administrative_appointments',
    phase: 4,
    fields: {
      person_external_id: refersTo('persons'),
      object_type: oneOf('faculty', 'department', 'program', 'stream', 'group'),
      // Which table it is in depends on the type.
      object_external_id: { check: externalId, sql: 'text' },
      role: oneOf('dean', 'head', 'director', 'curator', 'staff'),
      ...dates,
    },
    dated: true,
    graph: {
      kind: 'tuple',
      columns: ['object_type', 'object_external_id', 'role', 'person_external_id'],
      tupleOf: r =>
        userTuple(
          APPOINTED_TO[String(r.object_type)]?.type ?? String(r.object_type),
          r.object_external_id,
          String(r.role),
          r.person_external_id,
        ),
    },
  },
];

export const ENTITY_BY_PATH: ReadonlyMap<string, Entity> = new Map(ENTITIES.map(e => [e.path, e]));
export const ENTITY_BY_TYPE: ReadonlyMap<EntityType, Entity> = new Map(ENTITIES.map(e => [e.type, e]));
