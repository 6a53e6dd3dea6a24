import type { HttpTrigger } from '../plugins/manifest.ts';

/** The principal a plugin sees as `ctx.HTTP.Auth` (service.md 2.4); null on public endpoints. */
export type HttpAuth = { kind: 'user'; user_id: number } | { kind: 'service'; service_key_id: number };

export type EventInput = {
  method: string;
  /** Path behind the plugin id. */
  path: string;
  query: string;
  headers: Readonly<Record<string, string>>;
  remoteAddr: string;
  params: Readonly<Record<string, string>>;
  auth: HttpAuth | null;
};

const HOST_COOKIE = /^\s*(user_session|admin_session)\s*=/;
const HOST_BEARER = /^\s*bearer\s+ph[tk]_/i;

/** Headers a plugin may see: the host's own sessions, tokens and keys are not the plugin's business. */
function visibleHeaders(headers: Readonly<Record<string, string>>): Readonly<Record<string, string>> {
  const { authorization, cookie } = headers;
  const hideCookie = cookie?.includes('_session');
  const hideBearer = authorization !== undefined && HOST_BEARER.test(authorization);
  if (!hideCookie && !hideBearer) return headers;
  const visible = { ...headers };
  if (hideBearer) delete visible.authorization;
  if (hideCookie) {
    const rest = (cookie ?? '')
      .split(';')
      .filter(c => !HOST_COOKIE.test(c))
      .join(';')
      .trim();
    if (rest === '') delete visible.cookie;
    else visible.cookie = rest;
  }
  return visible;
}

function queryJson(query: string): string {
  return query === '' ? '{}' : JSON.stringify(Object.fromEntries(new URLSearchParams(query)));
}

/** Event JSON of an HTTP trigger (abi.md "Event JSON"). Built as text: the parts that need escaping go through JSON. */
export function httpEvent(trigger: HttpTrigger, requestId: string, deadlineMs: number, r: EventInput): string {
  return (
    `{"kind":"http","trigger":"${trigger.name}","request_id":"${requestId}","deadline_ms":${deadlineMs},"http":{"method":"${r.method}"` +
    `,"path":${JSON.stringify(r.path)},"query":${queryJson(r.query)},"headers":${JSON.stringify(visibleHeaders(r.headers))}` +
    `,"remote_addr":"${r.remoteAddr}","auth":${r.auth === null ? 'null' : JSON.stringify(r.auth)},"params":${JSON.stringify(r.params)}}}`
  );
}
