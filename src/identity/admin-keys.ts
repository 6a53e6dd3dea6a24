import { type Actor, type AuditState, appendAudit } from '../audit/audit-log.ts';
import { ServiceError } from '../base/errors.ts';
import type { Database, Queryable } from '../db/database.ts';
import { LOCKS, lockForTransaction } from '../db/locks.ts';
import { findRow, findRows, loadRow } from '../db/rows.ts';
import { findAdmin } from './admin-accounts.ts';
import { scopeBeyond, scopesOf } from './admin-roles.ts';
import { assertNotExpired, makeBearer, makeSecret } from './bearer-secret.ts';
import { BearerTable } from './bearer-table.ts';
import { notifyIdentity } from './identity-changes.ts';
import { holdSession } from './sessions.ts';

/** A credential of a program that calls the admin API. */
export type AdminKey = {
  id: number;
  name: string;
  public: string;
  scopes: string[];
  /** The administrator who created it; the key is revoked when they are removed. */
  madeBy: number;
  createdAt: Date;
  expiresAt: Date | null;
  lastUsedAt: Date | null;
  /** Null when the secret is the one it was made with. */
  rotatedAt: Date | null;
  /** Until when the secret before the last rotation is valid. */
  oldSecretUntil: Date | null;
};

const COLUMNS = `t.id, t.name, t.public, t.scopes, t.made_by, t.created_at, t.expires_at, t.last_used_at, t.rotated_at,
  t.old_until AS old_secret_until`;

export const adminKeys = new BearerTable<AdminKey>({ name: 'admin_keys', columns: COLUMNS, rotates: true });

const keyState = (k: AdminKey): AuditState => ({
  name: k.name,
  public: k.public,
  scopes: k.scopes,
  made_by: k.madeBy,
  expires_at: k.expiresAt,
});

/**
 * @param session in which it is made; null on the machine itself
 * @returns the key with its text, which is shown once and not stored
 * @throws ServiceError `unauthorized` when the session has ended, `forbidden` if the key opens more than the roles of its maker
 */
export async function addAdminKey(
  db: Database,
  prefix: string,
  key: { name: string; scopes: readonly string[]; madeBy: number; expiresAt: Date | null },
  by: Actor,
  session: number | null,
): Promise<{ key: AdminKey; text: string }> {
  const bearer = makeBearer(prefix);
  return await db.withTransaction(async client => {
    await lockForTransaction(client, LOCKS.adminSetup);
    if (session !== null) await holdSession(client, session);
    // The roles may have changed since the request was let in.
    const maker = await findAdmin(client, key.madeBy);
    const beyond = maker === undefined ? key.scopes[0] : scopeBeyond(scopesOf(maker), key.scopes);
    if (beyond !== undefined)
      throw new ServiceError('forbidden', `a key with the scope ${beyond} opens more than the roles of its maker`);
    const added = await loadRow<AdminKey>(
      client,
      `INSERT INTO admin_keys AS t (name, public, secret_sha256, scopes, made_by, expires_at)
       VALUES ($1, $2, $3, $4, $5, $6) RETURNING ${COLUMNS}`,
      [key.name, bearer.public, bearer.sha256, key.scopes, key.madeBy, key.expiresAt],
    );
    await appendAudit(client, by, {
      action: 'admin_key.create',
      objectType: 'admin_key',
      objectId: String(added.id),
      after: keyState(added),
    });
    return { key: added, text: bearer.text };
  });
}

export async function findAdminKey(db: Queryable, id: number): Promise<AdminKey | undefined> {
  return await findRow<AdminKey>(db, `SELECT ${COLUMNS} FROM admin_keys t WHERE id = $1`, [id]);
}

/** Lists keys, newest first. */
export async function listAdminKeys(db: Queryable, before: number, limit: number): Promise<AdminKey[]> {
  return await findRows<AdminKey>(db, `SELECT ${COLUMNS} FROM admin_keys t WHERE id < $1 ORDER BY id DESC LIMIT $2`, [
    before,
    limit,
  ]);
}

/** Number of valid keys an administrator has created. */
export async function countAdminKeysOf(db: Queryable, userId: number): Promise<number> {
  const { rows } = await db.query<{ count: number }>(
    'SELECT count(*)::int AS count FROM admin_keys WHERE made_by = $1 AND (expires_at IS NULL OR expires_at > now())',
    [userId],
  );
  return rows[0]?.count ?? 0;
}

const rotationState = (k: AdminKey): AuditState => ({
  ...keyState(k),
  rotated_at: k.rotatedAt,
  old_secret_until: k.oldSecretUntil,
});

/**
 * Gives a key a new secret. The old one stays valid for the overlap.
 *
 * @param userId who asks: a key acts in the name of its maker, so that no other one may have its text
 * @returns the key with its new text, or undefined if there is no such key
 * @throws ServiceError `forbidden` for a key that another administrator made, `conflict` for one that has expired
 */
export async function rotateAdminKey(
  db: Database,
  prefix: string,
  { id, overlapSeconds, userId }: { id: number; overlapSeconds: number; userId: number },
  by: Actor,
): Promise<{ key: AdminKey; text: string } | undefined> {
  const secret = makeSecret();
  return await db.withTransaction(async client => {
    const before = await findRow<AdminKey>(client, `SELECT ${COLUMNS} FROM admin_keys t WHERE id = $1 FOR UPDATE`, [
      id,
    ]);
    if (before === undefined) return undefined;
    if (before.madeBy !== userId)
      throw new ServiceError(
        'forbidden',
        'only the administrator who made the key rotates it; revoke it, and make one of your own',
      );
    assertNotExpired(before);
    const key = await loadRow<AdminKey>(
      client,
      `UPDATE admin_keys t SET old_secret_sha256 = secret_sha256, old_until = least(now() + make_interval(secs => $2), expires_at),
         secret_sha256 = $3, rotated_at = now() WHERE id = $1 RETURNING ${COLUMNS}`,
      [id, overlapSeconds, secret.sha256],
    );
    await notifyIdentity(client, { what: 'admin_key', id });
    await appendAudit(client, by, {
      action: 'admin_key.rotate',
      objectType: 'admin_key',
      objectId: String(id),
      before: rotationState(before),
      after: rotationState(key),
    });
    return { key, text: `${prefix}${key.public}.${secret.text}` };
  });
}

async function noteRevoked(client: Queryable, keys: readonly AdminKey[], by: Actor): Promise<void> {
  for (const key of keys) {
    await notifyIdentity(client, { what: 'admin_key', id: key.id });
    await appendAudit(client, by, {
      action: 'admin_key.revoke',
      objectType: 'admin_key',
      objectId: String(key.id),
      before: keyState(key),
    });
  }
}

/** Revokes a key on every host; false if there is none. */
export async function revokeAdminKey(db: Database, id: number, by: Actor): Promise<boolean> {
  return await db.withTransaction(async client => {
    const rows = await findRows<AdminKey>(client, `DELETE FROM admin_keys t WHERE id = $1 RETURNING ${COLUMNS}`, [id]);
    await noteRevoked(client, rows, by);
    return rows.length === 1;
  });
}

/** Revokes all keys an administrator has created; part of a transaction. */
export async function revokeAdminKeysOf(client: Queryable, userId: number, by: Actor): Promise<void> {
  const rows = await findRows<AdminKey>(client, `DELETE FROM admin_keys t WHERE made_by = $1 RETURNING ${COLUMNS}`, [
    userId,
  ]);
  await noteRevoked(client, rows, by);
}

/** Revokes the keys of an administrator that have scopes beyond these; part of a transaction. */
export async function revokeAdminKeysBeyond(
  client: Queryable,
  userId: number,
  scopes: readonly string[],
  by: Actor,
): Promise<void> {
  const rows = await findRows<AdminKey>(client, `SELECT ${COLUMNS} FROM admin_keys t WHERE made_by = $1 FOR UPDATE`, [
    userId,
  ]);
  const beyond = rows.filter(key => scopeBeyond(scopes, key.scopes) !== undefined);
  await client.query('DELETE FROM admin_keys WHERE id = ANY ($1::bigint[])', [beyond.map(key => key.id)]);
  await noteRevoked(client, beyond, by);
}
