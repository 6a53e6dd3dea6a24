import { type Actor, appendAudit } from '../audit/audit-log.ts';
import { ServiceError } from '../base/errors.ts';
import { LIMITS } from '../base/limits.ts';
import type { Database, Queryable } from '../db/database.ts';
import { RowLookup } from '../db/row-lookup.ts';
import { findRow, findRows, loadRow } from '../db/rows.ts';
import { HOST_ONLY_MARK } from '../http/message.ts';
import { endPasswordless } from './admin-accounts.ts';
import { makeSecret, sha256 } from './bearer-secret.ts';
import { notifyIdentity } from './identity-changes.ts';
import { dropLinkCode } from './messenger-accounts.ts';

export type SessionKind = 'user' | 'admin';

/** How a session began. */
export type SessionVia = 'password' | 'idp';

export type Session = {
  id: number;
  kind: SessionKind;
  via: SessionVia;
  userId: number;
  createdAt: Date;
  lastUsedAt: Date;
  expiresAt: Date;
  /** When the user last authenticated: with the password, or at the identity provider. */
  passwordAt: Date | null;
  address: string;
  userAgent: string;
  /** Whether it began in a browser, which sends the cookie with requests of any page of the origin. */
  browser: boolean;
  /** The only plugin it is valid for, on the plugin's own origin; null for a session of the service. */
  pluginId: string | null;
};

const COLUMNS = `id, kind, via, global_user_id AS user_id, created_at, last_used_at, expires_at, password_at, address,
  user_agent, browser, plugin_id`;

const BY_SECRET = new RowLookup<Session & { hash: string }>({
  name: 'session.find',
  text: `SELECT ${COLUMNS}, encode(secret_sha256, 'hex') AS hash FROM sessions WHERE secret_sha256 = ANY ($1::bytea[])`,
  keyOf: row => row.hash,
  toValue: key => Buffer.from(key, 'hex'),
});

export type NewSession = {
  kind: SessionKind;
  userId: number;
  /** Whether the session begins with the password. */
  withPassword: boolean;
  /** When the user logged in at the identity provider, null if it does not say; absent for other sessions. */
  idpAt?: Date | null;
  address: string;
  userAgent: string;
  browser: boolean;
  /** Whether its cookie has the prefix `__Host-`; left out: it has not. */
  hostOnly?: boolean;
  /** Absent for a session of the service. */
  within?: { pluginId: string; parentId: number };
};

/** Whether a session is still valid; an admin session also ends when it is not used. */
export function isLive(s: Session, nowMs: number): boolean {
  if (s.expiresAt.getTime() <= nowMs) return false;
  return s.kind === 'user' || s.lastUsedAt.getTime() + LIMITS.adminIdleMs > nowMs;
}

/** The negation of `isLive` in SQL; the parameter is the number of seconds an admin session may be unused. */
const endedSql = (idleSeconds: string): string =>
  `(expires_at <= now() OR (kind = 'admin' AND last_used_at <= now() - make_interval(secs => ${idleSeconds})))`;

/** @returns the session with its secret, which is the cookie's value and not stored */
export async function addSession(db: Queryable, s: NewSession): Promise<{ session: Session; secret: string }> {
  const secret = makeSecret(s.hostOnly === true ? HOST_ONLY_MARK : '');
  const session = await loadRow<Session>(
    db,
    `INSERT INTO sessions (kind, global_user_id, secret_sha256, expires_at, password_at, address, user_agent, via, browser, plugin_id, parent_id)
     VALUES ($1, $2, $3, now() + make_interval(secs => $4), CASE WHEN $5 THEN now() WHEN $8::timestamptz IS NOT NULL THEN least(now(), $8) END, $6, $7, $9, $10, $11, $12)
     RETURNING ${COLUMNS}`,
    [
      s.kind,
      s.userId,
      secret.sha256,
      (s.kind === 'user' ? LIMITS.userSessionMs : LIMITS.adminSessionMs) / 1000,
      s.withPassword,
      s.address,
      s.userAgent.slice(0, 400).toWellFormed(),
      s.idpAt ?? null,
      s.idpAt === undefined ? 'password' : 'idp',
      s.browser,
      s.within?.pluginId ?? null,
      s.within?.parentId ?? null,
    ],
  );
  return { session, secret: secret.text };
}

/** The valid session of a cookie, or undefined. */
export async function findSession(
  db: Queryable,
  kind: SessionKind,
  secret: string,
  nowMs: number,
): Promise<Session | undefined> {
  if (!/^(h\.)?[A-Za-z0-9_-]{43}$/.test(secret)) return undefined;
  const found = await BY_SECRET.find(db, sha256(secret).toString('hex'));
  if (found === undefined || found.kind !== kind || !isLive(found, nowMs)) return undefined;
  const { hash: _, ...session } = found;
  return session;
}

/** The valid session with an id, or undefined. */
export async function findSessionById(db: Queryable, id: number, nowMs: number): Promise<Session | undefined> {
  const session = await findRow<Session>(db, `SELECT ${COLUMNS} FROM sessions WHERE id = $1`, [id]);
  return session !== undefined && isLive(session, nowMs) ? session : undefined;
}

/**
 * Notifies every host of the end of a session and of the sessions made from it on origins of plugins; part of a
 * transaction.
 */
async function notifyEnd(client: Queryable, id: number): Promise<void> {
  const children = await findRows<{ id: number }>(client, 'SELECT id FROM sessions WHERE parent_id = $1', [id]);
  for (const session of [id, ...children.map(c => c.id)])
    await notifyIdentity(client, { what: 'session', id: session });
}

/** Lists valid sessions, newest first. */
export async function listSessions(db: Queryable, userId: number, before: number, limit: number): Promise<Session[]> {
  return await findRows<Session>(
    db,
    `SELECT ${COLUMNS} FROM sessions WHERE global_user_id = $1 AND id < $2 AND NOT ${endedSql('$3')} ORDER BY id DESC LIMIT $4`,
    [userId, before, LIMITS.adminIdleMs / 1000, limit],
  );
}

/**
 * Ends a session on every host; false if the user has none with this id.
 *
 * @param by the administrator or the user who ends it
 */
export async function revokeSession(db: Database, userId: number, id: number, by: Actor): Promise<boolean> {
  return await db.withTransaction(async client => {
    const { rowCount } = await client.query('SELECT 1 FROM sessions WHERE id = $1 AND global_user_id = $2', [
      id,
      userId,
    ]);
    if (rowCount !== 1) return false;
    // Before the session, as a login locks them.
    await endPasswordless(client, userId);
    await notifyEnd(client, id);
    const { rowCount: ended } = await client.query('DELETE FROM sessions WHERE id = $1', [id]);
    if (ended !== 1) return false;
    await appendAudit(client, by, {
      action: 'session.revoke',
      objectType: 'user',
      objectId: String(userId),
      before: { session: id },
    });
    return true;
  });
}

/**
 * Ends the session of a cookie, if any; part of a transaction.
 *
 * @returns the ended session, if it was still valid
 */
export async function endSession(
  client: Queryable,
  kind: SessionKind,
  secret: string,
  nowMs: number,
): Promise<Session | undefined> {
  const ended = await findRow<Session>(
    client,
    `SELECT ${COLUMNS} FROM sessions WHERE secret_sha256 = $1 AND kind = $2 FOR UPDATE`,
    [sha256(secret), kind],
  );
  if (ended !== undefined) {
    await notifyEnd(client, ended.id);
    await client.query('DELETE FROM sessions WHERE id = $1', [ended.id]);
  }
  return ended !== undefined && isLive(ended, nowMs) ? ended : undefined;
}

/**
 * Holds a session until the transaction ends. What it makes that outlives it is made before its end, which then takes it
 * along, or not at all.
 *
 * @throws ServiceError `unauthorized` when it has ended meanwhile
 */
export async function holdSession(client: Queryable, id: number): Promise<void> {
  const row = await findRow(client, 'SELECT 1 AS one FROM sessions WHERE id = $1 FOR KEY SHARE', [id]);
  if (row === undefined) throw new ServiceError('unauthorized', 'your session has ended; log in again');
}

/** Ends all sessions of a user, and logins without a password; part of a transaction. */
export async function revokeAllSessions(client: Queryable, userId: number): Promise<void> {
  await endPasswordless(client, userId);
  await client.query('DELETE FROM sessions WHERE global_user_id = $1', [userId]);
  await dropLinkCode(client, userId);
  await notifyIdentity(client, { what: 'user', id: userId });
}

/** Ends all administrator's sessions of a user but one; part of a transaction. */
export async function revokeOtherSessions(client: Queryable, userId: number, kept: number): Promise<void> {
  const ended = await findRows<{ id: number }>(
    client,
    "DELETE FROM sessions WHERE global_user_id = $1 AND kind = 'admin' AND id <> $2 RETURNING id",
    [userId, kept],
  );
  for (const { id } of ended) await notifyEnd(client, id);
}

/** Stores that the password was given now. */
export async function confirmPassword(db: Queryable, id: number): Promise<void> {
  await db.query('UPDATE sessions SET password_at = now() WHERE id = $1', [id]);
  await notifyIdentity(db, { what: 'session', id });
}

/** Writes last-used times, and extends user sessions. */
export async function touchSessions(db: Queryable, entries: ReadonlyArray<{ id: number; at: Date }>): Promise<void> {
  await db.query(
    `UPDATE sessions s SET last_used_at = greatest(s.last_used_at, u.at),
       expires_at = CASE WHEN s.kind = 'user' THEN greatest(s.expires_at, u.at + make_interval(secs => $3)) ELSE s.expires_at END
     FROM unnest($1::bigint[], $2::timestamptz[]) AS u (id, at) WHERE s.id = u.id`,
    [entries.map(e => e.id), entries.map(e => e.at), LIMITS.userSessionMs / 1000],
  );
}

/** Removes ended sessions; returns how many. */
export async function removeEndedSessions(db: Queryable): Promise<number> {
  const { rowCount } = await db.query(`DELETE FROM sessions WHERE ${endedSql('$1')}`, [LIMITS.adminIdleMs / 1000]);
  return rowCount ?? 0;
}

/** Ends every session; returns how many. */
export async function endAllSessions(client: Queryable): Promise<number> {
  return (await client.query('DELETE FROM sessions')).rowCount ?? 0;
}
