import { HOST_COOKIE } from '../abi/response-headers.ts';
import type { HttpAuth } from '../base/principal.ts';
import type { HttpTrigger } from '../plugins/manifest.ts';

export type EventInput = {
  method: string;
  /** Path after the plugin id. */
  path: string;
  query: string;
  headers: Readonly<Record<string, string>>;
  remoteAddr: string;
  params: Readonly<Record<string, string>>;
  /** Null on public endpoints. */
  auth: HttpAuth | null;
  /** Matches an `Authorization` header with a credential of this host. */
  hostBearer: RegExp;
};

const HOST_COOKIE_HINT = /_session|idp_login_|known_browser/i;

/** Matches an `Authorization` that carries a token or key of this host. */
export function hostBearerOf(prefixes: readonly string[]): RegExp {
  return new RegExp(`^\\s*bearer\\s+(?:${prefixes.join('|')})`, 'i');
}

/** Headers a plugin may see: those without sessions, tokens and keys of the host. */
function visibleHeaders(
  headers: Readonly<Record<string, string>>,
  hostBearer: RegExp,
): Readonly<Record<string, string>> {
  const { authorization, cookie } = headers;
  const hideCookie = cookie !== undefined && HOST_COOKIE_HINT.test(cookie);
  const hideBearer = authorization !== undefined && hostBearer.test(authorization);
  if (!hideCookie && !hideBearer) return headers;
  const visible: Record<string, string> = {};
  // Copying without the member is cheaper than deleting it from a copy.
  for (const name in headers) {
    if (name === 'authorization' && hideBearer) continue;
    if (name !== 'cookie' || !hideCookie) visible[name] = headers[name] ?? '';
    else if (othersOf(cookie) !== '') visible.cookie = othersOf(cookie);
  }
  return visible;
}

/** The cookies of a header without those of the host. */
function othersOf(cookie: string): string {
  return cookie
    .split(';')
    .filter(c => !HOST_COOKIE.test(c))
    .join(';')
    .trim();
}

/** The members of an event that hold the query: of each name the last value, all values, and the query as it was sent. */
function queryMembers(query: string): string {
  if (query === '') return '"query":{},"query_all":{},"raw_query":""';
  const all = new Map<string, string[]>();
  for (const [name, value] of new URLSearchParams(query)) {
    const values = all.get(name);
    if (values === undefined) all.set(name, [value]);
    else values.push(value);
  }
  const last = Object.fromEntries([...all].map(([name, values]) => [name, values.at(-1)]));
  return `"query":${JSON.stringify(last)},"query_all":${JSON.stringify(Object.fromEntries(all))},"raw_query":${JSON.stringify(query)}`;
}

/**
 * Event JSON of an HTTP trigger (docs/abi.md "Event JSON"). Built as text for speed; values that need escaping go
 * through JSON.stringify.
 */
export function httpEvent(trigger: HttpTrigger, requestId: string, deadlineMs: number, r: EventInput): string {
  // Plugins that answer GET need not know HEAD: the host leaves the body out.
  const method = r.method === 'HEAD' && !trigger.methods.includes('HEAD') ? 'GET' : r.method;
  return (
    `{"kind":"http","trigger":"${trigger.name}","request_id":"${requestId}","deadline_ms":${deadlineMs},"http":{"method":"${method}"` +
    `,"path":${JSON.stringify(r.path)},${queryMembers(r.query)},"headers":${JSON.stringify(visibleHeaders(r.headers, r.hostBearer))}` +
    `,"remote_addr":"${r.remoteAddr}","auth":${r.auth === null ? 'null' : JSON.stringify(r.auth)},"params":${JSON.stringify(r.params)}}}`
  );
}
