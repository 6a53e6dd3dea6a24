import { Secret, TOTP } from 'otpauth';
import type { Queryable } from '../db/database.ts';
import { findRows } from '../db/rows.ts';

/** Codes of an authenticator app (RFC 6238): six digits, SHA-1, 30 seconds, which every app knows. */

/** Encrypts a secret for its owner. */
export type Sealer = { seal(plain: string, owner: string): Buffer; open(sealed: Buffer, owner: string): string };

const PERIOD_SECONDS = 30;
const SECRET_BYTES = 20;
/** Codes of the step before and after count too: clocks differ, and people type slowly. */
const WINDOW = 1;

export const totpOwner = (userId: number): string => `totp of user ${userId}`;

const appOf = (secret: string, issuer: string, label: string): TOTP =>
  new TOTP({ issuer, label, secret: Secret.fromBase32(secret), digits: 6, period: PERIOD_SECONDS, algorithm: 'SHA1' });

/** A new secret, as text to type (base32) and as the address in a QR code (`otpauth:`). */
export function makeTotp(issuer: string, label: string): { secret: string; uri: string } {
  const secret = new Secret({ size: SECRET_BYTES }).base32;
  return { secret, uri: appOf(secret, issuer, label).toString() };
}

/** The step a code belongs to (seconds since 1970 over 30), or null if it is wrong. */
export function stepOfCode(secret: string, code: string, nowMs: number): number | null {
  const token = code.replace(/\s/g, '');
  if (!/^\d{6}$/.test(token)) return null;
  const delta = appOf(secret, '', '').validate({ token, timestamp: nowMs, window: WINDOW });
  return delta === null ? null : Math.floor(nowMs / 1000 / PERIOD_SECONDS) + delta;
}

export type StoredTotp = { sealed: Buffer; createdAt: Date };

/** The app of an administrator, if there is one. */
export async function findTotp(db: Queryable, userId: number): Promise<StoredTotp | undefined> {
  const { rows } = await db.query<{ secret: Buffer; created_at: Date }>(
    'SELECT secret, created_at FROM admin_totp WHERE global_user_id = $1',
    [userId],
  );
  return rows[0] === undefined ? undefined : { sealed: rows[0].secret, createdAt: rows[0].created_at };
}

/** Stores a secret in place of another one. Part of a transaction. */
export async function storeTotp(client: Queryable, userId: number, sealed: Buffer, step: number): Promise<void> {
  await client.query(
    `INSERT INTO admin_totp (global_user_id, secret, last_step) VALUES ($1, $2, $3)
     ON CONFLICT (global_user_id) DO UPDATE SET secret = $2, last_step = $3, created_at = now()`,
    [userId, sealed, step],
  );
}

/** Notes the step of a code; false if that code or a later one was used before. Part of a transaction. */
export async function useStep(client: Queryable, userId: number, step: number): Promise<boolean> {
  const { rowCount } = await client.query(
    'UPDATE admin_totp SET last_step = $2 WHERE global_user_id = $1 AND last_step < $2',
    [userId, step],
  );
  return rowCount === 1;
}

/** @returns whether there was one. Part of a transaction. */
export async function removeTotp(client: Queryable, userId: number): Promise<boolean> {
  const { rowCount } = await client.query('DELETE FROM admin_totp WHERE global_user_id = $1', [userId]);
  return rowCount === 1;
}

/** All stored secrets, locked until the transaction ends. */
export async function listSealedTotp(
  client: Queryable,
): Promise<Array<{ userId: number; email: string; sealed: Buffer }>> {
  return await findRows<{ userId: number; email: string; sealed: Buffer }>(
    client,
    `SELECT t.global_user_id AS user_id, t.secret AS sealed, a.email FROM admin_totp t JOIN admin_credentials a USING (global_user_id)
     ORDER BY t.global_user_id FOR UPDATE OF t`,
  );
}

/** Replaces the encrypted form of a secret. */
export async function setSealedTotp(client: Queryable, userId: number, sealed: Buffer): Promise<void> {
  await client.query('UPDATE admin_totp SET secret = $2 WHERE global_user_id = $1', [userId, sealed]);
}
