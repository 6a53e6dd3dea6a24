import { z } from 'zod';
import { isBeyondDoubles, isExactNumber, toDouble } from '../base/exact-json.ts';
import { fieldErrorsOf } from '../base/field-errors.ts';
import { LIMITS } from '../base/limits.ts';
import { APPOINTED_TO, type Columns, type Entity, type EntityType, externalId } from './entities.ts';
import { TOO_DEEP } from './json-elements.ts';

/** Why a record was not taken over; one entry for each place (docs/university.md "Batches"). */
export const RECORD_ERROR_CODES = [
  'not_an_object',
  'missing',
  'invalid',
  'unknown_reference',
  'duplicate',
  'conflict',
] as const;
export type RecordErrorCode = (typeof RECORD_ERROR_CODES)[number];

export type RecordError = {
  /** Place in the list, from 0. */
  index: number;
  external_id: string | null;
  /** Path of the field in the record; null for the record as a whole. */
  field: string | null;
  code: RecordErrorCode;
  message: string;
};

/** A record that is right by itself, as its columns hold it. */
export type Prepared = { index: number; externalId: string; columns: Columns };

const COMMON = {
  external_id: externalId,
  is_active: z.boolean('must be true or false').nullable().default(null),
  // Only kept, so that nothing in them costs the record.
  updated_at: z.unknown().optional(),
  metadata: z.unknown().optional(),
};

/** More digits of a second than the database reads. */
const TIME_CHARS_MAX = 64;
const TIME = z.iso.datetime({ offset: true });

/** Whether the database can hold it as a time: it has a zone, which the database takes up to 15 hours from UTC, and a year. */
const isTime = (value: unknown): value is string =>
  typeof value === 'string' &&
  value.length <= TIME_CHARS_MAX &&
  TIME.safeParse(value).success &&
  !/^0000|[+-](?:1[5-9]|2\d):\d\d$/.test(value);

const SCHEMAS = new Map<EntityType, z.ZodType<Record<string, unknown>>>();

/** What a record of a type may hold. Further members are taken as metadata. */
export function recordSchema(entity: Entity): z.ZodType<Record<string, unknown>> {
  const known = SCHEMAS.get(entity.type);
  if (known !== undefined) return known;
  const fields = Object.fromEntries(Object.entries(entity.fields).map(([name, field]) => [name, field.check]));
  const schema = z.looseObject({ ...COMMON, ...fields });
  SCHEMAS.set(entity.type, schema);
  return schema;
}

/**
 * Whether a record gives what it can give on a day: it is active, its time has come and is not over, and a student studies
 * (docs/university.md "Records").
 *
 * @param today a date like 2026-09-01
 */
export function holdsOn(today: string, r: Columns): boolean {
  const { end_date: end, is_active: isActive, start_date: start, status } = r;
  return (
    isActive === true &&
    (typeof start !== 'string' || start <= today) &&
    (typeof end !== 'string' || end >= today) &&
    status !== 'expelled' &&
    status !== 'graduated'
  );
}

const OWN_FIELDS = new Set(Object.keys(COMMON));

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value) && !isExactNumber(value);

/** How registers write that nothing is known: null, a text without a character to be seen, an empty list or object. */
function isNothing(value: unknown): boolean {
  if (value === null || value === undefined) return true;
  if (typeof value === 'string') return value.trim() === '';
  return (Array.isArray(value) || isObject(value)) && Object.keys(value).length === 0;
}

/** The value without members that say nothing; what is left of a list or an object may say nothing itself. */
function pruned(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(pruned).filter(v => !isNothing(v));
  if (!isObject(value)) return value;
  return Object.fromEntries(
    Object.entries(value)
      .map(([name, member]) => [name, pruned(member)] as const)
      .filter(([, member]) => !isNothing(member)),
  );
}

/** A channel without an account in it says nothing. */
const hasAccount = (entry: unknown): boolean => !isObject(entry) || Object.hasOwn(entry, 'external_id');

/** A record with null in each optional field that says nothing, and with doubles in the fields known here. */
function withoutNothing(entity: Entity, value: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const record: Record<string, unknown> = { ...value };
  if (isNothing(record.is_active)) record.is_active = null;
  for (const [name, { check, sql }] of Object.entries(entity.fields)) {
    if (!Object.hasOwn(record, name)) continue;
    let given = sql === 'jsonb' ? pruned(record[name]) : toDouble(record[name]);
    if (name === 'channels' && Array.isArray(given)) given = given.filter(hasAccount);
    record[name] = isNothing(given) && check.safeParse(null).success ? null : given;
  }
  return record;
}

function holdsBeyondDoubles(value: unknown): boolean {
  if (isBeyondDoubles(value)) return true;
  return typeof value === 'object' && value !== null && Object.values(value).some(holdsBeyondDoubles);
}

/** Members of a record that are kept without being understood. */
function metadataOf(entity: Entity, value: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const { metadata, updated_at } = value;
  const given = isNothing(metadata) ? [] : isObject(metadata) ? Object.entries(metadata) : [['metadata', metadata]];
  const unknown = Object.entries(value).filter(
    ([name]) => !OWN_FIELDS.has(name) && !Object.hasOwn(entity.fields, name),
  );
  const time = isNothing(updated_at) || isTime(updated_at) ? [] : [['updated_at', updated_at]];
  return Object.fromEntries([...given, ...time, ...unknown]);
}

/** Fields that contradict each other. */
function contradictions(entity: Entity, r: Columns): Array<{ field: string; message: string }> {
  const out = [];
  if (typeof r.start_date === 'string' && typeof r.end_date === 'string' && r.end_date < r.start_date)
    out.push({ field: 'end_date', message: `must not lie before start_date ${r.start_date}` });
  if (entity.type === 'admin_appointment') {
    const roles = APPOINTED_TO[String(r.object_type)]?.roles ?? [];
    if (!roles.includes(String(r.role)))
      out.push({ field: 'role', message: `must be ${roles.join(' or ')} for a ${r.object_type}` });
  }
  return out;
}

/**
 * Checks one record by itself.
 *
 * @param index its place in the list
 * @param today a date like 2026-09-01, in whose light it holds or does not
 * @returns its columns, or every place that is wrong
 */
export function parseRecord(
  entity: Entity,
  index: number,
  value: unknown,
  today: string,
): { record: Prepared } | { errors: RecordError[] } {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    const what = value === TOO_DEEP ? `, not ${TOO_DEEP}` : '';
    return {
      errors: [
        { index, external_id: null, field: null, code: 'not_an_object', message: `/${index} must be an object${what}` },
      ],
    };
  }
  const given = 'external_id' in value && typeof value.external_id === 'string' ? value.external_id : null;
  const error = (field: string | null, code: RecordErrorCode, message: string): RecordError => ({
    index,
    external_id: given === null ? null : given.slice(0, LIMITS.externalIdCharsMax),
    field,
    code,
    message: `/${index}${field === null ? '' : `/${field}`} ${message}`,
  });
  const members = Object.fromEntries(Object.entries(value));
  const parsed = recordSchema(entity).safeParse(withoutNothing(entity, members));
  if (!parsed.success)
    return {
      errors: fieldErrorsOf(parsed.error).map(e => {
        const field = e.pointer.slice(1);
        if (field === '' || field.includes('/') || Object.hasOwn(value, field))
          return error(field === '' ? null : field, 'invalid', e.message);
        const text = e.message.startsWith('is missing') ? e.message : `is missing; it ${e.message}`;
        return error(field, 'missing', text);
      }),
    };
  const r = parsed.data;
  const wrong = contradictions(entity, r).map(c => error(c.field, 'invalid', c.message));
  for (const [name, member] of Object.entries(members))
    if (holdsBeyondDoubles(member)) wrong.push(error(name, 'invalid', 'must hold numbers of at most 1.8e308'));
  const metadata = metadataOf(entity, members);
  const size = JSON.stringify(metadata).length;
  if (size > LIMITS.metadataCharsMax)
    wrong.push(
      error(
        'metadata',
        'invalid',
        `and fields that are not known here must have at most ${LIMITS.metadataCharsMax} characters, not ${size}`,
      ),
    );
  if (wrong.length > 0) return { errors: wrong };
  const columns: Record<string, unknown> = { external_id: r.external_id };
  for (const [name, { sql }] of Object.entries(entity.fields)) {
    const given = members[name];
    // The database keeps all digits of such a column.
    columns[name] = sql === 'numeric' && isExactNumber(given) ? given : r[name];
  }
  columns.is_active = r.is_active ?? true;
  columns.metadata = metadata;
  columns.source_updated_at = isTime(members.updated_at) ? members.updated_at : null;
  if (entity.dated === true) columns.holds = holdsOn(today, columns);
  return { record: { index, externalId: String(r.external_id), columns } };
}
