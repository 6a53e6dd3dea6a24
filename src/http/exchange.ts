import type { HttpRequest, HttpResponse } from 'uWebSockets.js';
import { Buffer } from 'node:buffer';
import type { Readable } from 'node:stream';
import { ServiceError, tooLarge } from '../base/errors.ts';
import { REQUEST_LIMITS } from '../base/request-limits.ts';
import type { Span } from '../base/tracing.ts';
import type { ClientAddress } from './client-address.ts';
import { collectBody } from './collect-body.ts';
import type { Door } from './door.ts';
import { headerBlock, statusLine } from './header-block.ts';
import type { Intake, IntakeShare } from './intake.ts';
import { isStream, type Reply, type Request, type TriggerExchange } from './message.ts';
import { peerAddressOf } from './peer-address.ts';
import { plainPath } from './plain-path.ts';
import { problemReply } from './problem-reply.ts';
import { RequestBody } from './request-body.ts';
import { type HeadProblem, headProblem, mustStandOnce } from './request-head.ts';
import { requestIdOf } from './request-id.ts';
import { traceIdOf } from './trace-context.ts';

/**
 * Headers by name, without anything inherited: a header may be called `constructor`. A class keeps the object in V8's fast
 * mode, which `Object.create(null)` does not.
 */
class HeaderRecord {
  [name: string]: string;
}
Object.setPrototypeOf(HeaderRecord.prototype, null);
Reflect.deleteProperty(HeaderRecord.prototype, 'constructor');

/** Answered without a length, which the library leaves out only when it gets no arguments. */
const NO_BODY = new Set([204, 304]);
/** Bytes of an answer that the library holds back until a handler returns. */
const CORK_BYTES = 16 * 1024;
const LINGER_MS = 250;
/** What is written at a time where the library itself keeps what the client does not take. */
const PIECE_BYTES = 64 * 1024;
const NOTHING_LEFT = (): void => {};
const NO_BYTES: Uint8Array = new Uint8Array();

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
  /** Null without tracing. */
  readonly span: Span | null;
  /** Why the head is refused before anything is looked up, or null. */
  readonly headProblem: HeadProblem | null;
  readonly #res: HttpResponse;
  readonly #clientAddress: ClientAddress;
  readonly #intake: Intake;
  readonly #door: Door;
  #open = true;
  #body: RequestBody | null = null;
  #share: IntakeShare | null = null;
  #onAborted: (() => void) | null = null;
  #address: string | null = null;
  readonly #since = performance.now();

  constructor(res: HttpResponse, req: HttpRequest, clientAddress: ClientAddress, intake: Intake, door: Door) {
    this.#intake = intake;
    this.#door = door;
    this.#clientAddress = clientAddress;
    this.#res = res;
    this.method = req.getCaseSensitiveMethod();
    this.path = plainPath(req.getUrl());
    this.query = req.getQuery() ?? '';
    const headers = new HeaderRecord();
    let repeated = '';
    req.forEach((name, value) => {
      const before = headers[name];
      if (before !== undefined && mustStandOnce(name)) repeated = name;
      headers[name] = before === undefined ? value : `${before}${name === 'cookie' ? '; ' : ', '}${value}`;
    });
    this.headers = headers;
    this.headProblem = headProblem(headers, repeated);
    this.requestId = requestIdOf(headers);
    this.span = door.spanOf(this.method, headers, this.requestId, () => peerAddressOf(res));
    res.onAborted(() => {
      this.#open = false;
      this.span?.end({ 'error.type': 'client_gone' });
      if (this.#body === null) this.#share?.release();
      else this.#body.aborted();
      this.#onAborted?.();
    });
  }

  /** Whether a reply can still reach the client. */
  get open(): boolean {
    return this.#open;
  }

  /** Trace id of the request, or without tracing of the caller's trace context; empty without both. */
  get traceId(): string {
    return this.span?.traceId ?? traceIdOf(this.headers);
  }

  /** Text of the client's address; taken on demand, because it costs as much as the rest of the capture. */
  get remoteAddr(): string {
    this.#address ??= this.#open ? this.#clientAddress(peerAddressOf(this.#res), this.headers) : '';
    return this.#address;
  }

  /**
   * Whether the connection is closed behind the answer: what follows may not be where the client thinks. The library accepts chunks that a proxy may divide otherwise (a bare LF, any two
   * bytes behind a chunk), and what one of them takes for a body the other takes for a request.
   */
  get #isLast(): boolean {
    return this.headProblem !== null || this.headers['transfer-encoding'] !== undefined || this.#door.closesNext();
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
   * Collects the body; counts the streamed bytes, whatever Content-Length says. The bytes count as received until the reply or `dropBody`.
   *
   * @param done called once; with the reason when there is no body
   */
  collectBody(bytesMax: number, done: (body: Uint8Array | Error) => void): void {
    const limit = { name: 'http.max_body', bytes: bytesMax };
    if (Number(this.headers['content-length'] ?? 0) > bytesMax) return done(tooLarge(limit.bytes, limit.name));
    const share = this.openShare();
    let body: RequestBody | null = null;
    share.watch(error => {
      if (body === null) done(error);
    });
    this.#res.onData((chunk, isLast) => {
      // The body behind the answer is read and dropped: the response may not be touched any more.
      if (body === null && !this.#open) return;
      if (body === null && isLast && chunk.byteLength <= REQUEST_LIMITS.bodyInlineBytesMax) {
        share.unwatch();
        // The chunk is only valid during this call.
        return done(chunk.byteLength > bytesMax ? tooLarge(limit.bytes, limit.name) : Buffer.from(chunk.slice(0)));
      }
      if (body === null) {
        body = this.#body = new RequestBody(this.#res, share);
        collectBody(body, share, limit).then(done, done);
      }
      body.receive(chunk, isLast);
    });
  }

  /** Bytes that the body of this request takes of the host, until the reply. */
  openShare(): IntakeShare {
    this.#share ??= this.#intake.open(() => this.remoteAddr);
    return this.#share;
  }

  /** The body is not needed any more. */
  dropBody(): void {
    this.#share?.release();
  }

  /** The body with back pressure, from now on. */
  takeBody(): RequestBody {
    if (this.#body === null) {
      const body = new RequestBody(this.#res, this.openShare());
      this.#body = body;
      this.#res.onData((chunk, isLast) => body.receive(chunk, isLast));
    }
    return this.#body;
  }

  /** Sends the one reply; resolves when all of it has been handed on, or the client is gone. */
  async reply({ body, headers, status }: Reply): Promise<void> {
    this.#share?.release();
    if (!isStream(body)) return this.replyFlat(status, '', body, headers);
    if ('endless' in body) {
      // Its length is not known, and 0 would be untrue.
      if (this.method === 'HEAD') return this.#replyLength(status, headers, null);
      return await this.#replyEndless(status, headers, await body.open(), null, this.#isLast);
    }
    if (this.method === 'HEAD' || body.length === 0 || !this.#open)
      return this.#replyLength(status, headers, body.length);
    const source = await body.open();
    if (!this.#open) {
      source.destroy();
      return;
    }
    // The library closes a connection behind a body without a length alone.
    if (this.#isLast) await this.#replyEndless(status, headers, source, body.length, true);
    else await this.#replyStream(status, headers, body.length, source);
  }

  /** Everything of a reply but its body. */
  #replyLength(status: number, headers: Reply['headers'], length: number | null): void {
    if (!this.#open) return;
    this.#open = false;
    this.#body?.release();
    this.#res.cork(() => {
      this.#writeHead(status, headers, false);
      this.#endWithLength(length);
    });
  }

  /**
   * Ends without a body, and names its length. Given to the library, it waits for that many bytes, and closes the connection at the next
   * request.
   */
  #endWithLength(length: number | null): void {
    if (this.#isLast) return void this.#res.endWithoutBody(length ?? undefined, true);
    if (length !== null) this.#res.writeHeader('Content-Length', String(length));
    this.#res.endWithoutBody();
  }

  #writeHead(status: number, headers: Reply['headers'], last: boolean): void {
    const own = [
      ['X-Content-Type-Options', 'nosniff'] as const,
      ['X-Request-Id', this.requestId + this.#door.after] as const,
    ];
    this.#door.answered(this, status, this.#since);
    if (status !== 200) this.#res.writeStatus(statusLine(status));
    for (const [name, value] of [...headers, ...own]) this.#res.writeHeader(name, value);
    if (last) this.#res.writeHeader('Connection', 'close');
  }

  /**
   * As fast as the client takes it: what the socket does not hold is waited for before more is read.
   *
   * @param length of what the source gives, in bytes
   */
  async #replyStream(status: number, headers: Reply['headers'], length: number, source: Readable): Promise<void> {
    const res = this.#res;
    this.#body?.release();
    await new Promise<void>(resolve => {
      const end = (): void => {
        this.#open = false;
        source.destroy();
        resolve();
      };
      this.#onAborted = end;
      res.cork(() => this.#writeHead(status, headers, false));
      let handed = 0;
      let [left, leftFrom] = [NO_BYTES, 0];
      // One for all chunks: what is set while it runs, for the chunk that comes then, the library forgets.
      const go = (offset: number): boolean => {
        const [taken, done] = res.tryEnd(left.subarray(offset - leftFrom), length);
        if (done) end();
        else if (taken) source.resume();
        return taken;
      };
      const send = (chunk: Uint8Array): void => {
        if (!this.#open) return;
        handed += chunk.length;
        res.cork(() => {
          [left, leftFrom] = [chunk, res.getWriteOffset()];
          const [taken, done] = res.tryEnd(chunk, length);
          if (done) return end();
          if (taken) return;
          source.pause();
          res.onWritable(go);
        });
      };
      source.on('data', send);
      // The head is out: a reply that cannot go on is cut off, so that no client takes a part for the whole.
      const cut = (): void => {
        if (this.#open) res.close();
        end();
      };
      source.on('error', cut);
      source.on('end', () => {
        if (handed !== length) cut();
      });
    });
  }

  /**
   * Sends what comes until the source ends or the client has gone; a client that does not read makes the source wait.
   *
   * @param length of what the source gives, in bytes; null where that is not known
   * @param last whether the connection is closed behind it
   * @throws what the source fails with; the connection is closed then, so that no client takes a part for the whole
   */
  async #replyEndless(
    status: number,
    headers: Reply['headers'],
    source: Readable,
    length: number | null,
    last: boolean,
  ): Promise<void> {
    const res = this.#res;
    this.#body?.release();
    if (!this.#open) return void source.destroy();
    await new Promise<void>((resolve, reject) => {
      const end = (): void => {
        this.#open = false;
        source.destroy();
        resolve();
      };
      this.#onAborted = end;
      res.cork(() => this.#writeHead(status, headers, last));
      let handed = 0;
      source.on('error', error => {
        // Before the connection is closed, which would end it as if the client had gone.
        reject(error);
        if (this.#open) res.close();
      });
      source.on('data', (chunk: Uint8Array) => {
        if (!this.#open) return;
        handed += chunk.length;
        res.cork(() => {
          if (res.write(chunk)) return;
          source.pause();
          res.onWritable(() => {
            source.resume();
            return true;
          });
        });
      });
      source.on('close', () => {
        if (this.#open && length !== null && handed !== length) res.close();
        if (this.#open) res.cork(() => res.end(undefined, last));
        end();
      });
    });
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
    this.#share?.release();
    if (!this.#open) return;
    this.#open = false;
    this.#door.answered(this, status, this.#since);
    const res = this.#res;
    // A refusal in the middle of an upload: the rest must be read, or the connection stands still.
    this.#body?.release();
    let countRest = NOTHING_LEFT;
    res.cork(() => {
      // Without a word the library writes 200.
      if (status !== 200) res.writeStatus(statusLine(status));
      for (const [name, value] of extra) res.writeHeader(name, value);
      const block = headerBlock(flat);
      const rest = block.rest + this.requestId + this.#door.after;
      res.writeHeader(block.first, block.ascii ? rest : Buffer.from(rest, 'latin1'));
      const last = this.#isLast;
      if (NO_BODY.has(status)) last ? res.end(undefined, true) : res.endWithoutBody();
      else if (this.method === 'HEAD') this.#endWithLength(Buffer.byteLength(body));
      else if (body.length <= REQUEST_LIMITS.answerInlineBytesMax) res.end(body, last);
      else countRest = this.#endAsTaken(typeof body === 'string' ? Buffer.from(body) : body, last);
    });
    countRest();
  }

  /**
   * Ends with a body of which the client may not take all at once: the rest waits here, where it is counted.
   *
   * @returns what counts the rest, called when the answer of this moment is out
   */
  #endAsTaken(body: Uint8Array, last: boolean): () => void {
    if (last) return this.#writeAsTaken(body);
    const res = this.#res;
    if (res.tryEnd(body, body.length)[1]) return NOTHING_LEFT;
    const from = res.getWriteOffset();
    // The bytes may be another thread's, which uses them again.
    const rest = Uint8Array.prototype.slice.call(body, from);
    const { waiting } = this.#door;
    this.#onAborted = () => waiting.release(this);
    res.onWritable(offset => {
      const [isTaken, isEnd] = res.tryEnd(rest.subarray(offset - from), body.length);
      if (isEnd) waiting.release(this);
      return isTaken;
    });
    return () => waiting.hold(this, rest.length, () => void res.close());
  }

  /** The same where the connection is closed behind it, which the library does behind a body without a length alone. */
  #writeAsTaken(body: Uint8Array): () => void {
    const res = this.#res;
    const { waiting } = this.#door;
    let rest = body;
    const write = (): boolean => {
      while (rest.length > 0) {
        const piece = rest.subarray(0, PIECE_BYTES);
        rest = rest.subarray(piece.length);
        if (!res.write(piece)) return false;
      }
      waiting.release(this);
      res.end(undefined, true);
      return true;
    };
    res.writeHeader('Connection', 'close');
    if (write()) return NOTHING_LEFT;
    rest = Uint8Array.prototype.slice.call(rest);
    this.#onAborted = () => waiting.release(this);
    res.onWritable(() => {
      let isTaken = false;
      res.cork(() => {
        isTaken = write();
      });
      return isTaken;
    });
    return () => waiting.hold(this, rest.length, () => void res.close());
  }

  /**
   * Answers a head that another server may read differently with 400, and closes the connection: what follows on it may be a request that
   * only this service sees. The library parses on in what it has read, unless an answer is still being written; so the answer leaves at
   * once, which takes more than its buffer holds, and is never ended: a second request then closes the connection, or the timer does.
   */
  refuseHead(): void {
    const problem = this.headProblem;
    const error = new ServiceError('malformed_request', problem?.detail ?? 'the request head is malformed');
    // The library gives its own answer and closes; where it does not, this one is sent.
    if (problem?.unreadable === true) return void setImmediate(() => this.replyError(error));
    const { body, headers, status } = problemReply(error, this.path, this.requestId);
    this.#door.answered(this, status, this.#since);
    const res = this.#res;
    res.writeStatus(statusLine(status));
    for (const [name, value] of headers) res.writeHeader(name, value);
    res.writeHeader('X-Content-Type-Options', 'nosniff');
    res.writeHeader('X-Request-Id', this.requestId + this.#door.after);
    res.writeHeader('Connection', 'close');
    // The library ends a header with CR LF: here it is the end of the body, which spaces fill up.
    const rest = Math.max(0, CORK_BYTES - Buffer.byteLength(body));
    const length = Buffer.byteLength(body) + rest + 2;
    res.writeHeader('Content-Length', `${length}\r\n\r\n${body}${' '.repeat(rest)}`);
    // Time for the client to read it: closing on bytes that still come in would take the answer away.
    setTimeout(() => {
      if (this.#open) res.close();
    }, LINGER_MS).unref();
  }

  /** Answers a refusal as problem+json. What is left of the body is read and dropped: the client may not look before it has sent it. */
  replyError(error: ServiceError): void {
    this.#door.refused(this, error.code);
    const { body, headers, status } = problemReply(error, this.path, this.requestId);
    this.replyFlat(status, '', body, headers);
  }
}
