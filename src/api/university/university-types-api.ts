import { z } from 'zod';
import { appendAudit } from '../../audit/audit-log.ts';
import { type FieldError, ServiceError } from '../../base/errors.ts';
import type { Database } from '../../db/database.ts';
import { ENTITIES, ENTITY_BY_TYPE, type Entity, type Field } from '../../university/entities.ts';
import { readImportColumns, replaceImportColumns } from '../../university/import-columns.ts';
import { IMPORT_KINDS, lastPull, TYPE_STATES } from '../../university/import-log.ts';
import { summarizeTypes } from '../../university/type-summaries.ts';
import { actorOf } from '../contract/caller.ts';
import { resource } from '../contract/contract.ts';
import { type Handle, serve } from '../contract/endpoint.ts';
import { id, time } from '../contract/fields.ts';
import { type JsonSchema, toJsonSchema } from '../contract/json-schema.ts';
import { pageOf, wholePage } from '../contract/paging.ts';
import { noParameters } from '../contract/query.ts';
import type { Route } from '../contract/route.ts';
import { importRun, importRunJson } from './import-run.ts';

/** The source as the configuration names it. */
export type UniversitySourceSettings = {
  baseUrl: string;
  isEnabled: boolean;
  everySeconds: number;
  brakePercent: number;
};

export type UniversityTypesApiParts = { db: Database; source: UniversitySourceSettings };

const TYPES = ENTITIES.map(e => e.type);
const FIELD_KINDS = ['text', 'whole_number', 'number', 'boolean', 'date', 'time', 'object', 'list'] as const;
type FieldKind = (typeof FIELD_KINDS)[number];

const field = z.object({
  name: z.string(),
  kind: z.enum(FIELD_KINDS),
  required: z.boolean(),
  values: z.array(z.string()).nullable().describe('The only values it takes; null where it takes others'),
  references: z.enum(TYPES).nullable().describe('It names a record of this type by its external_id'),
});
const COLUMNS_MAX = 500;
const COLUMN_CHARS_MAX = 200;

const columns = z
  .record(z.string().min(1).max(COLUMN_CHARS_MAX), z.string().nullable())
  .refine(given => Object.keys(given).length <= COLUMNS_MAX, `at most ${COLUMNS_MAX} columns can be kept`)
  .describe('Columns of files that have other names than the fields: the field of each; null where it is left out');

const universityType = z
  .object({
    type: z.enum(TYPES),
    path: z.string().describe('Last segment of the path of its batch import'),
    phase: z.int().describe('Types of a phase refer to those of the phases before'),
    fields: z.array(field),
    columns,
    records: z.int().nonnegative(),
    active: z.int().nonnegative(),
    last: z
      .object({
        import: id,
        kind: z.enum(IMPORT_KINDS),
        state: z.enum(TYPE_STATES),
        total: z.int(),
        success: z.int(),
        failed: z.int(),
        problem: z.string().nullable(),
        at: time,
      })
      .nullable()
      .describe('The last import of the type that is in the log'),
  })
  .meta({ id: 'UniversityType' });

const universitySource = z
  .object({
    base_url: z.string().nullable().describe('Null when there is no source: university_sync.base_url'),
    enabled: z.boolean().describe('Whether it is pulled in the background: university_sync.enabled'),
    interval_seconds: z.int().positive(),
    brake_percent: z.number(),
    next_pull_at: time.nullable().describe('About when the next pull begins; null when none is to come'),
    last_pull: importRun.nullable(),
  })
  .meta({ id: 'UniversitySource' });

const READ = { method: 'GET', guard: 'import_log', key: ['read', 'university'], query: noParameters } as const;

/** What the university's data consist of, and where they are pulled from. */
export const universityTypes = resource(
  'University data: types and source',
  'The types of records with what is held of them, and the source they are pulled from.',
  {
    list: {
      ...READ,
      path: '/api/admin/university/types',
      summary: 'List the types of records in the order of their import',
      description: 'Further fields of a record are kept as its metadata.',
      replies: { 200: pageOf(universityType) },
    },
    columns: {
      method: 'PUT',
      path: '/api/admin/university/types/:type/columns',
      guard: 'admin',
      key: ['university'],
      params: { type: z.enum(TYPES) },
      summary: 'Keep what the columns of files mean',
      description:
        'In the place of all that was kept of the type. The pages read files so; a batch import takes fields alone.',
      body: z.strictObject({ columns }),
      replies: { 200: z.object({ columns }) },
      example: { params: { type: 'person' }, body: { columns: { Фамилия: 'last_name', СНИЛС: null } } },
    },
    source: {
      ...READ,
      path: '/api/admin/university/source',
      summary: 'Read which source is pulled, and when',
      replies: { 200: universitySource },
    },
  },
);

type Endpoints = typeof universityTypes;

const list: Handle<Endpoints['list'], UniversityTypesApiParts> = async ({ db }) => {
  const [summaries, kept] = await Promise.all([summarizeTypes(db), readImportColumns(db)]);
  const items = summaries.map(({ last, ...summary }) => {
    const entity = entityOf(summary.type);
    return {
      ...summary,
      columns: kept.get(summary.type) ?? {},
      path: entity.path,
      phase: entity.phase,
      fields: fieldsOf(entity),
      last: last === null ? null : lastJson(last),
    };
  });
  return { status: 200, json: wholePage(items) };
};

/** Columns that would be no field of the type. */
const columnErrors = (given: Readonly<Record<string, string | null>>, fields: readonly string[]): FieldError[] =>
  Object.entries(given)
    .filter(([, field]) => field !== null && !fields.includes(field.split('.')[0] ?? field))
    .map(([name]) => ({
      pointer: `/columns/${name.replaceAll('~', '~0').replaceAll('/', '~1')}`,
      code: 'not_one_of',
      message: `must be one of: ${fields.join(', ')}, a member of one, or null`,
    }));

const keepColumns: Handle<Endpoints['columns'], UniversityTypesApiParts> = async (parts, x) => {
  const { columns } = await x.body();
  const { type } = x.params;
  const names = fieldsOf(entityOf(type)).map(f => f.name);
  const errors = columnErrors(columns, names);
  if (errors.length > 0)
    throw new ServiceError('validation_failed', `${errors[0]?.pointer} ${errors[0]?.message}`, {
      errors,
    });
  await parts.db.withTransaction(async client => {
    const before = (await readImportColumns(client)).get(type) ?? {};
    await replaceImportColumns(client, type, columns);
    await appendAudit(client, actorOf(x.caller, x.request), {
      action: 'university.columns',
      objectType: 'import',
      objectId: type,
      before: { columns: before },
      after: { columns },
    });
  });
  return { status: 200, json: { columns } };
};

const lastJson = <L extends { importId: number }>({ importId, ...l }: L) => ({ import: importId, ...l });

const source: Handle<Endpoints['source'], UniversityTypesApiParts> = async ({ db, source: s }) => {
  const last = await lastPull(db);
  const json = {
    base_url: s.baseUrl === '' ? null : s.baseUrl,
    enabled: s.isEnabled,
    interval_seconds: s.everySeconds,
    brake_percent: s.brakePercent,
    next_pull_at: s.isEnabled ? nextOf(s.everySeconds, Date.now()) : null,
    last_pull: last === undefined ? null : importRunJson(last),
  };
  return { status: 200, json };
};

/** Periodic jobs are queued once in each interval since 1970. */
const nextOf = (everySeconds: number, now: number): Date =>
  new Date((Math.floor(now / 1000 / everySeconds) + 1) * everySeconds * 1000);

export function entityOf(type: Entity['type']): Entity {
  const entity = ENTITY_BY_TYPE.get(type);
  if (entity === undefined) throw new Error(`there is no type ${type}`);
  return entity;
}

const KINDS: Readonly<Record<Field['sql'], FieldKind>> = {
  text: 'text',
  int: 'whole_number',
  numeric: 'number',
  boolean: 'boolean',
  date: 'date',
  jsonb: 'object',
};
const NO_LIMITS = { required: false, values: null, references: null };

const fieldsOf = (entity: Entity): Array<z.infer<typeof field>> => [
  { ...NO_LIMITS, name: 'external_id', kind: 'text', required: true },
  ...Object.entries(entity.fields).map(([name, f]) => ({
    name,
    kind: isList(f.check) ? ('list' as const) : KINDS[f.sql],
    required: !f.check.safeParse(undefined).success,
    values: valuesOf(f.check),
    references: ENTITIES.find(e => e.table === f.references)?.type ?? null,
  })),
  { ...NO_LIMITS, name: 'is_active', kind: 'boolean' },
  { ...NO_LIMITS, name: 'updated_at', kind: 'time' },
  { ...NO_LIMITS, name: 'metadata', kind: 'object' },
];

/** Members of a check, whether they may be left out or not. */
function choicesOf(check: z.ZodType): JsonSchema[] {
  const schema = toJsonSchema(check, 'input');
  return [schema, ...(schema.anyOf ?? [])];
}

const isList = (check: z.ZodType): boolean => choicesOf(check).some(s => s.type === 'array');

/** The words of an enumeration. */
function valuesOf(check: z.ZodType): string[] | null {
  const words = choicesOf(check).find(s => Array.isArray(s.enum))?.enum;
  return words?.filter(w => typeof w === 'string') ?? null;
}

export const universityTypeRoutes = (parts: UniversityTypesApiParts): Route[] =>
  serve(universityTypes, parts, { list, columns: keepColumns, source });
