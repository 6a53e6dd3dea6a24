import { z } from 'zod';
import { appendAudit } from '../../audit/audit-log.ts';
import { ServiceError } from '../../base/errors.ts';
import { LIMITS } from '../../base/limits.ts';
import type { Database, Queryable } from '../../db/database.ts';
import { holdUser } from '../../db/held-rows.ts';
import { NO_STORE } from '../../http/message.ts';
import { findAdmin } from '../../identity/admin-accounts.ts';
import { requireUser } from '../../identity/find-users.ts';
import { holdSession } from '../../identity/sessions.ts';
import { addUserToken, countUserTokens, listUserTokens, revokeUserToken } from '../../identity/user-tokens.ts';
import { actorOf, actorOfUser, userSessionOf } from '../contract/caller.ts';
import { resource } from '../contract/contract.ts';
import { type Handle, serve } from '../contract/endpoint.ts';
import { endTime, id, time } from '../contract/fields.ts';
import { loadPage, pageOf } from '../contract/paging.ts';
import { idParam } from '../contract/params.ts';
import { page } from '../contract/query.ts';
import { replyWriter } from '../contract/reply-writer.ts';
import type { Route } from '../contract/route.ts';

export type UserTokensParts = { db: Database; userTokenPrefix: string };

const newToken = z.strictObject({
  name: z.string().min(1).max(200),
  expires_at: endTime.default(null).describe('When the token ends; null for never'),
});

const userToken = z
  .object({
    id,
    name: z.string(),
    public: z.string().describe('The part of the token that is no secret'),
    created_at: time,
    expires_at: time.nullable(),
    last_used_at: time.nullable(),
  })
  .meta({ id: 'UserToken' });

const token = idParam('token');
const user = idParam('user');
const ownPath = '/api/auth/tokens';
const adminPath = '/api/admin/users/:user/tokens';

/** Tokens of the user who asks (docs/identity.md "Sessions"): credentials of programs that call triggers and hand over files. */
export const ownTokens = resource('Own tokens', 'Tokens of the user who asks.', {
  list: {
    method: 'GET',
    path: ownPath,
    guard: 'user',
    summary: 'List your tokens',
    query: page,
    replies: { 200: pageOf(userToken) },
  },
  create: {
    method: 'POST',
    path: ownPath,
    guard: 'user',
    summary: 'Make a token',
    description: 'The answer shows the token, which is never shown again.',
    body: newToken,
    idempotency: 'secret',
    replies: {
      201: userToken.extend({ token: z.string().describe('The credential: Authorization: Bearer <token>') }),
    },
    refusals: ['password_change_required'],
    example: { body: { name: 'script', expires_at: '2030-01-31T12:00:00Z' } },
  },
  revoke: {
    method: 'DELETE',
    path: `${ownPath}/:token`,
    guard: 'user',
    summary: 'Revoke one of your tokens',
    params: { token },
    replies: { 204: null },
  },
});

/** Tokens of any user, for administrators. */
export const userTokens = resource('Tokens of users', 'Tokens of any user, for administrators.', {
  list: {
    method: 'GET',
    path: adminPath,
    guard: 'admin',
    key: ['people'],
    summary: 'List the tokens of a user',
    params: { user },
    query: page,
    replies: { 200: pageOf(userToken) },
  },
  revoke: {
    method: 'DELETE',
    path: `${adminPath}/:token`,
    guard: 'admin',
    key: ['admin'],
    summary: 'Revoke a token of a user',
    params: { user, token },
    replies: { 204: null },
  },
});

const listOwn: Handle<typeof ownTokens.list, UserTokensParts> = async ({ db }, { caller, query }) => {
  const { userId } = userSessionOf(caller);
  const json = await loadPage(query, (before, limit) => listUserTokens(db, userId, before, limit), tokenJson);
  return { status: 200, json };
};

/** @throws ServiceError `conflict` for a user who has as many tokens as one may have */
async function assertRoom(client: Queryable, userId: number): Promise<void> {
  if ((await countUserTokens(client, userId)) < LIMITS.userTokensMax) return;
  throw new ServiceError(
    'conflict',
    `you have ${LIMITS.userTokensMax} tokens, the maximum (userTokensMax); revoke one first`,
  );
}

const create: Handle<typeof ownTokens.create, UserTokensParts> = async (parts, { body, caller, request }) => {
  const { db, userTokenPrefix } = parts;
  const { id: session, userId, via } = userSessionOf(caller);
  const { expires_at, name } = await body();
  if (via === 'password' && (await findAdmin(db, userId))?.mustChangePassword === true)
    throw new ServiceError(
      'password_change_required',
      'change the temporary password first: PUT /api/admin/auth/password',
    );
  const { text, token } = await db.withTransaction(async client => {
    await holdUser(client, userId);
    await holdSession(client, session);
    await assertRoom(client, userId);
    const made = await addUserToken(client, userTokenPrefix, { userId, name, expiresAt: expires_at });
    const { expiresAt, id } = made.token;
    await appendAudit(client, await actorOfUser(client, userId, request), {
      action: 'token.create',
      objectType: 'user',
      objectId: String(userId),
      after: { token: id, name: made.token.name, expires_at: expiresAt },
    });
    return made;
  });
  return { status: 201, json: { ...tokenJson(token), token: text }, headers: [NO_STORE] };
};

const revokeOwn: Handle<typeof ownTokens.revoke, UserTokensParts> = async ({ db }, { caller, params, request }) => {
  const { userId } = userSessionOf(caller);
  const by = await actorOfUser(db, userId, request);
  if (!(await revokeUserToken(db, userId, params.token, by)))
    throw new ServiceError('not_found', `you have no token ${params.token}`);
  return { status: 204 };
};

const list: Handle<typeof userTokens.list, UserTokensParts> = async ({ db }, { params, query }) => {
  await requireUser(db, params.user);
  const json = await loadPage(query, (before, limit) => listUserTokens(db, params.user, before, limit), tokenJson);
  return { status: 200, json };
};

const revoke: Handle<typeof userTokens.revoke, UserTokensParts> = async ({ db }, { caller, params, request }) => {
  if (!(await revokeUserToken(db, params.user, params.token, actorOf(caller, request))))
    throw new ServiceError('not_found', `user ${params.user} has no token ${params.token}`);
  return { status: 204 };
};

export const userTokenRoutes = (parts: UserTokensParts): Route[] => [
  ...serve(ownTokens, parts, { list: listOwn, create, revoke: revokeOwn }),
  ...serve(userTokens, parts, { list, revoke }),
];

const tokenJson = replyWriter(userToken);
