import { createHash, randomInt } from 'node:crypto';
import { type Actor, appendAudit } from '../audit/audit-log.ts';
import { LIMITS } from '../base/limits.ts';
import type { Database, Queryable } from '../db/database.ts';
import { findRow, findRows } from '../db/rows.ts';
import type { UserAttributes } from './user-attributes.ts';

type ChannelName = NonNullable<UserAttributes['primaryChannel']>;
type Language = UserAttributes['locale'];

/** Accounts of messengers that belong to users (docs/messengers.md "Accounts"). */

/** Letters and digits that are not mistaken for each other. */
const LETTERS = '23456789ABCDEFGHJKLMNPQRSTUVWXYZ';
const CODE_LENGTH = 8;

const hashOf = (code: string): Buffer => createHash('sha256').update(code).digest();

/** A code as a user types it, as it was given; null for what is none. */
export function normalizeCode(text: string): string | null {
  const code = text.trim().toUpperCase();
  return code.length === CODE_LENGTH && [...code].every(c => LETTERS.includes(c)) ? code : null;
}

/** A code for one account, once, for a few minutes; the one before is worth nothing any more. */
export async function makeLinkCode(db: Queryable, userId: number): Promise<{ code: string; expiresAt: Date }> {
  const code = Array.from({ length: CODE_LENGTH }, () => LETTERS[randomInt(LETTERS.length)]).join('');
  const { rows } = await db.query<{ expires_at: Date }>(
    `INSERT INTO messenger_link_codes (global_user_id, code_sha256, expires_at)
     VALUES ($1, $2, now() + make_interval(secs => $3::float8 / 1000))
     ON CONFLICT (global_user_id) DO UPDATE SET code_sha256 = EXCLUDED.code_sha256, expires_at = EXCLUDED.expires_at
     RETURNING expires_at`,
    [userId, hashOf(code), LIMITS.linkCodeMs],
  );
  return { code, expiresAt: rows[0]?.expires_at ?? new Date(0) };
}

/** Makes a code that was shown worth nothing. */
export async function dropLinkCode(client: Queryable, userId: number): Promise<void> {
  await client.query('DELETE FROM messenger_link_codes WHERE global_user_id = $1', [userId]);
}

export type Account = { channel: ChannelName; accountId: string; chatId: string };
export type Linked = { kind: 'linked'; userId: number } | { kind: 'wrong' } | { kind: 'too_many' };

/**
 * Links the account that sent a code to the user it was shown to, inside the caller's transaction. The user's former account of that
 * messenger, and the former user of the account, are linked no more.
 */
export async function linkAccount(client: Queryable, account: Account, code: string): Promise<Linked> {
  const { accountId, channel, chatId } = account;
  const failures = await client.query<{ n: string }>(
    `SELECT count(*) AS n FROM messenger_link_failures
     WHERE channel = $1 AND account_id = $2 AND failed_at BETWEEN now() - make_interval(secs => $3::float8 / 1000) AND now()`,
    [channel, accountId, LIMITS.linkFailureWindowMs],
  );
  if (Number(failures.rows[0]?.n) >= LIMITS.linkFailuresMax) return { kind: 'too_many' };
  const { rows } = await client.query<{ global_user_id: string }>(
    'DELETE FROM messenger_link_codes WHERE code_sha256 = $1 AND expires_at > now() RETURNING global_user_id',
    [hashOf(code)],
  );
  const userId = rows[0]?.global_user_id;
  if (userId === undefined) {
    await client.query('INSERT INTO messenger_link_failures (channel, account_id) VALUES ($1, $2)', [
      channel,
      accountId,
    ]);
    return { kind: 'wrong' };
  }
  await client.query('DELETE FROM messenger_accounts WHERE channel = $1 AND (account_id = $2 OR global_user_id = $3)', [
    channel,
    accountId,
    userId,
  ]);
  await client.query(
    'INSERT INTO messenger_accounts (channel, account_id, global_user_id, chat_id) VALUES ($1, $2, $3, $4)',
    [channel, accountId, userId, chatId],
  );
  return { kind: 'linked', userId: Number(userId) };
}

export async function unlinkAccount(db: Queryable, channel: string, accountId: string): Promise<boolean> {
  const { rowCount } = await db.query('DELETE FROM messenger_accounts WHERE channel = $1 AND account_id = $2', [
    channel,
    accountId,
  ]);
  return rowCount === 1;
}

export async function unlinkUser(db: Queryable, userId: number, channel: string): Promise<boolean> {
  const { rowCount } = await db.query('DELETE FROM messenger_accounts WHERE channel = $1 AND global_user_id = $2', [
    channel,
    userId,
  ]);
  return rowCount === 1;
}

/** Unlinks all accounts of a user, and makes a code that was given worthless. */
export async function unlinkAll(client: Queryable, userId: number): Promise<void> {
  await client.query('DELETE FROM messenger_accounts WHERE global_user_id = $1', [userId]);
  await client.query('DELETE FROM messenger_link_codes WHERE global_user_id = $1', [userId]);
}

/** Unlinks the account of a user, by an administrator; false if none of that messenger is linked. */
export async function unlinkUserBy(db: Database, userId: number, channel: string, by: Actor): Promise<boolean> {
  return await db.withTransaction(async client => {
    if (!(await unlinkUser(client, userId, channel))) return false;
    await appendAudit(client, by, {
      action: 'messenger.unlink',
      objectType: 'user',
      objectId: String(userId),
      before: { channel },
    });
    return true;
  });
}

/** The user an account belongs to. */
export async function findAccountUser(
  db: Queryable,
  channel: ChannelName,
  accountId: string,
): Promise<{ userId: number; locale: Language } | undefined> {
  return await findRow<{ userId: number; locale: Language }>(
    db,
    `SELECT u.id AS user_id, u.locale FROM messenger_accounts a JOIN global_users u ON u.id = a.global_user_id
     WHERE a.channel = $1 AND a.account_id = $2`,
    [channel, accountId],
  );
}

export type LinkedAccount = { userId: number; channel: ChannelName; chatId: string; linkedAt: Date };

/** Where users can be written to: of each the account on the primary channel, or the one that is there (docs/messengers.md "Accounts"). */
export async function listReachable(
  db: Queryable,
  channels: readonly ChannelName[],
  userIds: readonly number[],
): Promise<LinkedAccount[]> {
  return await findRows<LinkedAccount>(
    db,
    `SELECT DISTINCT ON (a.global_user_id) a.global_user_id AS user_id, a.channel, a.chat_id, a.linked_at
     FROM messenger_accounts a JOIN global_users u ON u.id = a.global_user_id
     WHERE a.global_user_id = ANY ($1) AND a.channel = ANY ($2)
     ORDER BY a.global_user_id, a.channel IS NOT DISTINCT FROM u.primary_channel DESC, a.linked_at DESC`,
    [userIds, channels],
  );
}

/** All accounts of a user. */
export async function listAccounts(db: Queryable, userId: number): Promise<LinkedAccount[]> {
  return await findRows<LinkedAccount>(
    db,
    `SELECT global_user_id AS user_id, channel, chat_id, linked_at FROM messenger_accounts
     WHERE global_user_id = $1 ORDER BY channel`,
    [userId],
  );
}

/** Codes and wrong codes whose time is over. */
export async function removeOldCodes(db: Database): Promise<void> {
  await db.query('DELETE FROM messenger_link_codes WHERE expires_at < now()');
  await db.query(
    'DELETE FROM messenger_link_failures WHERE failed_at < now() - make_interval(secs => $1::float8 / 1000)',
    [LIMITS.linkFailureWindowMs],
  );
}
