import { z } from 'zod';
import { type FieldError, ServiceError } from '../base/errors.ts';
import { LIMITS } from '../base/limits.ts';
import { didYouMean } from '../base/nearest-name.ts';
import type { Database } from '../db/database.ts';
import { jsonReply, NO_STORE, type Request } from '../http/message.ts';
import {
  ALL_TRIGGERS,
  addServiceKey,
  findServiceKey,
  listServiceKeys,
  revokeServiceKey,
  rotateServiceKey,
  type ServiceKey,
} from '../identity/service-keys.ts';
import type { PluginRegistry } from '../plugins/registry.ts';
import { parseBody } from './body.ts';
import { actorOf, endTime, pageReply, pathIdOf, queryOf, type Route } from './route.ts';

export type ServiceKeysApiParts = { db: Database; registry: PluginRegistry; prefix: string };

const TRIGGER = `must name a trigger of the plugin, or be "${ALL_TRIGGERS}" for all of them, those of later versions as well`;

const scope = z.strictObject({
  plugin_id: z.string().min(1).max(100),
  // What is left out is refused in the same words as what is empty.
  trigger: z
    .string()
    .nullish()
    .transform(name => name ?? '')
    .pipe(z.string().min(1, TRIGGER).max(200)),
});
const createBody = z.strictObject({
  name: z.string().min(1, 'must not be empty').max(200),
  scopes: z.array(scope).min(1, 'must name at least one plugin').max(LIMITS.serviceKeyScopesMax),
  expires_at: endTime,
  /** Scopes may name plugins and triggers that are not installed yet. */
  allow_unknown: z.boolean().default(false),
});
const rotateBody = z.strictObject({
  overlap_seconds: z.int().min(0).max(LIMITS.serviceKeyOverlapSecondsMax).optional(),
});

const keyJson = (k: ServiceKey) => ({
  id: k.id,
  name: k.name,
  public: k.public,
  scopes: k.scopes.map(s => ({ plugin_id: s.pluginId, trigger: s.trigger })),
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

/** Scopes that name a plugin or a trigger that is not installed, each with what was probably meant. */
function unknownScopes(registry: PluginRegistry, scopes: ReadonlyArray<z.infer<typeof scope>>): FieldError[] {
  return scopes.flatMap((s, k): FieldError[] => {
    const plugin = registry.find(s.plugin_id);
    if (plugin === undefined) {
      const known = [...registry.installed()].map(p => p.id);
      const message = `plugin "${s.plugin_id}" is not installed${didYouMean(s.plugin_id, known)}`;
      return [{ pointer: `/scopes/${k}/plugin_id`, message }];
    }
    if (s.trigger === ALL_TRIGGERS || plugin.triggers.has(s.trigger)) return [];
    const known = [...plugin.triggers.keys()];
    const hint = didYouMean(s.trigger, known) || `; it has ${known.join(', ') || 'none'}`;
    return [
      { pointer: `/scopes/${k}/trigger`, message: `plugin "${plugin.id}" has no HTTP trigger "${s.trigger}"${hint}` },
    ];
  });
}

const scopesRefused = (errors: FieldError[]): ServiceError =>
  new ServiceError(
    'validation_failed',
    `${errors.map(e => e.message).join('; ')} (send "allow_unknown": true to make the key all the same)`,
    { errors },
  );

/** Service keys: made with scopes, rotated with an overlap, revoked (docs/access.md "Principals"). */
export function serviceKeyRoutes({ db, prefix, registry }: ServiceKeysApiParts): Route[] {
  const path = '/api/admin/service-keys';
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
        const unknown = unknownScopes(registry, body.scopes);
        if (unknown.length > 0 && !body.allow_unknown) throw scopesRefused(unknown);
        const unique = new Map(body.scopes.map(s => [`${s.plugin_id}\0${s.trigger}`, s]));
        const { key, text } = await addServiceKey(
          db,
          prefix,
          {
            name: body.name,
            scopes: [...unique.values()].map(s => ({ pluginId: s.plugin_id, trigger: s.trigger })),
            expiresAt: body.expires_at,
          },
          actorOf(caller, request),
        );
        return jsonReply(201, { ...keyJson(key), key: text, warnings: unknown }, [NO_STORE]);
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
