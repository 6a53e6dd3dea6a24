import { type Actor, appendAudit } from '../audit/audit-log.ts';
import type { Database, Queryable } from '../db/database.ts';
import { RowLookup } from '../db/row-lookup.ts';
import { findByBearer, makeBearer } from './bearer-secret.ts';
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

type TokenSql = {
  id: string;
  global_user_id: string;
  name: string;
  public: string;
  secret_sha256: Buffer;
  created_at: Date;
  expires_at: Date | null;
  last_used_at: Date | null;
};

const BY_PUBLIC = new RowLookup<TokenSql>({
  name: 'user_token.find',
  text: 'SELECT * FROM user_tokens WHERE public = ANY ($1::text[])',
  keyOf: row => row.public,
});

const toToken = (r: TokenSql): UserToken => ({
  id: Number(r.id),
  userId: Number(r.global_user_id),
  name: r.name,
  public: r.public,
  createdAt: r.created_at,
  expiresAt: r.expires_at,
  lastUsedAt: r.last_used_at,
});

/** @returns the token with its text, which is shown once and not stored */
export async function addUserToken(
  db: Queryable,
  prefix: string,
  token: { userId: number; name: string; expiresAt: Date | null },
): Promise<{ token: UserToken; text: string }> {
  const bearer = makeBearer(prefix);
  const { rows } = await db.query<TokenSql>(
    `INSERT INTO user_tokens (global_user_id, name, public, secret_sha256, expires_at) VALUES ($1, $2, $3, $4, $5) RETURNING *`,
    [token.userId, token.name, bearer.public, bearer.sha256, token.expiresAt],
  );
  const row = rows[0];
  if (row === undefined) throw new Error('INSERT returned no row');
  return { token: toToken(row), text: bearer.text };
}

/** The token with this text; undefined if it is unknown, wrong or expired. */
export async function verifyUserToken(
  db: Queryable,
  prefix: string,
  text: string,
  nowMs: number,
): Promise<UserToken | undefined> {
  const row = await findByBearer(text, prefix, nowMs, publicPart => BY_PUBLIC.find(db, publicPart));
  return row === undefined ? undefined : toToken(row);
}

/** Lists tokens, newest first. */
export async function listUserTokens(
  db: Queryable,
  userId: number,
  before: number,
  limit: number,
): Promise<UserToken[]> {
  const { rows } = await db.query<TokenSql>(
    'SELECT * FROM user_tokens WHERE global_user_id = $1 AND id < $2 ORDER BY id DESC LIMIT $3',
    [userId, before, limit],
  );
  return rows.map(toToken);
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

export async function touchUserTokens(db: Queryable, entries: ReadonlyArray<{ id: number; at: Date }>): Promise<void> {
  await db.query(
    `UPDATE user_tokens t SET last_used_at = greatest(t.last_used_at, u.at)
     FROM unnest($1::bigint[], $2::timestamptz[]) AS u (id, at) WHERE t.id = u.id`,
    [entries.map(e => e.id), entries.map(e => e.at)],
  );
}

/** Lets every token expire now; returns how many were good. */
export async function expireUserTokens(client: Queryable): Promise<number> {
  return (
    (await client.query('UPDATE user_tokens SET expires_at = now() WHERE expires_at IS NULL OR expires_at > now()'))
      .rowCount ?? 0
  );
}
