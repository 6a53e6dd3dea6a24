import { Readable } from 'node:stream';
import { z } from 'zod';
import { ServiceError } from '../../base/errors.ts';
import { findPlugin, findVersion } from '../../plugins/plugin-store.ts';
import { actorOf } from '../contract/caller.ts';
import { resource } from '../contract/contract.ts';
import { type Handle, serve } from '../contract/endpoint.ts';
import { pluginId } from '../contract/fields.ts';
import { pageOf, wholePage } from '../contract/paging.ts';
import { noParameters } from '../contract/query.ts';
import type { Route } from '../contract/route.ts';
import type { PluginsApiParts } from './plugin-detail.ts';
import { versionText } from './plugin-json.ts';
import { reviewJson, uploaded } from './plugin-upload-api.ts';

/** A plugin of the gallery, as the service has it. */
export type GalleryEntry = { id: string; name: string; summary: string; language: string };
type BuiltEntry = { module: Uint8Array; frontend: Uint8Array | null };

export type GalleryApiParts = PluginsApiParts & {
  list(): readonly GalleryEntry[];
  /** @throws ServiceError `unavailable` that names what is missing here to build it */
  build(id: string): Promise<BuiltEntry>;
};

const entry = z
  .object({
    id: pluginId,
    name: z.string(),
    summary: z.string().describe('What it is for, in one sentence'),
    language: z.string().describe('What it is written in'),
    installed_version: versionText.nullable().describe('Null when no plugin of this id is installed'),
  })
  .meta({ id: 'GalleryPlugin' });

/** Plugins that come with the service (docs/plugins.md "Gallery"). */
export const gallery = resource('Gallery', 'Plugins that come with the service, ready to be installed.', {
  list: {
    method: 'GET',
    path: '/api/admin/gallery',
    guard: 'admin',
    key: ['read', 'plugins:deploy'],
    summary: 'List the plugins that come with the service',
    query: noParameters,
    replies: { 200: pageOf(entry) },
  },
  upload: {
    method: 'POST',
    path: '/api/admin/gallery/:id',
    guard: 'admin',
    key: ['plugins:deploy'],
    summary: 'Build a plugin that comes with the service, and take it as an upload',
    description: 'Nothing is installed yet: what it answers is reviewed and installed like any other upload.',
    replies: { 201: uploaded },
    refusals: ['module_refused', 'frontend_refused', 'unavailable'],
    example: { params: { id: 'office-hours' } },
  },
});

const list: Handle<typeof gallery.list, GalleryApiParts> = async ({ db, list }) => {
  const items = await Promise.all(
    list().map(async ({ id, language, name, summary }) => {
      const installed = (await findPlugin(db, id))?.installedVersionId ?? null;
      const version = installed === null ? undefined : await findVersion(db, installed);
      return { id, name, summary, language, installed_version: version?.version ?? null };
    }),
  );
  return { status: 200, json: wholePage(items) };
};

const upload: Handle<typeof gallery.upload, GalleryApiParts> = async (parts, { caller, params, request }) => {
  const { frontends, installer } = parts;
  if (!parts.list().some(p => p.id === params.id))
    throw new ServiceError('not_found', `the gallery has no plugin "${params.id}"`);
  const built = await parts.build(params.id);
  const module = await installer.receive(Readable.from([built.module]), built.module.length);
  const frontend =
    built.frontend === null ? null : await frontends.receive(Readable.from([built.frontend]), built.frontend.length);
  const version = await installer.admit(module, actorOf(caller, request), frontend);
  return { status: 201, json: await reviewJson(parts, version) };
};

export const galleryRoutes = (parts: GalleryApiParts): Route[] => serve(gallery, parts, { list, upload });
