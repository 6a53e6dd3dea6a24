import { type Actor, appendAudit } from '../audit/audit-log.ts';
import { ServiceError } from '../base/errors.ts';
import type { Database, Queryable } from '../db/database.ts';
import { holdCredentials, loadAdmin } from './admin-accounts.ts';
import { lockAsOwner } from './admin-appointments.ts';
import { removeChallengesOf } from './challenges.ts';
import {
  listPasskeys,
  type Passkey,
  type RelyingParty,
  removeAllPasskeys,
  type UseResponse,
  usePasskey,
} from './passkeys.ts';
import { countRecoveryCodes, removeRecoveryCodes, renewRecoveryCodes, takeRecoveryCode } from './recovery-codes.ts';
import { revokeAllSessions } from './sessions.ts';
import { findTotp, removeTotp, type Sealer, stepOfCode, totpOwner, useStep } from './totp.ts';

/** What an administrator proves a login with besides the password (docs/identity.md "Second factor"). */
export type SecondFactor = {
  passkeys: Passkey[];
  /** Since when codes of an app count; null without one. */
  totpSince: Date | null;
  /** How many recovery codes are left. */
  recoveryCodes: number;
};

export async function readSecondFactor(db: Queryable, userId: number): Promise<SecondFactor> {
  const [passkeys, totp, recoveryCodes] = [
    await listPasskeys(db, userId),
    await findTotp(db, userId),
    await countRecoveryCodes(db, userId),
  ];
  return { passkeys, totpSince: totp?.createdAt ?? null, recoveryCodes };
}

export const isNone = ({ passkeys, totpSince }: SecondFactor): boolean => passkeys.length === 0 && totpSince === null;

/** An answer in the second half of a login. */
export type SecondAnswer = { code: string } | { recovery_code: string } | { passkey: UseResponse };
export type SecondMethod = 'passkey' | 'totp' | 'recovery_code';
/** Proofs that may replace the password itself; a code of six digits can be guessed. */
export type PasswordlessMethod = Exclude<SecondMethod, 'totp'>;

/**
 * Checks the answer in the second half of a login, and uses it up. Part of a transaction.
 *
 * @param rp null where passkeys do not work
 * @param challenge the one the passkey had to sign; empty for none
 * @returns how it was proven, or null if it was not
 */
export async function acceptSecondFactor(
  client: Queryable,
  parts: { sealer: Sealer; rp: RelyingParty | null; nowMs: number },
  userId: number,
  challenge: string,
  answer: SecondAnswer,
): Promise<SecondMethod | null> {
  if ('passkey' in answer) {
    if (parts.rp === null || challenge === '') return null;
    const used = await usePasskey(client, parts.rp, userId, challenge, answer.passkey);
    return used === undefined ? null : 'passkey';
  }
  if ('recovery_code' in answer)
    return (await takeRecoveryCode(client, userId, answer.recovery_code)) ? 'recovery_code' : null;
  const totp = await findTotp(client, userId);
  if (totp === undefined) return null;
  const step = stepOfCode(parts.sealer.open(totp.sealed, totpOwner(userId)), answer.code, parts.nowMs);
  return step !== null && (await useStep(client, userId, step)) ? 'totp' : null;
}

/**
 * Recovery codes for an administrator who has just got the first second factor; null if codes are there already. Part of a
 * transaction.
 */
export async function firstRecoveryCodes(client: Queryable, userId: number): Promise<string[] | null> {
  return (await countRecoveryCodes(client, userId)) > 0 ? null : await renewRecoveryCodes(client, userId);
}

/**
 * Takes the recovery codes with the last second factor. Part of a transaction that has removed one.
 *
 * @throws ServiceError `conflict` if one must remain
 */
export async function assertFactorRemains(client: Queryable, userId: number, isRequired: boolean): Promise<void> {
  if (!isNone(await readSecondFactor(client, userId))) return;
  if (isRequired)
    throw new ServiceError(
      'conflict',
      'this is your last second factor, and administrators need one (admin.second_factor); add another one first',
    );
  await removeRecoveryCodes(client, userId);
}

/**
 * Removes every second factor of an administrator who lost them, and ends the sessions. The password stays.
 *
 * @throws ServiceError `not_found`
 */
export async function resetSecondFactor(db: Database, userId: number, by: Actor): Promise<void> {
  await db.withTransaction(async client => {
    await lockAsOwner(client, by);
    await loadAdmin(client, userId);
    // What a session is adding now is added before, or not at all.
    await holdCredentials(client, userId);
    const before = await readSecondFactor(client, userId);
    await removeAllPasskeys(client, userId);
    await removeTotp(client, userId);
    await removeRecoveryCodes(client, userId);
    await removeChallengesOf(client, userId);
    await revokeAllSessions(client, userId);
    await appendAudit(client, by, {
      action: 'admin.reset_second_factor',
      objectType: 'user',
      objectId: String(userId),
      before: { passkeys: before.passkeys.map(p => p.name), totp: before.totpSince !== null },
    });
  });
}
