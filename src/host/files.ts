import { HOST_ERROR } from '../abi/host-functions.ts';
import { type HostResult, hostError } from '../abi/host-result.ts';
import { ServiceError } from '../base/errors.ts';
import { LIMITS } from '../base/limits.ts';
import { type FileAsker, mayRead } from '../files/file-access.ts';
import { type FileRecord, fileRefJson } from '../files/file-records.ts';
import type { FileReader } from '../files/file-storage.ts';
import type { Files } from '../files/files.ts';
import type { HostArguments, HostHandler, PermittedCall } from './host-functions.ts';
import { Refusal } from './refusal.ts';
import { parseStoreOrder } from './store-order.ts';

/**
 * Files for plugins (permission `file`, docs/files.md "Who may read"). A file the execution may not read is "not
 * found".
 */

/** Flag in the result of `file_read_into` for the last chunk (docs/abi.md). */
const END_OF_FILE = 1 << 30;
/** Files one execution may have open at a time; to open another, the one opened first is closed. */
const OPEN_MAX = 16;

/** A file an execution may read, with its reader while it is open. */
type OpenFile = { record: FileRecord; reader: FileReader | null };

const refJson = (f: FileRecord): string => JSON.stringify(fileRefJson(f));

const textResult = (text: string): HostResult => ({ code: Buffer.byteLength(text), data: text });

/** A refusal as a result for the plugin. */
function refused(error: unknown): HostResult {
  if (error instanceof Refusal) return hostError(error.code, error.message);
  if (!(error instanceof ServiceError)) throw error;
  if (error.code === 'validation_failed') return hostError(HOST_ERROR.invalid, error.message);
  if (error.code === 'not_found') return hostError(HOST_ERROR.notFound, error.message);
  if (error.code === 'quota_exceeded') return hostError(HOST_ERROR.tooLarge, error.message);
  if (error.code === 'unavailable' || error.code === 'storage_full')
    return hostError(HOST_ERROR.unavailable, error.message);
  throw error;
}

/** The user and plugin whose rights decide which files an execution reads. */
export const askerOf = (call: PermittedCall): FileAsker => ({
  pluginId: call.plugin.id,
  kind: call.kind,
  userId: call.userId,
  chat: call.message?.chat ?? null,
});

/**
 * The open files of executions. An execution looks a file up once, so it can read a file to its end that is deleted
 * meanwhile.
 */
class OpenFiles {
  readonly #files: Files;
  readonly #failed: (error: unknown) => void;
  readonly #byCall = new WeakMap<PermittedCall, Map<string, OpenFile>>();

  constructor(files: Files) {
    this.#files = files;
    this.#failed = error => files.report(error, 'closing a file');
  }

  /** Finds the file if this execution may read it. */
  async find(call: PermittedCall, id: string): Promise<OpenFile | undefined> {
    let open = this.#byCall.get(call);
    if (open === undefined) {
      open = new Map();
      this.#byCall.set(call, open);
    }
    const known = open.get(id);
    if (known !== undefined) return known;
    const record = await this.#files.find(id);
    if (record === undefined || !mayRead(record, askerOf(call), Date.now())) return undefined;
    const file: OpenFile = { record, reader: null };
    open.set(id, file);
    for (const [first, f] of open) {
      if (open.size <= OPEN_MAX) break;
      open.delete(first);
      // Before the new one is opened, so that there are never more.
      await f.reader?.close().catch(this.#failed);
    }
    return file;
  }

  reader(call: PermittedCall, file: OpenFile): FileReader {
    if (file.reader !== null) return file.reader;
    const reader = this.#files.openReader(file.record);
    file.reader = reader;
    call.atEnd(() => {
      reader.close().catch(this.#failed);
    });
    return reader;
  }

  /** Reads one chunk: at most 1 MB, and not beyond the end of the file. */
  async readChunk(
    call: PermittedCall,
    args: HostArguments,
    bytesMax: number,
  ): Promise<HostResult | { bytes: Uint8Array<ArrayBuffer>; atEnd: boolean }> {
    const offset = args.long(1);
    if (offset < 0) return hostError(HOST_ERROR.invalid, 'the offset is below zero');
    const file = await this.find(call, args.text(0));
    if (file === undefined) return hostError(HOST_ERROR.notFound);
    const { size } = file.record;
    const length = Math.max(0, Math.min(bytesMax, LIMITS.fileChunkBytesMax, size - offset));
    const atEnd = offset + length >= size;
    if (length === 0) return { bytes: new Uint8Array(0), atEnd };
    try {
      return { bytes: await this.reader(call, file).read(offset, length), atEnd };
    } catch (error) {
      const now = await this.#files.find(file.record.id);
      return now?.state === 'ready' ? refused(error) : hostError(HOST_ERROR.notFound);
    }
  }
}

/**
 * @param base public address of this service, for links
 */
export function fileHandlers(
  files: Files,
  base: () => string,
): Record<'file_meta' | 'file_url' | 'file_store' | 'file_read' | 'file_read_into', HostHandler> {
  const opened = new OpenFiles(files);
  return {
    async file_meta(call, args) {
      const file = await opened.find(call, args.text(0));
      return file === undefined ? hostError(HOST_ERROR.notFound) : textResult(refJson(file.record));
    },
    async file_url(call, args) {
      const file = await opened.find(call, args.text(0));
      if (file === undefined) return hostError(HOST_ERROR.notFound);
      try {
        return textResult(await files.link(file.record, base(), Date.now()));
      } catch (error) {
        return refused(error);
      }
    },
    async file_store(call, args) {
      let hasEnded = false;
      const end = (): void => {
        hasEnded = true;
      };
      call.atEnd(end);
      try {
        const { description, ttlMs } = parseStoreOrder(args.text(0));
        const file = await files.store(call.plugin.id, description, args.bytes(1), ttlMs, () => !hasEnded);
        return textResult(refJson(file));
      } catch (error) {
        return refused(error);
      } finally {
        call.notAtEnd(end);
      }
    },
    async file_read(call, args) {
      const bytesMax = args.int(2);
      if (bytesMax < 0) return hostError(HOST_ERROR.invalid, 'the number of bytes is below zero');
      const chunk = await opened.readChunk(call, args, bytesMax === 0 ? LIMITS.fileChunkBytesMax : bytesMax);
      if ('code' in chunk) return chunk;
      const data = new Uint8Array(chunk.bytes.length + 1);
      data[0] = chunk.atEnd ? 1 : 0;
      data.set(chunk.bytes, 1);
      return { code: data.length, handedOver: data };
    },
    async file_read_into(call, args) {
      const chunk = await opened.readChunk(call, args, args.int(2));
      if ('code' in chunk) return chunk;
      const { bytes } = chunk;
      return { code: chunk.atEnd ? bytes.length | END_OF_FILE : bytes.length, handedOver: bytes };
    },
  };
}
