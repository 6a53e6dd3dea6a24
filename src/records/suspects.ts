import { LIMITS } from '../base/limits.ts';
import type { Database } from '../db/database.ts';
import { findVersion } from '../plugins/plugin-store.ts';
import type { Quarantine } from './quarantine.ts';
import { type Crash, isActive } from './suspension.ts';

/** A version that ran during each crash of the serving process, and what the supervisor observed. */
export type Suspect = { versionId: number; seen: string; crashes: Crash[] };

/**
 * Suspends versions that crashed the serving process: the first time for an hour, the second time until an
 * administrator resumes the plugin.
 */
export async function suspendSuspects(
  db: Database,
  quarantine: Quarantine,
  suspects: readonly Suspect[],
): Promise<void> {
  for (const { crashes, seen, versionId } of suspects) {
    const version = await findVersion(db, versionId);
    if (version === undefined) continue;
    const before = quarantine.findOfVersion(version.pluginId, versionId);
    const now = Date.now();
    // Another serving process got the same crash to handle, and has suspended it a moment ago.
    if (before !== undefined && isActive(before, now)) continue;
    const cause = `version ${version.version} was running when the serving process ${seen}`;
    await quarantine.suspend({
      pluginId: version.pluginId,
      trigger: '',
      versionId,
      caller: null,
      since: new Date(now),
      until: before === undefined ? new Date(now + LIMITS.crashSuspensionMs) : null,
      level: before === undefined ? 0 : 1,
      reason: 'version_crashed',
      failure: null,
      version: version.version,
      crashes,
      cause: before === undefined ? cause : `${cause}; this is the second time, after a suspension of one hour`,
      callers: 0,
    });
  }
}
