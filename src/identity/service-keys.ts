import { type Actor, type AuditState, appendAudit } from '../audit/audit-log.ts';
import type { Database, Queryable } from '../db/database.ts';
import { findRow, findRows } from '../db/rows.ts';
import { assertNotExpired, makeBearer, makeSecret } from './bearer-secret.ts';
import { BearerTable } from './bearer-table.ts';
import { notifyIdentity, notifyKeys } from './identity-changes.ts';

/** The trigger name of a scope for all triggers of a plugin, including those of later versions. */
export const ALL_TRIGGERS = '*';

/** One trigger a key may call, or `ALL_TRIGGERS` of a plugin. */
export type KeyScope = { pluginId: string; trigger: string };

export type ServiceKey = {
  id: number;
  name: string;
  public: string;
  scopes: KeyScope[];
  createdAt: Date;
  rotatedAt: Date | null;
  /** Until when the secret before the last rotation is valid. */
  oldSecretUntil: Date | null;
  expiresAt: Date | null;
  lastUsedAt: Date | null;
};

const COLUMNS = `t.id, t.name, t.public, t.created_at, t.rotated_at, t.old_until AS old_secret_until, t.expires_at, t.last_used_at,
  coalesce((SELECT jsonb_agg(jsonb_build_object('pluginId', s.plugin_id, 'trigger', s.trigger_name)
    ORDER BY s.plugin_id, s.trigger_name) FROM service_key_scopes s WHERE s.service_key_id = t.id), '[]') AS scopes`;

export const serviceKeys = new BearerTable<ServiceKey>({ name: 'service_keys', columns: COLUMNS, rotates: true });

const keyState = (k: ServiceKey): AuditState => ({
  name: k.name,
  public: k.public,
  scopes: k.scopes.map(s => ({ plugin_id: s.pluginId, trigger: s.trigger })),
  expires_at: k.expiresAt,
});

const rotationState = (k: ServiceKey): AuditState => ({
  ...keyState(k),
  rotated_at: k.rotatedAt,
  old_secret_until: k.oldSecretUntil,
});

/** Whether a key may call a trigger (docs/access.md "Principals": the specific pair of plugin and trigger name). */
export function keyOpens(key: { scopes: readonly KeyScope[] }, pluginId: string, trigger: string): boolean {
  return key.scopes.some(s => s.pluginId === pluginId && (s.trigger === ALL_TRIGGERS || s.trigger === trigger));
}

/**
 * Takes the triggers of a plugin from every key, so that another plugin with the same id does not inherit their callers. Part of a
 * transaction.
 */
export async function removeKeyScopesOf(client: Queryable, pluginId: string): Promise<void> {
  const { rows } = await client.query<{ id: string }>(
    'DELETE FROM service_key_scopes WHERE plugin_id = $1 RETURNING service_key_id AS id',
    [pluginId],
  );
  await notifyKeys(client, [...new Set(rows.map(r => r.id))]);
}

/** @returns the key with its text, which is shown once and not stored */
export async function addServiceKey(
  db: Database,
  prefix: string,
  key: { name: string; scopes: readonly KeyScope[]; expiresAt: Date | null },
  by: Actor,
): Promise<{ key: ServiceKey; text: string }> {
  const bearer = makeBearer(prefix);
  return await db.withTransaction(async client => {
    const { rows } = await client.query<{ id: string }>(
      'INSERT INTO service_keys (name, public, secret_sha256, expires_at) VALUES ($1, $2, $3, $4) RETURNING id',
      [key.name, bearer.public, bearer.sha256, key.expiresAt],
    );
    const id = Number(rows[0]?.id);
    await client.query(
      'INSERT INTO service_key_scopes (service_key_id, plugin_id, trigger_name) SELECT $1, * FROM unnest($2::text[], $3::text[])',
      [id, key.scopes.map(s => s.pluginId), key.scopes.map(s => s.trigger)],
    );
    const added = await findServiceKey(client, id);
    if (added === undefined) throw new Error('bug: the key just added does not exist');
    await appendAudit(client, by, {
      action: 'service_key.create',
      objectType: 'service_key',
      objectId: String(id),
      after: keyState(added),
    });
    return { key: added, text: bearer.text };
  });
}

export async function findServiceKey(db: Queryable, id: number): Promise<ServiceKey | undefined> {
  return await findRow<ServiceKey>(db, `SELECT ${COLUMNS} FROM service_keys t WHERE t.id = $1`, [id]);
}

/** Lists keys, newest first. */
export async function listServiceKeys(db: Queryable, before: number, limit: number): Promise<ServiceKey[]> {
  return await findRows<ServiceKey>(
    db,
    `SELECT ${COLUMNS} FROM service_keys t WHERE t.id < $1 ORDER BY t.id DESC LIMIT $2`,
    [before, limit],
  );
}

/**
 * Gives a key a new secret. The old one stays valid for the overlap.
 *
 * @returns the key with its new text, or undefined if there is no such key
 * @throws ServiceError `conflict` for a key that has expired
 */
export async function rotateServiceKey(
  db: Database,
  prefix: string,
  id: number,
  overlapSeconds: number,
  by: Actor,
): Promise<{ key: ServiceKey; text: string } | undefined> {
  const secret = makeSecret();
  return await db.withTransaction(async client => {
    await client.query('SELECT 1 FROM service_keys WHERE id = $1 FOR UPDATE', [id]);
    const before = await findServiceKey(client, id);
    if (before === undefined) return undefined;
    assertNotExpired(before);
    await client.query(
      `UPDATE service_keys SET old_secret_sha256 = secret_sha256, old_until = least(now() + make_interval(secs => $2), expires_at),
         secret_sha256 = $3, rotated_at = now() WHERE id = $1`,
      [id, overlapSeconds, secret.sha256],
    );
    const key = await findServiceKey(client, id);
    if (key === undefined) throw new Error('bug: a key with a locked row does not exist');
    await notifyIdentity(client, { what: 'key', id });
    await appendAudit(client, by, {
      action: 'service_key.rotate',
      objectType: 'service_key',
      objectId: String(id),
      before: rotationState(before),
      after: rotationState(key),
    });
    return { key, text: `${prefix}${key.public}.${secret.text}` };
  });
}

/** Revokes a key on every host; false if there is none. */
export async function revokeServiceKey(db: Database, id: number, by: Actor): Promise<boolean> {
  return await db.withTransaction(async client => {
    const key = await findServiceKey(client, id);
    const { rowCount } = await client.query('DELETE FROM service_keys WHERE id = $1', [id]);
    if (key === undefined || rowCount === 0) return false;
    await appendAudit(client, by, {
      action: 'service_key.revoke',
      objectType: 'service_key',
      objectId: String(id),
      before: keyState(key),
    });
    await notifyIdentity(client, { what: 'key', id });
    return true;
  });
}
