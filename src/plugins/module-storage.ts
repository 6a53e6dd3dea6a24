import { createHash, randomBytes } from 'node:crypto';
import fs from 'node:fs';
import fsp from 'node:fs/promises';
import path from 'node:path';
import type { Readable } from 'node:stream';
import { ServiceError } from '../base/errors.ts';
import { isMissing } from '../base/file-problem.ts';
import { moveIntoPlace } from '../base/move-into-place.ts';
import { streamToFile } from '../base/stream-to-file.ts';
import type { Queryable } from '../db/database.ts';
import { RUNNABLE_FORMAT } from './gate/rewrite.ts';
import type { ModuleContents } from './module-contents.ts';

const RUNNABLE = `.run${RUNNABLE_FORMAT}.wasm`;

const FRONTEND = '.frontend.zip';
const START = '.start.wasm';
const START_IMAGE = '.start.image';
/** Files of a moment, which only a crash leaves. */
const PASSING = /\.(part|start\.wasm|start\.image)$/;

export type StoredModule = { sha256: string; size: number };

/** An upload on disk that was not checked yet. */
export type ReceivedModule = StoredModule & { key: string };

/** Digests of the files of a version. */
export type VersionDigests = { uploaded: string; runnable: string; frontend: string | null };

/** Modules on disk: `<key>.wasm` as uploaded, `<key>.run<format>.wasm` rewritten, `<key>.<sha256>.frontend.zip`; while the start runs also `.start.wasm` and `.start.image`. */
export type ModuleStorage = {
  /** Streams an upload to disk. The file gets its final name only when it is complete and synced. */
  receive(key: string, source: Readable, bytesMax: number): Promise<StoredModule>;
  /** Streams the ZIP of a frontend to disk, like an upload. */
  receiveFrontend(key: string, source: Readable, bytesMax: number): Promise<StoredModule>;
  /**
   * Moves the frontend received under one key to the version of another key; the version's old one stays until it is
   * removed.
   */
  moveFrontend(from: string, to: string, sha256: string): Promise<void>;
  removeFrontend(key: string, sha256: string): Promise<void>;
  /** @param sha256 of the ZIP; null before it was checked */
  frontendPath(key: string, sha256: string | null): string;
  /**
   * Stores the files of a version in the database, inside the caller's transaction, where every host finds them. Files this
   * host does not have are left out.
   */
  share(client: Queryable, key: string, digests: VersionDigests): Promise<void>;
  /** Gets the upload of a version from the database, unless it is on disk. */
  bringUploaded(key: string, sha256: string): Promise<void>;
  /** Gets the frontend of a version from the database, unless it is on disk. @returns its path */
  bringFrontend(key: string, sha256: string): Promise<string>;
  writeRunnable(key: string, bytes: Uint8Array): Promise<void>;
  /** Reads the module from disk, else from the database. @throws Error if the bytes differ from those that passed the gate (docs/SECURITY.md) */
  readRunnable(key: string, sha256: string): Promise<Uint8Array<ArrayBuffer>>;
  /** Reads an upload from disk, else from the database. @throws Error if the bytes are not those that were uploaded */
  readUploaded(key: string, sha256: string): Promise<Uint8Array<ArrayBuffer>>;
  /** Stores the module that runs only the start. @returns its path, and the one for what the start leaves */
  writeStart(key: string, bytes: Uint8Array): Promise<{ start: string; image: string }>;
  removeStart(key: string): Promise<void>;
  uploadedPath(key: string): string;
  runnablePath(key: string): string;
  remove(key: string): Promise<void>;
  /**
   * Removes files that belong to no version: uploads interrupted by a crash.
   *
   * @param known keys of all versions
   * @param ageMsMin younger files may belong to an upload under way, on this host or another
   * @returns how many files
   */
  removeOrphans(known: ReadonlySet<string>, ageMsMin: number): Promise<number>;
};

export const sha256Of = (bytes: Uint8Array): string => createHash('sha256').update(bytes).digest('hex');

/** The bytes of a file; null when it is missing, or they are not those of the digest. */
async function readBytes(file: string, sha256: string): Promise<Uint8Array<ArrayBuffer> | null> {
  let bytes: Uint8Array<ArrayBuffer>;
  try {
    bytes = new Uint8Array(await fsp.readFile(file));
  } catch (error) {
    if (isMissing(error)) return null;
    throw error;
  }
  // Hashed on another thread, because a large module takes some time.
  const digest = await crypto.subtle.digest('SHA-256', bytes);
  return Buffer.from(digest).toString('hex') === sha256 ? bytes : null;
}

/** Gives a written file its name. */
type Place = (from: string, to: string) => Promise<void>;

/** Writes a stream to a file that has its final name only when it is complete. @throws ServiceError `body_too_large` */
async function receiveFile(
  file: string,
  source: Readable,
  { bytesMax, place, refusal }: { bytesMax: number; place: Place; refusal: string },
): Promise<StoredModule> {
  const hash = createHash('sha256');
  let size = 0;
  const partial = `${file}.part`;
  try {
    await streamToFile(source, partial, chunk => {
      size += chunk.length;
      if (size > bytesMax) throw new ServiceError('body_too_large', `${refusal} (${bytesMax} bytes)`);
      hash.update(chunk);
    });
    await place(partial, file);
  } catch (error) {
    await fsp.rm(partial, { force: true });
    throw error;
  }
  return { sha256: hash.digest('hex'), size };
}

/** The key of the version that a file belongs to. */
const keyOf = (file: string): string => path.basename(file).split('.')[0] ?? '';

/** Files on disk, of which those that are missing come from the database. */
class LocalFiles {
  readonly #contents: ModuleContents | null;
  /** Seen on disk. */
  readonly #present = new Set<string>();

  constructor(contents: ModuleContents | null) {
    this.#contents = contents;
  }

  async bring(file: string, sha256: string): Promise<string> {
    if (this.#present.has(file)) return file;
    const partial = `${file}.${randomBytes(6).toString('hex')}.part`;
    const isThere = fs.existsSync(file) || (await this.#contents?.fetch(sha256, file, partial)) === true;
    if (isThere) this.#present.add(file);
    return file;
  }

  /**
   * The bytes of a file. One that is damaged, by its disk or a hand, is replaced from the database.
   *
   * @throws Error when neither has those of the digest
   */
  async readChecked(file: string, sha256: string): Promise<Uint8Array<ArrayBuffer>> {
    const found = await readBytes(await this.bring(file, sha256), sha256);
    if (found !== null) return found;
    const partial = `${file}.${randomBytes(6).toString('hex')}.part`;
    const isFetched = (await this.#contents?.fetch(sha256, file, partial)) === true;
    const fetched = isFetched ? await readBytes(file, sha256) : null;
    if (fetched !== null) return fetched;
    throw new Error(
      `the stored module ${keyOf(file)} is not the one that was checked at upload; upload and install it again`,
    );
  }

  async share(client: Queryable, files: ReadonlyArray<readonly [file: string, sha256: string]>): Promise<void> {
    for (const [file, sha256] of files) if (fs.existsSync(file)) await this.#contents?.put(client, file, sha256);
  }

  async remove(file: string): Promise<void> {
    this.#present.delete(file);
    await fsp.rm(file, { force: true });
  }
}

/**
 * @param directory made when absent
 * @param contents what hosts have in common; null: the directory of `plugin dev`, whose files need not outlive a crash
 */
export function openModuleStorage(directory: string, contents: ModuleContents | null = null): ModuleStorage {
  fs.mkdirSync(directory, { recursive: true });
  // Several hosts may have this folder in common.
  const own = randomBytes(6).toString('hex');
  const at = (key: string, ending: string): string => {
    if (!/^[A-Za-z0-9_-]+$/.test(key)) throw new Error(`"${key}" is not a module key`);
    return path.join(directory, `${key}${ending}`);
  };
  const frontendPath = (key: string, sha256: string | null): string =>
    at(key, sha256 === null ? FRONTEND : `.${sha256}${FRONTEND}`);
  const files = new LocalFiles(contents);
  const place: Place = contents === null ? fsp.rename : moveIntoPlace;
  return {
    share: (client, key, { frontend, runnable, uploaded }) =>
      files.share(client, [
        [at(key, '.wasm'), uploaded],
        [at(key, RUNNABLE), runnable],
        ...(frontend === null ? [] : [[frontendPath(key, frontend), frontend] as const]),
      ]),
    bringUploaded: async (key, sha256) => void (await files.bring(at(key, '.wasm'), sha256)),
    bringFrontend: (key, sha256) => files.bring(frontendPath(key, sha256), sha256),
    receive: (key, source, bytesMax) =>
      receiveFile(at(key, '.wasm'), source, { bytesMax, place, refusal: 'the module is larger than http.max_module' }),
    receiveFrontend: (key, source, bytesMax) =>
      receiveFile(at(key, FRONTEND), source, {
        bytesMax,
        place,
        refusal: 'the frontend is larger than http.max_frontend',
      }),
    moveFrontend: (from, to, sha256) => place(at(from, FRONTEND), frontendPath(to, sha256)),
    removeFrontend: (key, sha256) => files.remove(frontendPath(key, sha256)),
    frontendPath,
    async writeRunnable(key, bytes) {
      const partial = at(key, `.run${RUNNABLE_FORMAT}.${own}.part`);
      await fsp.writeFile(partial, bytes);
      await place(partial, at(key, RUNNABLE));
    },
    readRunnable: (key, sha256) => files.readChecked(at(key, RUNNABLE), sha256),
    readUploaded: (key, sha256) => files.readChecked(at(key, '.wasm'), sha256),
    async writeStart(key, bytes) {
      const start = at(key, `.${own}${START}`);
      await fsp.writeFile(start, bytes);
      return { start, image: at(key, `.${own}${START_IMAGE}`) };
    },
    async removeStart(key) {
      for (const ending of [START, START_IMAGE]) await fsp.rm(at(key, `.${own}${ending}`), { force: true });
    },
    uploadedPath: key => at(key, '.wasm'),
    runnablePath: key => at(key, RUNNABLE),
    async remove(key) {
      for (const file of await fsp.readdir(directory))
        if (file.startsWith(`${key}.`)) await files.remove(path.join(directory, file));
    },
    async removeOrphans(known, ageMsMin) {
      let removed = 0;
      for (const file of await fsp.readdir(directory)) {
        const at = path.join(directory, file);
        if (known.has(keyOf(file)) && !PASSING.test(file)) continue;
        const stat = await fsp.stat(at).catch(() => undefined);
        if (stat === undefined || Date.now() - stat.mtimeMs < ageMsMin) continue;
        await files.remove(at);
        removed++;
      }
      return removed;
    },
  };
}
