import { type Actor, appendAudit } from '../audit/audit-log.ts';
import { ServiceError } from '../base/errors.ts';
import type { Database, Queryable } from '../db/database.ts';
import { findRow, findRows } from '../db/rows.ts';
import { RUNNABLE_FORMAT } from './gate/rewrite.ts';
import type { ModuleStorage } from './module-storage.ts';
import { NO_RULES } from './network-rules.ts';
import { insertVersion, readVersion, type StoredVersion, type VersionRow } from './plugin-store.ts';

/** Versions of uninstalled plugins: kept for `plugins.keep_uninstalled`, then removed with their files. */
export type UninstalledVersion = {
  wasmKey: string;
  pluginId: string;
  version: string;
  sha256: string;
  size: number;
  uploadedAt: Date;
  uninstalledAt: Date;
};

/** Keeps all versions of a plugin that is being removed, without configuration and secrets. */
export async function keepVersions(client: Queryable, pluginId: string): Promise<void> {
  await client.query(
    `INSERT INTO uninstalled_versions (wasm_key, plugin_id, version, sha256, size, manifest, findings, permissions, runnable, frontend, signature, uploaded_at)
     SELECT wasm_key, plugin_id, version, sha256, size, manifest, findings, permissions, runnable, frontend, signature, uploaded_at
     FROM plugin_versions WHERE plugin_id = $1`,
    [pluginId],
  );
}

/** Lists the kept versions, the last uninstalled first. */
export async function listUninstalled(db: Queryable): Promise<UninstalledVersion[]> {
  return await findRows<UninstalledVersion>(
    db,
    `SELECT wasm_key, plugin_id, version, sha256, size, uploaded_at, uninstalled_at FROM uninstalled_versions
     ORDER BY uninstalled_at DESC, wasm_key LIMIT 1000`,
  );
}

/**
 * Restores a kept version as if it had just been uploaded: not installed and without configuration.
 *
 * @throws ServiceError `not_found`; `conflict` when an older release prepared it
 */
export async function restoreUninstalled(db: Database, wasmKey: string, by: Actor): Promise<VersionRow> {
  return await db.withTransaction(async client => {
    const row = await findRow<Omit<StoredVersion, 'id' | 'config' | 'secrets' | 'network' | 'installedAt'>>(
      client,
      'DELETE FROM uninstalled_versions WHERE wasm_key = $1 RETURNING *',
      [wasmKey],
    );
    if (row === undefined)
      throw new ServiceError(
        'not_found',
        'no uninstalled version with this wasm_key is kept; GET /api/admin/uninstalled lists those that are',
      );
    const kept = readVersion({ ...row, id: 0, config: null, secrets: null, network: NO_RULES, installedAt: null });
    if (kept.runnable.format !== RUNNABLE_FORMAT)
      throw new ServiceError('conflict', 'this version was prepared by another release; upload its module again');
    const version = await insertVersion(client, kept);
    await appendAudit(client, by, {
      action: 'plugin.restore',
      objectType: 'plugin',
      objectId: kept.pluginId,
      after: { version: kept.version, wasm_key: wasmKey, sha256: kept.sha256, permissions: kept.permissions },
    });
    return version;
  });
}

/**
 * Removes kept versions that are older than `keepMs`, with their files. If a crash interrupts it, the remaining files
 * belong to no version and are removed like those of interrupted uploads.
 *
 * @returns how many versions were removed
 */
export async function removeUninstalled(db: Database, storage: ModuleStorage, keepMs: number): Promise<number> {
  const { rows } = await db.query<{ wasm_key: string }>(
    "DELETE FROM uninstalled_versions WHERE uninstalled_at <= now() - $1 * interval '1 ms' RETURNING wasm_key",
    [keepMs],
  );
  for (const { wasm_key } of rows) await storage.remove(wasm_key);
  return rows.length;
}
