import { randomBytes } from 'node:crypto';
import fs from 'node:fs';
import fsp from 'node:fs/promises';
import path from 'node:path';
import type { Readable } from 'node:stream';
import { ServiceError } from '../base/errors.ts';
import { isMissing } from '../base/file-problem.ts';
import { LIMITS } from '../base/limits.ts';
import { moveIntoPlace } from '../base/move-into-place.ts';
import type { BodySource } from '../http/message.ts';
import { DiskWriter } from './disk-writer.ts';
import type { FileRecord } from './file-records.ts';
import type { FileReader, FileStorage, StoredObject } from './file-storage.ts';
import type { AddressSigner } from './signed-address.ts';

const ID = /^[0-9a-f]{32}$/;
const LIST_PAGE = 1000;

export type DiskStorage = FileStorage & {
  /**
   * Takes in the bytes of an upload; they have their name only when they are whole and on disk.
   *
   * @param untilMs when the upload must be over, ms since 1970
   * @param signal given when the file is deleted meanwhile
   * @returns their SHA-256 in hexadecimal; null when they were removed before they were whole
   * @throws ServiceError when they are more or fewer than announced, or too slow
   */
  receive(id: string, size: number, source: BodySource, untilMs: number, signal: AbortSignal): Promise<string | null>;
  /** Removes the bytes of one upload alone. */
  removeUpload(id: string, digest: string): Promise<void>;
  /** Bytes `from` up to and including `to` of a ready file. @throws Error when they are not there */
  stream(file: FileRecord, from: number, to: number): Promise<Readable>;
};

/** A full disk is no fault of the request, and says what helps. */
function diskError(error: unknown): unknown {
  const code = error instanceof Error && 'code' in error ? error.code : '';
  return code === 'ENOSPC' || code === 'EDQUOT'
    ? new ServiceError('storage_full', 'the disk that holds files is full; an administrator must make room', {
        cause: error,
      })
    : error;
}

const sizeOf = (file: string): Promise<number | null> =>
  fsp.stat(file).then(
    stat => stat.size,
    (error: unknown) => {
      if (isMissing(error)) return null;
      throw error;
    },
  );

/** Where a file lies that is in its final place, from the directory of the files. */
export const readyKey = (id: string, digest: string | null): string => `ready/${id.slice(0, 2)}/${id}-${digest}`;

/**
 * Files on local disk: `uploads/<id>-<sha256>` as they came, `ready/<xx>/<id>-<sha256>` in their final place. Names of files are never part of
 * a path.
 *
 * @param directory of this installation alone; made when absent
 */
export function openDiskStorage(directory: string, signer: AddressSigner): DiskStorage {
  const uploads = path.join(directory, 'uploads');
  const ready = path.join(directory, 'ready');
  for (const d of [uploads, ready]) fs.mkdirSync(d, { recursive: true, mode: 0o700 });

  const checked = (id: string): string => {
    if (!ID.test(id)) throw new Error(`"${id}" is no file id`);
    return id;
  };
  const uploadedAt = (id: string, digest: string): string => path.join(uploads, `${checked(id)}-${digest}`);
  const readyAt = (id: string, digest: string | null): string => path.join(directory, readyKey(checked(id), digest));

  async function* list(): AsyncGenerator<StoredObject[]> {
    let page: StoredObject[] = [];
    const directories = [uploads, ...(await fsp.readdir(ready)).map(d => path.join(ready, d))];
    for (const d of directories)
      for await (const entry of await fsp.opendir(d)) {
        const key = path.relative(directory, path.join(d, entry.name));
        const stat = await fsp.stat(path.join(directory, key)).catch(() => undefined);
        if (stat === undefined) continue;
        page.push({
          id: entry.name.slice(0, 32),
          key,
          uploaded: d === uploads,
          version: entry.name.slice(33),
          modifiedAt: stat.mtime,
        });
        if (page.length < LIST_PAGE) continue;
        yield page;
        page = [];
      }
    if (page.length > 0) yield page;
  }

  return {
    kind: 'disk',
    async uploadTarget(file, expiresAt, base) {
      const grant = {
        id: file.id,
        expires: Math.floor(expiresAt.getTime() / 1000),
        size: file.size,
        type: file.mimeType,
      };
      return { url: base + signer.uploadPath(grant), method: 'PUT', headers: { 'Content-Type': file.mimeType } };
    },
    async receive(id, size, source, untilMs, signal) {
      const partial = path.join(uploads, `${checked(id)}.${randomBytes(8).toString('hex')}.part`);
      try {
        const digest = await writeAll(
          partial,
          size,
          source,
          Math.min(untilMs - Date.now(), LIMITS.uploadMsMax),
          signal,
        );
        await moveIntoPlace(partial, uploadedAt(id, digest));
        return digest;
      } catch (error) {
        if (isMissing(error)) return null;
        await fsp.rm(partial, { force: true });
        throw diskError(error);
      }
    },
    async removeUpload(id, digest) {
      await fsp.rm(uploadedAt(id, digest), { force: true });
    },
    async finish(file) {
      if (file.digest === null) return { kind: 'missing' };
      const from = uploadedAt(file.id, file.digest);
      const to = readyAt(file.id, file.digest);
      const uploaded = await sizeOf(from);
      // An attempt that was cut off behind its move has left it there.
      const size = uploaded ?? (await sizeOf(to));
      if (size === null) return { kind: 'missing' };
      if (size !== file.size) return { kind: 'different', what: `has ${size} bytes, and ${file.size} were announced` };
      if (uploaded !== null) {
        await fsp.mkdir(path.dirname(to), { recursive: true, mode: 0o700 });
        try {
          await moveIntoPlace(from, to);
        } catch (error) {
          // Another completion of the same file was faster, or it was deleted.
          if (!isMissing(error)) throw error;
          if ((await sizeOf(to)) !== file.size) return { kind: 'missing' };
        }
      }
      return { kind: 'ready', digest: file.digest };
    },
    async settle() {},
    async discard(id, digest) {
      await fsp.rm(readyAt(id, digest), { force: true });
    },
    async write(file, bytes) {
      const partial = path.join(uploads, `${checked(file.id)}.${randomBytes(8).toString('hex')}.part`);
      try {
        const digest = await digestOf(bytes);
        const to = readyAt(file.id, digest);
        await fsp.mkdir(path.dirname(to), { recursive: true, mode: 0o700 });
        await fsp.writeFile(partial, bytes, { flag: 'wx', mode: 0o600 });
        await moveIntoPlace(partial, to);
        return digest;
      } catch (error) {
        await fsp.rm(partial, { force: true });
        throw diskError(error);
      }
    },
    openReader: file => new DiskReader(readyAt(file.id, file.digest)),
    async stream(file, from, to) {
      const handle = await fsp.open(readyAt(file.id, file.digest), 'r');
      // An empty range is no range to the library.
      return handle.createReadStream({ start: from, end: Math.max(from, to), highWaterMark: LIMITS.streamChunkBytes });
    },
    async downloadUrl(file, expiresAt, base) {
      return base + signer.downloadPath({ id: file.id, expires: Math.floor(expiresAt.getTime() / 1000) });
    },
    async remove({ digest, id }) {
      if (digest === null) return;
      await fsp.rm(readyAt(id, digest), { force: true });
      await fsp.rm(uploadedAt(id, digest), { force: true });
    },
    list,
    async removeObject(key) {
      await fsp.rm(path.join(directory, key), { force: true });
    },
  };
}

/** Off the main thread: what a plugin stores may be large. */
async function digestOf(bytes: Uint8Array): Promise<string> {
  return Buffer.from(await crypto.subtle.digest('SHA-256', Uint8Array.from(bytes))).toString('hex');
}

/** Rejects with the reason when the signal is given. */
function aborted(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    if (signal.aborted) reject(signal.reason);
    signal.addEventListener('abort', () => reject(signal.reason), { once: true });
  });
}

/** Streams a body into a new file. @returns its SHA-256 */
async function writeAll(
  file: string,
  size: number,
  source: BodySource,
  msMax: number,
  signal: AbortSignal,
): Promise<string> {
  const handle = await fsp.open(file, 'wx', 0o600);
  const writer = new DiskWriter(handle, size);
  let timer: NodeJS.Timeout | undefined;
  try {
    const late = new Promise<never>((_, reject) => {
      timer = setTimeout(
        () => reject(new ServiceError('expired', 'the upload was not over when its address expired')),
        msMax,
      );
    });
    // Given up, it takes nothing more: what still comes is dropped.
    let givenUp = false;
    const taken = source.pump(chunk => (givenUp ? null : writer.take(chunk)));
    taken.catch(() => {});
    await Promise.race([taken, late, aborted(signal)]).catch((error: unknown) => {
      givenUp = true;
      throw error;
    });
    if (writer.received !== size)
      throw new ServiceError(
        'malformed_request',
        `the body has ${writer.received} bytes; this address was made for ${size}`,
      );
    return await writer.end();
  } finally {
    clearTimeout(timer);
    await writer.settle();
    await handle.close();
  }
}

/** Keeps the file open between reads; positions are given with each, so reads may be anywhere. */
class DiskReader implements FileReader {
  readonly #file: string;
  #handle: Promise<fsp.FileHandle> | null = null;
  #closed = false;

  constructor(file: string) {
    this.#file = file;
  }

  async read(offset: number, length: number): Promise<Uint8Array<ArrayBuffer>> {
    if (this.#closed) throw new Error('the reader is closed');
    this.#handle ??= fsp.open(this.#file, 'r');
    const handle = await this.#handle;
    const bytes = new Uint8Array(length);
    for (let at = 0; at < length; ) {
      const { bytesRead } = await handle.read(bytes, at, length - at, offset + at);
      if (bytesRead === 0) throw new Error(`${this.#file} ends before its ${offset + length} bytes`);
      at += bytesRead;
    }
    return bytes;
  }

  async close(): Promise<void> {
    this.#closed = true;
    const handle = await this.#handle?.catch(() => null);
    await handle?.close();
  }
}
