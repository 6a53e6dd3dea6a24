import type { EntityType } from './entities.ts';

/** What the source said of a list, to ask next time whether it is another one. */
export type Bookmark = { url: string; etag: string | null; lastModified: string | null };

export type Fetched =
  /**
   * The list is complete: `take` got every record. The bookmark is null if the source cannot be asked whether the list
   * has changed.
   */
  | { kind: 'whole'; bookmark: Bookmark | null }
  /** The list is still the one of the bookmark. */
  | { kind: 'unchanged' }
  /** The source has no such type (docs/university.md "The source": no list and no error). */
  | { kind: 'not_offered' };

/** Takes records as they come; a part of the list that broke off is given again. */
export type Taker = {
  take(record: unknown): Promise<void>;
  /** From here on the list may be given again. */
  mark(): Promise<void>;
  /** Records given since the last mark are void. */
  rewind(): Promise<void>;
};

/**
 * One fetch for each type, each giving the complete current list (docs/university.md "The source"). An error means that
 * there is no list now.
 */
export type DataSource = Readonly<
  Record<EntityType, (taker: Taker, known: Bookmark | null, signal: AbortSignal) => Promise<Fetched>>
>;

/** A list cannot be fetched; the message is for administrators and never contains the credential. */
export class SourceError extends Error {
  override readonly name = 'SourceError';
}
