import type { Readable } from 'node:stream';
import { ServiceError } from '../base/errors.ts';
import type { Span } from '../base/tracing.ts';

/** Plain values of one HTTP exchange; nothing here knows the server library. */

/** A request as the API handlers see it: copied out of the server before anything is awaited. */
export type Request = {
  method: string;
  /** Path as sent, without the query. */
  path: string;
  /** Raw query string, without `?`. */
  query: string;
  /** Names in lower case; repeated headers joined by the server with `, `. */
  headers: Record<string, string>;
  /** Client address as text, already resolved against trusted proxies. */
  remoteAddr: string;
  requestId: string;
  /** Values of the `:name` segments of the matched route, decoded. */
  params: Record<string, string>;
};

/** Takes a part of a body, which is good for the time of the call; a promise makes the sender wait until it resolves. */
export type TakeChunk = (chunk: Uint8Array) => Promise<void> | null;

/** The body of a request, as it comes in. */
export type BodySource = {
  /** Resolves when all of it was taken; rejects when the client goes away, or with what `take` throws. */
  pump(take: TakeChunk): Promise<void>;
  stream(): Readable;
};

/** A body that is read while it is sent; `open` is called once, and not when none of it is sent. */
export type ByteStream = { length: number; open(): Promise<Readable> };

/** A body without an end of its own: it goes on until the client leaves or the source ends. */
export type EndlessStream = { endless: true; open(): Promise<Readable> };

export type Reply = {
  status: number;
  headers: Array<[string, string]>;
  body: string | Uint8Array | ByteStream | EndlessStream;
};

export function isStream(body: Reply['body']): body is ByteStream | EndlessStream {
  return typeof body === 'object' && 'open' in body;
}

type Headers = Readonly<Record<string, string>>;

/**
 * Whether a request comes from a page of this origin, or from something that is no page: a browser names itself in
 * `Sec-Fetch-Site`, an older one at least in `Origin`; what sends neither is no browser and carries no cookies but its own.
 */
export function isOwnOrigin(headers: Headers): boolean {
  const site = headers['sec-fetch-site'];
  if (site !== undefined) return site === 'same-origin' || site === 'none';
  const { host, origin } = headers;
  if (origin === undefined) return true;
  return host !== undefined && (origin === `http://${host}` || origin === `https://${host}`);
}

/** Whether a request comes from a page of this origin or of one of these, or from no page (`isOwnOrigin`). */
export function isFromOrigins(headers: Headers, origins: ReadonlySet<string> | undefined): boolean {
  return isOwnOrigin(headers) || (headers.origin !== undefined && origins?.has(headers.origin) === true);
}

/**
 * Whether a request shows the marks of a browser. `Sec-Fetch-Mode` alone is none: Node's `fetch` sends it as well.
 */
export function isBrowser(headers: Headers): boolean {
  return (
    headers['sec-fetch-site'] !== undefined || headers['sec-fetch-dest'] !== undefined || headers.origin !== undefined
  );
}

/** The bearer token of a request (RFC 6750 section 2.1), or null. */
export function bearerOf(headers: Headers): string | null {
  const given = headers.authorization;
  return given === undefined ? null : (/^Bearer +(\S+) *$/i.exec(given)?.[1] ?? null);
}

/** Value of a cookie (RFC 6265 section 4.2.1); empty when there is none. The first of equal names counts. */
export function cookieOf(headers: Headers, name: string): string {
  for (const part of headers.cookie?.split(';') ?? []) {
    const at = part.indexOf('=');
    if (at > 0 && part.slice(0, at).trim() === name) return part.slice(at + 1).trim();
  }
  return '';
}

/**
 * Where users come by https, the cookie of a session is `__Host-user_session`, which no other host and no page of a plugin can set
 * (RFC 6265bis section 4.1.3.2). Its secret begins with this mark, so that it counts in that cookie alone.
 */
export const HOST_ONLY_MARK = 'h.';

/** The name of the cookie that a session is kept in. */
export const sessionCookieName = (kind: 'user' | 'admin', secret: string): string =>
  secret.startsWith(HOST_ONLY_MARK) ? `__Host-${kind}_session` : `${kind}_session`;

/**
 * The secret of a session in its cookie; empty when there is none. A page of a plugin can set a cookie of the same name for a longer
 * path, which browsers send first: two of them are refused.
 *
 * @throws ServiceError `malformed_request`
 */
export function sessionCookieOf(headers: Headers, kind: 'user' | 'admin'): string {
  const name = `${kind}_session`;
  const given = headers.cookie;
  if (given === undefined || !given.includes(name)) return '';
  const hostOnly = onlyCookie(given, `__Host-${name}`);
  if (hostOnly !== '') return hostOnly.startsWith(HOST_ONLY_MARK) ? hostOnly : '';
  const plain = onlyCookie(given, name);
  return plain.startsWith(HOST_ONLY_MARK) ? '' : plain;
}

function onlyCookie(cookies: string, name: string): string {
  let found: string | null = null;
  for (const part of cookies.split(';')) {
    const at = part.indexOf('=');
    if (at < 0 || part.slice(0, at).trim() !== name) continue;
    if (found !== null)
      throw new ServiceError(
        'malformed_request',
        `the request has two cookies named ${name}, and only one is ours: delete the cookies of this site and log in again`,
      );
    found = part.slice(at + 1).trim();
  }
  return found ?? '';
}

/** The header of answers that hold a secret or change at any moment: caches must not keep them. */
export const NO_STORE: [string, string] = ['Cache-Control', 'no-store'];

/** The header of answers that no page shows: whatever a browser takes them for, nothing in them runs, and no page frames them. */
export const NO_CONTENT_POLICY: [string, string] = [
  'Content-Security-Policy',
  "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
];

/** The headers of an answer, with those of `more` that it does not set itself. */
export function withDefaults(
  headers: ReadonlyArray<readonly [string, string]>,
  more: ReadonlyArray<[string, string]>,
): Array<[string, string]> {
  const set = new Set(headers.map(([name]) => name.toLowerCase()));
  return [
    ...headers.map(([n, v]): [string, string] => [n, v]),
    ...more.filter(([name]) => !set.has(name.toLowerCase())),
  ];
}

/** A JSON answer. `bigint` never reaches it: rows convert ids at the edge. */
export function jsonReply(status: number, value: unknown, headers: Array<[string, string]> = []): Reply {
  return {
    status,
    headers: [['Content-Type', 'application/json; charset=utf-8'], ...headers],
    body: JSON.stringify(value),
  };
}

/** What the trigger line needs of an exchange with a client; `http/exchange` is one. */
export type TriggerExchange = {
  readonly method: string;
  readonly path: string;
  readonly query: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly requestId: string;
  /** Null without tracing. */
  readonly span: Span | null;
  /** Trace id of the request or of the caller's trace context, or empty. */
  readonly traceId: string;
  readonly remoteAddr: string;
  readonly hasBody: boolean;
  /** Whether a reply can still reach the client. */
  readonly open: boolean;
  /** Collects the body and calls once, with the reason when there is none. It counts as received until the reply. */
  collectBody(bytesMax: number, done: (body: Uint8Array | Error) => void): void;
  /** The body is not needed any more, and there will be no reply. */
  dropBody(): void;
  /** `flat` is checked headers as `name NUL value NUL` text; `extra` further ones. */
  replyFlat(
    status: number,
    flat: string,
    body: string | Uint8Array,
    extra?: ReadonlyArray<readonly [string, string]>,
  ): void;
  replyError(error: ServiceError): void;
};
