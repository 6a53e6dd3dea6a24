import type { Readable } from 'node:stream';
import { z } from 'zod';
import { effectiveAccess } from '../authz/trigger-access.ts';
import type { Database } from '../db/database.ts';
import type { GraphSchema } from '../graph/graph-schema.ts';
import { jsonReply } from '../http/message.ts';
import type { FrontendInstaller } from '../plugins/frontend-install.ts';
import { type PluginInstaller, unknownPlugin } from '../plugins/install.ts';
import { DEFAULT_ACCESS, type TriggerChanges } from '../plugins/install-access.ts';
import { configFieldsOf } from '../plugins/manifest.ts';
import type { ReceivedModule } from '../plugins/module-storage.ts';
import type { CheckWidening } from '../plugins/new-permissions.ts';
import {
  findPlugin,
  findVersion,
  listPlugins,
  listVersions,
  type PluginRow,
  type VersionRow,
} from '../plugins/plugin-store.ts';
import type { PluginRegistry } from '../plugins/registry.ts';
import type { Quarantine, Suspension } from '../records/quarantine.ts';
import { type AccessMembers, acceptedOf, acceptPublic, accessMembers, accessOf } from './access-body.ts';
import { accessReview } from './access-review.ts';
import { parseBody } from './body.ts';
import { policyWarnings } from './policy-body.ts';
import { receiveFiles } from './receive-file.ts';
import {
  type AdminGuard,
  actorOf,
  assertKeyHas,
  type Caller,
  type KeyNeed,
  limitOf,
  pageReply,
  queryOf,
  type Route,
} from './route.ts';

export type PluginsApiParts = {
  db: Database;
  installer: PluginInstaller;
  frontends: FrontendInstaller;
  registry: PluginRegistry;
  quarantine: Quarantine;
  schema: GraphSchema;
  moduleBytesMax: number;
  frontendBytesMax: number;
};

const installBody = z.strictObject({
  wasm_key: z.string().min(1).max(100),
  config: z.record(z.string(), z.unknown()).optional(),
  accept_permissions: z.union([z.literal(true), z.array(z.string()).max(200)]).optional(),
  ...accessMembers,
});
const frontendBody = z.strictObject({ access: z.enum(['public', 'session']) });
const htmlBody = z.strictObject({ trust: z.enum(['trusted', 'sandboxed']) });
const rollbackBody = z.strictObject({ wasm_key: z.string().min(1).max(100), accept_public: acceptPublic });

function versionJson(v: VersionRow, installedId: number | null) {
  return {
    wasm_key: v.wasmKey,
    version: v.version,
    abi: v.manifest.abi,
    sha256: v.sha256,
    size: v.size,
    permissions: v.permissions,
    memory_pages: v.runnable.memoryPages,
    uploaded_at: v.uploadedAt,
    installed_at: v.installedAt,
    installed: v.id === installedId,
    frontend: frontendJson(v),
  };
}

const frontendJson = ({ frontend: f }: VersionRow) =>
  f === null ? null : { sha256: f.sha256, packed_bytes: f.packedBytes, files: f.files, bytes: f.bytes };

/** Config values of an installation; sensitive ones only as set or not. */
function configJson(v: VersionRow) {
  return configFieldsOf(v.manifest).map(f => ({
    name: f.name,
    description: f.description,
    required: f.required,
    sensitive: f.sensitive,
    ...(f.sensitive ? {} : { value: v.config[f.name] ?? null }),
  }));
}

/** A suspension: of the plugin (a version that crashed the service), of a trigger, or of a trigger for one caller. */
const suspensionJson = (s: Suspension) => ({
  trigger: s.trigger === '' ? null : s.trigger,
  version_id: s.versionId === 0 ? null : s.versionId,
  caller: s.caller,
  callers: s.callers,
  since: s.since,
  until: s.until,
  cause: s.cause,
});

function pluginJson(p: PluginRow, v: VersionRow | undefined) {
  return {
    id: p.id,
    name: v?.manifest.name ?? null,
    version: v?.version ?? null,
    state: v === undefined ? 'uploaded' : p.enabled ? 'enabled' : 'disabled',
    frontend_origins: p.frontendOrigins,
    created_at: p.createdAt,
    updated_at: p.updatedAt,
  };
}

/** Refuses an installation that gives a plugin more than it had, for keys that may not accept that. */
const mayWiden =
  (caller: Caller): CheckWidening =>
  what =>
    assertKeyHas(caller, 'plugins:accept', what);

/** Refuses an installation that says who may call, for keys that may only deploy. */
function assertMaySetAccess(caller: Caller, body: AccessMembers): void {
  const says = Object.keys(body.triggers).length > 0 || body.accept_suggested_access || body.accept_public !== false;
  if (says) assertKeyHas(caller, 'access', 'saying who may call a trigger');
}

/** What the administrator should know of the plugin's pages before installing it; `code` is stable. */
function noticesOf({ frontend, manifest, pluginId }: VersionRow): Array<{ code: string; message: string }> {
  const notices: Array<{ code: string; message: string }> = [];
  if (manifest.triggers.some(t => t.type === 'http'))
    notices.push({
      code: 'html_sandboxed',
      message:
        'Answers of HTTP triggers that can run script (HTML, SVG, XML, PDF) are sandboxed: such a page has the origin "null" and sends no cookies. ' +
        `If this plugin serves pages that need more, deliver them as a frontend, or trust them with PUT /api/admin/plugins/${pluginId}/html {"trust": "trusted"}.`,
    });
  if (frontend !== null)
    notices.push({
      code: 'frontend_trusted',
      message:
        'Without plugins.origin, which gives every plugin an origin of its own, the frontend runs on the origin of this service and is trusted like the service itself: it can imitate its pages.',
    });
  return notices;
}

/** Upload, install and the life of a plugin (docs/plugins.md "Upload and installation"). */
export function pluginRoutes(parts: PluginsApiParts): Route[] {
  const { db, installer, quarantine, registry } = parts;
  const discard = (received: ReceivedModule) => installer.discard(received);
  const module = { receive: (file: Readable) => installer.receive(file, parts.moduleBytesMax), discard };
  const frontend = { receive: (file: Readable) => parts.frontends.receive(file, parts.frontendBytesMax), discard };
  const load = async (id: string): Promise<PluginRow> => {
    const plugin = await findPlugin(db, id);
    if (plugin === undefined) throw unknownPlugin(id);
    return plugin;
  };
  const detail = async (id: string) => {
    const plugin = await load(id);
    const version = plugin.installedVersionId === null ? undefined : await findVersion(db, plugin.installedVersionId);
    const live = registry.find(id);
    return {
      ...pluginJson(plugin, version),
      installed: version === undefined ? null : versionJson(version, version.id),
      requirements: version?.manifest.requirements ?? [],
      permissions: version?.permissions ?? [],
      config: version === undefined ? [] : configJson(version),
      network: version?.permissions.includes('network') ? version.network : null,
      findings: version?.findings ?? [],
      html: { trust: plugin.htmlTrusted ? 'trusted' : 'sandboxed' },
      frontend_access: plugin.frontendAccess,
      frontend_url: version?.frontend == null ? null : `/plugins/${id}/app/`,
      triggers: (version?.manifest.triggers ?? []).map(t => {
        const settings = live?.triggers.get(t.name)?.settings;
        return { ...t, ...(settings === undefined ? {} : { effective_access: effectiveAccess(settings) }) };
      }),
      quarantine: quarantine.list(id, Date.now()).map(suspensionJson),
    };
  };
  /** The plugin, with what its new version brought and took: nothing an upgrade adds goes unseen. */
  const installedReply = async (id: string, { added, removed }: TriggerChanges) => {
    const shown = await detail(id);
    const policies = [...(registry.find(id)?.triggers.values() ?? [])].map(t =>
      policyWarnings(db, t.settings.policyExpression, `/triggers/${t.trigger.name}/policy_expression`),
    );
    return jsonReply(200, {
      ...shown,
      warnings: (await Promise.all(policies)).flat(),
      added_triggers: shown.triggers.filter(t => added.includes(t.name)),
      removed_triggers: removed,
    });
  };
  const row =
    (guard: AdminGuard) =>
    (method: string, path: string, key: KeyNeed, handle: Route['handle']): Route => ({
      method,
      path: `/api/admin/plugins${path}`,
      guard,
      key,
      handle,
    });
  const [admin, recent] = [row('admin'), row('admin_recent')];

  return [
    admin('POST', '/upload', ['plugins:deploy', 'plugins:deploy:named'], async ({ body, caller, request }) => {
      const received = await receiveFiles(request.headers, body.stream(), { file: module, frontend });
      const file = received.get('file');
      if (file === undefined) throw new Error('the form has no module');
      const version = await installer.admit(file, actorOf(caller, request), received.get('frontend') ?? null, id =>
        assertKeyHas(caller, 'plugins:deploy', `an upload of plugin "${id}"`, id),
      );
      const plugin = await load(version.pluginId);
      const installed =
        plugin.installedVersionId === null ? undefined : await findVersion(db, plugin.installedVersionId);
      return jsonReply(201, {
        id: version.pluginId,
        name: version.manifest.name,
        version: version.version,
        abi: version.manifest.abi,
        wasm_key: version.wasmKey,
        sha256: version.sha256,
        size: version.size,
        memory_pages: version.runnable.memoryPages,
        requirements: version.manifest.requirements,
        triggers: version.manifest.triggers,
        access: accessReview(version.manifest, registry.find(version.pluginId), parts.schema),
        permissions: version.permissions,
        new_permissions:
          installed === undefined ? [] : version.permissions.filter(p => !installed.permissions.includes(p)),
        installed_version: installed?.version ?? null,
        frontend: frontendJson(version),
        findings: version.findings,
        notices: noticesOf(version),
      });
    }),
    admin('PUT', '/:id/versions/:key/frontend', ['plugins:deploy'], async ({ body, caller, request }) => {
      const received = await receiveFiles(request.headers, body.stream(), { file: frontend });
      const file = received.get('file');
      if (file === undefined) throw new Error('the form has no frontend');
      const { id = '', key = '' } = request.params;
      const version = await parts.frontends.deliver(id, key, file, actorOf(caller, request));
      return jsonReply(200, versionJson(version, null));
    }),
    recent('PUT', '/:id/frontend', ['access'], async ({ caller, json, request }) => {
      const { access } = parseBody(frontendBody, await json());
      await parts.frontends.setAccess(request.params.id!, access, actorOf(caller, request));
      return jsonReply(200, await detail(request.params.id!));
    }),
    // Trusted pages run with the rights of the users who open them, so a key may not trust them: a session of an administrator does.
    recent('PUT', '/:id/html', 'never', async ({ caller, json, request }) => {
      const { trust } = parseBody(htmlBody, await json());
      await parts.frontends.setHtmlTrust(request.params.id!, trust === 'trusted', actorOf(caller, request));
      return jsonReply(200, await detail(request.params.id!));
    }),
    recent('POST', '/:id/install', ['plugins:deploy'], async ({ caller, json, request }) => {
      const body = parseBody(installBody, await json());
      assertMaySetAccess(caller, body);
      const changes = await installer.install(
        request.params.id!,
        {
          wasmKey: body.wasm_key,
          config: body.config,
          acceptPermissions: body.accept_permissions ?? [],
          access: accessOf(body),
        },
        actorOf(caller, request),
        mayWiden(caller),
      );
      return await installedReply(request.params.id!, changes);
    }),
    recent('POST', '/:id/rollback', ['plugins:deploy'], async ({ caller, json, request }) => {
      const body = parseBody(rollbackBody, await json());
      assertMaySetAccess(caller, { ...body, triggers: {}, accept_suggested_access: false });
      const access = { ...DEFAULT_ACCESS, acceptPublic: acceptedOf(body.accept_public) };
      const by = actorOf(caller, request);
      const changes = await installer.rollback(request.params.id!, body.wasm_key, access, by, mayWiden(caller));
      return await installedReply(request.params.id!, changes);
    }),
    admin('POST', '/:id/disable', ['plugins:deploy'], async ({ caller, request }) => {
      await installer.setEnabled(request.params.id!, false, actorOf(caller, request));
      return jsonReply(200, await detail(request.params.id!));
    }),
    admin('POST', '/:id/enable', ['plugins:deploy'], async ({ caller, request }) => {
      await installer.setEnabled(request.params.id!, true, actorOf(caller, request));
      return jsonReply(200, await detail(request.params.id!));
    }),
    recent('DELETE', '/:id', ['admin'], async ({ caller, request }) => {
      await installer.uninstall(request.params.id!, actorOf(caller, request));
      return { status: 204, headers: [], body: '' };
    }),
    admin('GET', '', ['read', 'plugins:deploy'], async ({ request }) => {
      const query = queryOf(request, ['limit', 'cursor']);
      const limit = limitOf(query);
      const rows = await listPlugins(db, query.get('cursor') ?? '', limit + 1);
      const page = rows.slice(0, limit);
      const versions = await Promise.all(
        page.map(p => (p.installedVersionId === null ? undefined : findVersion(db, p.installedVersionId))),
      );
      return jsonReply(200, {
        items: page.map((p, i) => pluginJson(p, versions[i])),
        next_cursor: rows.length > limit ? page.at(-1)!.id : null,
      });
    }),
    admin('GET', '/:id', ['read', 'plugins:deploy'], async ({ request }) =>
      jsonReply(200, await detail(request.params.id!)),
    ),
    admin('GET', '/:id/versions', ['read', 'plugins:deploy'], async ({ request }) => {
      const plugin = await load(request.params.id!);
      return await pageReply(
        queryOf(request, ['limit', 'cursor']),
        (before, limit) => listVersions(db, plugin.id, before, limit),
        v => versionJson(v, plugin.installedVersionId),
      );
    }),
  ];
}
