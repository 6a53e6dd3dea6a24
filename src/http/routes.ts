import type { Readable } from 'node:stream';
import { type FieldError, ServiceError } from '../errors.ts';
import { LIMITS } from '../limits.ts';
import type { Reply, Request } from '../message.ts';
import type { Exchange } from './exchange.ts';
import { checkGuard, type Guard, type SetupAccess } from './guards.ts';

/** What a handler may read besides the request: its JSON body, or the body as a stream. */
export type RouteInput = { request: Request; json(): Promise<unknown>; stream(): Readable };

/** One row of the API: method, path with `:name` segments, guard, handler. */
export type Route = { method: string; path: string; guard: Guard; handle(input: RouteInput): Promise<Reply> | Reply };

type Compiled = Route & { segments: string[] };

function matches(route: Compiled, segments: string[]): Record<string, string> | null {
  if (route.segments.length !== segments.length) return null;
  const params: Record<string, string> = {};
  for (let i = 0; i < segments.length; i++) {
    const want = route.segments[i]!;
    const given = segments[i]!;
    if (want.startsWith(':')) {
      if (given === '') return null;
      try {
        params[want.slice(1)] = decodeURIComponent(given);
      } catch {
        throw new ServiceError('malformed_request', `"${given}" in the path is not valid percent-encoding`);
      }
    } else if (want !== given) return null;
  }
  return params;
}

async function readJson(x: Exchange): Promise<unknown> {
  const type = x.headers['content-type'] ?? '';
  if (x.hasBody && !/^application\/(json|[\w.+-]+\+json)\s*(;|$)/i.test(type))
    throw new ServiceError(
      'unsupported_media_type',
      `the body must be application/json, not ${type === '' ? 'untyped' : JSON.stringify(type.slice(0, 100))}`,
    );
  const body = await x.readBody(LIMITS.adminBodyBytesMax, 'adminBodyBytesMax');
  if (body.length === 0) throw new ServiceError('malformed_request', 'a JSON body is needed; the request has none');
  try {
    return JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(body));
  } catch (error) {
    throw new ServiceError(
      'malformed_request',
      `the body is not JSON: ${error instanceof Error ? error.message : 'unreadable'}`,
    );
  }
}

/** The whole API beside the triggers, as rows. */
export function makeRouter(routes: readonly Route[], setup: SetupAccess): (x: Exchange) => Promise<void> {
  const compiled: Compiled[] = routes.map(r => ({ ...r, segments: r.path.split('/') }));
  return async x => {
    const segments = x.path.split('/');
    const allow = new Set<string>();
    for (const route of compiled) {
      const params = matches(route, segments);
      if (params === null) continue;
      if (route.method !== x.method && !(x.method === 'HEAD' && route.method === 'GET')) {
        allow.add(route.method);
        continue;
      }
      const request = x.toRequest(params);
      checkGuard(route.guard, request, setup);
      x.reply(await route.handle({ request, json: () => readJson(x), stream: () => x.streamBody() }));
      return;
    }
    if (allow.size === 0) throw new ServiceError('not_found', `there is nothing at ${x.path}`);
    const methods = [...allow].sort().join(', ');
    throw new ServiceError('method_not_allowed', `${x.method} is not handled here; ${methods} is`, {
      headers: [['Allow', methods]],
    });
  };
}

/** Values of a query string by name; unknown names are refused, so that a typing error does not widen an answer. */
export function queryOf(request: Request, known: readonly string[]): Map<string, string> {
  const out = new Map<string, string>();
  const errors: FieldError[] = [];
  for (const [name, value] of new URLSearchParams(request.query)) {
    if (!known.includes(name))
      errors.push({ pointer: `query:${name}`, message: `is not a parameter here; known are ${known.join(', ')}` });
    out.set(name, value);
  }
  if (errors.length > 0)
    throw new ServiceError(
      'validation_failed',
      `unknown query parameter: ${errors.map(e => e.pointer.slice(6)).join(', ')}`,
      { errors },
    );
  return out;
}

/** `limit` of a list, 1 to 200, 50 when absent. */
export function limitOf(query: ReadonlyMap<string, string>): number {
  const raw = query.get('limit');
  if (raw === undefined) return 50;
  const n = Number(raw);
  if (Number.isInteger(n) && n >= 1 && n <= LIMITS.listLimitMax) return n;
  throw new ServiceError('validation_failed', `limit must be a whole number from 1 to ${LIMITS.listLimitMax}`, {
    errors: [{ pointer: 'query:limit', message: `must be a whole number from 1 to ${LIMITS.listLimitMax}` }],
  });
}

/** Keyset cursor of a list of descending ids; opaque to the client. */
export function idCursorOf(query: ReadonlyMap<string, string>): number {
  const raw = query.get('cursor');
  if (raw === undefined) return Number.MAX_SAFE_INTEGER;
  if (/^\d{1,15}$/.test(raw)) return Number(raw);
  throw new ServiceError('validation_failed', 'cursor must be the next_cursor of the page before', {
    errors: [{ pointer: 'query:cursor', message: 'must be the next_cursor of the page before' }],
  });
}
