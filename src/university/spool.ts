import fs from 'node:fs';
import fsp from 'node:fs/promises';
import { ServiceError } from '../base/errors.ts';
import { TOO_DEEP } from './json-elements.ts';

const FLUSH_CHARS = 256 * 1024;

/** A value nested too deeply to be written is no record: it stands there as a text, which is refused as one. */
function textOf(value: unknown): string {
  try {
    return JSON.stringify(value) ?? 'null';
  } catch {
    return JSON.stringify(TOO_DEEP);
  }
}

/** A list of records on disk, as a JSON array, so that nothing of it is used before all of it is there. */
export class Spool {
  readonly #handle: fsp.FileHandle;
  readonly #bytesMax: number;
  #pending = '';
  #written = 0;
  #count = 0;

  private constructor(handle: fsp.FileHandle, bytesMax: number) {
    this.#handle = handle;
    this.#bytesMax = bytesMax;
  }

  static async open(file: string, bytesMax: number): Promise<Spool> {
    return new Spool(await fsp.open(file, 'wx', 0o600), bytesMax);
  }

  /** @throws ServiceError `body_too_large` */
  async append(value: unknown): Promise<void> {
    this.#pending += `${this.#count++ === 0 ? '[' : ','}${textOf(value)}`;
    if (this.#pending.length >= FLUSH_CHARS) await this.#flush();
  }

  async #flush(): Promise<void> {
    const bytes = Buffer.from(this.#pending);
    this.#pending = '';
    if (this.#written + bytes.length > this.#bytesMax)
      throw new ServiceError('body_too_large', `the list is larger than ${this.#bytesMax} bytes`);
    for (let at = 0; at < bytes.length; ) {
      const { bytesWritten } = await this.#handle.write(bytes, at, bytes.length - at, this.#written);
      at += bytesWritten;
      this.#written += bytesWritten;
    }
  }

  /** A place to go back to. */
  async mark(): Promise<{ bytes: number; count: number }> {
    await this.#flush();
    return { bytes: this.#written, count: this.#count };
  }

  async rewind(to: { bytes: number; count: number }): Promise<void> {
    this.#pending = '';
    this.#written = to.bytes;
    this.#count = to.count;
    await this.#handle.truncate(to.bytes);
  }

  async finish(): Promise<void> {
    this.#pending += this.#count === 0 ? '[]' : ']';
    await this.#flush();
    await this.#handle.close();
  }

  async abandon(): Promise<void> {
    await this.#handle.close().catch(() => {});
  }
}

/** The bytes of a file as they come from disk. */
export const readChunks = (file: string): AsyncIterable<Uint8Array> =>
  fs.createReadStream(file, { highWaterMark: 256 * 1024 });
