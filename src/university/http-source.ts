import fsp from 'node:fs/promises';
import path from 'node:path';
import { Readable } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import { ServiceError } from '../base/errors.ts';
import { parseExactJson } from '../base/exact-json.ts';
import { LIMITS } from '../base/limits.ts';
import { retryAfterMs } from '../base/retry-after.ts';
import { streamToFile } from '../base/stream-to-file.ts';
import { type Bookmark, type DataSource, type Fetched, SourceError, type Taker } from './data-source.ts';
import { ENTITIES, type Entity } from './entities.ts';
import { jsonElements } from './json-elements.ts';
import { readChunks } from './spool.ts';

export type HttpSourceOptions = {
  baseUrl: string;
  /** Sent as `Authorization: Bearer`; empty for none. */
  token: string;
  /** For one page, from the request to its last byte. */
  pageMs: number;
  /** Where pages lie while they are read. */
  directory: string;
  /** Wait before the second attempt; each further one waits twice as long. */
  firstWaitMs: number;
};

const ATTEMPTS_MAX = 4;
const RETRY_AFTER_MS_MAX = 30_000;
const PAGES_MAX = 100_000;
/** A page that is an object is read whole. */
const OBJECT_PAGE_BYTES_MAX = 32 * 1024 * 1024;

/** Trying again may help. */
class Passing extends SourceError {
  readonly waitMs: number | null;
  constructor(message: string, waitMs: number | null = null) {
    super(message);
    this.waitMs = waitMs;
  }
}

/** Counts what comes out of a body, unpacked, so that no answer fills the disk. */
function bounded(url: URL): (chunk: Buffer) => void {
  let size = 0;
  return chunk => {
    size += chunk.length;
    if (size > LIMITS.universityListBytesMax)
      throw new SourceError(
        `a page of ${url.pathname} is larger than ${LIMITS.universityListBytesMax} bytes (universityListBytesMax)`,
      );
  };
}

/** What went wrong on the way, without the words of libraries, which quote addresses and what they read. */
function wayOf(error: unknown): string {
  const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error;
  if (!(cause instanceof Error)) return 'it failed';
  return 'code' in cause ? String(cause.code) : cause.name;
}

/** Times of changes are in whole seconds. */
const SAME_TIME_MS = 1000;

/**
 * When a list was changed, if that tells it from a later one: a list that changes twice in a second has the same time twice (RFC 9110
 * section 8.8.2.2).
 */
function lastModifiedOf(headers: Headers): string | null {
  const text = headers.get('last-modified');
  const said = Date.parse(headers.get('date') ?? '');
  const age = (Number.isNaN(said) ? Date.now() : said) - Date.parse(text ?? '');
  return age >= SAME_TIME_MS ? text : null;
}

type Page = { next: string | null; etag: string | null; lastModified: string | null };

/** How long the source asks to wait, as far as a pull waits. */
function waitOf(headers: Headers): number | null {
  const asked = retryAfterMs(headers.get('retry-after'), Date.now());
  return asked === null ? null : Math.min(asked, RETRY_AFTER_MS_MAX);
}

function nextOf(value: unknown, page: URL): string | null {
  if (value === null || value === undefined || value === '') return null;
  if (typeof value !== 'string' || !URL.canParse(value, page.href))
    throw new SourceError(`"next" of ${page.pathname} is not an address`);
  const next = new URL(value, page);
  // The credential goes nowhere else.
  if (next.origin !== page.origin)
    throw new SourceError(`"next" of ${page.pathname} leads to another server, ${next.origin}`);
  return next.href;
}

/** Gives the records of a page that lies in a file. @returns the address of the next one */
async function readPage(file: string, url: URL, taker: Taker): Promise<string | null> {
  const { size } = await fsp.stat(file);
  const begin = Buffer.alloc(64);
  const handle = await fsp.open(file);
  const { bytesRead } = await handle.read(begin, 0, 64, 0).finally(() => handle.close());
  if (!/^(?:\xef\xbb\xbf)?\s*\{/.test(begin.toString('latin1', 0, bytesRead))) {
    for await (const record of jsonElements(readChunks(file), LIMITS.universityRecordBytesMax))
      await taker.take(record);
    return null;
  }
  if (size > OBJECT_PAGE_BYTES_MAX)
    throw new SourceError(
      `a page of ${url.pathname} has ${size} bytes; an object may have ${OBJECT_PAGE_BYTES_MAX}: send smaller pages, or an array`,
    );
  let page: unknown;
  try {
    page = parseExactJson(new TextDecoder('utf-8', { fatal: true }).decode(await fsp.readFile(file)));
  } catch {
    throw new Passing(`${url.pathname} gave a page that is not JSON`);
  }
  const items = typeof page === 'object' && page !== null && 'items' in page ? page.items : undefined;
  if (!Array.isArray(items)) throw new SourceError(`${url.pathname} gave an object without a list "items"`);
  const next = nextOf(typeof page === 'object' && page !== null && 'next' in page ? page.next : null, url);
  if (next !== null && items.length === 0)
    throw new SourceError(`${url.pathname} gave a page without items and another one behind it`);
  for (const record of items) await taker.take(record);
  return next;
}

/**
 * The HTTP source (docs/university.md "The source"): `GET {base_url}/<type>` with a bearer token gives an array, or pages `{items, next}`; 404 and 501 say
 * that the type is not offered. What may pass by itself (no connection, 408, 425, 429, 5xx, a body that breaks off) is tried again.
 */
export function httpSource(options: HttpSourceOptions): DataSource {
  const fetchPage = async (
    url: URL,
    known: Bookmark | null,
    taker: Taker,
    signal: AbortSignal,
  ): Promise<Page | 'not_offered' | 'unchanged'> => {
    const file = path.join(options.directory, `page-${process.pid}-${crypto.randomUUID()}.json`);
    try {
      const response = await fetch(url, {
        headers: {
          Accept: 'application/json',
          ...(options.token === '' ? {} : { Authorization: `Bearer ${options.token}` }),
          ...(known?.etag ? { 'If-None-Match': known.etag } : {}),
          ...(known?.lastModified ? { 'If-Modified-Since': known.lastModified } : {}),
        },
        // The credential goes nowhere else: a redirect is an answer like any other that is not 200.
        redirect: 'manual',
        signal: AbortSignal.any([signal, AbortSignal.timeout(options.pageMs)]),
      });
      const { body, headers, status } = response;
      if (status !== 200) await body?.cancel();
      if (status === 304 && known !== null) return 'unchanged';
      if (status === 404 || status === 501) return 'not_offered';
      if ([408, 425, 429].includes(status) || status >= 500)
        throw new Passing(`${url.pathname} answers ${status}`, waitOf(headers));
      if (status === 401 || status === 403)
        throw new SourceError(`${url.pathname} answers ${status}: university_sync.token is not accepted`);
      if (status !== 200 || body === null)
        throw new SourceError(
          `${url.pathname} answers ${status}${status > 300 && status < 400 ? ', which is not followed: give its last address as university_sync.base_url' : ''}`,
        );
      await streamToFile(Readable.fromWeb(body), file, bounded(url));
      return {
        next: await readPage(file, url, taker),
        etag: headers.get('etag'),
        lastModified: lastModifiedOf(headers),
      };
    } catch (error) {
      signal.throwIfAborted();
      if (error instanceof SourceError) throw error;
      // An array that breaks off may be whole the next time; one that is too large will not be smaller.
      if (error instanceof ServiceError) {
        const text = `${url.pathname}: ${error.message.replace('the body', 'the list')}`;
        throw error.code === 'malformed_request' ? new Passing(text) : new SourceError(text);
      }
      if (error instanceof Error && error.name === 'TimeoutError')
        throw new Passing(`${url.pathname} gave no whole page within ${options.pageMs} ms`);
      if (error instanceof Error && 'code' in error && error.code === 'ENOSPC')
        throw new SourceError(`${url.pathname}: no space is left for it (data.dir)`);
      throw new Passing(`${url.pathname}: ${wayOf(error)}`);
    } finally {
      await fsp.rm(file, { force: true });
    }
  };

  const patiently = async (url: URL, known: Bookmark | null, taker: Taker, signal: AbortSignal) => {
    await taker.mark();
    for (let attempt = 1; ; attempt++) {
      try {
        return await fetchPage(url, known, taker, signal);
      } catch (error) {
        if (!(error instanceof Passing) || attempt === ATTEMPTS_MAX) throw error;
        await taker.rewind();
        await sleep(error.waitMs ?? options.firstWaitMs * 2 ** (attempt - 1), undefined, { signal });
      }
    }
  };

  const fetchList = async (
    entity: Entity,
    taker: Taker,
    known: Bookmark | null,
    signal: AbortSignal,
  ): Promise<Fetched> => {
    const first = new URL(`${options.baseUrl.replace(/\/$/, '')}/${entity.path}`);
    const usable = known !== null && known.url === first.href ? known : null;
    const seen = new Set<string>();
    let bookmark: Bookmark | null = null;
    for (let url: string | null = first.href; url !== null; ) {
      if (seen.has(url) || seen.size >= PAGES_MAX) throw new SourceError(`the pages of ${first.pathname} go round`);
      seen.add(url);
      const page = await patiently(new URL(url), seen.size === 1 ? usable : null, taker, signal);
      if (page === 'unchanged') return { kind: 'unchanged' };
      if (page === 'not_offered') {
        if (seen.size === 1) return { kind: 'not_offered' };
        throw new SourceError(`page ${seen.size} of ${first.pathname} is not there`);
      }
      // The tag of the first of several pages tells nothing of the others.
      bookmark = { url: first.href, etag: page.etag, lastModified: page.lastModified };
      url = page.next;
    }
    const isOne = seen.size === 1 && bookmark !== null && (bookmark.etag !== null || bookmark.lastModified !== null);
    return { kind: 'whole', bookmark: isOne ? bookmark : null };
  };

  return Object.fromEntries(
    ENTITIES.map(entity => [
      entity.type,
      (taker: Taker, known: Bookmark | null, signal: AbortSignal) => fetchList(entity, taker, known, signal),
    ]),
  ) as DataSource;
}
