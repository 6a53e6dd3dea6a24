import { z } from 'zod';
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
  updated_at: z.iso
    .datetime({ offset: true, message: 'must be a time like 2026-09-01T08:00:00Z' })
    .nullable()
    .default(null),
  metadata: z.record(z.string(), z.unknown()).nullable().default(null),
};

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

/** What only several fields together tell. */
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
  const parsed = recordSchema(entity).safeParse(value);
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
  const metadata: Record<string, unknown> = { ...(r.metadata as Record<string, unknown> | null) };
  for (const name of Object.keys(r))
    if (!OWN_FIELDS.has(name) && !Object.hasOwn(entity.fields, name)) metadata[name] = r[name];
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
  for (const name of Object.keys(entity.fields)) columns[name] = r[name];
  columns.is_active = r.is_active ?? true;
  columns.metadata = metadata;
  columns.source_updated_at = r.updated_at;
  if (entity.dated === true) columns.holds = holdsOn(today, columns);
  return { record: { index, externalId: String(r.external_id), columns } };
}
