import * as abi from "./abi";
import { Json, Obj, obj } from "./json";
import { lastError } from "./result";

/** Bytes one read of a file gives at most (docs/limits.md). */
export const CHUNK_MAX: i32 = 1024 * 1024;

/** A file as the host knows it (docs/files.md "FileRef"); its content is read with `ctx.FileRead` and its like. */
export class FileRef {
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
    this.id = String.UTF8.encode(fileID);
  }
  /** Bytes read into the buffer from `from` on, at most 1 MB; -1 when it failed. */
  read(buffer: ArrayBuffer, from: i32 = 0): i32 {
    const n = abi.file_read_into(changetype<usize>(this.id), this.id.byteLength, this.offset, changetype<usize>(buffer) + from, buffer.byteLength - from);
    if (n < 0) {
      this.error = lastError();
      return -1;
    }
    this.eof = n >= END_OF_FILE;
    const bytes = n & ~END_OF_FILE;
    this.offset += bytes;
    return bytes;
  }
}
