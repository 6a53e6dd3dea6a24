import * as abi from "./plugin_host";
import { Json, Obj, obj } from "./json";
import { errorOf, noteError, parked, Result } from "./result";
import { pointer, utf8 } from "./text";

/** Bytes one read of a file gives at most (docs/limits.md). */
const CHUNK_MAX: i32 = 1024 * 1024;
/** Bytes the host passes into one execution at most. */
const READ_ALL_MAX: i64 = 64 * 1024 * 1024;

/** A file as the host knows it (docs/files.md "FileRef"); its content is read with `ctx.FileRead` and its like. */
export class FileRef {
  /** `FileType` is `photo`, `document`, `audio`, `video`, `voice` or `sticker`. */
  constructor(public ID: string, public Name: string, public MIMEType: string, public Size: i64, public FileType: string) {}
  static from(json: Json): FileRef {
    return new FileRef(json.str("id"), json.str("name"), json.str("mime_type"), json.i64("size"), json.str("file_type"));
  }
  toObj(): Obj {
    return obj().str("id", this.ID).str("name", this.Name).str("mime_type", this.MIMEType).num("size", this.Size).str("file_type", this.FileType);
  }
}

/** Part of a file; `eof` when it ends where the file does. */
export class FileChunk {
  constructor(public bytes: ArrayBuffer, public eof: bool) {}
}

/** Set in what `file_read_into` returns for the last chunk. */
const END_OF_FILE: i32 = 1 << 30;

/** Reads a file from an offset on, a buffer at a time; a buffer that is used again costs no memory. */
export class FileReader {
  private id: ArrayBuffer;
  /** Whether the file ends behind what was read last. */
  eof: bool = false;
  /** Why the last read failed, or null. */
  error: string | null = null;
  constructor(fileID: string, public offset: i64 = 0) {
    this.id = utf8(fileID);
  }
  /** Bytes read into the buffer from `from` on, at most 1 MB; -1 when it failed. */
  read(buffer: ArrayBuffer, from: i32 = 0): i32 {
    const n = abi.file_read_into(pointer(this.id), this.id.byteLength, this.offset, pointer(buffer) + from, buffer.byteLength - from);
    if (n < 0) {
      this.error = errorOf(n);
      return -1;
    }
    this.eof = n >= END_OF_FILE;
    const bytes = n & ~END_OF_FILE;
    this.offset += bytes;
    return bytes;
  }
}

export function fileMeta(fileID: string): Result<FileRef | null> {
  const id = utf8(fileID);
  const n = abi.file_meta(pointer(id), id.byteLength);
  if (n < 0) return new Result<FileRef | null>(null, errorOf(n));
  return new Result<FileRef | null>(FileRef.from(Json.trusted(parked(n))));
}

export function readChunk(fileID: string, offset: i64, maxBytes: i64): Result<FileChunk> {
  const buffer = new ArrayBuffer(maxBytes <= 0 || maxBytes > CHUNK_MAX ? CHUNK_MAX : <i32>maxBytes);
  const reader = new FileReader(fileID, offset);
  const n = reader.read(buffer);
  if (n < 0) return new Result<FileChunk>(new FileChunk(new ArrayBuffer(0), false), reader.error);
  return new Result<FileChunk>(new FileChunk(n == buffer.byteLength ? buffer : buffer.slice(0, n), reader.eof));
}

export function readWhole(fileID: string): Result<ArrayBuffer> {
  const nothing = new ArrayBuffer(0);
  const meta = fileMeta(fileID);
  const ref = meta.value;
  if (ref === null) return new Result<ArrayBuffer>(nothing, meta.error);
  if (ref.Size > READ_ALL_MAX) {
    const text = "the file " + fileID + " has " + ref.Size.toString() + " bytes; one execution reads at most " + READ_ALL_MAX.toString() + "; read it in parts with FileReader";
    return new Result<ArrayBuffer>(nothing, noteError("too_large", text));
  }
  const whole = new ArrayBuffer(<i32>ref.Size);
  const reader = new FileReader(fileID);
  while (<i32>reader.offset < whole.byteLength) {
    const n = reader.read(whole, <i32>reader.offset);
    if (n < 0) return new Result<ArrayBuffer>(nothing, reader.error);
    if (n == 0) return new Result<ArrayBuffer>(whole.slice(0, <i32>reader.offset));
  }
  return new Result<ArrayBuffer>(whole);
}

export function storeFile(name: string, mimeType: string, fileType: string, data: ArrayBuffer, ttlMs: i64): Result<FileRef | null> {
  const said = obj().str("name", name).str("mime_type", mimeType).str("file_type", fileType);
  if (ttlMs != 0) said.num("ttl_ms", ttlMs);
  const json = said.finish();
  const n = abi.file_store(json.pointer, json.length, pointer(data), data.byteLength);
  if (n < 0) return new Result<FileRef | null>(null, errorOf(n));
  return new Result<FileRef | null>(FileRef.from(Json.trusted(parked(n))));
}
