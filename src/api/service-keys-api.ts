import { z } from 'zod';
import type { Database } from '../db/database.ts';
import { ServiceError } from '../errors.ts';
import {
  addServiceKey,
  findServiceKey,
  listServiceKeys,
  revokeServiceKey,
  rotateServiceKey,
  type ServiceKey,
} from '../identity/service-keys.ts';
import { LIMITS } from '../limits.ts';
import { jsonReply, type Request } from '../message.ts';
import { parseBody } from './plugins-api.ts';
import { actorOf, endTime, pageReply, pathIdOf, queryOf, type Route } from './route.ts';

export type ServiceKeysApiParts = { db: Database; prefix: string };

const scope = z.strictObject({
  plugin_id: z.string().min(1).max(100),
  /** Absent or null: all triggers of the plugin. */
  trigger: z.string().min(1).max(200).nullable().optional(),
});
const createBody = z.strictObject({
  name: z.string().min(1, 'must not be empty').max(200),
  scopes: z.array(scope).min(1, 'must name at least one plugin').max(LIMITS.serviceKeyScopesMax),
  expires_at: endTime,
});
const rotateBody = z.strictObject({
  overlap_seconds: z.int().min(0).max(LIMITS.serviceKeyOverlapSecondsMax).optional(),
});

const keyJson = (k: ServiceKey) => ({
  id: k.id,
  name: k.name,
  public: k.public,
  scopes: k.scopes.map(s => ({ plugin_id: s.pluginId, trigger: s.trigger === '' ? null : s.trigger })),
  created_at: k.createdAt,
  rotated_at: k.rotatedAt,
  old_secret_until: k.oldUntil,
  expires_at: k.expiresAt,
  last_used_at: k.lastUsedAt,
});

function keyIdOf(request: Request): number {
  const id = pathIdOf(request, 'key');
  if (id === undefined) throw unknownKey(request);
  return id;
}

const unknownKey = (request: Request): ServiceError =>
  new ServiceError('not_found', `there is no service key ${request.params.key}`);

/** Service keys: made with scopes, rotated with an overlap, revoked (service.md 5.1). */
export function serviceKeyRoutes({ db, prefix }: ServiceKeysApiParts): Route[] {
  const path = '/api/admin/service-keys';
  const NO_STORE: [string, string] = ['Cache-Control', 'no-store'];
  return [
    {
      method: 'GET',
      path,
      guard: 'admin',
      key: ['read'],
      async handle({ request }) {
        const query = queryOf(request, ['limit', 'cursor']);
        return await pageReply(query, (before, limit) => listServiceKeys(db, before, limit), keyJson);
      },
    },
    {
      method: 'POST',
      path,
      guard: 'admin_recent',
      key: ['admin'],
      async handle({ caller, json, request }) {
        const body = parseBody(createBody, await json());
        const unique = new Map(body.scopes.map(s => [`${s.plugin_id}\0${s.trigger ?? ''}`, s]));
        const { key, text } = await addServiceKey(
          db,
          prefix,
          {
            name: body.name,
            scopes: [...unique.values()].map(s => ({ pluginId: s.plugin_id, trigger: s.trigger ?? '' })),
            expiresAt: body.expires_at,
          },
          actorOf(caller, request),
        );
        return jsonReply(201, { ...keyJson(key), key: text }, [NO_STORE]);
      },
    },
    {
      method: 'GET',
      path: `${path}/:key`,
      guard: 'admin',
      key: ['read'],
      async handle({ request }) {
        const key = await findServiceKey(db, keyIdOf(request));
        if (key === undefined) throw unknownKey(request);
        return jsonReply(200, keyJson(key));
      },
    },
    {
      method: 'POST',
      path: `${path}/:key/rotate`,
      guard: 'admin_recent',
      key: ['admin'],
      async handle({ caller, json, request }) {
        const body = parseBody(rotateBody, await json());
        const rotated = await rotateServiceKey(
          db,
          prefix,
          keyIdOf(request),
          body.overlap_seconds ?? 0,
          actorOf(caller, request),
        );
        if (rotated === undefined) throw unknownKey(request);
        return jsonReply(200, { ...keyJson(rotated.key), key: rotated.text }, [NO_STORE]);
      },
    },
    {
      method: 'DELETE',
      path: `${path}/:key`,
      guard: 'admin_recent',
      key: ['admin'],
      async handle({ caller, request }) {
        if (!(await revokeServiceKey(db, keyIdOf(request), actorOf(caller, request)))) throw unknownKey(request);
        return { status: 204, headers: [], body: '' };
      },
    },
  ];
}
