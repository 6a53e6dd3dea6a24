import { z } from 'zod';

/** One page of a list: what stands on it, and the cursor of the next one. */
export const pageOf = <S extends z.ZodType>(item: S) =>
  z.object({
    items: z.array(item),
    next_cursor: z.string().nullable().describe('Cursor of the next page; null on the last one'),
  });

/** A list that always comes whole, in the shape of a page. */
export const wholePage = <T>(items: T[]): { items: T[]; next_cursor: null } => ({ items, next_cursor: null });

/**
 * One page of a list in descending order of ids (docs/api.md "Lists").
 *
 * @param query `limit` and `cursor` as `paged` of query.ts reads them
 * @param load the rows with ids below `before`, at most `limit` of them
 */
export async function loadPage<T extends { id: number }, J>(
  query: { limit: number; cursor?: number | undefined },
  load: (before: number, limit: number) => Promise<T[]>,
  toJson: (row: T) => J,
): Promise<{ items: J[]; next_cursor: string | null }> {
  const { cursor = Number.MAX_SAFE_INTEGER, limit } = query;
  // One more than asked for tells whether there is another page.
  const rows = await load(cursor, limit + 1);
  const page = rows.slice(0, limit);
  const last = page.at(-1);
  return { items: page.map(toJson), next_cursor: rows.length > limit && last !== undefined ? String(last.id) : null };
}
