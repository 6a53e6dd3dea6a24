import { createHash } from 'node:crypto';
import fsp from 'node:fs/promises';
import { Readable } from 'node:stream';
import { promisify } from 'node:util';
import { brotliCompress, constants, inflateRaw } from 'node:zlib';
import mime from 'mime';
import { type BoundedCache, boundedCache } from '../base/bounded-cache.ts';
import { LIMITS } from '../base/limits.ts';
import { makeSemaphore } from '../base/semaphore.ts';
import { type BundleFile, FrontendBundle } from './frontend-bundle.ts';

/** The frontend of a version as it is stored. */
export type StoredFrontend = { path: string; sha256: string };

/** How the bytes of a file may travel; `identity` as they are. */
export type Coding = 'br' | 'gzip' | 'identity';

/** A file ready to be sent. */
export type FrontendFile = {
  type: string;
  /** Without quotes; of the file, whatever its coding. */
  tag: string;
  /** Whether its name changes with its content, so that it may be kept for ever. */
  hashed: boolean;
  /** In the coding asked for, or another one the client takes. */
  coding: Coding;
  length: number;
  body: Uint8Array | (() => Promise<Readable>);
};

type Cached = {
  file: BundleFile;
  tag: string;
  identity: Buffer;
  gzip: Buffer | null;
  br: Buffer | null;
  /** Whether the brotli form is made, or being made. */
  begun: boolean;
};

const inflate = promisify(inflateRaw);
const brotli = promisify(brotliCompress);
/** Good for what is made once and sent often. */
const BROTLI_QUALITY = 5;
/** Smaller files gain nothing. */
const PACKED_FROM_BYTES = 512;

/** Types that are text inside; the others are packed already. */
const COMPRESSIBLE =
  /^(text\/|application\/(javascript|json|manifest\+json|xml|wasm|[\w.-]+\+(json|xml))|image\/(svg\+xml|bmp|x-icon|vnd\.microsoft\.icon)|font\/(ttf|otf))/;

/**
 * Whether a build tool has put a digest of the content into the name: eight or more hexadecimal digits, or in the folder Vite puts its files
 * into eight letters and digits, that are no word, number or size. What is not recognised is asked for again, which is always right.
 */
export function isHashed(path: string): boolean {
  const [, digest = '', type = ''] = /[.-]([A-Za-z0-9]+)\.([A-Za-z0-9]+)(?:\.map)?$/.exec(path) ?? [];
  if (/^html?$/i.test(type)) return false;
  if (/^[0-9a-f]{8,64}$/.test(digest)) return /\d/.test(digest) && /[a-f]/.test(digest);
  if (!/(^|\/)assets\//.test(path) || digest.length !== 8) return false;
  return /\d/.test(digest) && /[A-Za-z]/.test(digest) && !/^([A-Za-z]+\d+|\d+[A-Za-z]+|\d+x\d+)$/.test(digest);
}

function typeOf(path: string): string {
  const type = mime.getType(path) ?? 'application/octet-stream';
  return /^(text\/|application\/(javascript|json))/.test(type) ? `${type}; charset=utf-8` : type;
}

async function bufferOf(source: Readable): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of source as AsyncIterable<Buffer>) chunks.push(chunk);
  return Buffer.concat(chunks);
}

const GZIP_HEAD = Buffer.from([0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255]);
const GZIP_TAIL_BYTES = 8;

/** What follows the packed bytes in a gzip member (RFC 1952 section 2.3.1). */
function gzipTail(file: BundleFile): Buffer {
  const tail = Buffer.alloc(GZIP_TAIL_BYTES);
  tail.writeUInt32LE(file.crc32, 0);
  tail.writeUInt32LE(file.size % 2 ** 32, 4);
  return tail;
}

/** What a ZIP keeps of a file, as a gzip member: the same packed bytes between another head and tail. */
const gzipOf = (file: BundleFile, packed: Buffer): Buffer => Buffer.concat([GZIP_HEAD, packed, gzipTail(file)]);

function gzipStream(file: BundleFile, packed: Readable): Readable {
  return Readable.from(
    (async function* () {
      yield GZIP_HEAD;
      yield* packed as AsyncIterable<Buffer>;
      yield gzipTail(file);
    })(),
    { objectMode: false },
  );
}

/** Gives the files of frontends, from memory where they fit. */
export class Frontends {
  readonly #bundles: BoundedCache<string, { bundle: Promise<FrontendBundle> }>;
  readonly #files: BoundedCache<string, { cached: Promise<Cached>; weight: number }>;

  /** One at a time: the threads that pack also read files and check passwords. */
  readonly #packing = makeSemaphore(1);

  constructor() {
    this.#bundles = boundedCache({
      max: LIMITS.frontendsOpenMax,
      dropped: ({ bundle }) => {
        // Answers under way still read from it.
        setTimeout(() => void bundle.then(b => b.close()).catch(() => {}), 60_000).unref();
      },
    });
    this.#files = boundedCache({
      max: LIMITS.frontendFilesMax,
      weightMax: LIMITS.frontendCacheBytesMax,
      weightOf: entry => entry.weight,
    });
  }

  /** @throws Error when the stored bytes are not the ones that were checked at upload */
  async #open({ path, sha256 }: StoredFrontend): Promise<FrontendBundle> {
    const known = this.#bundles.get(sha256);
    if (known !== undefined) return await known.bundle;
    const bundle = (async () => {
      const digest = await crypto.subtle.digest('SHA-256', await fsp.readFile(path));
      if (Buffer.from(digest).toString('hex') !== sha256)
        throw new Error(`the stored frontend ${path} is not the one that was checked at upload; upload it again`);
      return await FrontendBundle.open(path, true);
    })();
    this.#bundles.set(sha256, { bundle });
    bundle.catch(() => this.#bundles.delete(sha256));
    return await bundle;
  }

  /**
   * One file of a frontend.
   *
   * @param path from the top of the bundle
   * @param codings what the client takes
   * @returns undefined when there is none
   */
  async find(stored: StoredFrontend, path: string, codings: ReadonlySet<Coding>): Promise<FrontendFile | undefined> {
    const bundle = await this.#open(stored);
    const file = bundle.files.get(path) ?? bundle.files.get(path.normalize('NFC'));
    if (file === undefined) return undefined;
    const type = typeOf(path);
    const common = { type, hashed: isHashed(path) };
    const packs = COMPRESSIBLE.test(type) && file.size >= PACKED_FROM_BYTES;
    if (file.size > LIMITS.frontendCachedFileBytesMax) {
      const tag = `${stored.sha256.slice(0, 16)}-${file.crc32.toString(16)}`;
      if (!packs || !file.deflated || !codings.has('gzip'))
        return { ...common, tag, coding: 'identity', length: file.size, body: () => bundle.stream(file, false) };
      const length = GZIP_HEAD.length + file.packedSize + GZIP_TAIL_BYTES;
      return {
        ...common,
        tag,
        coding: 'gzip',
        length,
        body: async () => gzipStream(file, await bundle.stream(file, true)),
      };
    }
    const cached = await this.#cached(stored, bundle, file);
    if (packs && codings.has('br')) this.#packLater(cached);
    const [coding, body] = packs ? bestOf(cached, codings) : (['identity', cached.identity] as const);
    return { ...common, tag: cached.tag, coding, length: body.length, body };
  }

  async #cached(stored: StoredFrontend, bundle: FrontendBundle, file: BundleFile): Promise<Cached> {
    const key = `${stored.sha256} ${file.path}`;
    const known = this.#files.get(key);
    if (known !== undefined) return await known.cached;
    const cached = (async (): Promise<Cached> => {
      const packed = await bufferOf(await bundle.stream(file, true));
      const identity = file.deflated ? await inflate(packed) : packed;
      const tag = createHash('sha256').update(identity).digest('hex').slice(0, 32);
      return { file, tag, identity, gzip: file.deflated ? gzipOf(file, packed) : null, br: null, begun: false };
    })();
    // The brotli form comes later and is smaller than the gzip one.
    this.#files.set(key, { cached, weight: file.size + 2 * file.packedSize + 1000 });
    cached.catch(() => this.#files.delete(key));
    return await cached;
  }

  /** The brotli form is smaller and takes a while: until it is there the one of the ZIP is sent. */
  #packLater(c: Cached): void {
    if (c.begun) return;
    c.begun = true;
    const params = {
      [constants.BROTLI_PARAM_QUALITY]: BROTLI_QUALITY,
      [constants.BROTLI_PARAM_SIZE_HINT]: c.identity.length,
    };
    this.#packing(async () => {
      c.br = await brotli(c.identity, { params });
    })
      // The others are as good.
      .catch(() => {});
  }

  /** Lets go of every bundle. */
  async close(): Promise<void> {
    const open = [...this.#bundles.values()];
    this.#bundles.clear();
    for (const { bundle } of open) await bundle.then(b => b.close()).catch(() => {});
  }
}

/** The smallest form the client takes of those there are. */
function bestOf(c: Cached, codings: ReadonlySet<Coding>): [Coding, Buffer] {
  if (codings.has('br') && c.br !== null && c.br.length < c.identity.length) return ['br', c.br];
  if (codings.has('gzip') && c.gzip !== null && c.gzip.length < c.identity.length) return ['gzip', c.gzip];
  return ['identity', c.identity];
}
