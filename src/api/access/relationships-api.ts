import { z } from 'zod';
import { createRelationships, deleteMatching, deleteRelationship } from '../../authz/relationships.ts';
import { parseBoundedJson } from '../../base/bounded-json.ts';
import { type FieldError, ServiceError } from '../../base/errors.ts';
import { LIMITS } from '../../base/limits.ts';
import type { Database } from '../../db/database.ts';
import type { GraphSchema } from '../../graph/graph-schema.ts';
import type { Tuple, TupleFilter } from '../../graph/tuple.ts';
import { type Appended, tupleJson } from '../../outbox/append.ts';
import { listRelationships, type Relationship } from '../../outbox/mirror.ts';
import type { Outbox } from '../../outbox/outbox.ts';
import { actorOf } from '../contract/caller.ts';
import { resource } from '../contract/contract.ts';
import { eitherShape } from '../contract/either-shape.ts';
import { type Handle, serve } from '../contract/endpoint.ts';
import { id, time } from '../contract/fields.ts';
import { pageOf } from '../contract/paging.ts';
import { CURSOR, limit, oneOf, readAs } from '../contract/query.ts';
import type { Route } from '../contract/route.ts';
import { graphObjects, graphObjectsContract } from './graph-objects.ts';
import { type GraphSchemaApiParts, graphSchemaRoutes } from './graph-schema-api.ts';
import { lookup, lookupContract } from './relationship-lookup.ts';

export type RelationshipsApiParts = GraphSchemaApiParts & { db: Database; outbox: Outbox };

const ORIGINS = ['import', 'manual'] as const;

/** Ids and names are checked against the schema, which says what would be right. */
const word = z.string().max(LIMITS.graphIdCharsMax);
const relationship = z.strictObject({
  resource_type: word,
  resource_id: word,
  relation: word,
  subject_type: word.default('user'),
  subject_id: word,
});
const many = z.strictObject({ relationships: z.array(relationship).min(1).max(LIMITS.outboxTuplesMax) });
const filterWords = z
  .strictObject({ resource_type: word, resource_id: word, relation: word, subject_type: word, subject_id: word })
  .partial();
const filter = filterWords.extend({ origin: z.enum(ORIGINS).optional() });

const tupleOf = (r: z.infer<typeof relationship>): Tuple => ({
  resourceType: r.resource_type,
  resourceId: r.resource_id,
  relation: r.relation,
  subjectType: r.subject_type,
  subjectId: r.subject_id,
  subjectRelation: '',
});

/** Keyset cursor: the last relationship of the page, opaque to the client. */
const cursorOf = (t: Tuple): string => Buffer.from(JSON.stringify(Object.values(tupleJson(t)))).toString('base64url');

const cursorParts = z.array(z.string().refine(text => !text.includes('\0') && text.isWellFormed())).length(5);
const cursor = readAs({ type: 'string', description: 'The next_cursor of the page before' }, CURSOR, text => {
  try {
    const parts = cursorParts.parse(parseBoundedJson(Buffer.from(text, 'base64url').toString()));
    const [resource_type = '', resource_id = '', relation = '', subject_type = '', subject_id = ''] = parts;
    return tupleOf({ resource_type, resource_id, relation, subject_type, subject_id });
  } catch {
    return undefined;
  }
});

const relationshipReply = z
  .object({
    resource_type: z.string(),
    resource_id: z.string(),
    relation: z.string(),
    subject_type: z.string(),
    subject_id: z.string(),
    subject_relation: z.string().optional(),
    origin: z.enum(ORIGINS).describe('An import takes away only what an import brought'),
    created_at: time,
  })
  .meta({ id: 'Relationship' });
const delivered = z
  .boolean()
  .describe('Whether the graph store has the change already; otherwise the change is still on its way');

const path = '/api/admin/relationships';
const CHANGE = { path, guard: 'admin_recent', key: ['access'] } as const;
const example = { resource_type: 'faculty', resource_id: 'physics', relation: 'dean', subject_id: 'e1001' };

/** The relationship graph (docs/authorization.md "Relationship graph"). */
export const relationships = resource('Relationships', 'Who stands in which relation to what.', {
  list: {
    method: 'GET',
    path,
    guard: 'admin',
    key: ['people', 'access'],
    summary: 'List relationships in the order of their names',
    description: 'resource_id needs resource_type; subject_id without subject_type is the external id of a user.',
    query: z.strictObject({
      limit,
      cursor: cursor.optional(),
      ...filterWords.shape,
      origin: oneOf(ORIGINS, 'Only relationships of this origin'),
    }),
    replies: { 200: pageOf(relationshipReply) },
  },
  create: {
    method: 'POST',
    ...CHANGE,
    summary: 'Add one relationship, or many',
    description: 'One that is there already stays; its origin becomes manual.',
    body: eitherShape('relationships', many, relationship),
    idempotency: 'answer',
    replies: {
      201: z.object({
        relationships: z.array(relationshipReply.omit({ created_at: true })),
        outbox_id: id,
        delivered,
      }),
    },
    example: { body: example },
  },
  remove: {
    method: 'DELETE',
    ...CHANGE,
    summary: 'Remove one relationship, or all that a filter names',
    body: eitherShape('filter', z.strictObject({ filter }), relationship),
    replies: {
      200: z.object({
        deleted: z.int().nonnegative(),
        outbox_id: id.nullable().describe('Null when there was nothing to do'),
        delivered,
      }),
    },
    refusals: ['conflict'],
    example: { body: { filter: { resource_type: 'faculty', resource_id: 'physics' } } },
  },
  lookup: lookupContract,
  objects: graphObjectsContract,
});

type Endpoints = typeof relationships;

const list: Handle<Endpoints['list'], RelationshipsApiParts> = async ({ db, schema }, { query }) => {
  const { cursor = null, limit, origin, ...words } = query;
  const wanted = { ...filterOf(words, schema, 'query:'), ...(origin === undefined ? {} : { origin }) };
  const rows = await listRelationships(db, wanted, cursor, limit + 1);
  const last = rows[limit - 1];
  const json = {
    items: rows.slice(0, limit).map(relationshipJson),
    next_cursor: rows.length > limit && last !== undefined ? cursorOf(last.tuple) : null,
  };
  return { status: 200, json };
};

const create: Handle<Endpoints['create'], RelationshipsApiParts> = async (parts, { body, caller, request }) => {
  const { db, schema } = parts;
  const given = await body();
  const isMany = 'relationships' in given;
  const tuples = (isMany ? given.relationships : [given]).map(tupleOf);
  assertTuples(schema, tuples, k => (isMany ? `/relationships/${k}` : ''));
  const appended = await createRelationships(db, schema, tuples, actorOf(caller, request));
  const json = {
    relationships: tuples.map(t => ({ ...tupleJson(t), origin: 'manual' as const })),
    ...(await delivery(parts, appended)),
  };
  return { status: 201, json };
};

const remove: Handle<Endpoints['remove'], RelationshipsApiParts> = async (parts, { body, caller, request }) => {
  const { db, schema } = parts;
  const given = await body();
  const by = actorOf(caller, request);
  const { appended, deleted } =
    'filter' in given
      ? await deleteMatching(db, schema, wholeFilterOf(given.filter, schema), given.filter.origin, by)
      : await deleteRelationship(db, schema, allowedTuple(given, schema), by);
  const done = appended === null ? { outbox_id: null, delivered: true } : await delivery(parts, appended);
  return { status: 200, json: { deleted, ...done } };
};

/** The graph: its relationships, and its schema. */
export const relationshipRoutes = (parts: RelationshipsApiParts): Route[] => [
  ...serve(relationships, parts, { list, create, remove, lookup, objects: graphObjects }),
  ...graphSchemaRoutes(parts),
];

/** After commit the answer may wait a moment for the graph store. */
const delivery = async ({ outbox }: RelationshipsApiParts, appended: Appended) => ({
  outbox_id: appended.lastId,
  delivered: await outbox.settled(appended, LIMITS.deliveryWaitMs),
});

/** @throws ServiceError naming what the schema does not know */
function filterOf(f: z.infer<typeof filterWords>, schema: GraphSchema, pointer: string): TupleFilter {
  const { relation, resource_id, resource_type, subject_id, subject_type } = f;
  const errors: FieldError[] = [];
  if (resource_id !== undefined && resource_type === undefined)
    errors.push({ pointer: `${pointer}resource_type`, message: 'is needed next to resource_id', code: 'missing' });
  const base = {
    ...(resource_type === undefined ? {} : { resourceType: resource_type }),
    ...(resource_id === undefined ? {} : { resourceId: resource_id }),
    ...(relation === undefined ? {} : { relation }),
  };
  const subject = subject_type ?? (subject_id === undefined ? undefined : 'user');
  const made: TupleFilter =
    subject === undefined
      ? base
      : { ...base, subjectType: subject, ...(subject_id === undefined ? {} : { subjectId: subject_id }) };
  errors.push(...schema.filterProblems(made).map(e => ({ ...e, pointer: `${pointer}${e.pointer.slice(1)}` })));
  if (errors.length > 0)
    throw new ServiceError('validation_failed', `${errors[0]?.pointer} ${errors[0]?.message}`, { errors });
  return made;
}

/** @throws ServiceError when it names nothing, or what the schema does not know */
function wholeFilterOf(given: z.infer<typeof filter>, schema: GraphSchema): TupleFilter {
  if (Object.keys(given).length === 0)
    throw new ServiceError('validation_failed', 'an empty filter would delete the whole graph', {
      errors: [{ pointer: '/filter', message: 'must name at least one member', code: 'missing' }],
    });
  return filterOf(given, schema, '/filter/');
}

function allowedTuple(given: z.infer<typeof relationship>, schema: GraphSchema): Tuple {
  const tuple = tupleOf(given);
  assertTuples(schema, [tuple], () => '');
  return tuple;
}

/** @throws ServiceError naming what the schema does not allow */
function assertTuples(schema: GraphSchema, tuples: readonly Tuple[], pointer: (k: number) => string): void {
  const errors = tuples.flatMap((t, k) => schema.problems(t, pointer(k)));
  if (errors.length > 0)
    throw new ServiceError('validation_failed', `${errors[0]?.pointer} ${errors[0]?.message}`, { errors });
}

const relationshipJson = ({ createdAt, origin, tuple }: Relationship) => ({
  ...tupleJson(tuple),
  origin,
  created_at: createdAt,
});
