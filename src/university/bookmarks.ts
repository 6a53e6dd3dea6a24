import type { Queryable } from '../db/database.ts';
import { findRow } from '../db/rows.ts';
import type { Bookmark } from './data-source.ts';
import type { EntityType } from './entities.ts';

/** What the source said of the list that was taken over whole last, and how often others have ever written. */
export type Remembered = { bookmark: Bookmark | null; writes: number };

export async function loadBookmark(db: Queryable, type: EntityType): Promise<Remembered> {
  const source = await findRow<Omit<Bookmark, 'url'> & { url: string | null; writes: number }>(
    db,
    'SELECT url, etag, last_modified, writes FROM university_sources WHERE type = $1',
    [type],
  );
  if (source === undefined) return { bookmark: null, writes: 0 };
  const { url, writes, ...of } = source;
  return { bookmark: url === null ? null : { url, ...of }, writes };
}

/** The list is not what is there: a pull begins, or (`isWrite`) another import writes, in whose transaction this is. */
export async function forgetBookmark(client: Queryable, type: EntityType, isWrite: boolean): Promise<void> {
  await client.query(
    `INSERT INTO university_sources (type, writes) VALUES ($1, $2)
     ON CONFLICT (type) DO UPDATE SET url = NULL, etag = NULL, last_modified = NULL, writes = university_sources.writes + $2`,
    [type, isWrite ? 1 : 0],
  );
}

/** Remembers a list, unless another import wrote since it was asked for. */
export async function keepBookmark(db: Queryable, type: EntityType, bookmark: Bookmark, writes: number): Promise<void> {
  await db.query(
    'UPDATE university_sources SET url = $2, etag = $3, last_modified = $4 WHERE type = $1 AND writes = $5',
    [type, bookmark.url, bookmark.etag, bookmark.lastModified, writes],
  );
}
