import { type Actor, appendAudit } from '../audit/audit-log.ts';
import type { Database, Queryable } from '../db/database.ts';
import { findRows, loadRow } from '../db/rows.ts';
import { makeBearer } from './bearer-secret.ts';
import { BearerTable } from './bearer-table.ts';
import { notifyIdentity } from './identity-changes.ts';

/** A bearer token of a user: the same principal as the user's session (docs/access.md "Principals"). */
export type UserToken = {
  id: number;
  userId: number;
  name: string;
  public: string;
  createdAt: Date;
  expiresAt: Date | null;
  lastUsedAt: Date | null;
};

const COLUMNS = 't.id, t.global_user_id AS user_id, t.name, t.public, t.created_at, t.expires_at, t.last_used_at';

export const userTokens = new BearerTable<UserToken>({ name: 'user_tokens', columns: COLUMNS, rotates: false });

/** @returns the token with its text, which is shown once and not stored */
export async function addUserToken(
  db: Queryable,
  prefix: string,
  token: { userId: number; name: string; expiresAt: Date | null },
): Promise<{ token: UserToken; text: string }> {
  const bearer = makeBearer(prefix);
  const added = await loadRow<UserToken>(
    db,
    `INSERT INTO user_tokens AS t (global_user_id, name, public, secret_sha256, expires_at) VALUES ($1, $2, $3, $4, $5) RETURNING ${COLUMNS}`,
    [token.userId, token.name, bearer.public, bearer.sha256, token.expiresAt],
  );
  return { token: added, text: bearer.text };
}

/** Number of tokens of a user, expired ones too. */
export async function countUserTokens(db: Queryable, userId: number): Promise<number> {
  const { count } = await loadRow<{ count: number }>(
    db,
    'SELECT count(*)::int AS count FROM user_tokens WHERE global_user_id = $1',
    [userId],
  );
  return count;
}

/** Lists tokens, newest first. */
export async function listUserTokens(
  db: Queryable,
  userId: number,
  before: number,
  limit: number,
): Promise<UserToken[]> {
  return await findRows<UserToken>(
    db,
    `SELECT ${COLUMNS} FROM user_tokens t WHERE global_user_id = $1 AND id < $2 ORDER BY id DESC LIMIT $3`,
    [userId, before, limit],
  );
}

/**
 * Revokes a token on every host; false if the user has none with this id.
 *
 * @param by the administrator or the user who revokes it
 */
export async function revokeUserToken(db: Database, userId: number, id: number, by: Actor): Promise<boolean> {
  return await db.withTransaction(async client => {
    const { rowCount } = await client.query('DELETE FROM user_tokens WHERE id = $1 AND global_user_id = $2', [
      id,
      userId,
    ]);
    if (rowCount !== 1) return false;
    await notifyIdentity(client, { what: 'token', id });
    await appendAudit(client, by, {
      action: 'token.revoke',
      objectType: 'user',
      objectId: String(userId),
      before: { token: id },
    });
    return true;
  });
}

/** Revokes all tokens of a user; part of a transaction. */
export async function revokeAllUserTokens(client: Queryable, userId: number): Promise<void> {
  await client.query('DELETE FROM user_tokens WHERE global_user_id = $1', [userId]);
  await notifyIdentity(client, { what: 'user', id: userId });
}
