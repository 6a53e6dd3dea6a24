import type { Queryable } from '../db/database.ts';

/** Channel on which hosts of one database notify each other that a credential has changed. */
export const IDENTITY_CHANGED = 'identity_changed';

/**
 * The changed object: a user with all credentials, or one credential. Admin sessions and administration keys are read
 * for every request.
 */
export type IdentityChange = { what: 'user' | 'session' | 'token' | 'key' | 'admin_key'; id: number };

/** Notifies all hosts. Call it in the transaction of the change, so that no host reads too early. */
export async function notifyIdentity(db: Queryable, change: IdentityChange): Promise<void> {
  await db.query('SELECT pg_notify($1, $2)', [IDENTITY_CHANGED, `${change.what}:${change.id}`]);
}

/** Notifies all hosts about several users. */
export async function notifyUsers(db: Queryable, ids: readonly string[]): Promise<void> {
  if (ids.length > 0)
    await db.query("SELECT pg_notify($1, 'user:' || id) FROM unnest($2::bigint[]) AS id", [IDENTITY_CHANGED, ids]);
}

/** Drops what hosts remember of service keys. */
export async function notifyKeys(db: Queryable, ids: readonly string[]): Promise<void> {
  if (ids.length > 0)
    await db.query("SELECT pg_notify($1, 'key:' || id) FROM unnest($2::bigint[]) AS id", [IDENTITY_CHANGED, ids]);
}

export function parseIdentityChange(payload: string): IdentityChange | null {
  const parts = /^(user|session|token|key|admin_key):(\d+)$/.exec(payload);
  return parts === null ? null : { what: parts[1] as IdentityChange['what'], id: Number(parts[2]) };
}
