import { writeKit } from '../../authors/new-project.ts';
import { Swapper } from '../../authors/swapper.ts';
import { messageOf } from '../../base/errors.ts';
import { type BuiltModule, endBuilds } from '../../projects/build-project.ts';
import { readProject } from '../../projects/project.ts';
import { pluginLogs } from './call-commands.ts';
import { ask, type Remote, type RemoteFlags } from './remote.ts';

/** `plugin dev --remote`: each change of a plugin is uploaded to a test service and installed there. */

export type DevRemoteFlags = RemoteFlags & { acceptPublic?: boolean };

/** What the folder holds, in the form of an upload. */
function formOf({ frontend, manifest, module }: BuiltModule): FormData {
  const form = new FormData();
  form.append('file', new Blob([Uint8Array.from(module)]), `${manifest.id}.wasm`);
  if (frontend !== null) form.append('frontend', new Blob([Uint8Array.from(frontend)]), `${manifest.id}.zip`);
  return form;
}

/**
 * Uploads and installs at each change, and shows executions, until it is stopped.
 *
 * @param say writes for the author
 * @returns stops it
 */
export async function startRemoteDev(
  folder: string,
  remote: Remote,
  flags: DevRemoteFlags,
  say: (text: string) => void,
): Promise<() => Promise<void>> {
  const project = readProject(folder);
  writeKit(project.language, project.root);
  const { host } = remote;
  const target = {
    async install(built: BuiltModule) {
      const body = formOf(built);
      const uploaded = await ask(() => host.POST('/api/admin/plugins/upload', { body, bodySerializer: form => form }));
      const { devConfig: config } = readProject(project.root);
      const install = {
        wasm_key: uploaded.wasm_key,
        ...(Object.keys(config).length === 0 ? {} : { config }),
        accept_permissions: true as const,
        accept_suggested_access: true,
        accept_public: flags.acceptPublic === true,
        accept_widening: true,
      };
      const params = { path: { id: built.manifest.id } };
      await ask(() => host.POST('/api/admin/plugins/{id}/install', { params, body: install }));
      return uploaded.findings;
    },
  };
  const swapper = new Swapper(project, target, say);
  await swapper.swap();
  await swapper.watch();
  const { manifest } = swapper;
  say(`each change of ${project.root} is uploaded and installed`);
  if (manifest !== null)
    void pluginLogs(remote, manifest.id, { follow: true, limit: '1' }, say).catch((error: unknown) =>
      say(`executions are not shown any more: ${messageOf(error)}`),
    );
  return async () => {
    await swapper.close();
    await endBuilds();
  };
}
