import { randomInt } from 'node:crypto';
import type { Queryable } from '../db/database.ts';
import { sha256 } from './bearer-secret.ts';
import { SECOND_FACTOR_LIMITS } from './second-factor-limits.ts';

/** Codes that open one login each when the second factor or the password is lost (docs/identity.md "Second factor"). */

/** Letters and digits that are not easily confused; two groups of five are 49 bits, and guesses are slowed down. */
const LETTERS = 'abcdefghjkmnpqrstuvwxyz23456789';

const group = (): string => Array.from({ length: 5 }, () => LETTERS[randomInt(LETTERS.length)]).join('');

/** Normalizes a typed code: capitals, spaces and a missing dash change nothing. */
const plain = (code: string): string => code.toLowerCase().replace(/[^a-z0-9]/g, '');
const hashOf = (code: string): Buffer => sha256(plain(code));

/**
 * Makes new codes in place of those that were left. Part of a transaction.
 *
 * @returns the codes, which are shown once; only their hashes are stored
 */
export async function renewRecoveryCodes(client: Queryable, userId: number): Promise<string[]> {
  const codes = Array.from({ length: SECOND_FACTOR_LIMITS.recoveryCodes }, () => `${group()}-${group()}`);
  await removeRecoveryCodes(client, userId);
  await client.query('INSERT INTO admin_recovery_codes (global_user_id, code_sha256) SELECT $1, unnest($2::bytea[])', [
    userId,
    codes.map(hashOf),
  ]);
  return codes;
}

/** Uses a code up; false if it is none of the account's. Part of a transaction. */
export async function takeRecoveryCode(client: Queryable, userId: number, code: string): Promise<boolean> {
  const { rowCount } = await client.query(
    'DELETE FROM admin_recovery_codes WHERE global_user_id = $1 AND code_sha256 = $2',
    [userId, hashOf(code)],
  );
  return rowCount === 1;
}

/** How many codes are left. */
export async function countRecoveryCodes(db: Queryable, userId: number): Promise<number> {
  const { rows } = await db.query<{ count: number }>(
    'SELECT count(*)::int AS count FROM admin_recovery_codes WHERE global_user_id = $1',
    [userId],
  );
  return rows[0]?.count ?? 0;
}

/** Part of a transaction. */
export async function removeRecoveryCodes(client: Queryable, userId: number): Promise<void> {
  await client.query('DELETE FROM admin_recovery_codes WHERE global_user_id = $1', [userId]);
}
