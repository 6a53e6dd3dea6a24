import { type FieldError, ServiceError } from '../base/errors.ts';
import { LIMITS } from '../base/limits.ts';
import type { Queryable } from '../db/database.ts';
import { LOCKS, lockForTransaction } from '../db/locks.ts';
import type { GraphSchema } from '../graph/graph-schema.ts';
import type { Tuple, TupleFilter } from '../graph/tuple.ts';

/** Channel on which hosts of one database tell each other that something waits for delivery. */
export const OUTBOX_APPENDED = 'authz_outbox';

/** Who owns a tuple: an import takes away only what an import brought (docs/authorization.md "Relationship graph"). */
export type Origin = 'import' | 'manual';

/** A filter of the outbox: it names one object or one subject whole, so that the entry has its place in the order. */
export type EntityFilter =
  | (TupleFilter & { resourceType: string; resourceId: string })
  | (TupleFilter & { subjectType: string; subjectId: string });

/** The five operations (docs/outbox.md "Entries"). */
export type GraphChange =
  | { operation: 'TOUCH' | 'DELETE'; tuples: readonly Tuple[] }
  | { operation: 'DELETE_BY_OBJECT' | 'DELETE_BY_SUBJECT'; filter: EntityFilter }
  | { operation: 'REPLACE'; filter: EntityFilter; tuples: readonly Tuple[] };

/** Ids of the entries of one call; they follow each other. */
export type Appended = { firstId: number; lastId: number };

/** A tuple with the names of the columns, as payloads hold it. */
export const tupleJson = (t: Tuple) => ({
  resource_type: t.resourceType,
  resource_id: t.resourceId,
  relation: t.relation,
  subject_type: t.subjectType,
  subject_id: t.subjectId,
  ...(t.subjectRelation === '' ? {} : { subject_relation: t.subjectRelation }),
});

export const filterJson = (f: TupleFilter) => ({
  ...(f.resourceType === undefined ? {} : { resource_type: f.resourceType }),
  ...(f.resourceId === undefined ? {} : { resource_id: f.resourceId }),
  ...(f.relation === undefined ? {} : { relation: f.relation }),
  ...(f.subjectType === undefined ? {} : { subject_type: f.subjectType }),
  ...(f.subjectId === undefined ? {} : { subject_id: f.subjectId }),
});

/** Every entity a change names, as `type:id`: changes that share one keep their order. */
export function keysOf(change: GraphChange): string[] {
  const keys = new Set<string>();
  if ('tuples' in change)
    for (const t of change.tuples) keys.add(`${t.resourceType}:${t.resourceId}`).add(`${t.subjectType}:${t.subjectId}`);
  if ('filter' in change) {
    const { resourceId, resourceType, subjectId, subjectType } = change.filter;
    if (resourceId !== undefined) keys.add(`${resourceType}:${resourceId}`);
    if (subjectId !== undefined) keys.add(`${subjectType}:${subjectId}`);
  }
  return [...keys];
}

function problemsOf(schema: GraphSchema, change: GraphChange, pointer: string): FieldError[] {
  const out: FieldError[] = [];
  if ('filter' in change) out.push(...schema.filterProblems(change.filter, `${pointer}/filter`));
  if ('tuples' in change) {
    if (change.tuples.length > LIMITS.outboxTuplesMax)
      out.push({
        pointer: `${pointer}/tuples`,
        message: `must have at most ${LIMITS.outboxTuplesMax} tuples`,
        code: 'list_too_long',
        limit: LIMITS.outboxTuplesMax,
      });
    else change.tuples.forEach((t, k) => void out.push(...schema.problems(t, `${pointer}/tuples/${k}`)));
  }
  return out;
}

/** From here to the end of the transaction no other transaction changes the graph; for decisions that depend on what it holds. */
export async function holdGraph(client: Queryable): Promise<void> {
  await lockForTransaction(client, LOCKS.graph);
}

/**
 * Changes the graph: writes what it should be, and queues the way there. The last thing a transaction does, because from here
 * to its commit all others that change the graph wait; the change is there if and only if the transaction commits.
 *
 * @param client of the transaction
 * @param origin whose tuples these are
 * @param changes in the order of cause and effect
 * @returns the ids of the entries
 * @throws ServiceError `validation_failed` naming each tuple or filter the schema does not allow
 */
export async function appendGraphChanges(
  client: Queryable,
  schema: GraphSchema,
  origin: Origin,
  changes: readonly GraphChange[],
): Promise<Appended> {
  if (changes.length === 0) throw new Error('a change of the graph holds at least one operation');
  const errors = changes.flatMap((change, k) => problemsOf(schema, change, `/${k}`));
  if (errors.length > 0)
    throw new ServiceError('validation_failed', `${errors[0]?.pointer} ${errors[0]?.message}`, { errors });
  const entries = changes.map(change => ({
    operation: change.operation,
    origin,
    keys: keysOf(change),
    payload: {
      ...('filter' in change ? { filter: filterJson(change.filter) } : {}),
      ...('tuples' in change ? { tuples: change.tuples.map(tupleJson) } : {}),
    },
  }));
  const { rows } = await client.query<{ id: string }>('SELECT authz_append($1) AS id', [JSON.stringify(entries)]);
  const lastId = Number(rows[0]?.id);
  return { firstId: lastId - entries.length + 1, lastId };
}
