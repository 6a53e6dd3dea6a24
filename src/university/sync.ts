import { ServiceError } from '../base/errors.ts';
import type { Database, Queryable } from '../db/database.ts';
import { LOCKS, lockForTransaction } from '../db/locks.ts';
import { findRows } from '../db/rows.ts';
import type { GraphSchema } from '../graph/graph-schema.ts';
import { APPOINTED_TO, type Columns, type Entity } from './entities.ts';
import type { Prepared, RecordError } from './parse-record.ts';
import { type Change, settleChanges, settlePersons } from './settle.ts';

export type SyncParts = { db: Database; schema: GraphSchema };

export type SyncOptions = {
  /** Everything is done and taken back. */
  dryRun: boolean;
  /** Part of every transaction that writes a record. */
  onWrite?(client: Queryable): Promise<void>;
};

export type SyncCounts = { created: number; updated: number; unchanged: number };
export type SyncResult = SyncCounts & { errors: RecordError[] };

const COMMON_SQL = { external_id: 'text', is_active: 'boolean', metadata: 'jsonb', source_updated_at: 'timestamptz' };

type Statements = { diff: string; upsert: string };
const STATEMENTS = new Map<string, Statements>();

/** The statements of a table; what goes in is a JSON array of rows. */
function statementsOf(entity: Entity): Statements {
  const known = STATEMENTS.get(entity.type);
  if (known !== undefined) return known;
  const types: Record<string, string> = {
    ...COMMON_SQL,
    ...Object.fromEntries(Object.entries(entity.fields).map(([name, field]) => [name, field.sql])),
    ...(entity.dated === true ? { holds: 'boolean' } : {}),
  };
  const columns = Object.keys(types);
  const values = columns.filter(c => c !== 'external_id');
  const given = `jsonb_to_recordset($1::jsonb) AS g (${columns.map(c => `${c} ${types[c]}`).join(', ')})`;
  const unknown = Object.entries(entity.fields)
    .filter(([, field]) => field.references !== undefined)
    .map(
      ([name, { references }]) =>
        `CASE WHEN NOT EXISTS (SELECT 1 FROM ${references} r WHERE r.external_id = g.${name}) AND g.${name} IS NOT NULL THEN '${name}' END`,
    );
  if (entity.type === 'admin_appointment')
    unknown.push(
      `CASE WHEN NOT CASE g.object_type ${Object.entries(APPOINTED_TO)
        .map(
          ([type, { table }]) =>
            `WHEN '${type}' THEN EXISTS (SELECT 1 FROM ${table} r WHERE r.external_id = g.object_external_id)`,
        )
        .join(' ')} END THEN 'object_external_id' END`,
    );
  const statements = {
    // Only what is new or different; its former columns as JSON, and the fields that name nothing.
    diff: `SELECT g.external_id, to_jsonb(t) AS before, array_remove(ARRAY[${unknown.join(', ')}]::text[], NULL) AS unknown
      FROM ${given} LEFT JOIN ${entity.table} t USING (external_id)
      WHERE t.external_id IS NULL OR t.missing_since IS NOT NULL
         OR (${values.map(c => `g.${c}`).join(', ')}) IS DISTINCT FROM (${values.map(c => `t.${c}`).join(', ')})`,
    upsert: `INSERT INTO ${entity.table} (${columns.join(', ')})
      SELECT ${columns.join(', ')} FROM ${given}
      ON CONFLICT (external_id) DO UPDATE SET ${values.map(c => `${c} = excluded.${c}`).join(', ')}, missing_since = NULL, changed_at = now()`,
  };
  STATEMENTS.set(entity.type, statements);
  return statements;
}

type Diff = { externalId: string; before: Columns | null; unknown: string[] };

const placeOf = (r: Prepared, field: string | null): string => `/${r.index}${field === null ? '' : `/${field}`}`;

function unknownReference(entity: Entity, r: Prepared, field: string): RecordError {
  const id = String(r.columns[field]);
  const what =
    field === 'object_external_id'
      ? String(r.columns.object_type)
      : field.replace(/_external_id$/, '').replace('_', ' ');
  return {
    index: r.index,
    external_id: r.externalId,
    field,
    code: 'unknown_reference',
    message: `${placeOf(r, field)} names ${what} ${JSON.stringify(id)}, which is not there; import it before this ${entity.type}`,
  };
}

/** Part of a transaction. Either all records that have no error here are written, or it throws and none may be. */
async function syncTogether(
  client: Queryable,
  schema: GraphSchema,
  entity: Entity,
  records: readonly Prepared[],
  onWrite: SyncOptions['onWrite'],
): Promise<SyncResult> {
  await lockForTransaction(client, LOCKS.universityImport);
  const { diff, upsert } = statementsOf(entity);
  const rows = await findRows<Diff>(client, diff, [JSON.stringify(records.map(r => r.columns))]);
  const unchanged = records.length - rows.length;
  const byId = new Map(records.map(r => [r.externalId, r]));
  const errors: RecordError[] = [];
  let changes: Change[] = [];
  for (const row of rows) {
    const record = byId.get(row.externalId);
    if (record === undefined) throw new Error('the database answered a record it was not asked about');
    if (row.unknown.length > 0) errors.push(...row.unknown.map(field => unknownReference(entity, record, field)));
    else changes.push({ id: row.externalId, before: row.before, after: record.columns });
  }
  if (entity.type === 'person') {
    const conflicts = await settlePersons(client, changes);
    for (const [id, message] of conflicts) {
      const record = byId.get(id)!;
      const place = placeOf(record, 'idp_account_id');
      errors.push({
        index: record.index,
        external_id: id,
        field: 'idp_account_id',
        code: 'conflict',
        message: `${place} ${message}`,
      });
    }
    changes = changes.filter(c => !conflicts.has(c.id));
  }
  if (changes.length > 0) {
    await onWrite?.(client);
    await client.query(upsert, [JSON.stringify(changes.map(c => c.after))]);
    await settleChanges(client, schema, entity, changes);
  }
  const created = changes.filter(c => c.before === null).length;
  return { created, updated: changes.length - created, unchanged, errors };
}

/** Carries the result of a transaction that is taken back. */
class TakenBack extends Error {
  readonly result: SyncResult;
  constructor(result: SyncResult) {
    super('taken back');
    this.result = result;
  }
}

async function inTransaction(
  { db, schema }: SyncParts,
  entity: Entity,
  records: readonly Prepared[],
  { dryRun, onWrite }: SyncOptions,
): Promise<SyncResult> {
  try {
    return await db.withTransaction(async client => {
      const result = await syncTogether(client, schema, entity, records, onWrite);
      if (dryRun) throw new TakenBack(result);
      return result;
    });
  } catch (error) {
    if (error instanceof TakenBack) return error.result;
    throw error;
  }
}

/** What a value or a rule of the database, or the graph's schema, does not take: the record is to blame, not the database. */
function refusalOf(error: unknown): string | null {
  if (error instanceof ServiceError && error.code === 'validation_failed') return error.message;
  if (!(error instanceof Error) || !('code' in error)) return null;
  return /^(22|23|54)/.test(String(error.code)) ? error.message : null;
}

/**
 * Writes records with what they mean in the graph, in one transaction; those the database refuses are found by halving, and do not
 * keep the others. What is as it was writes nothing.
 *
 * @param records of different ids, at most `universityChunk`
 */
export async function syncRecords(
  parts: SyncParts,
  entity: Entity,
  records: readonly Prepared[],
  options: SyncOptions,
): Promise<SyncResult> {
  if (records.length === 0) return { created: 0, updated: 0, unchanged: 0, errors: [] };
  try {
    return await inTransaction(parts, entity, records, options);
  } catch (error) {
    const refusal = refusalOf(error);
    if (refusal === null) throw error;
    const [only] = records;
    if (records.length === 1 && only !== undefined)
      return {
        created: 0,
        updated: 0,
        unchanged: 0,
        errors: [
          {
            index: only.index,
            external_id: only.externalId,
            field: null,
            code: 'invalid',
            message: `${placeOf(only, null)} is refused by the database: ${refusal}`,
          },
        ],
      };
  }
  const middle = records.length >> 1;
  const first = await syncRecords(parts, entity, records.slice(0, middle), options);
  const second = await syncRecords(parts, entity, records.slice(middle), options);
  return {
    created: first.created + second.created,
    updated: first.updated + second.updated,
    unchanged: first.unchanged + second.unchanged,
    errors: [...first.errors, ...second.errors],
  };
}

/** Records their source had last, in pages by their order. */
export async function listPresent(
  db: Queryable,
  entity: Entity,
  after: string,
  limit: number,
): Promise<Array<{ id: string; isActive: boolean }>> {
  return await findRows<{ id: string; isActive: boolean }>(
    db,
    `SELECT external_id AS id, is_active FROM ${entity.table} WHERE missing_since IS NULL AND external_id > $1 ORDER BY external_id LIMIT $2`,
    [after, limit],
  );
}

/**
 * Makes records inactive that their source has no more, and takes away what they gave.
 *
 * @param ids at most `universityChunk`
 * @returns how many were active
 */
export async function deactivate({ db, schema }: SyncParts, entity: Entity, ids: readonly string[]): Promise<number> {
  return await db.withTransaction(async client => {
    await lockForTransaction(client, LOCKS.universityImport);
    const { rows: before } = await client.query<{ external_id: string; row: Columns }>(
      `SELECT external_id, to_jsonb(t) AS row FROM ${entity.table} t WHERE external_id = ANY($1) AND missing_since IS NULL`,
      [ids],
    );
    if (before.length === 0) return 0;
    await client.query(
      `UPDATE ${entity.table} SET is_active = false, missing_since = now(), changed_at = now()${entity.dated === true ? ', holds = false' : ''}
       WHERE external_id = ANY($1)`,
      [before.map(b => b.external_id)],
    );
    const changes = before.map(({ external_id, row }) => ({
      id: external_id,
      before: row,
      after: { ...row, is_active: false, holds: false },
    }));
    await settleChanges(client, schema, entity, changes);
    return before.filter(b => b.row.is_active === true).length;
  });
}

/**
 * Gives and takes away what a day that has come gives and takes away: positions and appointments begin and end by their dates.
 *
 * @param today a date like 2026-09-01
 * @returns how many records
 */
export async function settleDates(
  { db, schema }: SyncParts,
  entity: Entity,
  today: string,
  limit: number,
): Promise<number> {
  const holds = `(is_active AND coalesce(start_date <= $1::date, true) AND coalesce(end_date >= $1::date, true)${
    'status' in entity.fields ? " AND status NOT IN ('expelled', 'graduated')" : ''
  })`;
  return await db.withTransaction(async client => {
    await lockForTransaction(client, LOCKS.universityImport);
    const { rows } = await client.query<{ external_id: string; row: Columns }>(
      `UPDATE ${entity.table} t SET holds = ${holds}, changed_at = now()
       WHERE external_id IN (SELECT external_id FROM ${entity.table} WHERE holds <> ${holds} ORDER BY external_id LIMIT $2)
       RETURNING external_id, to_jsonb(t) AS row`,
      [today, limit],
    );
    if (rows.length === 0) return 0;
    const changes = rows.map(({ external_id, row }) => ({
      id: external_id,
      before: { ...row, holds: row.holds !== true },
      after: row,
    }));
    await settleChanges(client, schema, entity, changes);
    return changes.length;
  });
}
