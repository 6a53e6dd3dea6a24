import { z } from 'zod';
import { type Actor, appendAudit } from '../audit/audit-log.ts';
import type { Database, Queryable } from '../db/database.ts';
import { PLUGIN_CHANGED } from '../db/notifications.ts';
import { findRow, findRows, loadRow } from '../db/rows.ts';
import type { Finding } from './finding.ts';
import type { Manifest } from './manifest.ts';
import type { ModuleSignature } from './module-signature.ts';
import { type NetworkRules, parseStoredRules } from './network-rules.ts';
import { SETTINGS_JSON, type TriggerSettings } from './trigger-settings.ts';

/** Rows of `plugins` and `plugin_versions`; the only writer of both. */
export type VersionRow = {
  id: number;
  pluginId: string;
  version: string;
  wasmKey: string;
  sha256: string;
  size: number;
  manifest: Manifest;
  findings: Finding[];
  permissions: string[];
  config: Record<string, string>;
  secrets: Buffer | null;
  network: NetworkRules;
  runnable: Runnable;
  frontend: FrontendInfo | null;
  signature: ModuleSignature | null;
  uploadedAt: Date;
  installedAt: Date | null;
};

/** Facts about the ZIP of a version's frontend. */
export type FrontendInfo = { sha256: string; packedBytes: number; files: number; bytes: number };

export type FrontendAccess = 'public' | 'session';

/**
 * The rewritten module that is compiled and run. `format`: the gate's RUNNABLE_FORMAT when it was made. `refused`: why
 * a newer gate refuses a module that an older one accepted; such a module is not run.
 */
export type Runnable = {
  sha256: string;
  memoryPages: { min: number; max: number };
  /** Parts of the memory that making an instance overwrites, in order of their addresses. */
  overwritten: Array<{ start: number; end: number }>;
  format: number;
  refused?: string | undefined;
};

export type PluginRow = {
  id: string;
  enabled: boolean;
  installedVersionId: number | null;
  frontendOrigins: string[];
  frontendAccess: FrontendAccess;
  /** Whether answers of triggers that can run script are sent without the sandbox. */
  htmlTrusted: boolean;
  createdAt: Date;
  updatedAt: Date;
};

export type NewVersion = Omit<VersionRow, 'id' | 'uploadedAt' | 'installedAt' | 'config' | 'secrets' | 'network'>;

const runnable = z.object({
  sha256: z.string(),
  memoryPages: z.object({ min: z.number(), max: z.number() }),
  overwritten: z.array(z.object({ start: z.number(), end: z.number() })).default([]),
  format: z.number().default(1),
  refused: z.string().optional(),
});

const signature = z.object({ text: z.string(), hash: z.string() }).nullable();

const frontend = z
  .object({ sha256: z.string(), packedBytes: z.number(), files: z.number(), bytes: z.number() })
  .nullable();

/** A version as it is stored. */
export type StoredVersion = Omit<VersionRow, 'config' | 'network' | 'runnable' | 'frontend' | 'signature'> & {
  config: Record<string, string> | null;
} & Record<'network' | 'runnable' | 'frontend' | 'signature', unknown>;

export const readVersion = (v: StoredVersion): VersionRow => ({
  ...v,
  config: v.config ?? {},
  network: parseStoredRules(v.network),
  runnable: runnable.parse(v.runnable),
  frontend: frontend.parse(v.frontend),
  signature: signature.parse(v.signature),
});

const findVersionWhere = async (
  db: Queryable,
  condition: string,
  values: unknown[],
): Promise<VersionRow | undefined> => {
  const row = await findRow<StoredVersion>(db, `SELECT * FROM plugin_versions WHERE ${condition}`, values);
  return row === undefined ? undefined : readVersion(row);
};

/** Adds a version inside the caller's transaction, and with the first version also its plugin. */
export async function insertVersion(client: Queryable, v: NewVersion): Promise<VersionRow> {
  await client.query('INSERT INTO plugins (id) VALUES ($1) ON CONFLICT (id) DO NOTHING', [v.pluginId]);
  const added = await loadRow<StoredVersion>(
    client,
    `INSERT INTO plugin_versions (plugin_id, version, wasm_key, sha256, size, manifest, findings, permissions, runnable, frontend, signature)
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11) RETURNING *`,
    [
      v.pluginId,
      v.version,
      v.wasmKey,
      v.sha256,
      v.size,
      JSON.stringify(v.manifest),
      JSON.stringify(v.findings),
      v.permissions,
      JSON.stringify(v.runnable),
      v.frontend === null ? null : JSON.stringify(v.frontend),
      v.signature === null ? null : JSON.stringify(v.signature),
    ],
  );
  return readVersion(added);
}

export async function addVersion(db: Database, by: Actor, v: NewVersion): Promise<VersionRow> {
  return await db.withTransaction(async client => {
    const version = await insertVersion(client, v);
    await appendAudit(client, by, {
      action: 'plugin.upload',
      objectType: 'plugin',
      objectId: v.pluginId,
      after: {
        version: v.version,
        wasm_key: v.wasmKey,
        sha256: v.sha256,
        permissions: v.permissions,
        frontend_sha256: v.frontend?.sha256 ?? null,
      },
    });
    return version;
  });
}

/** Versions beyond those that are kept: apart from the installed one, as many of those installed before and of the rest. */
const SURPLUS = `SELECT id, plugin_id FROM (
    SELECT v.id, v.plugin_id, row_number() OVER (PARTITION BY v.plugin_id, v.installed_at IS NULL
      ORDER BY coalesce(v.installed_at, v.uploaded_at) DESC, v.id DESC) AS place
    FROM plugin_versions v JOIN plugins p ON p.id = v.plugin_id WHERE v.id IS DISTINCT FROM p.installed_version_id) v
  WHERE place > $1`;

/**
 * Removes versions beyond those that are kept of each plugin: the installed one, and of those that were installed before
 * and of those that never were the `keep` last ones each.
 *
 * @returns what was removed
 */
export async function deleteOldVersions(
  db: Database,
  keep: number,
): Promise<Array<{ plugin: string; version: string; wasmKey: string }>> {
  const { rows: crowded } = await db.query<{ id: string }>(
    `SELECT DISTINCT plugin_id AS id FROM (${SURPLUS}) s ORDER BY 1`,
    [keep],
  );
  const removed: Array<{ plugin: string; version: string; wasmKey: string }> = [];
  for (const { id: plugin } of crowded)
    await db.withTransaction(async client => {
      // A rollback to one of them goes first, or finds that it is gone.
      await lockPlugin(client, plugin);
      const { rows } = await client.query<{ version: string; wasm_key: string }>(
        `DELETE FROM plugin_versions WHERE id IN (SELECT id FROM (${SURPLUS}) s WHERE plugin_id = $2)
         RETURNING version, wasm_key`,
        [keep, plugin],
      );
      removed.push(...rows.map(r => ({ plugin, version: r.version, wasmKey: r.wasm_key })));
    });
  return removed;
}

export async function findPlugin(db: Queryable, id: string): Promise<PluginRow | undefined> {
  return await findRow<PluginRow>(db, 'SELECT * FROM plugins WHERE id = $1', [id]);
}

/** Locks the row until the transaction ends, so that installations of one plugin run one after another. */
export async function lockPlugin(client: Queryable, id: string): Promise<PluginRow | undefined> {
  return await findRow<PluginRow>(client, 'SELECT * FROM plugins WHERE id = $1 FOR UPDATE', [id]);
}

export async function findVersion(db: Queryable, id: number): Promise<VersionRow | undefined> {
  return await findVersionWhere(db, 'id = $1', [id]);
}

export async function findVersionByKey(
  db: Queryable,
  pluginId: string,
  wasmKey: string,
): Promise<VersionRow | undefined> {
  return await findVersionWhere(db, 'plugin_id = $1 AND wasm_key = $2', [pluginId, wasmKey]);
}

export async function listVersions(
  db: Queryable,
  pluginId: string,
  before: number,
  limit: number,
): Promise<VersionRow[]> {
  const rows = await findRows<StoredVersion>(
    db,
    'SELECT * FROM plugin_versions WHERE plugin_id = $1 AND id < $2 ORDER BY id DESC LIMIT $3',
    [pluginId, before, limit],
  );
  return rows.map(readVersion);
}

/** The installed versions with their plugins and trigger settings, in one statement: what a starting host needs. */
export async function loadInstalled(
  db: Queryable,
  pluginId: string | null,
): Promise<Array<{ plugin: PluginRow; version: VersionRow; settings: Map<string, TriggerSettings> }>> {
  const rows = await findRows<StoredVersion & Omit<PluginRow, 'id'> & { settings: Record<string, TriggerSettings> }>(
    db,
    `SELECT v.*, p.enabled, p.installed_version_id, p.frontend_origins, p.frontend_access, p.html_trusted, p.created_at,
       p.updated_at, (SELECT coalesce(jsonb_object_agg(s.trigger_name, ${SETTINGS_JSON}), '{}')
        FROM plugin_trigger_settings s WHERE s.plugin_id = p.id) AS settings
     FROM plugins p JOIN plugin_versions v ON v.id = p.installed_version_id
     WHERE $1::text IS NULL OR p.id = $1`,
    [pluginId],
  );
  return rows.map(row => {
    const { createdAt, enabled, frontendAccess, frontendOrigins, htmlTrusted, installedVersionId, updatedAt } = row;
    const { settings, ...version } = row;
    return {
      plugin: {
        ...{ id: row.pluginId, enabled, installedVersionId, frontendOrigins, frontendAccess, htmlTrusted },
        ...{ createdAt, updatedAt },
      },
      version: readVersion(version),
      settings: new Map(Object.entries(settings)),
    };
  });
}

/** Versions whose runnable has another format, made by an older release; the installed ones first. */
export async function listOutdated(db: Queryable, format: number): Promise<VersionRow[]> {
  const rows = await findRows<StoredVersion>(
    db,
    `SELECT v.* FROM plugin_versions v LEFT JOIN plugins p ON p.installed_version_id = v.id
     WHERE coalesce((v.runnable ->> 'format')::int, 1) <> $1 ORDER BY p.id IS NULL, v.id`,
    [format],
  );
  return rows.map(readVersion);
}

/** Stores the runnable and the findings of a newer gate. */
export async function setRunnable(
  db: Queryable,
  versionId: number,
  runnable: Runnable,
  findings: readonly Finding[],
): Promise<void> {
  await db.query('UPDATE plugin_versions SET runnable = $2, findings = $3 WHERE id = $1', [
    versionId,
    JSON.stringify(runnable),
    JSON.stringify(findings),
  ]);
}

/** Replaces the frontend of a version that was never installed, inside the caller's transaction. */
export async function setFrontend(client: Queryable, versionId: number, info: FrontendInfo): Promise<void> {
  await client.query('UPDATE plugin_versions SET frontend = $2 WHERE id = $1', [versionId, JSON.stringify(info)]);
}

export async function setFrontendAccess(client: Queryable, pluginId: string, access: FrontendAccess): Promise<void> {
  await client.query('UPDATE plugins SET frontend_access = $2, updated_at = now() WHERE id = $1', [pluginId, access]);
  await notifyChanged(client, pluginId);
}

export async function setHtmlTrusted(client: Queryable, pluginId: string, trusted: boolean): Promise<void> {
  await client.query('UPDATE plugins SET html_trusted = $2, updated_at = now() WHERE id = $1', [pluginId, trusted]);
  await notifyChanged(client, pluginId);
}

/**
 * Whether a plugin with this id was ever installed, or uploaded by a person. Reads the audit log, because it also has
 * removed plugins.
 */
export async function wasEverKnown(db: Queryable, id: string): Promise<boolean> {
  const { rows } = await db.query<{ known: boolean }>(
    `SELECT EXISTS (SELECT 1 FROM audit_log WHERE object_type = 'plugin' AND object_id = $1
       AND (action = 'plugin.install' OR action = 'plugin.upload' AND actor_kind <> 'command_line')) AS known`,
    [id],
  );
  return rows[0]?.known === true;
}

/** Keys of the modules of all versions, uninstalled ones included; one statement, so that none is missed. */
export async function listModuleKeys(db: Queryable): Promise<Set<string>> {
  const { rows } = await db.query<{ wasm_key: string }>(
    'SELECT wasm_key FROM plugin_versions UNION ALL SELECT wasm_key FROM uninstalled_versions',
  );
  return new Set(rows.map(r => r.wasm_key));
}

/** Installs a version, inside the caller's transaction. Hosts are notified at the commit. */
export async function setInstalled(
  client: Queryable,
  pluginId: string,
  versionId: number,
  values: { config: Record<string, string>; secrets: Buffer; network: NetworkRules } | null,
): Promise<void> {
  await client.query('UPDATE plugin_versions SET installed_at = now() WHERE id = $1', [versionId]);
  if (values !== null)
    await client.query('UPDATE plugin_versions SET config = $2, secrets = $3, network = $4 WHERE id = $1', [
      versionId,
      JSON.stringify(values.config),
      values.secrets,
      JSON.stringify(values.network),
    ]);
  // Trust in the pages of a plugin ends with its installation.
  await client.query(
    `UPDATE plugins SET installed_version_id = $2, updated_at = now(),
       html_trusted = html_trusted AND installed_version_id IS NOT NULL
     WHERE id = $1`,
    [pluginId, versionId],
  );
  await notifyChanged(client, pluginId);
}

export async function setEnabled(client: Queryable, pluginId: string, enabled: boolean): Promise<void> {
  await client.query('UPDATE plugins SET enabled = $2, updated_at = now() WHERE id = $1', [pluginId, enabled]);
  await notifyChanged(client, pluginId);
}

export async function setFrontendOrigins(client: Queryable, pluginId: string, origins: string[]): Promise<void> {
  await client.query('UPDATE plugins SET frontend_origins = $2, updated_at = now() WHERE id = $1', [pluginId, origins]);
  await notifyChanged(client, pluginId);
}

/** Removes a plugin with all its rows. The files of its versions stay. */
export async function removePlugin(client: Queryable, pluginId: string): Promise<void> {
  await client.query('DELETE FROM plugins WHERE id = $1', [pluginId]);
  await notifyChanged(client, pluginId);
}

/** Encrypted secrets of all versions. Locks their rows until the transaction ends. */
export async function listSealedSecrets(client: Queryable): Promise<Array<VersionRow & { secrets: Buffer }>> {
  const rows = await findRows<StoredVersion>(
    client,
    'SELECT * FROM plugin_versions WHERE secrets IS NOT NULL ORDER BY id FOR UPDATE',
  );
  return rows.map(readVersion).flatMap(v => (v.secrets === null ? [] : [{ ...v, secrets: v.secrets }]));
}

/** Replaces the stored secrets of a version. */
export async function setSealedSecrets(client: Queryable, versionId: number, sealed: Buffer): Promise<void> {
  await client.query('UPDATE plugin_versions SET secrets = $2 WHERE id = $1', [versionId, sealed]);
}

/**
 * Removes the stored secrets of a version, which then must be installed again. Disables the plugin if the version is
 * installed, because without its secrets it could admit callers that it should refuse.
 *
 * @returns whether the version is installed
 */
export async function loseSecrets(client: Queryable, pluginId: string, versionId: number): Promise<boolean> {
  await client.query('UPDATE plugin_versions SET secrets = NULL, installed_at = NULL WHERE id = $1', [versionId]);
  if ((await findPlugin(client, pluginId))?.installedVersionId !== versionId) return false;
  await setEnabled(client, pluginId, false);
  return true;
}

/** Notifies every host of this database when the transaction commits. */
export async function notifyChanged(client: Queryable, pluginId: string): Promise<void> {
  await client.query('SELECT pg_notify($1, $2)', [PLUGIN_CHANGED, pluginId]);
}
