import type { FileRecord, StoreKind } from './file-records.ts';

/** Where a client sends the bytes of a pending file (docs/files.md "Upload"). */
export type UploadTarget = { url: string; method: string; headers: Record<string, string> };

/** What was found where a client should have uploaded to. `different`: something else lies there, as the text says. */
export type Finished = { kind: 'ready'; digest: string } | { kind: 'missing' } | { kind: 'different'; what: string };

/** Reads one ready file from place to place. */
export type FileReader = {
  /**
   * @param offset in bytes, inside the file
   * @param length in bytes; the file has them
   * @returns bytes of their own, `length` of them
   * @throws Error when the store does not answer, or has not the bytes that were uploaded
   */
  read(offset: number, length: number): Promise<Uint8Array<ArrayBuffer>>;
  close(): Promise<void>;
};

/**
 * Something in the store that names a file, whether there is one or not. `uploaded`: not in its final place; `version`: what its name
 * tells it from others of the same file by, the beginning of a record's digest.
 */
export type StoredObject = { id: string; key: string; uploaded: boolean; version: string; modifiedAt: Date };

/**
 * Holds the bytes of files: local disk, or an S3-compatible store. A file lies in one of two places: uploaded, which a client may
 * write as often as it likes, and final, which only this service writes, once.
 */
export type FileStorage = {
  readonly kind: StoreKind;
  /** @param base address of this service as the client sees it */
  uploadTarget(file: FileRecord, expiresAt: Date, base: string): Promise<UploadTarget>;
  /**
   * Brings what was uploaded to a final place, when it is what was announced. May be repeated, also at once: attempts that find
   * different bytes have different places, and which one counts is said by the digest in the file's record.
   */
  finish(file: FileRecord): Promise<Finished>;
  /** The file's record names this attempt: what is left of its upload goes. */
  settle(file: FileRecord): Promise<void>;
  /** The file's record names another attempt. */
  discard(id: string, digest: string): Promise<void>;
  /** Writes a whole file to its final place. @returns its digest */
  write(file: FileRecord, bytes: Uint8Array): Promise<string>;
  openReader(file: FileRecord): FileReader;
  /** An address at which every client may read the file until then; empty when the store has none (docs/files.md "Links"). */
  downloadUrl(file: FileRecord, expiresAt: Date, base: string): Promise<string>;
  /** Removes what lies in either place; nothing being there is fine. */
  remove(file: Pick<FileRecord, 'id' | 'digest'>): Promise<void>;
  /** Everything that lies in the store, in pages. */
  list(): AsyncIterable<StoredObject[]>;
  removeObject(key: string): Promise<void>;
};
