import { triggerPolicies } from '../api/access/policy-body.ts';
import { galleryRoutes } from '../api/plugins/gallery-api.ts';
import { kitRoutes } from '../api/plugins/kits-api.ts';
import { pluginRoutes } from '../api/plugins/plugins-api.ts';
import { uninstalledRoutes } from '../api/plugins/uninstalled-api.ts';
import { guardText, loadCommandSettings } from '../authz/command-settings.ts';
import { removePluginRoles } from '../authz/graph-roles.ts';
import { messageOf } from '../base/errors.ts';
import { dataPath } from '../config/load.ts';
import { parseTrustedKey } from '../config/trusted-key.ts';
import { durationMs } from '../config/values.ts';
import { prepareLaneSource } from '../execution/lane-source.ts';
import { setDeletedOfPlugin } from '../files/file-records.ts';
import type { GraphSchema } from '../graph/graph-schema.ts';
import { removeKeyScopesOf } from '../identity/service-keys.ts';
import { FrontendInstaller } from '../plugins/frontend-install.ts';
import { type InstallerParts, PluginInstaller } from '../plugins/install.ts';
import { removeOldVersions } from '../plugins/old-versions.ts';
import { shareModules } from '../plugins/share-modules.ts';
import { trialCompile } from '../plugins/trial-compile.ts';
import { makeTrialStart } from '../plugins/trial-start.ts';
import { removeUninstalled } from '../plugins/uninstalled.ts';
import { removeActivityOf } from '../records/activity.ts';
import type { Core } from './core.ts';
import { makeDescribe } from './describe.ts';
import type { Execution } from './execution.ts';
import type { Feature } from './feature.ts';
import { makeGallery } from './gallery.ts';
import type { Plugins } from './plugins.ts';
import type { Records } from './records.ts';

export type Installation = Feature & { installer: PluginInstaller; frontends: FrontendInstaller };

export type InstallationParts = Pick<Plugins, 'registry'> &
  Pick<Records, 'quarantine'> &
  Pick<Execution, 'executor'> & { schema: GraphSchema; trials: Trials | undefined };

/** What tries an upload before it is kept. */
export type Trials = Pick<InstallerParts, 'trialCompile' | 'trialStart' | 'remembersStarts'>;

/** A host of a release that keeps modules on its disk alone may run next to this one for a while. */
const SHARE_MS = 60_000;

/** Stores in the database what a host of such a release has left on this host's disk alone. */
async function share({ contents, db, isAlone, log, storage }: Core): Promise<void> {
  const shared = isAlone ? 0 : await shareModules(db, contents, storage);
  if (shared > 0) log.info({ versions: shared }, 'modules of this host were stored in the database');
}

/** The installer of plugins, which brings modules that an older host stored up to date. */
export async function composeInstallation(core: Core, parts: InstallationParts): Promise<Installation> {
  const { config, contents, db, log, publicBase, secrets, storage } = core;
  const { executor, quarantine, registry, schema, trials } = parts;
  const v = config.values;
  const installer = new PluginInstaller({
    db,
    storage,
    registry,
    secrets,
    trialCompile: trials?.trialCompile ?? trialCompile,
    trialStart: trials?.trialStart ?? makeTrialStart(prepareLaneSource(dataPath(config, 'cache'), 'run-start')),
    remembersStarts: trials?.remembersStarts,
    describe: makeDescribe(registry, executor, v['execution.timeout_ms']),
    async onUninstall(client, id) {
      await setDeletedOfPlugin(client, id);
      await removeActivityOf(client, id);
      await removeKeyScopesOf(client, id);
      // It wakes who delivers to the graph, so it comes last.
      await removePluginRoles(client, schema, id);
    },
    onVersionChanged: (id, version, by) => quarantine.changeVersion(id, version, by),
    policies: triggerPolicies(schema),
    async commandGuards(client, id) {
      const settings = await loadCommandSettings(client, id);
      return new Map([...settings].map(([name, s]) => [name, { isEnabled: s.enabled, guard: guardText(s) }]));
    },
    sharesOrigin: v['plugins.origin'] === '',
    trustedKeys: v['plugins.trusted_keys'].flatMap(entry => parseTrustedKey(entry) ?? []),
    requiresSignature: v['plugins.require_signature'],
  });
  await installer.upgrade((version, problem) => {
    const what = { plugin: version.pluginId, version: version.version };
    if (problem === null) log.info(what, 'stored module brought up to date');
    else log.error({ ...what, problem }, 'a stored module cannot be brought up to date; upload it again');
  });
  const frontends = new FrontendInstaller({ db, storage, registry });
  const keepMs = durationMs(v['plugins.keep_uninstalled']);
  const gallery = makeGallery();
  const api = {
    ...{ db, installer, frontends, registry, quarantine, schema },
    moduleBytesMax: v['http.max_module'],
    frontendBytesMax: v['http.max_frontend'],
  };
  return {
    installer,
    frontends,
    start: () =>
      void share(core).catch((error: unknown) =>
        log.warn({ error: messageOf(error) }, 'modules of this host could not be stored in the database yet'),
      ),
    close: gallery.close,
    routes: [
      ...pluginRoutes(api),
      ...galleryRoutes({ ...api, ...gallery }),
      ...uninstalledRoutes({ db, keepMs }),
      ...kitRoutes(dataPath(config, 'kits'), publicBase, gallery.list),
    ],
    repeated: [
      { everyMs: 600_000, what: 'removing files of broken uploads', run: () => installer.removeOrphans() },
      { everyMs: SHARE_MS, what: 'storing modules in the database', run: () => share(core) },
      { everyMs: 600_000, what: 'removing modules of no version', run: () => contents.removeOrphans() },
      {
        everyMs: 600_000,
        what: 'removing old versions',
        run: () => removeOldVersions(db, storage, v['plugins.keep_versions'], log),
      },
      { everyMs: 30_000, what: 'removing uninstalled plugins', run: () => removeUninstalled(db, storage, keepMs) },
    ],
  };
}
