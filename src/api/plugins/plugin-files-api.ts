import { z } from 'zod';
import { LIMITS } from '../../base/limits.ts';
import type { Database } from '../../db/database.ts';
import {
  type FileRecord,
  type FileUsage,
  fileRefJson,
  listFiles,
  readUsage,
  readUsageOfAll,
} from '../../files/file-records.ts';
import type { Files } from '../../files/files.ts';
import { actorOf, mayUse } from '../contract/caller.ts';
import { resource } from '../contract/contract.ts';
import { type Handle, serve } from '../contract/endpoint.ts';
import { id, time } from '../contract/fields.ts';
import { loadPage, pageOf } from '../contract/paging.ts';
import * as query from '../contract/query.ts';
import type { Route } from '../contract/route.ts';
import { fileRef } from './files-api.ts';

const PLUGINS_SHOWN = 20;

export type PluginFilesParts = { db: Database; files: Files };

const ownerId = id.nullable().describe('The user; null for the plugin itself');

const pluginFile = fileRef
  .extend({
    user_id: ownerId,
    user_name: z.string().nullable().describe('What the user is called; null without a user or a name'),
    state: z.enum(['pending', 'ready', 'cancelled']).describe('cancelled: deleted while its upload may still come in'),
    store: z.enum(['disk', 's3']),
    created_at: time,
    expires_at: time.nullable(),
  })
  .meta({ id: 'PluginFile' });

const count = z.int().min(0);
const usage = z
  .object({ files: count, pending: count.describe('How many of them are not complete'), bytes: count })
  .meta({ id: 'FileUsage' });

const path = '/api/admin/plugins/:id/files';
const filters = {
  user: query.idFilter('user'),
  state: query.oneOf(['pending', 'ready'], 'Only files in this state'),
};

/** What administrators see of a plugin's files, and take away. */
export const pluginFiles = resource('Files of plugins', 'Files that a plugin holds.', {
  list: {
    method: 'GET',
    path,
    guard: 'admin',
    key: ['read'],
    summary: 'List the files of a plugin',
    query: query.list(filters),
    replies: {
      200: pageOf(pluginFile).extend({
        usage: usage.describe('All files of the plugin'),
        owners: z.array(usage.extend({ user_id: ownerId })).describe('Those with most bytes'),
      }),
    },
  },
  all: {
    method: 'GET',
    path: '/api/admin/files',
    guard: 'admin',
    key: ['read'],
    summary: 'List the files of all plugins',
    query: query.list({
      file: query.text('Only the file with this id'),
      plugin: query.text('Only files of this plugin'),
      ...filters,
    }),
    replies: {
      200: pageOf(pluginFile.extend({ plugin_id: z.string() }).meta({ id: 'AnyFile' })).extend({
        usage: usage.describe('All files of all plugins'),
        plugins: z.array(usage.extend({ plugin_id: z.string() })).describe(`The ${PLUGINS_SHOWN} with most bytes`),
      }),
    },
  },
  remove: {
    method: 'DELETE',
    path: `${path}/:file`,
    guard: 'admin_recent',
    key: ['admin'],
    summary: 'Delete a file of a plugin',
    replies: { 204: null },
  },
});

const list: Handle<typeof pluginFiles.list, PluginFilesParts> = async ({ db }, { caller, params, query }) => {
  const { user = null, state = null } = query;
  const isNamed = mayUse(caller, 'people');
  const filter = { id: null, pluginId: params.id, userId: user, state };
  const [page, usage] = await Promise.all([
    loadPage(
      query,
      (before, limit) => listFiles(db, filter, before, limit),
      row => fileJson(row, isNamed),
    ),
    readUsage(db, filter.pluginId, LIMITS.listLimitMax),
  ]);
  const owners = usage.owners.map(u => ({ user_id: u.userId, ...usageJson(u) }));
  return { status: 200, json: { ...page, usage: usageJson(usage.all), owners } };
};

const listAll: Handle<typeof pluginFiles.all, PluginFilesParts> = async ({ db }, { caller, query }) => {
  const { file = null, plugin = null, user = null, state = null } = query;
  const filter = { id: file, pluginId: plugin, userId: user, state };
  const [page, usage] = await Promise.all([
    loadPage(
      query,
      (before, limit) => listFiles(db, filter, before, limit),
      row => ({ plugin_id: row.file.pluginId, ...fileJson(row, mayUse(caller, 'people')) }),
    ),
    readUsageOfAll(db, PLUGINS_SHOWN),
  ]);
  const plugins = usage.plugins.map(u => ({ plugin_id: u.pluginId, ...usageJson(u) }));
  return { status: 200, json: { ...page, usage: usageJson(usage.all), plugins } };
};

const remove: Handle<typeof pluginFiles.remove, PluginFilesParts> = async ({ files }, { caller, params, request }) => {
  await files.removeAny(params.id, params.file, actorOf(caller, request));
  return { status: 204 };
};

export const pluginFilesRoutes = (parts: PluginFilesParts): Route[] =>
  serve(pluginFiles, parts, { list, all: listAll, remove });

/** @param isNamed whether the caller may read who people are */
const fileJson = ({ file: f, owner }: { id: number; file: FileRecord; owner: string | null }, isNamed: boolean) => ({
  ...fileRefJson(f),
  user_id: f.userId,
  user_name: isNamed ? owner : null,
  // The list holds no file that is deleted but those whose upload may still come in.
  state: f.cancelled || f.state === 'deleted' ? ('cancelled' as const) : f.state,
  store: f.store,
  created_at: f.createdAt,
  expires_at: f.expiresAt,
});

const usageJson = ({ bytes, files, pending }: Pick<FileUsage, 'bytes' | 'files' | 'pending'>) => ({
  files,
  pending,
  bytes,
});
