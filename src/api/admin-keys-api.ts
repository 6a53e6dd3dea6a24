import { z } from 'zod';
import { ServiceError } from '../base/errors.ts';
import { LIMITS } from '../base/limits.ts';
import type { Database } from '../db/database.ts';
import { jsonReply, NO_STORE, type Request } from '../http/message.ts';
import {
  ADMIN_SCOPES,
  type AdminKey,
  addAdminKey,
  deployedPlugins,
  findAdminKey,
  isScope,
  keyHas,
  listAdminKeys,
  revokeAdminKey,
} from '../identity/admin-keys.ts';
import { findPlugin } from '../plugins/plugin-store.ts';
import { parseBody } from './body.ts';
import { actorOf, endTime, pageReply, pathIdOf, queryOf, type Route } from './route.ts';

const SCOPES = `${ADMIN_SCOPES.join(', ')}, or plugins:deploy:<plugin id>`;

const SCOPES_MAX = 100;

const createBody = z
  .strictObject({
    name: z.string().min(1, 'must not be empty').max(200),
    scopes: z
      .array(z.string().refine(isScope, `must be one of ${SCOPES}`))
      .min(1, `must name at least one of ${SCOPES}`)
      .max(SCOPES_MAX),
    expires_at: endTime.unwrap().optional(),
  })
  .superRefine(({ scopes }, ctx) => {
    const deploys = keyHas({ scopes }, 'plugins:deploy') || deployedPlugins(scopes).length > 0;
    if (scopes.includes('plugins:accept') && !deploys)
      ctx.addIssue({
        code: 'custom',
        path: ['scopes'],
        message: 'plugins:accept adds to plugins:deploy and opens nothing alone',
      });
  });

const keyJson = (k: AdminKey) => ({
  id: k.id,
  name: k.name,
  public: k.public,
  scopes: k.scopes,
  made_by: k.madeBy,
  created_at: k.createdAt,
  expires_at: k.expiresAt,
  last_used_at: k.lastUsedAt,
});

function keyIdOf(request: Request): number {
  const id = pathIdOf(request, 'key');
  if (id === undefined) throw unknownKey(request);
  return id;
}

const unknownKey = (request: Request): ServiceError =>
  new ServiceError('not_found', `there is no administration key ${request.params.key}`);

/** Administration keys: credentials of programs for the admin API. Only administrators who are logged in make them. */
export function adminKeyRoutes({ db, prefix }: { db: Database; prefix: string }): Route[] {
  const path = '/api/admin/keys';
  return [
    {
      method: 'GET',
      path,
      guard: 'admin',
      key: ['read'],
      async handle({ request }) {
        const query = queryOf(request, ['limit', 'cursor']);
        return await pageReply(query, (before, limit) => listAdminKeys(db, before, limit), keyJson);
      },
    },
    {
      method: 'POST',
      path,
      guard: 'admin_recent',
      key: 'never',
      async handle({ caller, json, request }) {
        if (caller.kind !== 'admin')
          throw new ServiceError(
            'conflict',
            'an administration key belongs to the administrator who makes it; make the first administrator first: POST /api/admin/auth/setup',
          );
        const body = parseBody(createBody, await json());
        const expiresAt =
          body.expires_at === undefined ? new Date(Date.now() + LIMITS.adminKeyDefaultMs) : body.expires_at;
        const { key, text } = await addAdminKey(
          db,
          prefix,
          { name: body.name, scopes: [...new Set(body.scopes)], madeBy: caller.account.userId, expiresAt },
          actorOf(caller, request),
        );
        const plugins = await Promise.all(deployedPlugins(key.scopes).map(async id => [id, await findPlugin(db, id)]));
        const unknown = plugins.filter(([, plugin]) => plugin === undefined).map(([id]) => id);
        return jsonReply(
          201,
          { ...keyJson(key), key: text, ...(unknown.length === 0 ? {} : { unknown_plugins: unknown }) },
          [NO_STORE],
        );
      },
    },
    {
      method: 'GET',
      path: `${path}/:key`,
      guard: 'admin',
      key: ['read'],
      async handle({ request }) {
        const key = await findAdminKey(db, keyIdOf(request));
        if (key === undefined) throw unknownKey(request);
        return jsonReply(200, keyJson(key));
      },
    },
    {
      method: 'DELETE',
      path: `${path}/:key`,
      // Taking a key away is what an administrator does in a hurry: a password given earlier is enough.
      guard: 'admin',
      key: ['admin'],
      async handle({ caller, request }) {
        if (!(await revokeAdminKey(db, keyIdOf(request), actorOf(caller, request)))) throw unknownKey(request);
        return { status: 204, headers: [], body: '' };
      },
    },
  ];
}
