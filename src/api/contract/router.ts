import { pipeline, Readable, Transform } from 'node:stream';
import { notCurrent, ServiceError, tooLarge } from '../../base/errors.ts';
import { noticePage } from '../../base/html.ts';
import { REQUEST_LIMITS } from '../../base/request-limits.ts';
import type { ChangeStatus } from '../../db/notifications.ts';
import { type BodyLimit, collectBody } from '../../http/collect-body.ts';
import type { Exchange } from '../../http/exchange.ts';
import {
  type BodySource,
  NO_CONTENT_POLICY,
  NO_STORE,
  type Reply,
  type Request,
  withDefaults,
} from '../../http/message.ts';
import { PAGE_HEADERS } from '../../identity/no-login.ts';
import { notModified } from './entity-tag.ts';
import type { Guards } from './guards.ts';
import { readJsonBody } from './json-thread.ts';
import type { Route } from './route.ts';
import { type KeptAnswers, runOnce } from './run-once.ts';

const NO_BODY: BodySource = { pump: () => Promise.resolve(), stream: () => Readable.from([]) };

type Compiled = Route & { segments: string[] };

function matches(route: Compiled, segments: string[]): Record<string, string> | null {
  const open = route.segments.at(-1) === '*';
  if (open ? segments.length < route.segments.length : route.segments.length !== segments.length) return null;
  const params: Record<string, string> = open ? { '*': segments.slice(route.segments.length - 1).join('/') } : {};
  for (let i = 0; i < route.segments.length - (open ? 1 : 0); i++) {
    const want = route.segments[i]!;
    const given = segments[i]!;
    if (want.startsWith(':')) {
      if (given === '') return null;
      try {
        const text = decodeURIComponent(given);
        if (text.includes('\0')) throw new Error('NUL');
        params[want.slice(1)] = text;
      } catch {
        throw new ServiceError('malformed_request', `"${given}" in the path is not valid percent-encoding`);
      }
    } else if (want !== given) return null;
  }
  return params;
}

/** A segment that is literal stands before one that is not: `/events/stream` before `/events/:event`. */
function byLiterals(a: Compiled, b: Compiled): number {
  const rank = (segment: string): number => (segment === '*' ? 2 : segment.startsWith(':') ? 1 : 0);
  for (let i = 0; i < Math.min(a.segments.length, b.segments.length); i++) {
    const difference = rank(a.segments[i]!) - rank(b.segments[i]!);
    if (difference !== 0) return difference;
  }
  return 0;
}

/** Largest JSON body of a row, with the name an error tells. */
function jsonLimitOf(route: Route): BodyLimit {
  if (route.jsonBytesMax !== undefined) return { name: 'jsonBytesMax', bytes: route.jsonBytesMax };
  if (route.guard === 'none') return { name: 'openBodyBytesMax', bytes: REQUEST_LIMITS.openBodyBytesMax };
  return { name: 'adminBodyBytesMax', bytes: REQUEST_LIMITS.adminBodyBytesMax };
}

/** @returns the value; undefined when there is no body */
async function readJson(x: Exchange, route: Route): Promise<unknown> {
  if (!x.hasBody) return undefined;
  const type = x.headers['content-type'] ?? '';
  if (!/^application\/(json|[\w.+-]+\+json)\s*(;|$)/i.test(type))
    throw new ServiceError(
      'unsupported_media_type',
      `the body must be application/json, not ${type === '' ? 'untyped' : JSON.stringify(type.slice(0, 100))}`,
    );
  const limit = jsonLimitOf(route);
  if (Number(x.headers['content-length'] ?? 0) > limit.bytes) throw tooLarge(limit.bytes, limit.name);
  const bytes = await collectBody(x.takeBody(), x.openShare(), limit);
  return bytes.length === 0 ? undefined : await readJsonBody(bytes);
}

/** Fails when a caller may not go on any more. */
type AssertStillAllowed = () => Promise<void>;

/** The JSON body of a request, read once: the second reader gets what the first one got. */
function jsonReader(
  x: Exchange,
  route: Route,
  assertStillAllowed: AssertStillAllowed,
): (optional?: boolean) => Promise<unknown> {
  let value: Promise<unknown> | null = null;
  return async (optional = false) => {
    value ??= readJson(x, route).then(async read => {
      if (x.hasBody) await assertStillAllowed();
      return read;
    });
    if (!optional && (await value) === undefined)
      throw new ServiceError('malformed_request', 'a JSON body is needed; the request has none');
    return await value;
  };
}

/** A body that ends only for a caller who may still go on: it may take half a minute, and a credential may end meanwhile. */
const checkedAtEnd = (body: BodySource, assertStillAllowed: AssertStillAllowed): BodySource => ({
  async pump(take) {
    await body.pump(take);
    await assertStillAllowed();
  },
  stream() {
    const checked = new Transform({
      transform: (chunk, _, done) => done(null, chunk),
      flush: done => void assertStillAllowed().then(() => done(), done),
    });
    // What fails fails the reader of the last stream, if there still is one.
    pipeline(body.stream(), checked, () => {});
    return checked;
  },
});

/** Whether a person followed a link or typed an address, outside of the API. */
const isPageVisit = (x: Exchange): boolean =>
  x.method === 'GET' && x.headers['sec-fetch-mode'] === 'navigate' && !x.path.startsWith('/api/');

/** A change that is stored, of which this host does not know yet that it acts on it, is no plain success. */
const ACCEPTED = 202;
const PLAIN_SUCCESS: ReadonlySet<number> = new Set([200, 201, 204]);

/** An answer with what every answer has: no cache keeps what one caller was shown, and no browser runs what is no page. */
const defended = (reply: Reply, hasCaller: boolean): Reply => ({
  ...reply,
  headers: withDefaults(reply.headers, hasCaller ? [NO_STORE, NO_CONTENT_POLICY] : [NO_CONTENT_POLICY]),
});

const noPageReply = (requestId: string): Reply => ({
  status: 404,
  headers: [...PAGE_HEADERS],
  body: noticePage('There is no such page', ['The address may be mistyped, or the page is gone.'], requestId, {
    href: '/',
    text: 'Go to the start page',
  }),
});

/**
 * The whole API but the triggers, as rows.
 *
 * @param answers of requests with an Idempotency-Key
 * @param changes `heard` resolves when this host acts on what was changed before: only then is a change answered; while it is not
 *   current, nothing is answered that needs a credential, nor the admin API
 */
export function makeRouter(
  answers: KeptAnswers,
  routes: readonly Route[],
  guards: Guards,
  changes: ChangeStatus & { heard(): Promise<boolean> },
): (x: Exchange) => Promise<void> {
  const compiled = routes.map((r): Compiled => ({ ...r, segments: r.path.split('/') })).sort(byLiterals);
  const assertMayGoOn = async (route: Route, request: Request): Promise<void> => {
    if (!(await changes.becomesCurrent())) throw notCurrent();
    await guards.look(route, request);
  };
  const mayGoOn = async (route: Route, request: Request): Promise<boolean> => {
    try {
      await assertMayGoOn(route, request);
      return true;
    } catch (error) {
      if (error instanceof ServiceError) return false;
      throw error;
    }
  };
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
      x.span?.describe(`${x.method} ${route.path}`, { 'http.route': route.path });
      const request = x.toRequest(params);
      // The body must be taken from the first moment on, or it is lost while the guard asks the database.
      const body = x.hasBody ? x.takeBody() : NO_BODY;
      if ((route.guard !== 'none' || x.path.startsWith('/api/admin/')) && !(await changes.becomesCurrent()))
        throw notCurrent();
      const caller = await guards.check(route, request);
      const isStillAllowed = () => mayGoOn(route, request);
      const assertStillAllowed = async () => (route.guard === 'none' ? undefined : await assertMayGoOn(route, request));
      const json = jsonReader(x, route, assertStillAllowed);
      const run = async () => {
        try {
          const checked = checkedAtEnd(body, assertStillAllowed);
          return await route.handle({ request, caller, json, body: checked, isStillAllowed });
        } catch (error) {
          await guards.noteRefused(caller, route, request, error);
          throw error;
        }
      };
      const key = request.headers['idempotency-key'];
      const kind = route.contract?.idempotency;
      const reply =
        key === undefined || kind === undefined
          ? await run()
          : await runOnce(answers, kind, { key, request, caller, body: await json(true) }, run);
      const isChange = route.method !== 'GET' && route.skipChangeBarrier !== true;
      const isLate = isChange && !(await changes.heard()) && PLAIN_SUCCESS.has(reply.status);
      const sent = isLate ? { ...reply, status: ACCEPTED } : reply;
      await x.reply(notModified(request, defended(sent, route.guard !== 'none')));
      return;
    }
    if (allow.size === 0 && isPageVisit(x)) return await x.reply(noPageReply(x.requestId));
    if (allow.size === 0) throw new ServiceError('not_found', `there is nothing at ${x.path}`);
    const methods = [...allow].sort().join(', ');
    throw new ServiceError('method_not_allowed', `${x.method} is not handled here; allowed: ${methods}`, {
      headers: [['Allow', methods]],
    });
  };
}
