import fsp, { type FileHandle } from 'node:fs/promises';
import path from 'node:path';
import { ServiceError } from '../base/errors.ts';

/** Bytes that wait to be written; with more the client waits. */
const WAITING_BYTES_MAX = 1024 * 1024;

/** A full disk is no fault of the request, and says what helps. */
function diskError(error: unknown): unknown {
  const code = error instanceof Error && 'code' in error ? error.code : '';
  if (code !== 'ENOSPC' && code !== 'EDQUOT') return error;
  const detail = 'the disk that takes large bodies (data.dir) is full; an administrator must make room';
  return new ServiceError('storage_full', detail, { cause: error });
}

/** A body on disk while the rest of it comes in. */
export class SpoolFile {
  readonly #file: string;
  readonly #opened: Promise<FileHandle>;
  #waiting: Buffer[] = [];
  #waitingBytes = 0;
  #writing: Promise<void> | null = null;
  #removed = false;

  /** @param directory of this process */
  constructor(directory: string) {
    this.#file = path.join(directory, `body-${crypto.randomUUID()}`);
    this.#opened = fsp.open(this.#file, 'wx+', 0o600);
    // The next write reports it.
    this.#opened.catch(() => {});
  }

  /**
   * @param chunk kept until it is written
   * @returns a promise when the next one must wait
   */
  add(chunk: Buffer): Promise<void> | null {
    this.#waiting.push(chunk);
    this.#waitingBytes += chunk.length;
    if (this.#writing === null) {
      this.#writing = this.#write();
      // The next write or read reports it.
      this.#writing.catch(() => {});
    }
    return this.#waitingBytes > WAITING_BYTES_MAX ? this.#writing : null;
  }

  async #write(): Promise<void> {
    const handle = await this.#opened;
    while (this.#waiting.length > 0 && !this.#removed) {
      const chunks = this.#waiting;
      this.#waiting = [];
      this.#waitingBytes = 0;
      try {
        await handle.appendFile(chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks));
      } catch (error) {
        throw diskError(error);
      }
    }
    this.#writing = null;
  }

  /** Everything that was added. */
  async read(size: number): Promise<Buffer> {
    await this.#writing;
    const handle = await this.#opened;
    const bytes = Buffer.allocUnsafeSlow(size);
    for (let at = 0; at < size; ) {
      const { bytesRead } = await handle.read(bytes, at, size - at, at);
      if (bytesRead === 0) throw new Error(`${this.#file} ends before its ${size} bytes`);
      at += bytesRead;
    }
    return bytes;
  }

  /** Removes it, whatever became of it. */
  async remove(): Promise<void> {
    this.#removed = true;
    await this.#writing?.catch(() => {});
    await this.#opened.then(handle => handle.close()).catch(() => {});
    await fsp.rm(this.#file, { force: true });
  }
}
