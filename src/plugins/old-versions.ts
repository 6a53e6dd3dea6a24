import type { Log } from '../base/log.ts';
import type { Database } from '../db/database.ts';
import type { ModuleStorage } from './module-storage.ts';
import { deleteOldVersions } from './plugin-store.ts';

/**
 * Removes versions beyond those that are kept of a plugin (docs/operating.md "What is kept how long"), with their files.
 * Files on other hosts belong to no version then, and are removed there as such.
 *
 * @param keep how many stay of those that were installed before, and of those that never were
 * @returns how many versions were removed
 */
export async function removeOldVersions(db: Database, storage: ModuleStorage, keep: number, log: Log): Promise<number> {
  const removed = await deleteOldVersions(db, keep);
  for (const { plugin, version, wasmKey } of removed) {
    log.info({ plugin, version, wasm_key: wasmKey }, 'an old version was removed');
    await storage.remove(wasmKey);
  }
  return removed.length;
}
