import { triggerPolicies } from '../api/policy-body.ts';
import { removePluginRoles } from '../authz/graph-roles.ts';
import type { Log } from '../base/log.ts';
import type { Executor } from '../execution/execute.ts';
import { setDeletedOfPlugin } from '../files/file-records.ts';
import type { GraphSchema } from '../graph/graph-schema.ts';
import type { HostCall } from '../host/host-functions.ts';
import { type InstallerParts, PluginInstaller } from '../plugins/install.ts';
import { trialCompile } from '../plugins/trial-compile.ts';
import { makeDescribe } from './describe.ts';

/** The installer of plugins, which brings modules that an older host stored up to date. */
export async function composeInstaller(
  parts: Pick<InstallerParts, 'db' | 'storage' | 'registry' | 'secrets'> & {
    executor: Executor<HostCall>;
    schema: GraphSchema;
    log: Log;
    timeoutMs: number;
  },
): Promise<PluginInstaller> {
  const { db, executor, log, registry, schema, secrets, storage, timeoutMs } = parts;
  const installer = new PluginInstaller({
    db,
    storage,
    registry,
    secrets,
    trialCompile,
    describe: makeDescribe(registry, executor, timeoutMs),
    async onUninstall(client, id) {
      await setDeletedOfPlugin(client, id);
      // It wakes who delivers to the graph, so it comes last.
      await removePluginRoles(client, schema, id);
    },
    policies: triggerPolicies(schema),
  });
  await installer.upgrade((version, problem) => {
    const what = { plugin: version.pluginId, version: version.version };
    if (problem === null) log.info(what, 'stored module brought up to date');
    else log.error({ ...what, problem }, 'a stored module cannot be brought up to date; upload it again');
  });
  return installer;
}
