import type { HttpRequest, HttpResponse } from 'uWebSockets.js';
import { Buffer } from 'node:buffer';
import { randomBytes } from 'node:crypto';
import { STATUS_CODES } from 'node:http';
import { SocketAddress } from 'node:net';
import { Readable } from 'node:stream';
import { ServiceError } from '../errors.ts';
import type { Reply, Request, TriggerExchange } from '../message.ts';
import type { ClientAddress } from './client-address.ts';
import { problemReply } from './error-reply.ts';

const REQUEST_ID = /^[\w-]{8,64}$/;
/** `traceparent` of a W3C trace context: version (ff is none), trace id, parent id, flags; later versions may append. */
const TRACEPARENT = /^(?!ff)[0-9a-f]{2}-(?!0{32})([0-9a-f]{32})-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}(?:$|-)/;
/**
 * Headers by name, without anything inherited: a header may be called `constructor`. A class keeps the object in V8's fast
 * mode, which `Object.create(null)` does not.
 */
class HeaderRecord {
  [name: string]: string;
}
Object.setPrototypeOf(HeaderRecord.prototype, null);
Reflect.deleteProperty(HeaderRecord.prototype, 'constructor');

/** Request ids of this process: a random part and a counter, unique over hosts and cheap to make. */
const ID_PREFIX = randomBytes(8).toString('hex');
let lastId = 0;
const makeRequestId = (): string => `${ID_PREFIX}-${(++lastId).toString(36).padStart(7, '0')}`;

const NO_BODY = new Set([204, 304]);

const statusLines = new Map<number, string>();
function statusLine(status: number): string {
  let line = statusLines.get(status);
  if (line === undefined) {
    line = `${status} ${STATUS_CODES[status] ?? 'Unknown'}`;
    statusLines.set(status, line);
  }
  return line;
}

const ADDRESSES_MAX = 4096;
const addresses = new Map<number, string>();

/**
 * Address as text (RFC 5952); an IPv4 address mapped into IPv6 is shown as IPv4. The library's own text is made by `printf` and takes
 * longer than the bytes and a look into a map.
 */
function addressOf(res: HttpResponse): string {
  const bytes = new DataView(res.getRemoteAddress());
  if (bytes.byteLength === 4) return ipv4(bytes.getUint32(0));
  if (bytes.byteLength !== 16) return '';
  const mapped = bytes.getBigUint64(0) === 0n && bytes.getUint32(8) === 0xffff;
  if (mapped) return ipv4(bytes.getUint32(12));
  const address = Buffer.from(res.getRemoteAddressAsText()).latin1Slice();
  return new SocketAddress({ family: 'ipv6', address }).address;
}

function ipv4(bits: number): string {
  let text = addresses.get(bits);
  if (text === undefined) {
    text = `${bits >>> 24}.${(bits >>> 16) & 255}.${(bits >>> 8) & 255}.${bits & 255}`;
    if (addresses.size >= ADDRESSES_MAX) addresses.clear();
    addresses.set(bits, text);
  }
  return text;
}

/**
 * One HTTP exchange on uWebSockets: everything is copied out of the request before the first await, the body is capped,
 * a client that goes away is noticed, and there is exactly one corked reply.
 */
export class Exchange implements TriggerExchange {
  readonly method: string;
  readonly path: string;
  readonly query: string;
  readonly headers: Record<string, string>;
  readonly requestId: string;
  readonly #res: HttpResponse;
  readonly #clientAddress: ClientAddress;
  #open = true;
  #paused = false;
  #onAborted: (() => void) | null = null;
  #address: string | null = null;

  constructor(res: HttpResponse, req: HttpRequest, clientAddress: ClientAddress) {
    this.#clientAddress = clientAddress;
    this.#res = res;
    this.method = req.getCaseSensitiveMethod();
    this.path = req.getUrl();
    this.query = req.getQuery() ?? '';
    const headers = new HeaderRecord();
    req.forEach((name, value) => {
      const before = headers[name];
      headers[name] = before === undefined ? value : `${before}${name === 'cookie' ? '; ' : ', '}${value}`;
    });
    this.headers = headers;
    const given = headers['x-request-id'];
    this.requestId = given !== undefined && REQUEST_ID.test(given) ? given : makeRequestId();
    res.onAborted(() => {
      this.#open = false;
      this.#onAborted?.();
    });
  }

  /** Whether a reply can still reach the client. */
  get open(): boolean {
    return this.#open;
  }

  /** Trace id of the caller's trace context, or empty when it sent none that is valid. */
  get traceId(): string {
    const given = this.headers.traceparent;
    // Version 00 has nothing behind its flags.
    if (given === undefined || (given.startsWith('00-') && given.length !== 55)) return '';
    return TRACEPARENT.exec(given)?.[1] ?? '';
  }

  /** Text of the client's address; taken on demand, because it costs as much as the rest of the capture. */
  get remoteAddr(): string {
    this.#address ??= this.#open ? this.#clientAddress(addressOf(this.#res), this.headers) : '';
    return this.#address;
  }

  get hasBody(): boolean {
    const length = this.headers['content-length'];
    return (length !== undefined && length !== '0') || this.headers['transfer-encoding'] !== undefined;
  }

  toRequest(params: Record<string, string>): Request {
    const { headers, method, path, query, remoteAddr, requestId } = this;
    return { method, path, query, headers, remoteAddr, requestId, params };
  }

  /**
   * Collects the body; counts the streamed bytes, whatever Content-Length says.
   *
   * @param done called once, unless the client goes away before
   */
  collectBody(bytesMax: number, msMax: number, done: (body: Uint8Array | 'too_large' | 'too_slow') => void): void {
    if (Number(this.headers['content-length'] ?? 0) > bytesMax) return done('too_large');
    const chunks: Buffer[] = [];
    let size = 0;
    let over = false;
    const end = (result: Uint8Array | 'too_large' | 'too_slow'): void => {
      over = true;
      clearTimeout(timer);
      done(result);
    };
    const timer = setTimeout(() => {
      if (!over && this.#open) end('too_slow');
    }, msMax);
    this.#res.onData((chunk, isLast) => {
      if (over || !this.#open) return;
      size += chunk.byteLength;
      if (size > bytesMax) return end('too_large');
      // The chunk is only valid during this call.
      chunks.push(Buffer.from(chunk.slice(0)));
      if (isLast) end(chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks, size));
    });
  }

  /** The body as a stream with back pressure, for uploads. */
  streamBody(): Readable {
    const res = this.#res;
    const stream = new Readable({
      read: () => {
        if (this.#paused && this.#open) res.resume();
        this.#paused = false;
      },
    });
    this.#onAborted = () =>
      stream.destroy(new ServiceError('malformed_request', 'the client went away in the middle of the upload'));
    res.onData((chunk, isLast) => {
      if (stream.destroyed) return;
      const more = stream.push(Buffer.from(chunk.slice(0)));
      if (isLast) stream.push(null);
      // Several chunks may come out of one read of the socket, the last one after a pause.
      if (isLast && this.#paused) {
        res.resume();
        this.#paused = false;
      } else if (!isLast && !more && !this.#paused) {
        res.pause();
        this.#paused = true;
      }
    });
    return stream;
  }

  reply(reply: Reply): void {
    this.replyFlat(reply.status, '', reply.body, reply.headers);
  }

  /**
   * Sends the one reply.
   *
   * @param flat checked headers as `name NUL value NUL` text
   * @param extra further headers
   */
  replyFlat(
    status: number,
    flat: string,
    body: string | Uint8Array,
    extra: ReadonlyArray<readonly [string, string]> = [],
  ): void {
    if (!this.#open) return;
    this.#open = false;
    const res = this.#res;
    // A refusal in the middle of an upload: the rest must be read, or the connection stands still.
    if (this.#paused) res.resume();
    this.#paused = false;
    res.cork(() => {
      res.writeStatus(statusLine(status));
      if (flat !== '') {
        const parts = splitFlat(flat);
        for (let i = 0; i + 1 < parts.length; i += 2) res.writeHeader(parts[i]!, parts[i + 1]!);
      }
      for (const [name, value] of extra) res.writeHeader(name, value);
      res.writeHeader('X-Request-Id', this.requestId);
      if (NO_BODY.has(status)) res.endWithoutBody();
      else if (this.method === 'HEAD')
        res.endWithoutBody(typeof body === 'string' ? Buffer.byteLength(body) : body.length);
      else res.end(body);
    });
  }

  /** Answers a refusal as problem+json and closes a connection whose body was not read to its end. */
  replyError(error: ServiceError): void {
    this.reply(problemReply(error, this.path, this.requestId));
  }
}

/** Most plugins send the same few header blocks: splitting is cached by the text. */
const splitCache = new Map<string, string[]>();
function splitFlat(flat: string): string[] {
  let parts = splitCache.get(flat);
  if (parts === undefined) {
    parts = flat.split('\0');
    if (splitCache.size >= 512) splitCache.clear();
    if (flat.length <= 1024) splitCache.set(flat, parts);
  }
  return parts;
}
