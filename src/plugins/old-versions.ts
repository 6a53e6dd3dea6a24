import type { Database } from '../db/database.ts';
import type { ModuleStorage } from './module-storage.ts';
import { deleteOldVersions } from './plugin-store.ts';

/**
 * Removes versions beyond those that are kept of a plugin (docs/operating.md "What is kept how long"), with their files.
 * Files on other hosts belong to no version then, and are removed there as such.
 *
 * @param keep how many stay, the installed one aside
 * @returns how many versions were removed
 */
export async function removeOldVersions(db: Database, storage: ModuleStorage, keep: number): Promise<number> {
  const keys = await deleteOldVersions(db, keep);
  for (const key of keys) await storage.remove(key);
  return keys.length;
}
