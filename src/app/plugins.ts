import { messageOf } from '../base/errors.ts';
import { PluginOrigins } from '../config/plugin-origins.ts';
import { isUnavailable } from '../db/database.ts';
import { PLUGIN_CHANGED } from '../db/notifications.ts';
import { endInspectThreads } from '../plugins/inspect-thread.ts';
import { PluginRegistry } from '../plugins/registry.ts';
import { listRecentlyRun } from '../records/execution-records.ts';
import type { Core } from './core.ts';
import type { Feature } from './feature.ts';

/** Share of the memory budget that compiled modules may take. */
const COMPILED_SHARE = 1 / 3;
/** Plugins compiled after the start, those that ran last. */
const COMPILED_AT_START = 64;

/** What is installed, and the origins of plugins where they have their own. */
export type Plugins = Feature & { registry: PluginRegistry; origins: PluginOrigins | null };

export function composePlugins({ config, db, log, secrets, storage }: Core): Plugins {
  const pattern = config.values['plugins.origin'];
  const origins = pattern === '' ? null : new PluginOrigins(pattern, () => registry.ids());
  const budget = config.values['execution.memory_budget_mb'] * 1024 * 1024;
  const registry = new PluginRegistry({
    db,
    box: secrets,
    storage,
    ownOrigin: id => origins?.originOf(id) ?? null,
    compiledBytesMax: budget === 0 ? Number.POSITIVE_INFINITY : budget * COMPILED_SHARE,
  });
  const stopped = new AbortController();
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
    start() {
      // The first execution of what ran before the start should not wait for the compiler either.
      void listRecentlyRun(db, COMPILED_AT_START)
        .then(ids => registry.compileAll(ids, stopped.signal))
        .catch((error: unknown) => log.warn({ error: messageOf(error) }, 'no plugin is compiled ahead'));
    },
    async close() {
      stopped.abort();
      await endInspectThreads();
    },
  };
}
