import { useQueries } from '@tanstack/react-query';
import { answered, api } from '../api/client.ts';

export type GraphObject = { type: string; id: string };

/** As many ids as an address can hold. */
const ASKED_AT_ONCE = 25;

/** Lists of at most so many ids of one type each; those that were there before stay the same when more come. */
function chunksOf(objects: readonly GraphObject[]): Array<{ type: string; ids: string[] }> {
  const byType = new Map<string, Set<string>>();
  for (const { id, type } of objects) {
    const ids = byType.get(type) ?? new Set();
    byType.set(type, ids.add(id));
  }
  return [...byType].flatMap(([type, set]) => {
    const ids = [...set];
    return Array.from({ length: Math.ceil(ids.length / ASKED_AT_ONCE) }, (_, k) => ({
      type,
      ids: ids.slice(k * ASKED_AT_ONCE, (k + 1) * ASKED_AT_ONCE),
    }));
  });
}

/** Those of these objects that the service does not know. */
export async function unknownOf(objects: readonly GraphObject[]): Promise<GraphObject[]> {
  const known = await Promise.all(
    objects.map(async ({ id, type }) => {
      const query = { type, ids: JSON.stringify([id]) };
      return answered(await api.GET('/api/admin/relationships/objects', { params: { query } })).items.length > 0;
    }),
  );
  return objects.filter((_, k) => !known[k]);
}

/** What objects are called. A name that is not known, or not yet, is null: the id stands for it. */
export function useObjectNames(objects: readonly GraphObject[]): (object: GraphObject) => string | null {
  const names = useQueries({
    queries: chunksOf(objects).map(({ ids, type }) => ({
      queryKey: ['graph', 'names', type, ids],
      queryFn: async () =>
        answered(
          await api.GET('/api/admin/relationships/objects', { params: { query: { type, ids: JSON.stringify(ids) } } }),
        ).items.map(o => [`${type}:${o.id}`, o.name] as const),
    })),
    combine: results => new Map(results.flatMap(r => r.data ?? [])),
  });
  return ({ id, type }) => names.get(`${type}:${id}`) ?? null;
}
