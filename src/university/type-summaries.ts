import type { Queryable } from '../db/database.ts';
import { findRows } from '../db/rows.ts';
import { ENTITIES, type EntityType } from './entities.ts';
import type { ImportRun, TypeState } from './import-log.ts';

/** The last import of a type that had something to say of it. */
export type LastImport = {
  importId: number;
  kind: ImportRun['kind'];
  state: TypeState;
  total: number;
  success: number;
  failed: number;
  problem: string | null;
  at: Date;
};

/** What is held of a type, and how its last import went. */
export type TypeSummary = { type: EntityType; records: number; active: number; last: LastImport | null };

const COUNTS = ENTITIES.map(
  e =>
    `SELECT '${e.type}' AS type, count(*) AS records, count(*) FILTER (WHERE is_active AND missing_since IS NULL) AS active FROM ${e.table}`,
).join(' UNION ALL ');

/** A pull names every type, also those that its source does not offer: such a row says nothing of what is held. */
const LAST = `SELECT DISTINCT ON (t.type) t.type, t.import_id, i.kind, t.state, t.total, t.success, t.failed, t.problem,
    coalesce(t.finished_at, t.started_at, i.started_at) AS at
  FROM university_import_types t JOIN university_imports i ON i.id = t.import_id
  WHERE t.state NOT IN ('waiting', 'not_offered') ORDER BY t.type, t.import_id DESC`;

/** In the order in which types are imported. */
export async function summarizeTypes(db: Queryable): Promise<TypeSummary[]> {
  const counts = new Map((await findRows<Omit<TypeSummary, 'last'>>(db, COUNTS)).map(r => [r.type, r]));
  const lasts = await findRows<LastImport & { type: EntityType }>(db, LAST);
  const last = new Map(lasts.map(({ type, ...found }) => [type, found]));
  return ENTITIES.map(({ type }) => ({
    type,
    records: counts.get(type)?.records ?? 0,
    active: counts.get(type)?.active ?? 0,
    last: last.get(type) ?? null,
  }));
}
