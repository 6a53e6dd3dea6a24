import { z } from 'zod';
import { ServiceError } from '../../base/errors.ts';
import { LIMITS } from '../../base/limits.ts';
import type { Database } from '../../db/database.ts';
import { NO_STORE } from '../../http/message.ts';
import { addAdminKey, findAdminKey, listAdminKeys, revokeAdminKey, rotateAdminKey } from '../../identity/admin-keys.ts';
import { ADMIN_SCOPES, deployedPlugins, hasScope, isScope } from '../../identity/admin-roles.ts';
import { findPlugin } from '../../plugins/plugin-store.ts';
import { actorOf, type Caller } from '../contract/caller.ts';
import { resource } from '../contract/contract.ts';
import { type Handle, serve } from '../contract/endpoint.ts';
import { endTime, id, time } from '../contract/fields.ts';
import { loadPage, pageOf } from '../contract/paging.ts';
import { idParam } from '../contract/params.ts';
import { page } from '../contract/query.ts';
import { replyWriter } from '../contract/reply-writer.ts';
import type { Route } from '../contract/route.ts';
import { rotation } from './service-keys-api.ts';

export type AdminKeysParts = { db: Database; prefix: string };

const SCOPES = `${ADMIN_SCOPES.join(', ')}, or plugins:deploy:<plugin id>`;

const SCOPES_MAX = 100;

const newKey = z
  .strictObject({
    name: z.string().min(1).max(200),
    scopes: z
      .array(z.string().refine(isScope, `must be one of ${SCOPES}`))
      .min(1, `must name at least one of ${SCOPES}`)
      .max(SCOPES_MAX)
      .describe(`What the key opens: ${SCOPES}`),
    expires_at: endTime.optional().describe('When the key ends; without it in 90 days; null for never'),
  })
  .superRefine(({ scopes }, ctx) => {
    const deploys = hasScope(scopes, 'plugins:deploy') || deployedPlugins(scopes).length > 0;
    if (scopes.includes('plugins:accept') && !deploys)
      ctx.addIssue({
        code: 'custom',
        path: ['scopes'],
        message: 'plugins:accept adds to plugins:deploy and opens nothing alone',
      });
  });

const adminKey = z
  .object({
    id,
    name: z.string(),
    public: z.string().describe('The part of the key that is no secret'),
    scopes: z.array(z.string()),
    made_by: id.describe('Id of the administrator who made it'),
    created_at: time,
    expires_at: time.nullable(),
    last_used_at: time.nullable(),
    rotated_at: time.nullable(),
    old_secret_until: time.nullable().describe('Until when the secret before the last rotation is valid'),
  })
  .meta({ id: 'AdminKey' });
const keyJson = replyWriter(adminKey);

const path = '/api/admin/keys';
const params = { key: idParam('administration key') };

/** Administration keys: credentials of programs for the admin API. Only administrators who are logged in make them. */
export const adminKeys = resource('Administration keys', 'Credentials of programs for the admin API.', {
  list: {
    method: 'GET',
    path,
    guard: 'admin',
    key: ['read'],
    summary: 'List administration keys',
    query: page,
    replies: { 200: pageOf(adminKey) },
  },
  create: {
    method: 'POST',
    path,
    guard: 'admin_recent',
    key: 'never',
    summary: 'Make an administration key',
    description: 'The answer shows the key, which is never shown again.',
    body: newKey,
    idempotency: 'secret',
    replies: {
      201: adminKey.extend({
        key: z.string().describe('The credential: Authorization: Bearer <key>'),
        unknown_plugins: z.array(z.string()).optional().describe('Plugins of its scopes that are not uploaded'),
      }),
    },
    refusals: ['conflict'],
    example: { body: { name: 'deployment', scopes: ['plugins:deploy'], expires_at: '2030-01-31T12:00:00Z' } },
  },
  get: {
    method: 'GET',
    path: `${path}/:key`,
    guard: 'admin',
    key: ['read'],
    summary: 'Read an administration key',
    params,
    replies: { 200: adminKey },
  },
  rotate: {
    method: 'POST',
    path: `${path}/:key/rotate`,
    guard: 'admin_recent',
    key: 'never',
    summary: 'Give an administration key a new secret',
    description: 'For the administrator who made it. The answer shows the key, which is never shown again.',
    params,
    body: rotation,
    idempotency: 'secret',
    replies: { 200: adminKey.extend({ key: z.string().describe('The credential: Authorization: Bearer <key>') }) },
    refusals: ['conflict'],
    example: { body: { overlap_seconds: 3600 } },
  },
  revoke: {
    method: 'DELETE',
    path: `${path}/:key`,
    // Taking a key away is what an administrator does in a hurry: a password given earlier is enough.
    guard: 'admin',
    key: ['admin'],
    summary: 'Revoke an administration key',
    params,
    replies: { 204: null },
  },
});

const list: Handle<typeof adminKeys.list, AdminKeysParts> = async ({ db }, { query }) => ({
  status: 200,
  json: await loadPage(query, (before, limit) => listAdminKeys(db, before, limit), keyJson),
});

/** @throws ServiceError `conflict` while there is no administrator */
function makerOf(caller: Caller): { madeBy: number; session: number } {
  if (caller.kind === 'admin') return { madeBy: caller.account.userId, session: caller.session.id };
  throw new ServiceError(
    'conflict',
    'an administration key belongs to the administrator who makes it; make the first administrator first: POST /api/admin/auth/setup',
  );
}

const create: Handle<typeof adminKeys.create, AdminKeysParts> = async ({ db, prefix }, { body, caller, request }) => {
  const { madeBy, session } = makerOf(caller);
  const { expires_at, name, scopes } = await body();
  const expiresAt = expires_at === undefined ? new Date(Date.now() + LIMITS.adminKeyDefaultMs) : expires_at;
  const wanted = { name, scopes: [...new Set(scopes)], madeBy, expiresAt };
  const { key, text } = await addAdminKey(db, prefix, wanted, actorOf(caller, request), session);
  const plugins = await Promise.all(
    deployedPlugins(key.scopes).map(async id => [id, await findPlugin(db, id)] as const),
  );
  const unknown = plugins.filter(([, plugin]) => plugin === undefined).map(([id]) => id);
  const shown = { ...keyJson(key), key: text, ...(unknown.length === 0 ? {} : { unknown_plugins: unknown }) };
  return { status: 201, json: shown, headers: [NO_STORE] };
};

const get: Handle<typeof adminKeys.get, AdminKeysParts> = async ({ db }, { params }) => {
  const key = await findAdminKey(db, params.key);
  if (key === undefined) throw unknownKey(params.key);
  return { status: 200, json: keyJson(key) };
};

const rotate: Handle<typeof adminKeys.rotate, AdminKeysParts> = async (
  { db, prefix },
  { body, caller, params, request },
) => {
  const { madeBy: userId } = makerOf(caller);
  const { overlap_seconds: overlapSeconds = 0 } = await body();
  const order = { id: params.key, overlapSeconds, userId };
  const rotated = await rotateAdminKey(db, prefix, order, actorOf(caller, request));
  if (rotated === undefined) throw unknownKey(params.key);
  return { status: 200, json: { ...keyJson(rotated.key), key: rotated.text }, headers: [NO_STORE] };
};

const revoke: Handle<typeof adminKeys.revoke, AdminKeysParts> = async ({ db }, { caller, params, request }) => {
  if (!(await revokeAdminKey(db, params.key, actorOf(caller, request)))) throw unknownKey(params.key);
  return { status: 204 };
};

export const adminKeyRoutes = (parts: AdminKeysParts): Route[] =>
  serve(adminKeys, parts, { list, create, get, rotate, revoke });

const unknownKey = (id: number): ServiceError => new ServiceError('not_found', `there is no administration key ${id}`);
