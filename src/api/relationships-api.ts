import { z } from 'zod';
import { createRelationships, type Deleted, deleteMatching, deleteRelationship } from '../authz/relationships.ts';
import { parseBoundedJson } from '../base/bounded-json.ts';
import { ServiceError } from '../base/errors.ts';
import { LIMITS } from '../base/limits.ts';
import type { Database } from '../db/database.ts';
import type { Graph } from '../graph/graph.ts';
import { GraphSchema, idProblem } from '../graph/graph-schema.ts';
import { type CheckStep, GraphError } from '../graph/graph-store.ts';
import type { Tuple, TupleFilter } from '../graph/tuple.ts';
import { jsonReply } from '../http/message.ts';
import { type Appended, tupleJson } from '../outbox/append.ts';
import { listRelationships, type Relationship } from '../outbox/mirror.ts';
import type { Outbox } from '../outbox/outbox.ts';
import { parseBody } from './body.ts';
import { graphAway } from './policies-api.ts';
import { actorOf, limitOf, queryOf, type Route } from './route.ts';

export type RelationshipsApiParts = { db: Database; schema: GraphSchema; graph: Graph; outbox: Outbox };

/** Ids and names are checked against the schema, which says what would be right. */
const word = z.string().max(LIMITS.graphIdCharsMax);
const relationship = z.strictObject({
  resource_type: word,
  resource_id: word,
  relation: word,
  subject_type: word.default('user'),
  subject_id: word,
});
const manyBody = z.strictObject({ relationships: z.array(relationship).min(1).max(LIMITS.outboxTuplesMax) });
const filter = z
  .strictObject({
    resource_type: word,
    resource_id: word,
    relation: word,
    subject_type: word,
    subject_id: word,
    origin: z.enum(['import', 'manual']),
  })
  .partial();
const filterBody = z.strictObject({ filter });

const tupleOf = (r: z.infer<typeof relationship>): Tuple => ({
  resourceType: r.resource_type,
  resourceId: r.resource_id,
  relation: r.relation,
  subjectType: r.subject_type,
  subjectId: r.subject_id,
  subjectRelation: '',
});

const json = ({ createdAt, origin, tuple }: Relationship) => ({ ...tupleJson(tuple), origin, created_at: createdAt });

/** Which of two shapes a body is meant to be, so that its errors are those of that shape. */
const has = (value: unknown, name: string): boolean => typeof value === 'object' && value !== null && name in value;

function filterOf(f: z.infer<typeof filter>, schema: GraphSchema, pointer: string): TupleFilter {
  const { relation, resource_id, resource_type, subject_id, subject_type } = f;
  const errors = [];
  if (resource_id !== undefined && resource_type === undefined)
    errors.push({ pointer: `${pointer}resource_type`, message: 'is needed beside resource_id' });
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

/** Keyset cursor: the last relationship of the page, opaque to the client. */
const cursorOf = (t: Tuple): string => Buffer.from(JSON.stringify(Object.values(tupleJson(t)))).toString('base64url');

function afterOf(raw: string | undefined): Tuple | null {
  if (raw === undefined) return null;
  try {
    const part = z.string().refine(text => !text.includes('\0') && text.isWellFormed());
    const parts = z
      .array(part)
      .length(5)
      .parse(parseBoundedJson(Buffer.from(raw, 'base64url').toString()));
    const [resource_type = '', resource_id = '', relation = '', subject_type = '', subject_id = ''] = parts;
    return tupleOf({ resource_type, resource_id, relation, subject_type, subject_id });
  } catch (cause) {
    const message = 'must be the next_cursor of the page before';
    throw new ServiceError('validation_failed', `cursor ${message}`, {
      errors: [{ pointer: 'query:cursor', message }],
      cause,
    });
  }
}

const FILTERS = ['resource_type', 'resource_id', 'relation', 'subject_type', 'subject_id', 'origin'] as const;

/** The steps that gave a permission, from the question to the relationship; empty when it was not given. */
function pathOf(step: CheckStep): string[] {
  if (!step.allowed) return [];
  const next = step.steps.find(s => s.allowed);
  if (next === undefined) return [`${step.object}#${step.permission}@${step.subject}`];
  return [`${step.object}#${step.permission}`, ...pathOf(next)];
}

/** The relationship graph (docs/authorization.md "Relationship graph"). */
export function relationshipRoutes({ db, graph, outbox, schema }: RelationshipsApiParts): Route[] {
  const path = '/api/admin/relationships';
  /** After commit the answer may wait a moment for the graph store. */
  const delivery = async (appended: Appended) => ({
    outbox_id: appended.lastId,
    delivered: await outbox.settled(appended, LIMITS.deliveryWaitMs),
  });

  return [
    {
      method: 'GET',
      path,
      guard: 'admin',
      key: ['read', 'access'],
      async handle({ request }) {
        const query = queryOf(request, ['limit', 'cursor', ...FILTERS]);
        const limit = limitOf(query);
        const given = Object.fromEntries(FILTERS.flatMap(f => (query.has(f) ? [[f, query.get(f)]] : [])));
        const parsed = filter.safeParse(given);
        if (!parsed.success) {
          const issue = parsed.error.issues[0];
          const pointer = `query:${String(issue?.path[0] ?? '')}`;
          throw new ServiceError('validation_failed', `${pointer.slice(6)}: ${issue?.message}`, {
            errors: [{ pointer, message: issue?.message ?? 'is not valid' }],
          });
        }
        const wanted = {
          ...filterOf(parsed.data, schema, 'query:'),
          ...(parsed.data.origin === undefined ? {} : { origin: parsed.data.origin }),
        };
        const rows = await listRelationships(db, wanted, afterOf(query.get('cursor')), limit + 1);
        const last = rows[limit - 1];
        return jsonReply(200, {
          items: rows.slice(0, limit).map(json),
          next_cursor: rows.length > limit && last !== undefined ? cursorOf(last.tuple) : null,
        });
      },
    },
    {
      method: 'POST',
      path,
      guard: 'admin_recent',
      key: ['access'],
      async handle({ caller, json: body, request }) {
        const value = await body();
        const many = has(value, 'relationships');
        const list = many ? parseBody(manyBody, value).relationships : [parseBody(relationship, value)];
        const tuples = list.map(tupleOf);
        assertTuples(schema, tuples, k => (many ? `/relationships/${k}` : ''));
        const appended = await createRelationships(db, schema, tuples, actorOf(caller, request));
        return jsonReply(201, {
          relationships: tuples.map(t => ({ ...tupleJson(t), origin: 'manual' })),
          ...(await delivery(appended)),
        });
      },
    },
    {
      method: 'DELETE',
      path,
      guard: 'admin_recent',
      key: ['access'],
      async handle({ caller, json: body, request }) {
        const value = await body();
        const by = actorOf(caller, request);
        let done: Deleted;
        if (has(value, 'filter')) {
          const { filter: given } = parseBody(filterBody, value);
          if (Object.keys(given).length === 0)
            throw new ServiceError('validation_failed', 'an empty filter would delete the whole graph', {
              errors: [{ pointer: '/filter', message: 'must name at least one member' }],
            });
          done = await deleteMatching(db, schema, filterOf(given, schema, '/filter/'), given.origin, by);
        } else {
          const tuple = tupleOf(parseBody(relationship, value));
          assertTuples(schema, [tuple], () => '');
          done = await deleteRelationship(db, schema, tuple, by);
        }
        return jsonReply(200, {
          deleted: done.deleted,
          ...(done.appended === null ? { outbox_id: null, delivered: true } : await delivery(done.appended)),
        });
      },
    },
    {
      method: 'GET',
      path: `${path}/lookup`,
      guard: 'admin',
      key: ['read', 'access'],
      async handle({ request }) {
        const query = queryOf(request, ['resource_type', 'resource_id', 'permission', 'user', 'limit', 'cursor']);
        const limit = limitOf(query);
        const type = query.get('resource_type') ?? '';
        const permission = query.get('permission') ?? '';
        const [user, id] = [query.get('user'), query.get('resource_id')];
        assertAskable(schema, type, permission, user, id);
        try {
          if (user !== undefined && id !== undefined) {
            const question = { resourceType: type, resourceId: id, permission, subjectType: 'user', subjectId: user };
            const step = await graph.checkWithSteps(question);
            return jsonReply(200, { allowed: step.allowed, path: pathOf(step), steps: step });
          }
          const ids =
            user !== undefined
              ? await graph.lookupResources(type, permission, user)
              : await graph.lookupUsers(type, id ?? '', permission);
          const cursor = query.get('cursor') ?? '';
          const rest = [...new Set(ids)].sort().filter(i => cursor === '' || i > cursor);
          return jsonReply(200, {
            items: rest
              .slice(0, limit)
              .map(i => (user !== undefined ? { resource_type: type, resource_id: i } : { user: i })),
            next_cursor: rest.length > limit ? (rest[limit - 1] ?? null) : null,
          });
        } catch (error) {
          if (error instanceof GraphError) throw graphAway(error);
          throw error;
        }
      },
    },
    {
      method: 'GET',
      path: '/api/admin/schema/definitions',
      guard: 'admin',
      key: ['read', 'access'],
      async handle() {
        // What the store has is the truth; while it is away, what it will be given.
        const text = await graph.readSchema().catch((error: unknown) => {
          if (error instanceof GraphError) return null;
          throw error;
        });
        const shown = text === null ? schema : new GraphSchema(text);
        return jsonReply(200, {
          source: text === null ? 'release' : 'store',
          definitions: [...shown.types.values()].map(t => ({
            name: t.name,
            relations: [...t.relations].map(([name, subjects]) => ({ name, subjects })),
            permissions: [...t.permissions].map(([name, expression]) => ({ name, expression })),
          })),
          schema: shown.visibleText(),
        });
      },
    },
  ];
}

/** @throws ServiceError naming what the schema does not allow */
function assertTuples(schema: GraphSchema, tuples: readonly Tuple[], pointer: (k: number) => string): void {
  const errors = tuples.flatMap((t, k) => schema.problems(t, pointer(k)));
  if (errors.length > 0)
    throw new ServiceError('validation_failed', `${errors[0]?.pointer} ${errors[0]?.message}`, { errors });
}

/** @throws ServiceError naming what is missing, unknown or too much */
function assertAskable(
  schema: GraphSchema,
  type: string,
  permission: string,
  user: string | undefined,
  id: string | undefined,
): void {
  const errors = [];
  const known = schema.types.get(type);
  if (known === undefined)
    errors.push({ pointer: 'query:resource_type', message: `must be one of ${[...schema.types.keys()].join(', ')}` });
  else if (!known.permissions.has(permission) && !known.relations.has(permission))
    errors.push({
      pointer: 'query:permission',
      message: `must be one of ${[...known.permissions.keys(), ...known.relations.keys()].join(', ')} of a ${type}`,
    });
  if (user === undefined && id === undefined)
    errors.push({ pointer: 'query:user', message: 'is needed, or resource_id, or both to see the path' });
  for (const [value, pointer] of [
    [user, 'query:user'],
    [id, 'query:resource_id'],
  ] as const) {
    const problem = value === undefined ? null : idProblem(value);
    if (problem !== null) errors.push({ pointer, message: problem });
  }
  if (errors.length > 0)
    throw new ServiceError('validation_failed', `${errors[0]?.pointer.slice(6)} ${errors[0]?.message}`, { errors });
}
