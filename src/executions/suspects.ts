import type { Database } from '../db/database.ts';
import type { Log } from '../log.ts';
import { findVersion } from '../plugins/plugin-store.ts';
import type { Quarantine } from './quarantine.ts';

/** Suspends the plugins that took the process along twice (security.md layer 3). */
export async function suspendSuspects(
  db: Database,
  quarantine: Quarantine,
  versions: readonly number[],
  log: Log,
): Promise<void> {
  for (const id of versions) {
    const version = await findVersion(db, id);
    if (version === undefined) continue;
    const cause = `version ${version.version} was running when the service crashed twice in a row`;
    log.error({ plugin: version.pluginId, version: version.version }, `plugin suspended: ${cause}`);
    await quarantine.suspend({
      pluginId: version.pluginId,
      trigger: '',
      since: new Date(),
      until: null,
      level: 0,
      cause,
    });
  }
}
