import { z } from 'zod';
import type { Graph } from '../../graph/graph.ts';
import { GraphSchema } from '../../graph/graph-schema.ts';
import { GraphError } from '../../graph/graph-store.ts';
import { resource } from '../contract/contract.ts';
import { type Handle, serve } from '../contract/endpoint.ts';
import type { Route } from '../contract/route.ts';

export type GraphSchemaApiParts = { schema: GraphSchema; graph: Graph };

const definition = z
  .object({
    name: z.string(),
    relations: z.array(
      z.object({ name: z.string(), subjects: z.array(z.string()).readonly().describe('Types its subjects may have') }),
    ),
    permissions: z.array(z.object({ name: z.string(), expression: z.string() })),
  })
  .meta({ id: 'GraphDefinition' });

/** What may be related to what (docs/authorization.md "Relationship graph"). */
export const graphSchema = resource('Schema of the graph', 'Types, relations and permissions of the graph.', {
  get: {
    method: 'GET',
    path: '/api/admin/schema/definitions',
    guard: 'admin',
    key: ['read', 'access'],
    summary: 'Read the schema of the relationship graph',
    replies: {
      200: z.object({
        source: z
          .enum(['release', 'store'])
          .describe('Where it was read: the graph store, or this release while the store is away'),
        definitions: z.array(definition),
        schema: z.string().describe('The same as text, in the language of SpiceDB'),
      }),
    },
  },
});

const get: Handle<typeof graphSchema.get, GraphSchemaApiParts> = async ({ graph, schema }) => {
  // The schema in the store counts; while the store is away, the one it will be given.
  const text = await graph.readSchema().catch((error: unknown) => {
    if (error instanceof GraphError) return null;
    throw error;
  });
  const shown = text === null ? schema : new GraphSchema(text);
  const definitions = [...shown.types.values()].map(t => ({
    name: t.name,
    relations: [...t.relations].map(([name, subjects]) => ({ name, subjects })),
    permissions: [...t.permissions].map(([name, expression]) => ({ name, expression })),
  }));
  return {
    status: 200,
    json: { source: text === null ? 'release' : 'store', definitions, schema: shown.visibleText() },
  };
};

export const graphSchemaRoutes = (parts: GraphSchemaApiParts): Route[] => serve(graphSchema, parts, { get });
