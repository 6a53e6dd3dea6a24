import { type Actor, appendAudit } from '../audit/audit-log.ts';
import { ServiceError } from '../base/errors.ts';
import { LIMITS } from '../base/limits.ts';
import type { Database } from '../db/database.ts';
import type { GraphSchema } from '../graph/graph-schema.ts';
import { type Tuple, type TupleFilter, tupleText } from '../graph/tuple.ts';
import { type Appended, appendGraphChanges, filterJson, type GraphChange, type Origin } from '../outbox/append.ts';
import { listRelationships } from '../outbox/mirror.ts';

/** Creates manual relationships (docs/authorization.md "Relationship graph"); an import does not remove them. */
export async function createRelationships(
  db: Database,
  schema: GraphSchema,
  tuples: readonly Tuple[],
  by: Actor,
): Promise<Appended> {
  return await db.withTransaction(async client => {
    await appendAudit(client, by, {
      action: 'relationship.create',
      objectType: 'relationship',
      objectId: tuples.length === 1 && tuples[0] ? tupleText(tuples[0]) : `${tuples.length} relationships`,
      after: { relationships: tuples.map(tupleText) },
    });
    return await appendGraphChanges(client, schema, 'manual', [{ operation: 'TOUCH', tuples }]);
  });
}

/** The number of deleted relationships, and the outbox entries for the store; null if there was nothing to do. */
export type Deleted = { deleted: number; appended: Appended | null };

/** Deletes one relationship, of any origin. If the mirror does not have it, it is still deleted in the store. */
export function deleteRelationship(db: Database, schema: GraphSchema, tuple: Tuple, by: Actor): Promise<Deleted> {
  const { subjectRelation: _, ...names } = tuple;
  return remove(db, schema, { names, origin: undefined, objectId: tupleText(tuple) }, by, () => [
    { operation: 'DELETE', tuples: [tuple] },
  ]);
}

/**
 * Deletes the relationships that a filter matches.
 *
 * @throws ServiceError `conflict` if they are more than one request may delete
 */
export function deleteMatching(
  db: Database,
  schema: GraphSchema,
  names: TupleFilter,
  origin: Origin | undefined,
  by: Actor,
): Promise<Deleted> {
  const what = { names, origin, objectId: JSON.stringify(filterJson(names)) };
  return remove(db, schema, what, by, found => deletionsOf(names, origin === undefined, found));
}

async function remove(
  db: Database,
  schema: GraphSchema,
  { names, objectId, origin }: { names: TupleFilter; origin: Origin | undefined; objectId: string },
  by: Actor,
  changesOf: (found: readonly Tuple[]) => GraphChange[],
): Promise<Deleted> {
  const max = LIMITS.relationshipsDeletedMax;
  return await db.withTransaction(async client => {
    const filter = { ...names, ...(origin === undefined ? {} : { origin }) };
    const tuples = (await listRelationships(client, filter, null, max + 1)).map(r => r.tuple);
    if (tuples.length > max)
      throw new ServiceError('conflict', `the filter matches more than ${max} relationships; narrow it and repeat`);
    const changes = changesOf(tuples);
    if (changes.length === 0) return { deleted: 0, appended: null };
    await appendAudit(client, by, {
      action: 'relationship.delete',
      objectType: 'relationship',
      objectId,
      before: { relationships: tuples.map(tupleText) },
    });
    return { deleted: tuples.length, appended: await appendGraphChanges(client, schema, 'manual', changes) };
  });
}

/**
 * The outbox changes of a deletion. A filter with an object or a subject is passed on, to delete also tuples only the
 * store has.
 */
function deletionsOf(f: TupleFilter, whole: boolean, tuples: readonly Tuple[]): GraphChange[] {
  const { resourceId, resourceType, subjectId, subjectType } = f;
  if (whole && resourceType !== undefined && resourceId !== undefined)
    return [{ operation: 'DELETE_BY_OBJECT', filter: { ...f, resourceType, resourceId } }];
  if (whole && subjectType !== undefined && subjectId !== undefined)
    return [{ operation: 'DELETE_BY_SUBJECT', filter: { ...f, subjectType, subjectId } }];
  const changes: GraphChange[] = [];
  for (let i = 0; i < tuples.length; i += LIMITS.outboxTuplesMax)
    changes.push({ operation: 'DELETE', tuples: tuples.slice(i, i + LIMITS.outboxTuplesMax) });
  return changes;
}
