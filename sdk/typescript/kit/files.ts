import { assertKind, checked, contentOf, HostError, int64, parked, parkedText, timeToLive, toJSON } from './host.ts';
import * as raw from './host-functions.js';

/** Kinds of files. */
export type FileType = 'photo' | 'document' | 'audio' | 'video' | 'voice' | 'sticker';

/** A file as the host knows it (docs/files.md "FileRef"); its content is read with `ctx.FileRead` and its like. */
export type FileRef = { ID: string; Name: string; MIMEType: string; Size: number; FileType: FileType };

/** Part of a file; `eof` when it ends where the file does. */
export type FileChunk = { bytes: Uint8Array; eof: boolean };

/** Bytes one read of a file gives at most (docs/limits.md). */
const CHUNK_MAX = 1024 * 1024;
/** The memory of an execution holds several copies of a file that is read whole. */
const WHOLE_MAX = 64 * 1024 * 1024;
/** Set in the result of `file_read_into` for the last chunk. */
const END_OF_FILE = 1 << 30;

type WireRef = { id: string; name: string; mime_type: string; size: number; file_type: FileType };

export const fileRefOf = (w: WireRef): FileRef => ({
  ID: w.id,
  Name: w.name,
  MIMEType: w.mime_type,
  Size: w.size,
  FileType: w.file_type,
});

export const wireRefOf = (f: FileRef): WireRef => ({
  id: f.ID,
  name: f.Name,
  mime_type: f.MIMEType,
  size: f.Size,
  file_type: f.FileType,
});

export function fileMeta(id: string): FileRef {
  assertKind('the id of a file', id, 'string');
  return fileRefOf(parked(raw.file_meta(id)));
}

/** Reads into a buffer. @returns how many bytes, and whether the file ends there */
function readInto(id: string, offset: number, buffer: Uint8Array): { length: number; eof: boolean } {
  const result = checked(raw.file_read_into(id, int64('an offset', offset), buffer));
  return { length: result & ~END_OF_FILE, eof: (result & END_OF_FILE) !== 0 };
}

export function fileRead(id: string, offset: number, maxBytes: number): FileChunk {
  assertKind('the id of a file', id, 'string');
  const buffer = new Uint8Array(maxBytes > 0 ? Math.min(maxBytes, CHUNK_MAX) : CHUNK_MAX);
  const { eof, length } = readInto(id, offset, buffer);
  return { bytes: buffer.subarray(0, length), eof };
}

export function fileReadAll(id: string): Uint8Array {
  const { Size } = fileMeta(id);
  if (Size > WHOLE_MAX)
    throw new HostError('too_large', `the file has ${Size} bytes, more than 64 MiB: read it in parts with FileRead`);
  const content = new Uint8Array(Size);
  for (let at = 0; ; ) {
    const { eof, length } = readInto(id, at, content.subarray(at, at + CHUNK_MAX));
    at += length;
    if (eof || length === 0) return content.subarray(0, at);
  }
}

export const fileURL = (id: string): string => parkedText(raw.file_url(id));

export function fileStore(
  name: string,
  mimeType: string,
  fileType: FileType,
  data: string | Uint8Array,
  ttlMs: number,
): FileRef {
  const ttl_ms = timeToLive(ttlMs, Number.MAX_SAFE_INTEGER);
  const order = { name, mime_type: mimeType, file_type: fileType, ...(ttl_ms > 0 ? { ttl_ms } : {}) };
  return fileRefOf(parked(raw.file_store(toJSON(order), contentOf('the content of a file', data))));
}
