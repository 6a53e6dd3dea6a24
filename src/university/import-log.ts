import { LIMITS } from '../base/limits.ts';
import { storableText } from '../base/storable-text.ts';
import type { Queryable } from '../db/database.ts';
import { removeInBatches } from '../db/remove-in-batches.ts';
import { findRow, findRows, loadRow } from '../db/rows.ts';
import type { Entity, EntityType } from './entities.ts';
import type { ImportCounts } from './import-records.ts';
import type { RecordError } from './parse-record.ts';

/** The log of imports: what came in when, how it went, what was wrong. */

export const IMPORT_KINDS = ['batch', 'pull'] as const;
export type ImportKind = (typeof IMPORT_KINDS)[number];
export const IMPORT_STATES = ['running', 'succeeded', 'partial', 'failed', 'interrupted'] as const;
export type ImportState = (typeof IMPORT_STATES)[number];
export const TYPE_STATES = [
  'waiting',
  'fetching',
  'running',
  'succeeded',
  'partial',
  'failed',
  'unchanged',
  'not_offered',
  'stopped',
] as const;
export type TypeState = (typeof TYPE_STATES)[number];

export type ImportRun = {
  id: number;
  kind: ImportKind;
  state: ImportState;
  startedBy: string;
  startedAt: Date;
  finishedAt: Date | null;
  problem: string | null;
  types: ImportedType[];
};

/** How many of the active records a list would make inactive. */
export type Brake = { ending: number; active: number };

export type ImportedType = {
  type: EntityType;
  state: TypeState;
  total: number;
  success: number;
  created: number;
  updated: number;
  deactivated: number;
  failed: number;
  /** Changes of the list that the brake has stopped; null where it has not. */
  brake: Brake | null;
  problem: string | null;
  startedAt: string | null;
  finishedAt: string | null;
};

const RUN = `SELECT i.id, i.kind, i.state, i.started_by, i.started_at, i.finished_at, i.problem, coalesce((SELECT json_agg(json_build_object('type', t.type, 'state', t.state, 'total', t.total, 'success', t.success,
    'created', t.created, 'updated', t.updated, 'deactivated', t.deactivated, 'failed', t.failed, 'problem', t.problem,
    'brake', CASE WHEN t.ending IS NULL THEN NULL ELSE json_build_object('ending', t.ending, 'active', t.active) END,
    'startedAt', t.started_at, 'finishedAt', t.finished_at) ORDER BY t.position)
  FROM university_import_types t WHERE t.import_id = i.id), '[]') AS types FROM university_imports i`;

/** Newest first. */
export async function listImports(
  db: Queryable,
  before: number,
  limit: number,
  kind?: ImportKind,
): Promise<ImportRun[]> {
  return await findRows<ImportRun>(
    db,
    `${RUN} WHERE i.id < $1 AND ($3::text IS NULL OR i.kind = $3) ORDER BY i.id DESC LIMIT $2`,
    [before, limit, kind ?? null],
  );
}

export const lastPull = async (db: Queryable): Promise<ImportRun | undefined> =>
  (await listImports(db, Number.MAX_SAFE_INTEGER, 1, 'pull'))[0];

/** Batches that are looked at for the last one of each type. */
const BATCHES_MAX = 1000;

/** What has ended last, however it did: the last pull, and of each type the last batch within a week. Newest first. */
export async function lastEndedImports(db: Queryable): Promise<ImportRun[]> {
  return await findRows<ImportRun>(
    db,
    `${RUN} WHERE i.id = ANY(
       ARRAY(SELECT id FROM university_imports WHERE kind = 'pull' AND finished_at IS NOT NULL ORDER BY id DESC LIMIT 1)
       || ARRAY(SELECT max(t.import_id) FROM (
            SELECT id FROM university_imports
            WHERE kind = 'batch' AND finished_at > now() - interval '7 days' ORDER BY id DESC LIMIT ${BATCHES_MAX}
          ) AS newest JOIN university_import_types t ON t.import_id = newest.id GROUP BY t.type))
     ORDER BY i.id DESC`,
  );
}

export async function findImport(db: Queryable, id: number): Promise<ImportRun | undefined> {
  return await findRow<ImportRun>(db, `${RUN} WHERE i.id = $1`, [id]);
}

/** @returns its id */
export async function beginImport(
  db: Queryable,
  kind: ImportRun['kind'],
  startedBy: string,
  types: readonly EntityType[],
): Promise<number> {
  const begun = await loadRow<{ id: number }>(
    db,
    `WITH begun AS (INSERT INTO university_imports (kind, state, started_by) VALUES ($1, 'running', $2) RETURNING id),
       rows AS (INSERT INTO university_import_types (import_id, type, position, state)
         SELECT begun.id, t.type, t.position, 'waiting' FROM begun, unnest($3::text[]) WITH ORDINALITY AS t (type, position))
     SELECT id FROM begun`,
    [kind, startedBy, types],
  );
  return begun.id;
}

/** The last pull is what the source is judged by, however old it is. */
const NOT_LAST_PULL = "id <> coalesce((SELECT max(id) FROM university_imports WHERE kind = 'pull'), 0)";

export async function endImport(db: Queryable, id: number, state: ImportState, problem: string | null): Promise<void> {
  await db.query('UPDATE university_imports SET state = $2, problem = $3, finished_at = now() WHERE id = $1', [
    id,
    state,
    problem,
  ]);
  await db.query(
    `DELETE FROM university_imports WHERE state <> 'running'
       AND id <= (SELECT id FROM university_imports ORDER BY id DESC OFFSET $1 LIMIT 1) AND ${NOT_LAST_PULL}`,
    [LIMITS.importsKept],
  );
}

/** What a type of an import has come to; without counts those noted last stay. */
export async function noteType(
  db: Queryable,
  importId: number,
  type: EntityType,
  state: TypeState,
  counts?: Partial<ImportCounts & { deactivated: number }>,
  problem: string | null = null,
): Promise<void> {
  const of = (name: 'total' | 'success' | 'created' | 'updated' | 'deactivated' | 'failed'): number | null =>
    counts === undefined ? null : (counts[name] ?? 0);
  await db.query(
    `UPDATE university_import_types SET state = $3, total = coalesce($4, total), success = coalesce($5, success), created = coalesce($6, created),
       updated = coalesce($7, updated), deactivated = coalesce($8, deactivated), failed = coalesce($9, failed), problem = $10,
       started_at = coalesce(started_at, now()), finished_at = CASE WHEN $3 IN ('waiting', 'fetching', 'running') THEN NULL ELSE now() END
     WHERE import_id = $1 AND type = $2`,
    [
      importId,
      type,
      state,
      of('total'),
      of('success'),
      of('created'),
      of('updated'),
      of('deactivated'),
      of('failed'),
      problem,
    ],
  );
  await db.query('UPDATE university_imports SET seen_at = now() WHERE id = $1', [importId]);
}

const storable = (_key: string, value: unknown): unknown => (typeof value === 'string' ? storableText(value) : value);

/** Keeps what was wrong, up to `importErrorsKept` of one import. */
export async function addImportErrors(
  db: Queryable,
  importId: number,
  type: EntityType,
  errors: readonly RecordError[],
): Promise<void> {
  await db.query(
    `INSERT INTO university_import_errors (import_id, type, index, external_id, field, code, message)
     SELECT $1, $2, g.index, g.external_id, g.field, g.code, g.message
       FROM jsonb_to_recordset($3::jsonb) AS g (index int, external_id text, field text, code text, message text)
      LIMIT greatest(0, $4 - (SELECT count(*) FROM university_import_errors WHERE import_id = $1))`,
    // The error itself may be a text that the database cannot hold.
    [importId, type, JSON.stringify(errors, storable), LIMITS.importErrorsKept],
  );
}

export type KeptError = RecordError & { id: number; type: EntityType };

/** In the order in which they were found. */
export async function listImportErrors(
  db: Queryable,
  importId: number,
  after: number,
  limit: number,
): Promise<KeptError[]> {
  const { rows } = await db.query<Omit<KeptError, 'id'> & { id: string }>(
    `SELECT id, type, index, external_id, field, code, message FROM university_import_errors
     WHERE import_id = $1 AND id > $2 ORDER BY id LIMIT $3`,
    [importId, after, limit],
  );
  return rows.map(r => ({ ...r, id: Number(r.id) }));
}

/**
 * Notes what a list would do that the brake has stopped.
 *
 * @param ids of active records that it would make inactive: the first `importEndingKept` are kept
 */
export async function noteBrake(
  db: Queryable,
  importId: number,
  type: EntityType,
  { active, ending }: Brake,
  ids: readonly string[],
): Promise<void> {
  await db.query(
    `WITH noted AS (UPDATE university_import_types SET ending = $3, active = $4 WHERE import_id = $1 AND type = $2)
     INSERT INTO university_import_ending (import_id, type, external_id) SELECT $1, $2, unnest($5::text[])`,
    [importId, type, ending, active, ids.slice(0, LIMITS.importEndingKept)],
  );
}

export type EndingRecord = { externalId: string; name: string | null };

const PERSON_NAME = "concat_ws(' ', p.last_name, p.first_name, p.middle_name)";

/** The name of a record for people: a name, or whose it is. */
function nameSql(entity: Entity): string {
  if (entity.type === 'person') return PERSON_NAME.replaceAll('p.', 't.');
  if ('name' in entity.fields) return 't.name';
  return `(SELECT ${PERSON_NAME} FROM persons p WHERE p.external_id = t.person_external_id)`;
}

/** Active records that a stopped list would make inactive, in the order of their ids. */
export async function listEnding(
  db: Queryable,
  importId: number,
  entity: Entity,
  after: string,
  limit: number,
): Promise<EndingRecord[]> {
  return await findRows<EndingRecord>(
    db,
    `SELECT e.external_id, nullif(${nameSql(entity)}, '') AS name
     FROM (SELECT external_id FROM university_import_ending
           WHERE import_id = $1 AND type = $2 AND external_id > $3 ORDER BY external_id LIMIT $4) e
     LEFT JOIN ${entity.table} t USING (external_id) ORDER BY e.external_id`,
    [importId, entity.type, after, limit],
  );
}

/**
 * Imports whose process has gone: nothing was noted of them for a while, or last before the clock was set back. One that runs all the same says so
 * at its end. @returns how many
 */
export async function endInterrupted(db: Queryable, kind: ImportRun['kind'], silentSeconds: number): Promise<number> {
  const { rowCount } = await db.query(
    `UPDATE university_imports SET state = 'interrupted', finished_at = now(), problem = 'the process that imported has ended'
     WHERE state = 'running' AND kind = $1 AND (seen_at <= now() - $2 * interval '1 second' OR seen_at > now() + interval '1 second')`,
    [kind, silentSeconds],
  );
  return rowCount ?? 0;
}

/** When a pull last ended in each state, in seconds since 1970; for metrics. */
export async function lastPulls(db: Queryable): Promise<Array<{ state: ImportState; at: number }>> {
  const { rows } = await db.query<{ state: ImportState; at: number }>(
    `SELECT state, extract(epoch FROM max(finished_at))::float8 AS at FROM university_imports
     WHERE kind = 'pull' AND finished_at IS NOT NULL GROUP BY state`,
  );
  return rows;
}

/** Removes imports that ended longer ago, with what was wrong in them; the last pull stays. @returns how many */
export async function removeOldImports(db: Queryable, ageMs: number): Promise<number> {
  return await removeInBatches(
    db,
    `DELETE FROM university_imports WHERE id IN
       (SELECT id FROM university_imports WHERE finished_at < now() - $1 * interval '1 ms'
          AND ${NOT_LAST_PULL} LIMIT $2)`,
    [ageMs],
  );
}

/** Removes what went wrong with the records of a person, and that a list would have ended them. */
export async function eraseImportsOf(client: Queryable, externalId: string): Promise<void> {
  for (const table of ['university_import_errors', 'university_import_ending'])
    await client.query(`DELETE FROM ${table} WHERE type = 'person' AND external_id = $1`, [externalId]);
}
