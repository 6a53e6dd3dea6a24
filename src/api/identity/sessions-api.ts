import { z } from 'zod';
import { appendAudit } from '../../audit/audit-log.ts';
import { ServiceError } from '../../base/errors.ts';
import type { Database } from '../../db/database.ts';
import { NO_STORE, type Request, sessionCookieOf } from '../../http/message.ts';
import { findUser, requireUser } from '../../identity/find-users.ts';
import { findSession, listSessions, revokeSession, type Session } from '../../identity/sessions.ts';
import { actorOf, actorOfUser, userSessionOf } from '../contract/caller.ts';
import { resource } from '../contract/contract.ts';
import { type Handle, serve } from '../contract/endpoint.ts';
import { id, time } from '../contract/fields.ts';
import { loadPage, pageOf } from '../contract/paging.ts';
import { idParam } from '../contract/params.ts';
import { noParameters, page } from '../contract/query.ts';
import { replyWriter } from '../contract/reply-writer.ts';
import type { Route } from '../contract/route.ts';
import type { SessionCookies } from '../contract/session-cookies.ts';

export type SessionsParts = {
  db: Database;
  cookies: SessionCookies;
  /** Whether users may log in with an identity provider. */
  idp: boolean;
  /** Whether a request with this session comes from a program, or from a page of ours. */
  isProven(session: Session, request: Request): boolean;
  /** @throws ServiceError `forbidden` for what a page of another origin sends */
  fromHere(request: Request): void;
};

const session = z
  .object({
    id,
    kind: z.enum(['user', 'admin']).describe('admin: opens the admin API'),
    created_at: time,
    last_used_at: time,
    expires_at: time,
    address: z.string().describe('Address of the client that logged in'),
    user_agent: z.string(),
    current: z.boolean().describe('Whether this request was sent with it'),
  })
  .meta({ id: 'Session' });

const params = { session: idParam('session') };
const ownPath = '/api/auth/sessions';
const adminPath = '/api/admin/users/:user/sessions';

/** Sessions of the user who asks (docs/identity.md "Sessions"). */
export const ownSessions = resource('Own sessions', 'Sessions of the user who asks.', {
  list: {
    method: 'GET',
    path: ownPath,
    guard: 'user',
    summary: 'List your sessions',
    query: page,
    replies: { 200: pageOf(session) },
  },
  revoke: {
    method: 'DELETE',
    path: `${ownPath}/:session`,
    guard: 'user',
    summary: 'End one of your sessions',
    params,
    replies: { 204: null },
  },
  check: {
    method: 'GET',
    path: '/api/auth/check',
    guard: 'none',
    summary: 'Tell whether the caller is logged in as a user',
    query: noParameters,
    replies: {
      200: z
        .object({
          authenticated: z.boolean(),
          idp: z.boolean().describe('Whether users may log in with an identity provider'),
          page_proof_required: z
            .boolean()
            .optional()
            .describe('For a session: whether this request lacks the header X-Page-Proof'),
          user: z
            .object({ id, display_name: z.string() })
            .optional()
            .describe('Whose session it is, unless the request lacks the header'),
        })
        .meta({ id: 'UserLoginCheck' }),
    },
  },
  logOut: {
    method: 'POST',
    path: '/api/auth/logout',
    guard: 'none',
    summary: 'Log out',
    description: 'Ends the sessions whose cookies the request carries, and takes the cookies away.',
    replies: { 204: null },
    refusals: ['forbidden'],
  },
});

/** Sessions of any user, for administrators. */
export const userSessions = resource('Sessions of users', 'Sessions of any user, for administrators.', {
  list: {
    method: 'GET',
    path: adminPath,
    guard: 'admin',
    key: ['people'],
    summary: 'List the sessions of a user',
    params: { user: idParam('user') },
    query: page,
    replies: { 200: pageOf(session) },
  },
  revoke: {
    method: 'DELETE',
    path: `${adminPath}/:session`,
    guard: 'admin',
    key: ['admin'],
    summary: 'End a session of a user',
    params: { user: idParam('user'), ...params },
    replies: { 204: null },
  },
});

const listOwn: Handle<typeof ownSessions.list, SessionsParts> = async ({ db }, { caller, query }) => {
  const own = userSessionOf(caller);
  const load = (before: number, limit: number) => listSessions(db, own.userId, before, limit);
  return { status: 200, json: await loadPage(query, load, s => sessionJson(s, own.id)) };
};

const check: Handle<typeof ownSessions.check, SessionsParts> = async (parts, { request }) => {
  const found = await findSession(parts.db, 'user', sessionCookieOf(request.headers, 'user'), Date.now());
  const own = found === undefined || found.pluginId !== null ? null : found;
  const isProven = own !== null && parts.isProven(own, request);
  const user = own !== null && isProven ? await findUser(parts.db, own.userId) : undefined;
  const json = {
    authenticated: own !== null,
    idp: parts.idp,
    ...(own === null ? {} : { page_proof_required: !isProven }),
    ...(user === undefined ? {} : { user: { id: user.id, display_name: user.displayName } }),
  };
  return { status: 200, json, headers: [NO_STORE] };
};

const revokeOwn: Handle<typeof ownSessions.revoke, SessionsParts> = async ({ db }, { caller, params, request }) => {
  const { userId } = userSessionOf(caller);
  const by = await actorOfUser(db, userId, request);
  if (!(await revokeSession(db, userId, params.session, by)))
    throw new ServiceError('not_found', `you have no session ${params.session}`);
  return { status: 204 };
};

/** The next person at this browser sees nothing of what pages kept (W3C Clear Site Data section 3.1). Cookies are taken by name. */
const FORGET: [string, string] = ['Clear-Site-Data', '"cache", "storage"'];

/** Ends the sessions of a browser, at the address of the administration. */
export const logOut: Handle<typeof ownSessions.logOut, SessionsParts> = async (
  { cookies, db, fromHere },
  { request },
) => {
  fromHere(request);
  const headers = await db.withTransaction(async client => {
    const closed = await cookies.close(client, request);
    const admins = new Set(closed.ended.filter(s => s.kind === 'admin').map(s => s.userId));
    // Administrators have a user session too: one logout is one entry.
    for (const { kind, userId } of closed.ended.filter(s => s.kind === 'admin' || !admins.has(s.userId)))
      await appendAudit(client, await actorOfUser(client, userId, request), {
        action: `${kind}.logout`,
        objectType: 'user',
        objectId: String(userId),
      });
    return closed.headers;
  });
  return { status: 204, headers: [...headers, NO_STORE, FORGET] };
};

const list: Handle<typeof userSessions.list, SessionsParts> = async ({ db }, { caller, params, query }) => {
  await requireUser(db, params.user);
  const own = caller.kind === 'admin' ? caller.session.id : null;
  const load = (before: number, limit: number) => listSessions(db, params.user, before, limit);
  return { status: 200, json: await loadPage(query, load, s => sessionJson(s, own)) };
};

const revoke: Handle<typeof userSessions.revoke, SessionsParts> = async ({ db }, { caller, params, request }) => {
  if (!(await revokeSession(db, params.user, params.session, actorOf(caller, request))))
    throw new ServiceError('not_found', `user ${params.user} has no session ${params.session}`);
  return { status: 204 };
};

export const sessionRoutes = (parts: SessionsParts): Route[] => [
  ...serve(ownSessions, parts, { check, list: listOwn, revoke: revokeOwn, logOut }),
  ...serve(userSessions, parts, { list, revoke }),
];

/** @param own id of the session that asks; null for another's */
const writeSession = replyWriter(session);
const sessionJson = (s: Session, own: number | null) => writeSession({ ...s, current: s.id === own });
