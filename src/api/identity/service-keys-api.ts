import { z } from 'zod';
import { type FieldError, ServiceError } from '../../base/errors.ts';
import { LIMITS } from '../../base/limits.ts';
import { didYouMean } from '../../base/nearest-name.ts';
import type { Database } from '../../db/database.ts';
import { NO_STORE } from '../../http/message.ts';
import {
  ALL_TRIGGERS,
  addServiceKey,
  findServiceKey,
  listServiceKeys,
  revokeServiceKey,
  rotateServiceKey,
} from '../../identity/service-keys.ts';
import type { PluginRegistry } from '../../plugins/registry.ts';
import { actorOf } from '../contract/caller.ts';
import { resource } from '../contract/contract.ts';
import { type Handle, serve } from '../contract/endpoint.ts';
import { endTime, id, time, warning } from '../contract/fields.ts';
import { describeAs } from '../contract/json-schema.ts';
import { loadPage, pageOf } from '../contract/paging.ts';
import { idParam } from '../contract/params.ts';
import { page } from '../contract/query.ts';
import { replyWriter } from '../contract/reply-writer.ts';
import type { Route } from '../contract/route.ts';

export type ServiceKeysApiParts = { db: Database; registry: PluginRegistry; prefix: string };

const TRIGGER = `must name a trigger of the plugin, or be "${ALL_TRIGGERS}" for all of them, those of later versions as well`;

const scope = z.strictObject({
  plugin_id: z.string().min(1).max(100),
  trigger: describeAs(
    // A member that is left out is refused in the same words as an empty one.
    z
      .string()
      .nullish()
      .transform(name => name ?? '')
      .pipe(z.string().min(1, TRIGGER).max(200)),
    {
      type: 'string',
      minLength: 1,
      maxLength: 200,
      description: `Name of a trigger, or "${ALL_TRIGGERS}" for all, also of later versions`,
    },
  ),
});
const newKey = z.strictObject({
  name: z.string().min(1).max(200),
  scopes: z.array(scope).min(1, 'must name at least one plugin').max(LIMITS.serviceKeyScopesMax),
  expires_at: endTime.default(null),
  allow_unknown: z
    .boolean()
    .default(false)
    .describe('Whether scopes may name plugins and triggers that are not installed yet'),
});
/** How a key of any kind gets a new secret. */
export const rotation = z.strictObject({
  overlap_seconds: z
    .int()
    .min(0)
    .max(LIMITS.serviceKeyOverlapSecondsMax)
    .optional()
    .describe('How long the old secret stays valid; 0 without it'),
});

const serviceKey = z
  .object({
    id,
    name: z.string(),
    public: z.string().describe('The part of the key that is no secret'),
    scopes: z.array(z.object({ plugin_id: z.string(), trigger: z.string() })),
    created_at: time,
    rotated_at: time.nullable(),
    old_secret_until: time.nullable().describe('Until when the secret before the last rotation is valid'),
    expires_at: time.nullable(),
    last_used_at: time.nullable(),
  })
  .meta({ id: 'ServiceKey' });
const keyJson = replyWriter(serviceKey);
const withSecret = serviceKey.extend({ key: z.string().describe('The credential: Authorization: Bearer <key>') });

const path = '/api/admin/service-keys';
const params = { key: idParam('service key') };

/** Service keys: made with scopes, rotated with an overlap, revoked (docs/access.md "Principals"). */
export const serviceKeys = resource('Service keys', 'Credentials of servers that call triggers.', {
  list: {
    method: 'GET',
    path,
    guard: 'admin',
    key: ['read'],
    summary: 'List service keys',
    query: page,
    replies: { 200: pageOf(serviceKey) },
  },
  create: {
    method: 'POST',
    path,
    guard: 'admin_recent',
    key: ['admin'],
    summary: 'Make a service key',
    description: 'The answer shows the key, which is never shown again.',
    body: newKey,
    idempotency: 'secret',
    replies: { 201: withSecret.extend({ warnings: z.array(warning) }) },
    example: { body: { name: 'library system', scopes: [{ plugin_id: 'hello', trigger: 'greet' }] } },
  },
  get: {
    method: 'GET',
    path: `${path}/:key`,
    guard: 'admin',
    key: ['read'],
    summary: 'Read a service key',
    params,
    replies: { 200: serviceKey },
  },
  rotate: {
    method: 'POST',
    path: `${path}/:key/rotate`,
    guard: 'admin_recent',
    key: ['admin'],
    summary: 'Give a service key a new secret',
    params,
    body: rotation,
    idempotency: 'secret',
    replies: { 200: withSecret },
    refusals: ['conflict'],
    example: { body: { overlap_seconds: 3600 } },
  },
  revoke: {
    method: 'DELETE',
    path: `${path}/:key`,
    guard: 'admin_recent',
    key: ['admin'],
    summary: 'Revoke a service key',
    params,
    replies: { 204: null },
  },
});

const list: Handle<typeof serviceKeys.list, ServiceKeysApiParts> = async ({ db }, { query }) => ({
  status: 200,
  json: await loadPage(query, (before, limit) => listServiceKeys(db, before, limit), keyJson),
});

const create: Handle<typeof serviceKeys.create, ServiceKeysApiParts> = async (parts, { body, caller, request }) => {
  const { allow_unknown, expires_at, name, scopes } = await body();
  const unknown = unknownScopes(parts.registry, scopes);
  if (unknown.length > 0 && !allow_unknown) throw scopesRefused(unknown);
  const unique = new Map(scopes.map(s => [`${s.plugin_id}\0${s.trigger}`, s]));
  const wanted = {
    name,
    scopes: [...unique.values()].map(s => ({ pluginId: s.plugin_id, trigger: s.trigger })),
    expiresAt: expires_at,
  };
  const { key, text } = await addServiceKey(parts.db, parts.prefix, wanted, actorOf(caller, request));
  return {
    status: 201,
    json: { ...keyJson(key), key: text, warnings: unknown.map(({ message, pointer }) => ({ pointer, message })) },
    headers: [NO_STORE],
  };
};

const get: Handle<typeof serviceKeys.get, ServiceKeysApiParts> = async ({ db }, { params }) => {
  const key = await findServiceKey(db, params.key);
  if (key === undefined) throw unknownKey(params.key);
  return { status: 200, json: keyJson(key) };
};

const rotate: Handle<typeof serviceKeys.rotate, ServiceKeysApiParts> = async (parts, input) => {
  const { body, caller, params, request } = input;
  const { overlap_seconds = 0 } = await body();
  const by = actorOf(caller, request);
  const rotated = await rotateServiceKey(parts.db, parts.prefix, params.key, overlap_seconds, by);
  if (rotated === undefined) throw unknownKey(params.key);
  return { status: 200, json: { ...keyJson(rotated.key), key: rotated.text }, headers: [NO_STORE] };
};

const revoke: Handle<typeof serviceKeys.revoke, ServiceKeysApiParts> = async ({ db }, { caller, params, request }) => {
  if (!(await revokeServiceKey(db, params.key, actorOf(caller, request)))) throw unknownKey(params.key);
  return { status: 204 };
};

export const serviceKeyRoutes = (parts: ServiceKeysApiParts): Route[] =>
  serve(serviceKeys, parts, { list, create, get, rotate, revoke });

const unknownKey = (id: number): ServiceError => new ServiceError('not_found', `there is no service key ${id}`);

/** Scopes that name a plugin or a trigger that is not installed, each with what was probably meant. */
function unknownScopes(registry: PluginRegistry, scopes: ReadonlyArray<z.infer<typeof scope>>): FieldError[] {
  return scopes.flatMap((s, k): FieldError[] => {
    const plugin = registry.find(s.plugin_id);
    if (plugin === undefined) {
      const known = [...registry.installed()].map(p => p.id);
      const message = `plugin "${s.plugin_id}" is not installed${didYouMean(s.plugin_id, known)}`;
      return [{ pointer: `/scopes/${k}/plugin_id`, message, code: 'not_found' }];
    }
    if (s.trigger === ALL_TRIGGERS || plugin.triggers.has(s.trigger)) return [];
    const known = [...plugin.triggers.keys()];
    const hint = didYouMean(s.trigger, known) || `; it has ${known.join(', ') || 'none'}`;
    return [
      {
        pointer: `/scopes/${k}/trigger`,
        message: `plugin "${plugin.id}" has no HTTP trigger "${s.trigger}"${hint}`,
        code: 'not_found',
      },
    ];
  });
}

const scopesRefused = (errors: FieldError[]): ServiceError =>
  new ServiceError(
    'validation_failed',
    `${errors.map(e => e.message).join('; ')} (send "allow_unknown": true to make the key all the same)`,
    { errors },
  );
