import { z } from 'zod';
import { type FieldError, ServiceError } from '../../base/errors.ts';
import type { Graph } from '../../graph/graph.ts';
import { type GraphSchema, idProblem } from '../../graph/graph-schema.ts';
import { type CheckStep, GraphError } from '../../graph/graph-store.ts';
import type { Contract } from '../contract/contract.ts';
import type { Handle } from '../contract/endpoint.ts';
import { pageOf } from '../contract/paging.ts';
import { limit, needed, text } from '../contract/query.ts';
import { graphAway } from './policies-api.ts';

const checkStep = z
  .object({
    object: z.string(),
    permission: z.string(),
    subject: z.string(),
    allowed: z.boolean(),
    get steps() {
      return z.array(checkStep);
    },
  })
  .meta({ id: 'CheckStep' });

/** Who has a permission on what, as the graph store answers. */
export const lookupContract = {
  method: 'GET',
  path: '/api/admin/relationships/lookup',
  guard: 'admin',
  key: ['people', 'access'],
  summary: 'Ask the graph who has a permission on what',
  description:
    'With user: the objects on which the user has the permission. With resource_id: the users who have it. With both: whether the user has it, and by which way.',
  query: z.strictObject({
    resource_type: needed('Type of the object'),
    resource_id: text('Id of the object'),
    permission: needed('Name of a permission or relation of the type'),
    user: text('External id of the user'),
    limit,
    cursor: text('The next_cursor of the page before'),
  }),
  replies: {
    200: z.union([
      z.object({
        allowed: z.boolean(),
        path: z.array(z.string()).describe('From the question to the relationship; empty when it is not allowed'),
        steps: checkStep,
      }),
      pageOf(z.object({ resource_type: z.string(), resource_id: z.string() })),
      pageOf(z.object({ user: z.string() })),
    ]),
  },
} as const satisfies Contract;

export const lookup: Handle<typeof lookupContract, { schema: GraphSchema; graph: Graph }> = async (
  { graph, schema },
  { query },
) => {
  const { permission, resource_id: id, resource_type: type, user } = query;
  assertAskable(schema, type, permission, user, id);
  try {
    if (user !== undefined && id !== undefined) {
      const question = { resourceType: type, resourceId: id, permission, subjectType: 'user', subjectId: user };
      const steps = await graph.checkWithSteps(question);
      return { status: 200, json: { allowed: steps.allowed, path: pathOf(steps), steps } };
    }
    if (user !== undefined) {
      const ids = await graph.lookupResources(type, permission, user);
      return { status: 200, json: pageOfIds(query, ids, i => ({ resource_type: type, resource_id: i })) };
    }
    const ids = await graph.lookupUsers(type, id ?? '', permission);
    return { status: 200, json: pageOfIds(query, ids, i => ({ user: i })) };
  } catch (error) {
    if (error instanceof GraphError) throw graphAway(error);
    throw error;
  }
};

/** The store answers with all of them; the cursor is the last id of the page before. */
function pageOfIds<J>(
  { cursor = '', limit }: { cursor?: string | undefined; limit: number },
  ids: readonly string[],
  toJson: (id: string) => J,
): { items: J[]; next_cursor: string | null } {
  const rest = [...new Set(ids)].sort().filter(i => cursor === '' || i > cursor);
  return {
    items: rest.slice(0, limit).map(toJson),
    next_cursor: rest.length > limit ? (rest[limit - 1] ?? null) : null,
  };
}

/** The steps that gave a permission, from the question to the relationship; empty when it was not given. */
function pathOf(step: CheckStep): string[] {
  if (!step.allowed) return [];
  const next = step.steps.find(s => s.allowed);
  if (next === undefined) return [`${step.object}#${step.permission}@${step.subject}`];
  return [`${step.object}#${step.permission}`, ...pathOf(next)];
}

/** @throws ServiceError naming what is missing, unknown or too much */
function assertAskable(
  schema: GraphSchema,
  type: string,
  permission: string,
  user: string | undefined,
  id: string | undefined,
): void {
  const errors: FieldError[] = [];
  const known = schema.types.get(type);
  if (known === undefined)
    errors.push({
      pointer: 'query:resource_type',
      message: `must be one of ${[...schema.types.keys()].join(', ')}`,
      code: 'not_one_of',
    });
  else if (!known.permissions.has(permission) && !known.relations.has(permission)) {
    const names = [...known.permissions.keys(), ...known.relations.keys()];
    const message =
      names.length === 0
        ? `a ${type} has none; ask for another type`
        : `must be one of ${names.join(', ')} of a ${type}`;
    errors.push({ pointer: 'query:permission', message, code: 'not_one_of' });
  }
  if (user === undefined && id === undefined)
    errors.push({
      pointer: 'query:user',
      message: 'is needed, or resource_id, or both to see the path',
      code: 'missing',
    });
  for (const [value, pointer] of [
    [user, 'query:user'],
    [id, 'query:resource_id'],
  ] as const) {
    const problem = value === undefined ? null : idProblem(value);
    if (problem !== null) errors.push({ pointer, ...problem });
  }
  if (errors.length > 0)
    throw new ServiceError('validation_failed', `${errors[0]?.pointer.slice(6)} ${errors[0]?.message}`, { errors });
}
