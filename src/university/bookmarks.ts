import type { Queryable } from '../db/database.ts';
import type { Bookmark } from './data-source.ts';
import type { EntityType } from './entities.ts';

type BookmarkSql = { url: string; etag: string | null; last_modified: string | null };

/** What the source said of the list that was taken over whole last. */
export async function findBookmark(db: Queryable, type: EntityType): Promise<Bookmark | null> {
  const { rows } = await db.query<BookmarkSql>('SELECT * FROM university_sources WHERE type = $1', [type]);
  const r = rows[0];
  return r === undefined ? null : { url: r.url, etag: r.etag, lastModified: r.last_modified };
}

/** Remembers a list; null forgets it, since what is there is not what it says. */
export async function setBookmark(db: Queryable, type: EntityType, bookmark: Bookmark | null): Promise<void> {
  if (bookmark === null) await db.query('DELETE FROM university_sources WHERE type = $1', [type]);
  else
    await db.query(
      `INSERT INTO university_sources (type, url, etag, last_modified) VALUES ($1, $2, $3, $4)
       ON CONFLICT (type) DO UPDATE SET url = excluded.url, etag = excluded.etag, last_modified = excluded.last_modified`,
      [type, bookmark.url, bookmark.etag, bookmark.lastModified],
    );
}
