import { createHash, type Hash } from 'node:crypto';
import type { FileHandle } from 'node:fs/promises';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { tooLarge } from '../base/errors.ts';

/** Size of the pieces that are hashed, which takes a quarter of a millisecond of the main thread, and written at once. */
const BUFFER_BYTES = 256 * 1024;
/** Buffers of one upload. Together they hold what the server reads from a socket at once, and as much again. */
const BUFFERS_MAX = 5;
/** Room for one read of the server; with less the client waits. */
const READ_BYTES_MAX = 512 * 1024;
const SPARE_MAX = 64;

/** Buffers are used again: an upload leaves nothing to collect. */
const spare: Buffer[] = [];

const takeBuffer = (): Buffer => spare.pop() ?? Buffer.allocUnsafeSlow(BUFFER_BYTES);

function giveBack(buffer: Buffer): void {
  if (spare.length < SPARE_MAX) spare.push(buffer);
}

/** Writes an upload to a file while it comes in, and computes its SHA-256. */
export class DiskWriter {
  readonly #handle: FileHandle;
  readonly #size: number;
  readonly #hash: Hash = createHash('sha256');
  #filling: Buffer | null = null;
  #filled = 0;
  /** Full ones that are not written yet, and the work that writes them. */
  #full: Buffer[] = [];
  #writing: Promise<void> | null = null;
  #written = 0;
  #received = 0;

  /** @param size how many bytes are to come */
  constructor(handle: FileHandle, size: number) {
    this.#handle = handle;
    this.#size = size;
  }

  get received(): number {
    return this.#received;
  }

  /**
   * @param chunk copied before this returns
   * @returns a promise when the next one must wait
   * @throws ServiceError `body_too_large`
   */
  take(chunk: Uint8Array): Promise<void> | null {
    this.#received += chunk.length;
    if (this.#received > this.#size) throw tooLarge(this.#size, 'the size this address was made for');
    for (let at = 0; at < chunk.length; ) {
      this.#filling ??= takeBuffer();
      const n = Math.min(chunk.length - at, BUFFER_BYTES - this.#filled);
      this.#filling.set(chunk.subarray(at, at + n), this.#filled);
      this.#filled += n;
      at += n;
      if (this.#filled === BUFFER_BYTES) this.#push();
    }
    const room = (BUFFERS_MAX - this.#full.length) * BUFFER_BYTES - this.#filled;
    return room >= READ_BYTES_MAX ? null : this.#writing;
  }

  #push(): void {
    if (this.#filling === null) return;
    this.#full.push(this.#filling.subarray(0, this.#filled));
    this.#filling = null;
    this.#filled = 0;
    if (this.#writing !== null) return;
    this.#writing = this.#write();
    // The next chunk or the end waits for it; when the upload is given up, nothing does.
    this.#writing.catch(() => {});
  }

  /**
   * Nothing but copying is done while the server hands out chunks: it reads on for as long as a client fills its buffer faster than it
   * is emptied, and serves no other request meanwhile.
   */
  async #write(): Promise<void> {
    await nextTurn();
    for (let next = this.#full[0]; next !== undefined; next = this.#full[0]) {
      this.#hash.update(next);
      for (let at = 0; at < next.length; ) {
        const { bytesWritten } = await this.#handle.write(next, at, next.length - at, this.#written);
        at += bytesWritten;
        this.#written += bytesWritten;
      }
      this.#full.shift();
      giveBack(Buffer.from(next.buffer));
    }
    this.#writing = null;
  }

  /** Writes what is left. @returns the SHA-256 of everything, in hexadecimal */
  async end(): Promise<string> {
    if (this.#filled > 0) this.#push();
    await this.#writing;
    return this.#hash.digest('hex');
  }

  /** Waits until nothing is written any more, whatever became of it. */
  async settle(): Promise<void> {
    this.#full.length = Math.min(this.#full.length, 1);
    await this.#writing?.catch(() => {});
    if (this.#filling !== null) giveBack(this.#filling);
    this.#filling = null;
  }
}
