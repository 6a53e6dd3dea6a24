import { z } from 'zod';
import type { Database } from '../../db/database.ts';
import { listUninstalled, restoreUninstalled } from '../../plugins/uninstalled.ts';
import { actorOf } from '../contract/caller.ts';
import { resource } from '../contract/contract.ts';
import { type Handle, serve } from '../contract/endpoint.ts';
import { pluginId, time } from '../contract/fields.ts';
import { pageOf, wholePage } from '../contract/paging.ts';
import { noParameters } from '../contract/query.ts';
import type { Route } from '../contract/route.ts';
import { permission, pluginVersion, versionText, wasmKey } from './plugin-json.ts';

type UninstalledApiParts = { db: Database; keepMs: number };

const uninstalledVersion = pluginVersion
  .pick({ version: true, wasm_key: true, sha256: true, size: true, uploaded_at: true })
  .extend({
    id: pluginId,
    uninstalled_at: time,
    kept_until: time.describe('When it is removed with its files (plugins.keep_uninstalled)'),
  })
  .meta({ id: 'UninstalledVersion' });

const path = '/api/admin/uninstalled';

/** Versions of uninstalled plugins: what is kept, until when, and bringing one back. */
export const uninstalled = resource('Uninstalled plugins', 'Versions of uninstalled plugins that are still kept.', {
  list: {
    method: 'GET',
    path,
    guard: 'admin',
    key: ['read'],
    summary: 'List versions of uninstalled plugins that are kept',
    query: noParameters,
    description: 'The last uninstalled first; 1000 at most, on one page.',
    replies: { 200: pageOf(uninstalledVersion) },
  },
  restore: {
    method: 'POST',
    path: `${path}/:key/restore`,
    guard: 'admin',
    // The row names no plugin: a key for named plugins does not open it.
    key: ['plugins:deploy'],
    summary: 'Bring a version of an uninstalled plugin back',
    description:
      'The key is its wasm_key. It is as if it had just been uploaded: not installed, without configuration.',
    replies: {
      200: z.object({ id: pluginId, version: versionText, wasm_key: wasmKey, permissions: z.array(permission) }),
    },
    refusals: ['conflict'],
  },
});

const list: Handle<typeof uninstalled.list, UninstalledApiParts> = async ({ db, keepMs }) => {
  const items = (await listUninstalled(db)).map(v => ({
    id: v.pluginId,
    version: v.version,
    wasm_key: v.wasmKey,
    sha256: v.sha256,
    size: v.size,
    uploaded_at: v.uploadedAt,
    uninstalled_at: v.uninstalledAt,
    kept_until: new Date(v.uninstalledAt.getTime() + keepMs),
  }));
  return { status: 200, json: wholePage(items) };
};

const restore: Handle<typeof uninstalled.restore, UninstalledApiParts> = async (
  { db },
  { caller, params, request },
) => {
  const v = await restoreUninstalled(db, params.key, actorOf(caller, request));
  return {
    status: 200,
    json: { id: v.pluginId, version: v.version, wasm_key: v.wasmKey, permissions: v.permissions },
  };
};

export const uninstalledRoutes = (parts: UninstalledApiParts): Route[] => serve(uninstalled, parts, { list, restore });
