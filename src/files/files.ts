import { randomBytes } from 'node:crypto';
import type { Readable } from 'node:stream';
import { type Actor, appendAudit } from '../audit/audit-log.ts';
import { ServiceError } from '../base/errors.ts';
import { LIMITS } from '../base/limits.ts';
import type { Database } from '../db/database.ts';
import type { BodySource } from '../http/message.ts';
import type { FileDescription } from './file-kind.ts';
import {
  appendPendingFile,
  type FileQuotas,
  type FileRecord,
  findFile,
  type StoreKind,
  setDeleted,
  setReady,
  setRemoved,
  setUploaded,
} from './file-records.ts';
import type { FileReader, FileStorage, UploadTarget } from './file-storage.ts';
import type { UploadGrant } from './signed-address.ts';
import type { DiskStorage } from './storage-disk.ts';

export type FilesOptions = {
  db: Database;
  disk: DiskStorage;
  /** Where new files go when one is configured. */
  s3: FileStorage | null;
  /** Largest file a user may upload, bytes. */
  uploadBytesMax: number;
  quotas: FileQuotas;
  /** How long an upload may take from its announcement to its completion, seconds. */
  uploadSeconds: number;
  /** Whether every client with its address may read a file for some minutes. */
  directLinks: boolean;
  onError(error: unknown, what: string): void;
};

export type Announced = { file: FileRecord; target: UploadTarget; expiresAt: Date };

/** What a refusal says of every file that is not the caller's, whether there is one or not (docs/files.md "Who may read"). */
const unknownFile = (): ServiceError => new ServiceError('not_found', 'there is no such file');

const overtaken = (): ServiceError =>
  new ServiceError('conflict', 'the file was completed or deleted while its bytes came in');

const expired = (): ServiceError =>
  new ServiceError(
    'expired',
    'the file was deleted, or its upload not completed in time; announce it again: POST /api/files/init',
  );

/** Files handed to plugins: announced, uploaded, completed, deleted (docs/files.md "Upload"), and stored by plugins themselves. */
export class Files {
  readonly #options: FilesOptions;
  /** Uploads under way here, by file: whose they are, and how they are given up. */
  readonly #receiving = new Map<string, { userId: number | null; giveUp: AbortController }>();

  constructor(options: FilesOptions) {
    this.#options = options;
  }

  #storage(kind: StoreKind): FileStorage {
    const { disk, s3 } = this.#options;
    if (kind === 'disk') return disk;
    if (s3 !== null) return s3;
    throw new ServiceError('unavailable', 'the file lies in an S3 store, and none is configured (s3.bucket)');
  }

  /** Adds a pending file. @param size in bytes */
  async #append(
    owner: { pluginId: string; userId: number | null; chat: string | null },
    d: FileDescription,
    size: number,
  ): Promise<FileRecord> {
    const { db, quotas, s3, uploadSeconds } = this.#options;
    const id = randomBytes(16).toString('hex');
    const store = s3 === null ? 'disk' : 's3';
    return await db.withTransaction(client =>
      appendPendingFile(client, { id, ...owner, ...d, size, store, pendingSeconds: uploadSeconds }, quotas),
    );
  }

  /**
   * A user announces a file and gets the address to send its bytes to.
   *
   * @param base address of this service as the client sees it
   * @throws ServiceError `body_too_large`, `quota_exceeded`
   */
  async announce(
    owner: { pluginId: string; userId: number },
    d: FileDescription,
    size: number,
    base: string,
  ): Promise<Announced> {
    const { uploadBytesMax } = this.#options;
    if (size > uploadBytesMax)
      throw new ServiceError('body_too_large', `the file has ${size} bytes; http.max_upload allows ${uploadBytesMax}`, {
        errors: [
          { pointer: '/size', message: `must be at most ${uploadBytesMax}`, code: 'too_large', limit: uploadBytesMax },
        ],
      });
    const file = await this.#append({ ...owner, chat: null }, d, size);
    const expiresAt = file.expiresAt ?? new Date(0);
    return { file, expiresAt, target: await this.#storage(file.store).uploadTarget(file, expiresAt, base) };
  }

  /**
   * Takes in the bytes a signed address was made for.
   *
   * @returns their SHA-256
   * @throws ServiceError when the file does not wait for bytes, or these are not the ones announced
   */
  async receive(grant: UploadGrant, source: BodySource): Promise<string> {
    const { db, disk } = this.#options;
    const file = await this.find(grant.id);
    if (file === undefined || file.state === 'deleted' || file.cancelled) throw unknownFile();
    if (file.state === 'ready')
      throw new ServiceError('conflict', 'the upload of this file is complete; its bytes stay as they are');
    if (file.store !== 'disk') throw unknownFile();
    if (this.#receiving.has(file.id))
      throw new ServiceError('conflict', 'another upload to this address is under way', {
        headers: [['Retry-After', '2']],
      });
    const ofUser = [...this.#receiving.values()].filter(r => r.userId === file.userId).length;
    const isFull = ofUser >= LIMITS.uploadsAtOncePerUserMax;
    if (isFull || this.#receiving.size >= LIMITS.uploadsAtOnceMax) {
      const { uploadsAtOnceMax, uploadsAtOncePerUserMax } = LIMITS;
      const most = isFull ? `${uploadsAtOncePerUserMax} of one user` : `${uploadsAtOnceMax} here`;
      throw new ServiceError('unavailable', `too many uploads are under way, at most ${most}; try again`, {
        headers: [['Retry-After', '5']],
      });
    }
    const giveUp = new AbortController();
    this.#receiving.set(file.id, { userId: file.userId, giveUp });
    try {
      const digest = await disk.receive(file.id, file.size, source, grant.expires * 1000, giveUp.signal);
      // Deleted while its bytes came in, and they with it.
      if (digest === null) throw overtaken();
      const before = await setUploaded(db, file.id, digest);
      // Only the last of several uploads to one address is kept; bytes that came too late belong to no file.
      if (before !== digest && before !== null) await disk.removeUpload(file.id, before ?? digest);
      if (before === undefined) throw overtaken();
      return digest;
    } finally {
      this.#receiving.delete(file.id);
    }
  }

  /**
   * The user says that the bytes are there: from now on the plugin may read them. May be repeated.
   *
   * @throws ServiceError `not_uploaded` while there are none, `expired`, `not_found` also for another user's file
   */
  async complete(userId: number, id: string): Promise<FileRecord> {
    const file = await this.find(id);
    if (file === undefined || file.userId !== userId) throw unknownFile();
    if (file.state === 'ready') return file;
    if (file.state === 'deleted' || file.cancelled || ended(file)) throw expired();
    const storage = this.#storage(file.store);
    // No transaction is open meanwhile: an S3 store may take its time, and connections are few.
    const finished = await storage.finish(file);
    if (finished.kind === 'missing' || finished.kind === 'different') {
      // Another completion was faster, which removes what was uploaded.
      const other = await this.find(id);
      if (other?.state === 'ready') return other;
    }
    if (finished.kind === 'missing')
      throw new ServiceError('not_uploaded', 'nothing was uploaded yet: send the bytes to upload_url first');
    if (finished.kind === 'different')
      throw new ServiceError('upload_mismatch', `what was uploaded ${finished.what}; upload it again`);
    const ready = await setReady(this.#options.db, id, finished.digest, null);
    if (ready !== undefined) {
      // The rest of the upload has no use; should this fail, cleaning removes it.
      await storage.settle(ready).catch((error: unknown) => this.report(error, 'removing what was uploaded'));
      return ready;
    }
    // Another completion was faster, or it was deleted: what this one brought there belongs to no file, unless it is the same.
    const now = await this.find(id);
    if (now?.state !== 'ready' || now.digest !== finished.digest) await storage.discard(id, finished.digest);
    if (now?.state === 'ready') return now;
    throw expired();
  }

  /** Deletes a user's file, at any point. What is deleted already stays so. @throws ServiceError `not_found` */
  async remove(userId: number, id: string): Promise<void> {
    const file = await this.find(id);
    if (file === undefined || file.userId !== userId) throw unknownFile();
    if (file.state === 'deleted' || file.cancelled) return;
    await this.#deleted(file, await setDeleted(this.#options.db, id));
  }

  /** Stops the upload of a file whose record was just marked as deleted. @param mayGo whether its bytes may go as well */
  async #deleted(file: FileRecord, mayGo: boolean): Promise<void> {
    this.#receiving.get(file.id)?.giveUp.abort(overtaken());
    if (mayGo) await this.#removeBytes(file);
  }

  /** At once; should it fail, cleaning does it later. */
  async #removeBytes(file: FileRecord): Promise<void> {
    const { db, onError } = this.#options;
    try {
      await this.#storage(file.store).remove(file);
      await setRemoved(db, [file.id]);
    } catch (error) {
      onError(error, 'removing the bytes of a deleted file');
    }
  }

  report(error: unknown, what: string): void {
    this.#options.onError(error, what);
  }

  /** An administrator deletes any file of a plugin. @throws ServiceError `not_found` */
  async removeAny(pluginId: string, id: string, by: Actor): Promise<void> {
    const { db } = this.#options;
    const file = await this.find(id);
    if (file === undefined || file.pluginId !== pluginId || file.state === 'deleted') throw unknownFile();
    const mayGo = await db.withTransaction(async client => {
      const { fileType, mimeType, name, size, state, userId } = file;
      await appendAudit(client, by, {
        action: 'file.delete',
        objectType: 'file',
        objectId: id,
        before: { plugin_id: pluginId, user_id: userId, name, mime_type: mimeType, file_type: fileType, size, state },
      });
      return await setDeleted(client, id);
    });
    await this.#deleted(file, mayGo);
  }

  /** @param id any text a caller takes for one */
  async find(id: string): Promise<FileRecord | undefined> {
    return ID.test(id) ? await findFile(this.#options.db, id) : undefined;
  }

  /** A file that a signed address was made for. @throws ServiceError `not_found` when it is not ready any more */
  async load(id: string): Promise<FileRecord> {
    const file = await this.find(id);
    if (file === undefined || file.state !== 'ready' || file.store !== 'disk' || ended(file)) throw unknownFile();
    return file;
  }

  /** @throws ServiceError `not_found` when the file was deleted a moment ago */
  async stream(file: FileRecord, from: number, to: number): Promise<Readable> {
    try {
      return await this.#options.disk.stream(file, from, to);
    } catch (error) {
      if ((await this.find(file.id))?.state !== 'ready') throw unknownFile();
      throw error;
    }
  }

  openReader(file: FileRecord): FileReader {
    return this.#storage(file.store).openReader(file);
  }

  /** An address at which every client may read the file for some minutes; empty when there are none here (docs/files.md "Links"). */
  async link(file: FileRecord, base: string, nowMs: number): Promise<string> {
    if (!this.#options.directLinks) return '';
    const end = nowMs + LIMITS.fileLinkMs;
    const expiresAt = new Date(Math.min(end, file.expiresAt?.getTime() ?? end));
    return await this.#storage(file.store).downloadUrl(file, expiresAt, base);
  }

  /**
   * A plugin stores a file of its own.
   *
   * @param ttlMs how long it is kept; null for ever
   * @param isWanted whether its id still reaches the plugin; otherwise it is removed again
   * @throws ServiceError `quota_exceeded`
   */
  store(
    pluginId: string,
    d: FileDescription,
    bytes: Uint8Array,
    ttlMs: number | null,
    isWanted: () => boolean,
  ): Promise<FileRecord> {
    return this.#store({ pluginId, userId: null, chat: null }, d, bytes, ttlMs, isWanted);
  }

  /** A file that came in a message to a plugin. @param chat as `CHANNEL:chat` @throws ServiceError `quota_exceeded` */
  storeOfMessage(
    of: { pluginId: string; userId: number | null; chat: string },
    d: FileDescription,
    bytes: Uint8Array,
  ): Promise<FileRecord> {
    return this.#store(of, d, bytes, LIMITS.messageFileMs);
  }

  async #store(
    owner: { pluginId: string; userId: number | null; chat: string | null },
    d: FileDescription,
    bytes: Uint8Array,
    ttlMs: number | null,
    isWanted: () => boolean = () => true,
  ): Promise<FileRecord> {
    const { db } = this.#options;
    const file = await this.#append(owner, d, bytes.length);
    let digest: string | null = null;
    try {
      digest = await this.#storage(file.store).write(file, bytes);
      const ready = isWanted() ? await setReady(db, file.id, digest, ttlMs) : undefined;
      if (ready === undefined) throw new ServiceError('not_found', 'the file was deleted meanwhile');
      return ready;
    } catch (error) {
      await setDeleted(db, file.id);
      await this.#removeBytes({ ...file, digest });
      throw error;
    }
  }
}

/** 128 random bits in hexadecimal. */
const ID = /^[0-9a-f]{32}$/;

const ended = (file: FileRecord): boolean => file.expiresAt !== null && file.expiresAt.getTime() <= Date.now();
