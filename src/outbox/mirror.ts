import type { Database, Queryable } from '../db/database.ts';
import { findRows, loadRow } from '../db/rows.ts';
import { type Tuple, type TupleFilter, tupleKey } from '../graph/tuple.ts';
import { type Origin, tupleJson } from './append.ts';

/** `authz_tuples`: the graph as it should be, written by `authz_append` in the transaction of every change. */

/** A tuple with who owns it. */
export type Relationship = { tuple: Tuple; origin: Origin; createdAt: Date };

/** A row of it. */
type MirrorRow = Tuple & Omit<Relationship, 'tuple'>;

const toRelationship = ({ createdAt, origin, ...tuple }: MirrorRow): Relationship => ({ tuple, origin, createdAt });

const KEY = 'resource_type, resource_id, relation, subject_type, subject_id, subject_relation';
const keyOf = (t: Tuple): string[] => [
  t.resourceType,
  t.resourceId,
  t.relation,
  t.subjectType,
  t.subjectId,
  t.subjectRelation,
];

/**
 * Reads the whole mirror as of one moment, in pages.
 *
 * @returns id of the last entry of the outbox whose meaning it holds
 */
export async function readMirror(
  db: Database,
  pageSize: number,
  onPage: (tuples: Tuple[]) => Promise<void>,
): Promise<number> {
  return await db.withTransaction(async client => {
    await client.query('SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY');
    const last = await loadRow<{ id: number }>(client, 'SELECT coalesce(max(id), 0) AS id FROM authz_outbox');
    await eachRelationship(client, pageSize, onPage);
    return last.id;
  });
}

/** Every tuple in pages, in the caller's transaction. */
export async function eachRelationship(
  client: Queryable,
  pageSize: number,
  onPage: (tuples: Tuple[]) => Promise<void>,
): Promise<void> {
  let last: Tuple | null = null;
  for (;;) {
    const page = await listRelationships(client, {}, last, pageSize);
    if (page.length > 0) await onPage(page.map(r => r.tuple));
    if (page.length < pageSize) return;
    last = page.at(-1)?.tuple ?? null;
  }
}

/** Which of these tuples the mirror holds, by their keys. */
export async function readWanted(db: Queryable, tuples: readonly Tuple[]): Promise<Set<string>> {
  const found = await findRows<Tuple>(
    db,
    `SELECT ${KEY} FROM authz_tuples JOIN jsonb_to_recordset($1::jsonb)
       AS t (resource_type text, resource_id text, relation text, subject_type text, subject_id text, subject_relation text)
     USING (${KEY})`,
    [JSON.stringify(tuples.map(t => ({ ...tupleJson(t), subject_relation: t.subjectRelation })))],
  );
  return new Set(found.map(tupleKey));
}

/** Tuples of the objects of a type whose ids begin so. */
export async function listByPrefix(db: Queryable, resourceType: string, prefix: string): Promise<Tuple[]> {
  return await findRows<Tuple>(
    db,
    `SELECT ${KEY} FROM authz_tuples WHERE resource_type = $1 AND starts_with(resource_id, $2) ORDER BY ${KEY}`,
    [resourceType, prefix],
  );
}

/**
 * Relationships in the order of their names.
 *
 * @param after the last one of the page before, or null
 */
export async function listRelationships(
  db: Queryable,
  filter: TupleFilter & { origin?: Origin },
  after: Tuple | null,
  limit: number,
): Promise<Relationship[]> {
  const values: unknown[] = [limit];
  const conditions: string[] = [];
  const equals = (column: string, value: string | undefined): void => {
    if (value !== undefined) conditions.push(`${column} = $${values.push(value)}`);
  };
  equals('resource_type', filter.resourceType);
  equals('resource_id', filter.resourceId);
  equals('relation', filter.relation);
  equals('subject_type', filter.subjectType);
  equals('subject_id', filter.subjectId);
  equals('origin', filter.origin);
  if (after !== null)
    conditions.push(
      `(${KEY}) > (${keyOf(after)
        .map(v => `$${values.push(v)}`)
        .join(', ')})`,
    );
  const where = conditions.length === 0 ? '' : `WHERE ${conditions.join(' AND ')}`;
  const rows = await findRows<MirrorRow>(
    db,
    `SELECT ${KEY}, origin, created_at FROM authz_tuples ${where} ORDER BY ${KEY} LIMIT $1`,
    values,
  );
  return rows.map(toRelationship);
}

/** Everything a subject is in, by hand or by an import. */
export async function listSubjectTuples(db: Queryable, type: string, id: string): Promise<Relationship[]> {
  const rows = await findRows<MirrorRow>(
    db,
    `SELECT ${KEY}, origin, created_at FROM authz_tuples WHERE subject_type = $1 AND subject_id = $2 ORDER BY ${KEY}`,
    [type, id],
  );
  return rows.map(toRelationship);
}
