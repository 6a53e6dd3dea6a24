import { z } from 'zod';
import type { CheckWidening } from '../../plugins/install.ts';
import type { TriggerChanges } from '../../plugins/install-access.ts';
import { listPlugins } from '../../plugins/list-plugins.ts';
import { findVersion, listVersions, type PluginRow } from '../../plugins/plugin-store.ts';
import type { Widening } from '../../plugins/widening.ts';
import { countFailed } from '../../records/activity.ts';
import { type AccessMembers, acceptPublic, acceptWidening, accessMembers, accessOf } from '../access/access-body.ts';
import { policyWarning, policyWarnings } from '../access/policy-body.ts';
import { actorOf, assertHasScope, type Caller } from '../contract/caller.ts';
import { resource } from '../contract/contract.ts';
import { type Handle, serve } from '../contract/endpoint.ts';
import { loadPage, pageOf } from '../contract/paging.ts';
import { limit, page, text } from '../contract/query.ts';
import type { Route } from '../contract/route.ts';
import { checkRead, loadPlugin, type PluginsApiParts, pluginDetail } from './plugin-detail.ts';
import {
  frontendAccess,
  htmlTrust,
  installedTrigger,
  listedPlugin,
  plugin,
  pluginJson,
  pluginVersion,
  versionJson,
} from './plugin-json.ts';
import { deliverFrontend, module, pluginUploads, review, upload } from './plugin-upload-api.ts';

export type { PluginsApiParts } from './plugin-detail.ts';

const chosenVersion = z.string().min(1).max(100).describe('The wasm_key of an uploaded version');

const installBody = z.strictObject({
  wasm_key: chosenVersion,
  config: z
    .record(z.string(), z.unknown())
    .describe('Values of the config fields, and the sections databases and network; what is left out stays as it is')
    .optional(),
  accept_permissions: z
    .union([z.literal(true), z.array(z.string()).max(200)])
    .describe('Permissions the installed version does not have: all of them, or these')
    .optional(),
  ...accessMembers,
});
const rollbackBody = z.strictObject({
  wasm_key: chosenVersion,
  accept_public: acceptPublic,
  accept_widening: acceptWidening,
});

/** The plugin, with what its new version brought and took: nothing an upgrade adds goes unseen. */
const installation = plugin
  .extend({
    warnings: z.array(policyWarning),
    added_triggers: z.array(installedTrigger),
    removed_triggers: z.array(z.string()).describe('Names'),
  })
  .meta({ id: 'Installation' });

const path = '/api/admin/plugins';
const wasmKeyExample = '3f2a9c0d5b7e41688f1c2d3e4a5b6c7d';

/** The life of a plugin (docs/plugins.md "Upload and installation"). */
export const plugins = resource('Plugins', 'Upload, installation and the life of plugins.', {
  ...pluginUploads.endpoints,
  setFrontendAccess: {
    method: 'PUT',
    path: `${path}/:id/frontend`,
    guard: 'admin_recent',
    key: ['access'],
    summary: "Say who may open a plugin's frontend",
    body: z.strictObject({ access: frontendAccess }),
    ifMatch: 'the plugin',
    replies: { 200: plugin },
    example: { body: { access: 'session' } },
  },
  setHtmlTrust: {
    method: 'PUT',
    path: `${path}/:id/html`,
    guard: 'admin_recent',
    // Trusted pages run with the rights of the users who open them, so a key may not trust them: a session of an administrator does.
    key: 'never',
    summary: "Trust the pages that a plugin's triggers answer, or sandbox them",
    body: z.strictObject({ trust: htmlTrust }),
    ifMatch: 'the plugin',
    replies: { 200: plugin },
    refusals: ['conflict'],
    example: { body: { trust: 'sandboxed' } },
  },
  install: {
    method: 'POST',
    path: `${path}/:id/install`,
    guard: 'admin_recent',
    key: ['plugins:deploy'],
    summary: 'Install an uploaded version',
    description:
      'It runs from now on; executions of the version before finish on it. New permissions, and triggers that become callable without a login, must be accepted.',
    body: installBody,
    ifMatch: 'the plugin',
    replies: { 200: installation },
    refusals: ['module_refused', 'permissions_not_accepted', 'confirmation_required'],
    example: {
      body: {
        wasm_key: wasmKeyExample,
        config: { greeting: 'Hello' },
        triggers: { greet: { allow_service_key: true } },
      },
    },
  },
  rollback: {
    method: 'POST',
    path: `${path}/:id/rollback`,
    guard: 'admin_recent',
    key: ['plugins:deploy'],
    summary: 'Go back to a version that was installed before',
    description: 'It has the configuration that it had then.',
    body: rollbackBody,
    ifMatch: 'the plugin',
    replies: { 200: installation },
    refusals: ['conflict', 'module_refused', 'confirmation_required'],
    example: { body: { wasm_key: wasmKeyExample } },
  },
  disable: {
    method: 'POST',
    path: `${path}/:id/disable`,
    guard: 'admin',
    key: ['plugins:deploy'],
    summary: 'Disable a plugin',
    ifMatch: 'the plugin',
    replies: { 200: plugin },
  },
  enable: {
    method: 'POST',
    path: `${path}/:id/enable`,
    guard: 'admin',
    key: ['plugins:deploy'],
    summary: 'Enable a plugin',
    ifMatch: 'the plugin',
    replies: { 200: plugin },
  },
  uninstall: {
    method: 'DELETE',
    path: `${path}/:id`,
    guard: 'admin_recent',
    key: ['admin'],
    summary: 'Uninstall a plugin',
    description: 'Its settings, keys and values are removed. Its versions are kept for plugins.keep_uninstalled.',
    ifMatch: 'the plugin',
    replies: { 204: null },
  },
  list: {
    method: 'GET',
    path,
    guard: 'admin',
    key: ['read', 'plugins:deploy'],
    summary: 'List plugins',
    description: 'In the order of their ids.',
    query: z.strictObject({
      limit,
      cursor: text('The next_cursor of the page before'),
      search: text('Part of the id or of the name'),
    }),
    replies: { 200: pageOf(listedPlugin) },
  },
  get: {
    method: 'GET',
    path: `${path}/:id`,
    guard: 'admin',
    key: ['read', 'plugins:deploy'],
    summary: 'Read a plugin',
    description:
      'The ETag stands for what administrators set: the installed version, its configuration, access, origins, trust, enabled.',
    hasTag: true,
    replies: { 200: plugin },
  },
  listVersions: {
    method: 'GET',
    path: `${path}/:id/versions`,
    guard: 'admin',
    key: ['read', 'operate', 'plugins:deploy'],
    summary: 'List the versions of a plugin',
    query: page,
    replies: { 200: pageOf(pluginVersion) },
  },
});

const DAY_MS = 24 * 3_600_000;

const setFrontendAccess: Handle<typeof plugins.setFrontendAccess, PluginsApiParts> = async (
  parts,
  { body, caller, params, request },
) => {
  const { access } = await body();
  await parts.frontends.setAccess(params.id, access, actorOf(caller, request), checkRead(request));
  return await pluginReply(parts, params.id);
};

const setHtmlTrust: Handle<typeof plugins.setHtmlTrust, PluginsApiParts> = async (
  parts,
  { body, caller, params, request },
) => {
  const { trust } = await body();
  await parts.frontends.setHtmlTrust(params.id, trust === 'trusted', actorOf(caller, request), checkRead(request));
  return await pluginReply(parts, params.id);
};

async function pluginReply(parts: PluginsApiParts, id: string) {
  const { json, tag } = await pluginDetail(parts, id);
  return { status: 200 as const, json, headers: [tag] };
}

/** Kinds of widening that are about who may call. */
const ABOUT_ACCESS: ReadonlySet<string> = new Set(['policy', 'public'] satisfies Array<Widening['kind']>);

/** Refuses an installation that widens what a plugin may, or who may call it, for callers that may not accept that. */
const mayWiden =
  (caller: Caller): CheckWidening =>
  found => {
    const said = (of: readonly Widening[]) => `an installation that widens ${of.map(w => w.message).join('; ')}`;
    const [access, rights] = [true, false].map(is => found.filter(w => ABOUT_ACCESS.has(w.kind) === is));
    if (rights !== undefined && rights.length > 0) assertHasScope(caller, 'plugins:accept', said(rights));
    if (access !== undefined && access.length > 0) assertHasScope(caller, 'access', said(access));
  };

/** Refuses an installation that says who may call, for callers that may only deploy. */
function assertMaySetAccess(caller: Caller, body: AccessMembers): void {
  const says = Object.keys(body.triggers).length > 0 || body.accept_suggested_access || body.accept_public !== false;
  if (says) assertHasScope(caller, 'access', 'saying who may call a trigger');
}

async function installationReply(parts: PluginsApiParts, id: string, { added, removed }: TriggerChanges) {
  const { json: shown, tag } = await pluginDetail(parts, id);
  const policies = [...(parts.registry.find(id)?.triggers.values() ?? [])].map(t =>
    policyWarnings(parts.db, t.settings.policyExpression, `/triggers/${t.trigger.name}/policy_expression`),
  );
  const json = {
    ...shown,
    warnings: (await Promise.all(policies)).flat(),
    added_triggers: shown.triggers.filter(t => added.includes(t.name)),
    removed_triggers: removed,
  };
  return { status: 200 as const, json, headers: [tag] };
}

const install: Handle<typeof plugins.install, PluginsApiParts> = async (parts, { body, caller, params, request }) => {
  const wanted = await body();
  assertMaySetAccess(caller, wanted);
  const changes = await parts.installer.install(
    params.id,
    {
      wasmKey: wanted.wasm_key,
      config: wanted.config,
      acceptPermissions: wanted.accept_permissions ?? [],
      access: accessOf(wanted),
      checkRead: checkRead(request),
    },
    actorOf(caller, request),
    mayWiden(caller),
  );
  return await installationReply(parts, params.id, changes);
};

const rollback: Handle<typeof plugins.rollback, PluginsApiParts> = async (parts, { body, caller, params, request }) => {
  const { wasm_key, ...accepted } = await body();
  const said = { ...accepted, triggers: {}, accept_suggested_access: false };
  assertMaySetAccess(caller, said);
  const access = accessOf(said);
  const by = actorOf(caller, request);
  const wanted = { wasmKey: wasm_key, access, checkRead: checkRead(request) };
  const changes = await parts.installer.rollback(params.id, wanted, by, mayWiden(caller));
  return await installationReply(parts, params.id, changes);
};

const disable: Handle<typeof plugins.disable, PluginsApiParts> = async (parts, { caller, params, request }) => {
  await parts.installer.setEnabled(params.id, false, actorOf(caller, request), checkRead(request));
  return await pluginReply(parts, params.id);
};

const enable: Handle<typeof plugins.enable, PluginsApiParts> = async (parts, { caller, params, request }) => {
  await parts.installer.setEnabled(params.id, true, actorOf(caller, request), checkRead(request));
  return await pluginReply(parts, params.id);
};

const uninstall: Handle<typeof plugins.uninstall, PluginsApiParts> = async (
  { installer },
  { caller, params, request },
) => {
  await installer.uninstall(params.id, actorOf(caller, request), checkRead(request));
  return { status: 204 };
};

const list: Handle<typeof plugins.list, PluginsApiParts> = async ({ db, quarantine }, { query }) => {
  const { cursor = '', limit, search = '' } = query;
  const rows = await listPlugins(db, { after: cursor, limit: limit + 1, search });
  const shown = rows.slice(0, limit);
  const versions = await Promise.all(
    shown.map(p => (p.installedVersionId === null ? undefined : findVersion(db, p.installedVersionId))),
  );
  const since = new Date(Date.now() - DAY_MS);
  const failed = await countFailed(
    db,
    shown.map(p => p.id),
    since,
  );
  const forAll = quarantine.list(null, Date.now()).filter(s => s.caller === null);
  // A suspension of a version holds while that version runs.
  const isSuspended = ({ id, installedVersionId }: PluginRow): boolean =>
    forAll.some(s => s.pluginId === id && (s.versionId === 0 || s.versionId === installedVersionId));
  const items = shown.map((p, i) => ({
    ...pluginJson(p, versions[i]),
    failed_24h: failed.get(p.id) ?? 0,
    suspended: isSuspended(p),
  }));
  return { status: 200, json: { items, next_cursor: rows.length > limit ? (shown.at(-1)?.id ?? null) : null } };
};

const get: Handle<typeof plugins.get, PluginsApiParts> = (parts, { params }) => pluginReply(parts, params.id);

const listVersionsOf: Handle<typeof plugins.listVersions, PluginsApiParts> = async ({ db, installer }, input) => {
  const { id, installedVersionId } = await loadPlugin(db, input.params.id);
  const load = (before: number, most: number) => listVersions(db, id, before, most);
  return {
    status: 200,
    json: await loadPage(input.query, load, v => versionJson(v, installedVersionId, installer.signer(v))),
  };
};

export const pluginRoutes = (parts: PluginsApiParts): Route[] =>
  serve(plugins, parts, {
    upload,
    review,
    module,
    deliverFrontend,
    setFrontendAccess,
    setHtmlTrust,
    install,
    rollback,
    disable,
    enable,
    uninstall,
    list,
    get,
    listVersions: listVersionsOf,
  });
