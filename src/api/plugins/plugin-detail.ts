import { createHash } from 'node:crypto';
import { effectiveAccess } from '../../authz/trigger-access.ts';
import type { Database, Queryable } from '../../db/database.ts';
import { unknownPlugin } from '../../db/held-rows.ts';
import type { GraphSchema } from '../../graph/graph-schema.ts';
import type { Request } from '../../http/message.ts';
import type { CheckRead } from '../../plugins/check-read.ts';
import type { FrontendInstaller } from '../../plugins/frontend-install.ts';
import type { PluginInstaller } from '../../plugins/install.ts';
import { findPlugin, findVersion, type PluginRow, type VersionRow } from '../../plugins/plugin-store.ts';
import type { PluginRegistry } from '../../plugins/registry.ts';
import type { Quarantine } from '../../records/quarantine.ts';
import { checkIfMatch, type TaggedState, tagHeader } from '../contract/entity-tag.ts';
import { configJson, pluginJson, suspensionJson, versionJson } from './plugin-json.ts';

/** What the endpoints of plugins are made of. */
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

/** @throws ServiceError `not_found` */
export async function loadPlugin(db: Queryable, id: string): Promise<PluginRow> {
  const plugin = await findPlugin(db, id);
  if (plugin === undefined) throw unknownPlugin(id);
  return plugin;
}

/** What administrators set of a plugin, for its entity tag. Secrets stand in it as a hash of what is stored. */
const pluginState = (p: PluginRow, v: VersionRow | undefined): TaggedState => ({
  enabled: p.enabled,
  frontend_origins: p.frontendOrigins,
  frontend_access: p.frontendAccess,
  html_trust: p.htmlTrusted,
  wasm_key: v?.wasmKey ?? null,
  config: v?.config ?? {},
  network: v?.network ?? null,
  secrets: v?.secrets == null ? null : createHash('sha256').update(v.secrets).digest('hex'),
});

/** Refuses a change of a plugin that is not as the administrator read it. */
export const checkRead =
  (request: Request): CheckRead =>
  (plugin, installed) =>
    checkIfMatch(request, `plugin "${plugin.id}"`, pluginState(plugin, installed));

/** Everything an administrator is shown of a plugin, and its entity tag. @throws ServiceError `not_found` */
export async function pluginDetail({ db, installer, quarantine, registry }: PluginsApiParts, id: string) {
  const plugin = await loadPlugin(db, id);
  const version = plugin.installedVersionId === null ? undefined : await findVersion(db, plugin.installedVersionId);
  const live = registry.find(id);
  const tag = tagHeader(pluginState(plugin, version));
  const json = {
    ...pluginJson(plugin, version),
    installed: version === undefined ? null : versionJson(version, version.id, installer.signer(version)),
    requirements: version?.manifest.requirements ?? [],
    permissions: version?.permissions ?? [],
    config: version === undefined ? [] : configJson(version, installer.secretNames(version)),
    network: version?.permissions.includes('network') ? version.network : null,
    findings: version?.findings ?? [],
    triggers: (version?.manifest.triggers ?? []).map(t => {
      const settings = live?.triggers.get(t.name)?.settings;
      return { ...t, ...(settings === undefined ? {} : { effective_access: effectiveAccess(settings) }) };
    }),
    quarantine: quarantine.list(id, Date.now()).map(suspensionJson),
    called_by: registry.callersOf(id),
  };
  return { json, tag };
}
