import { z } from 'zod';
import { parseBoundedJson } from '../../base/bounded-json.ts';
import { ServiceError } from '../../base/errors.ts';
import type { Database } from '../../db/database.ts';
import type { GraphSchema } from '../../graph/graph-schema.ts';
import { nameObjects, searchObjects } from '../../university/object-names.ts';
import type { Contract } from '../contract/contract.ts';
import type { Handle } from '../contract/endpoint.ts';
import { pageOf, wholePage } from '../contract/paging.ts';
import { limit, needed, readAs, text } from '../contract/query.ts';

const IDS_MAX = 200;
const idList = z.array(z.string().refine(id => id.isWellFormed() && !id.includes('\0'))).max(IDS_MAX);
const ids = readAs(
  { type: 'string', description: `Only these: a JSON array of at most ${IDS_MAX} ids` },
  `must be a JSON array of at most ${IDS_MAX} texts, like ["physics"]`,
  given => {
    try {
      return idList.parse(parseBoundedJson(given));
    } catch {
      return undefined;
    }
  },
);

/** Objects that a relationship may name, as people know them. */
export const graphObjectsContract = {
  method: 'GET',
  path: '/api/admin/relationships/objects',
  guard: 'admin',
  key: ['people'],
  summary: 'Find objects of a type of the graph by their names',
  description:
    'Users, and what the university has: faculties, departments, programs, streams, groups, subgroups. Objects of other types are those that relationships name. The answer is one page.',
  query: z.strictObject({
    type: needed('Type of the objects'),
    search: text('Part of the name, or how the id begins'),
    ids: ids.optional(),
    limit,
  }),
  replies: {
    200: pageOf(
      z
        .object({ id: z.string(), name: z.string().nullable().describe('Null where no name is known') })
        .meta({ id: 'GraphObject' }),
    ),
  },
} as const satisfies Contract;

export const graphObjects: Handle<typeof graphObjectsContract, { db: Database; schema: GraphSchema }> = async (
  { db, schema },
  { query },
) => {
  const { ids, limit, search = '', type } = query;
  if (!schema.types.has(type)) {
    const message = `must be one of ${[...schema.types.keys()].join(', ')}`;
    throw new ServiceError('validation_failed', `type ${message}`, {
      errors: [{ pointer: 'query:type', message, code: 'not_one_of' }],
    });
  }
  const found = ids === undefined ? await searchObjects(db, type, search, limit) : await nameObjects(db, type, ids);
  return { status: 200, json: wholePage(found) };
};
