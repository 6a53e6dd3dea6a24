import { Readable } from 'node:stream';
import type { Actor } from '../audit/audit-log.ts';
import { LIMITS } from '../base/limits.ts';
import type { PluginInstaller } from './install.ts';
import { httpTriggersOf } from './manifest.ts';
import type { PluginRegistry } from './registry.ts';
import { DEFAULT_SETTINGS } from './trigger-settings.ts';

/** Id of the sample plugin (docs/api.md "Names others rely on"). */
export const SAMPLE_ID = 'hello';

const BY: Actor = { kind: 'command_line', userId: null, name: 'serve --sample', requestId: '', address: '' };

/**
 * Installs the sample plugin as an administrator would, unless it is installed or an administrator has removed it.
 *
 * @param bytes its module
 * @returns whether it was installed by this call
 */
export async function installSample(
  installer: PluginInstaller,
  registry: PluginRegistry,
  bytes: Uint8Array,
): Promise<boolean> {
  if (registry.find(SAMPLE_ID) !== undefined || (await installer.wasEverKnown(SAMPLE_ID))) return false;
  const received = await installer.receive(Readable.from([bytes]), LIMITS.moduleBytesMax);
  const version = await installer.admit(received, BY);
  const open = { ...DEFAULT_SETTINGS, allowUserSession: false };
  await installer.install(
    version.pluginId,
    {
      wasmKey: version.wasmKey,
      config: {},
      acceptPermissions: [],
      isOwn: true,
      // The curl command printed at the start has no credential, so the sample is public.
      access: {
        triggers: new Map(httpTriggersOf(version.manifest).map(t => [t.name, open])),
        acceptSuggested: false,
        acceptPublic: true,
        acceptWidening: true,
      },
    },
    BY,
  );
  return true;
}
