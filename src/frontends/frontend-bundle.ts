import { pipeline, type Readable } from 'node:stream';
import { crc32, createInflateRaw } from 'node:zlib';
import yauzl, { type Entry, type ZipFile } from 'yauzl';
import { messageOf, ServiceError } from '../base/errors.ts';
import { LIMITS } from '../base/limits.ts';

/** A file of a bundle. */
export type BundleFile = {
  /** From the top of the bundle, parts joined by `/`. */
  path: string;
  size: number;
  packedSize: number;
  crc32: number;
  /** Whether its bytes are packed with deflate (RFC 1951); otherwise they stand as they are. */
  deflated: boolean;
  entry: Entry;
};

/** Facts about a valid bundle. */
export type BundleSummary = { files: number; bytes: number };

const INDEX = 'index.html';
const STORED = 0;
const DEFLATED = 8;
/** Kinds of Unix files in the upper half of the external attributes (APPNOTE 4.4.15, stat(2)). */
const FILE_KIND = 0o170_000;
const KINDS: ReadonlyMap<number, string> = new Map([
  [0o120_000, 'a symbolic link'],
  [0o010_000, 'a pipe'],
  [0o020_000, 'a device'],
  [0o060_000, 'a device'],
  [0o140_000, 'a socket'],
]);
/** Files packed tighter than this are made to fill memory; small ones of one letter are honest. */
const RATIO_MAX = 200;
const RATIO_FROM_BYTES = 1024 * 1024;
/** What Apple's archiver adds for itself. */
const FOREIGN = /^__MACOSX(\/|$)|(^|\/)\.DS_Store$/;
const UNWANTED = /[\u0000-\u001f\u007f\\:*?"<>|]/;

function refusal(where: string, message: string, cause?: unknown): ServiceError {
  return new ServiceError(
    'frontend_refused',
    `the frontend is refused: ${where === '' ? '' : `${where}: `}${message}`,
    {
      errors: [{ pointer: '/frontend', message: where === '' ? message : `${where}: ${message}` }],
      cause,
    },
  );
}

const shown = (name: string): string => JSON.stringify(name.length > 100 ? `${name.slice(0, 100)}…` : name);

/** Set where a name is said to be UTF-8 (APPNOTE 4.4.4, bit 11). */
const SAYS_UTF8 = 0x800;

/**
 * The path of an entry, as different archivers write it: in UTF-8 without saying so, or with letters and their marks apart (macOS), with
 * backslashes (PowerShell 5), with `./` before it (tar, 7-Zip), or in a field of its own (Info-ZIP). Bytes that are no UTF-8 are in the
 * code page of some machine: what APPNOTE says of them (437) is not what Windows writes.
 */
function pathOf({ extraFields, fileNameRaw, generalPurposeBitFlag }: Entry): string {
  const name = yauzl.getFileNameLowLevel(generalPurposeBitFlag | SAYS_UTF8, fileNameRaw, extraFields, false);
  return name.normalize('NFC').replace(/^(\.\/)+(?=.)/, '');
}

/** What is wrong with a path; null for nothing. */
function nameFault(name: string): string | null {
  if (Buffer.byteLength(name) > LIMITS.frontendPathBytesMax)
    return `the path has more than ${LIMITS.frontendPathBytesMax} bytes`;
  if (!name.isWellFormed() || name.includes('\ufffd'))
    return 'the path is not text in UTF-8; pack the files again with names in UTF-8 (7-Zip: -mcu=on)';
  if (UNWANTED.test(name)) return 'the path holds a character that no address should';
  const parts = name.replace(/\/$/, '').split('/');
  const leadsDown = parts.every(p => p !== '' && p !== '.' && p !== '..');
  return leadsDown ? null : 'the path must lead down from the top, part by part';
}

function assertName(name: string): void {
  const fault = nameFault(name);
  if (fault !== null) throw refusal(shown(name), fault);
}

function assertKind(entry: Entry, name: string): void {
  const refuse = (message: string): ServiceError => refusal(shown(name), message);
  const kind = KINDS.get((entry.externalFileAttributes >>> 16) & FILE_KIND);
  if (kind !== undefined) throw refuse(`is ${kind}; a frontend is made of files`);
  if (entry.isEncrypted()) throw refuse('is encrypted');
  if (entry.compressionMethod !== STORED && entry.compressionMethod !== DEFLATED)
    throw refuse(`is packed with method ${entry.compressionMethod}; deflate and none are understood`);
  if (
    entry.uncompressedSize > RATIO_FROM_BYTES &&
    entry.uncompressedSize > Math.max(1, entry.compressedSize) * RATIO_MAX
  )
    throw refuse(`unpacks to more than ${RATIO_MAX} times its size`);
}

/**
 * The list of files, after every check that needs no unpacking.
 *
 * @param isStored it has passed the checks of the release that took it: entries that this one would refuse for their names are left out
 * @throws ServiceError `frontend_refused`
 */
async function readFiles(zip: ZipFile, isStored: boolean): Promise<Map<string, BundleFile>> {
  if (zip.entryCount > LIMITS.frontendFilesMax)
    throw refusal('', `it has ${zip.entryCount} entries; at most ${LIMITS.frontendFilesMax} are allowed`);
  const files = new Map<string, BundleFile>();
  const folders = new Set<string>();
  let bytes = 0;
  for await (const entry of zip.eachEntry()) {
    const name = pathOf(entry);
    // The folder itself, from tools that write `./` first.
    if (name === './') continue;
    if (isStored && (nameFault(name) !== null || files.has(name))) continue;
    assertName(name);
    assertKind(entry, name);
    if (FOREIGN.test(name)) continue;
    const parts = name.split('/');
    for (let k = 1; k < parts.length; k++) folders.add(parts.slice(0, k).join('/'));
    if (name.endsWith('/')) continue;
    if (files.has(name)) throw refusal(shown(name), 'stands in it twice');
    bytes += entry.uncompressedSize;
    if (bytes > LIMITS.frontendBytesMax) throw refusal('', `it unpacks to more than ${LIMITS.frontendBytesMax} bytes`);
    files.set(name, {
      path: name,
      size: entry.uncompressedSize,
      packedSize: entry.compressedSize,
      crc32: entry.crc32,
      deflated: entry.compressionMethod === DEFLATED,
      entry,
    });
  }
  for (const folder of folders) if (files.has(folder)) throw refusal(shown(folder), 'is a file and a folder');
  if (!files.has(INDEX)) {
    const other = [...files.keys()].find(f => f.endsWith(`/${INDEX}`));
    throw refusal(
      '',
      `it has no ${INDEX} at its top${other === undefined ? '' : `; there is ${shown(other)}: pack what that folder holds, not the folder`}`,
    );
  }
  return files;
}

async function openZip(file: string): Promise<ZipFile> {
  try {
    return await yauzl.openPromise(file, { lazyEntries: true, autoClose: false });
  } catch (error) {
    const why = messageOf(error);
    const said = /end of central directory/i.test(why) ? 'it is another file, or its end is missing' : why;
    throw refusal('', `it is no ZIP file that can be read: ${said}`, error);
  }
}

/** The library's refusals of single entries, in our words. */
const inWords = (error: unknown): unknown =>
  error instanceof ServiceError ? error : refusal('', messageOf(error), error);

/**
 * The frontend of a plugin version, served out of its ZIP: nothing is ever unpacked into the file system, so nothing in
 * it can name a place there.
 */
export class FrontendBundle {
  readonly files: ReadonlyMap<string, BundleFile>;
  readonly #zip: ZipFile;

  private constructor(zip: ZipFile, files: ReadonlyMap<string, BundleFile>) {
    this.#zip = zip;
    this.files = files;
  }

  /**
   * @param isStored it was taken before, perhaps by an earlier release whose rules for names were others
   * @throws ServiceError `frontend_refused` when the ZIP is not what we serve
   */
  static async open(file: string, isStored = false): Promise<FrontendBundle> {
    const zip = await openZip(file);
    try {
      return new FrontendBundle(zip, await readFiles(zip, isStored));
    } catch (error) {
      zip.close();
      throw inWords(error);
    }
  }

  /** Bytes of a file, unpacked, or packed as they lie there. */
  async stream(file: BundleFile, packed: boolean): Promise<Readable> {
    return await this.#zip.openReadStreamPromise(file.entry, packed ? { decodeFileData: false } : {});
  }

  /**
   * Unpacks everything once, into nothing: every file must have the size and the checksum the list gives it, and nothing may
   * follow what is packed, because a browser that is sent the packed form refuses that.
   *
   * @throws ServiceError `frontend_refused` naming the file
   */
  async check(): Promise<BundleSummary> {
    let bytes = 0;
    for (const file of this.files.values()) {
      const unpacked = await this.#unpack(file).catch((error: unknown) => {
        throw refusal(shown(file.path), messageOf(error), error);
      });
      if (unpacked.size !== file.size) {
        const amount = unpacked.size > file.size ? 'more' : 'fewer';
        throw refusal(shown(file.path), `unpacks to ${amount} bytes than the ${file.size} that the list of files says`);
      }
      if (unpacked.sum !== file.crc32)
        throw refusal(shown(file.path), 'has another checksum than the list of files says');
      if (unpacked.packedSize !== file.packedSize)
        throw refusal(shown(file.path), `has ${file.packedSize - unpacked.packedSize} bytes behind what is packed`);
      bytes += file.size;
    }
    return { files: this.files.size, bytes };
  }

  /** @returns size and checksum of a file, until it grows beyond the stated size, and how many packed bytes that took */
  async #unpack(file: BundleFile): Promise<{ size: number; sum: number; packedSize: number }> {
    const packed = await this.stream(file, true);
    const inflate = file.deflated ? createInflateRaw() : null;
    // What is wrong with the first stream ends the second, which is read.
    if (inflate !== null) pipeline(packed, inflate, () => {});
    let [size, sum] = [0, 0];
    for await (const chunk of (inflate ?? packed) as AsyncIterable<Buffer>) {
      size += chunk.length;
      sum = crc32(chunk, sum);
      if (size > file.size) break;
    }
    return { size, sum, packedSize: inflate?.bytesWritten ?? size };
  }

  close(): void {
    this.#zip.close();
  }
}
