import type { Queryable } from '../db/database.ts';
import { findVersion, type PluginRow, type VersionRow } from './plugin-store.ts';

/** Throws when a plugin is not as it was when the request was made. Called under the lock of the plugin's row. */
export type CheckRead = (plugin: PluginRow, installed: VersionRow | undefined) => void;

/** The installed version of a plugin; undefined when none is. */
export async function findInstalled(db: Queryable, plugin: PluginRow): Promise<VersionRow | undefined> {
  return plugin.installedVersionId === null ? undefined : await findVersion(db, plugin.installedVersionId);
}
