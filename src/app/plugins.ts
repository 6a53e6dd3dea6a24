import { messageOf } from '../base/errors.ts';
import { PluginOrigins } from '../config/plugin-origins.ts';
import { isUnavailable } from '../db/database.ts';
import { PLUGIN_CHANGED } from '../db/notifications.ts';
import { endInspectThreads } from '../plugins/inspect-thread.ts';
import { PluginRegistry } from '../plugins/registry.ts';
import type { Core } from './core.ts';
import type { Feature } from './feature.ts';

/** What is installed, and the origins of plugins where they have their own. */
export type Plugins = Feature & { registry: PluginRegistry; origins: PluginOrigins | null };

export function composePlugins({ config, db, log, secrets, storage }: Core): Plugins {
  const pattern = config.values['plugins.origin'];
  const origins = pattern === '' ? null : new PluginOrigins(pattern, () => registry.ids());
  const registry = new PluginRegistry(db, secrets, storage, id => origins?.originOf(id) ?? null);
  const cannotRead = (plugin: string, error: unknown): void =>
    log.error({ plugin, error: messageOf(error) }, 'a plugin cannot be read; it does not run here');
  return {
    registry,
    origins,
    channels: {
      async [PLUGIN_CHANGED](id) {
        await registry.reload(id).catch((error: unknown) => {
          if (isUnavailable(error)) throw error;
          // Going on with the version of before could go on with what was revoked.
          registry.drop(id);
          cannotRead(id, error);
        });
      },
    },
    readAll: () => registry.loadAll(cannotRead),
    close: endInspectThreads,
  };
}
