import type { Readable } from 'node:stream';
import { ServiceError } from '../base/errors.ts';
import { LIMITS } from '../base/limits.ts';
import type { FileRecord } from './file-records.ts';
import type { FileReader } from './file-storage.ts';

/** Asked for at first, and four times as much each time the reading goes on where it was, up to what an execution may read. */
const WINDOW_BYTES = LIMITS.fileChunkBytesMax;
const WINDOW_GROWTH = 4;

/** What a store did wrong, as a refusal. */
export const storeError = (error: unknown): ServiceError =>
  new ServiceError(
    'unavailable',
    `the file store does not answer as it should: ${error instanceof Error ? `${error.name} ${error.message}`.trim() : String(error)}`,
    { cause: error, headers: [['Retry-After', '2']] },
  );

/**
 * Reads a file from place to place with few requests: where the reading goes on where it was, the rest of the request before is used, and
 * the next one asks for more.
 */
export class S3Reader implements FileReader {
  readonly #file: FileRecord;
  readonly #open: (from: number, to: number, signal: AbortSignal) => Promise<Readable>;
  readonly #over = new AbortController();
  #body: Readable | null = null;
  #chunks: AsyncIterator<Buffer> | null = null;
  #rest: Uint8Array = new Uint8Array(0);
  /** Where the next byte of the body stands in the file, and where the body ends. */
  #at = 0;
  #end = 0;
  #window = WINDOW_BYTES;
  #closed = false;

  constructor(file: FileRecord, open: (from: number, to: number, signal: AbortSignal) => Promise<Readable>) {
    this.#file = file;
    this.#open = open;
  }

  async read(offset: number, length: number): Promise<Uint8Array<ArrayBuffer>> {
    const bytes = new Uint8Array(length);
    if (offset !== this.#at) this.#drop(offset);
    for (let got = 0; got < length; ) {
      if (this.#closed) throw new Error('the reader is closed');
      if (this.#at === this.#end) await this.#ask(length - got);
      if (this.#rest.length === 0) await this.#more();
      const n = Math.min(this.#rest.length, length - got);
      bytes.set(this.#rest.subarray(0, n), got);
      this.#rest = this.#rest.subarray(n);
      this.#at += n;
      got += n;
    }
    return bytes;
  }

  #drop(offset: number): void {
    this.#body?.destroy();
    this.#body = null;
    this.#chunks = null;
    this.#rest = new Uint8Array(0);
    this.#at = offset;
    this.#end = offset;
    this.#window = WINDOW_BYTES;
  }

  async #ask(length: number): Promise<void> {
    const to = Math.min(this.#file.size, this.#at + Math.max(length, this.#window));
    this.#window = Math.min(this.#window * WINDOW_GROWTH, LIMITS.hostCallBytesMax);
    const body = await this.#open(this.#at, to - 1, this.#over.signal);
    // Its errors come out of the iteration; one behind its end would end the process.
    body.on('error', () => {});
    if (this.#closed) {
      body.destroy();
      throw new Error('the reader is closed');
    }
    this.#body = body;
    this.#chunks = body[Symbol.asyncIterator]() as AsyncIterator<Buffer>;
    this.#end = to;
  }

  async #more(): Promise<void> {
    try {
      const next = await this.#chunks?.next();
      if (next === undefined || next.done === true) throw new Error(`the body ended before byte ${this.#end}`);
      this.#rest = next.value;
    } catch (error) {
      this.#drop(this.#at);
      throw storeError(error);
    }
  }

  close(): Promise<void> {
    this.#closed = true;
    this.#over.abort();
    this.#drop(0);
    return Promise.resolve();
  }
}
