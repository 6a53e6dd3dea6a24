import type { Queryable } from '../db/database.ts';
import { findRow } from '../db/rows.ts';
import { makeSecret, sha256 } from './bearer-secret.ts';
import { SECOND_FACTOR_LIMITS } from './second-factor-limits.ts';

/**
 * What waits for the second half of a login, of a confirmation, or of the enrolment of a second factor: whose it is, and
 * what the answer must fit. In the database, because the answer may come to another host. Each counts once.
 */
export type ChallengePurpose = LoginPurpose | 'confirm' | 'passkey' | 'totp';
/** The second half of a login, or a login without a password. */
export type LoginPurpose = 'login' | 'passwordless';

export type Challenge = {
  userId: number;
  /** What the answer must fit: a WebAuthn challenge, or the secret of an authenticator app that is not confirmed yet. */
  text: string;
  /** A hash over the stored password, or the session: the challenge is void once it changes. */
  boundTo: Buffer;
  failures: number;
};

/** @returns the token with which the answer names it; only its hash is stored */
export async function addChallenge(
  db: Queryable,
  of: { userId: number; purpose: ChallengePurpose; text: string; boundTo: Buffer },
): Promise<string> {
  const token = makeSecret();
  await db.query(
    `INSERT INTO admin_challenges (token_sha256, global_user_id, purpose, challenge, bound_to, expires_at)
     VALUES ($1, $2, $3, $4, $5, now() + make_interval(secs => $6))`,
    [token.sha256, of.userId, of.purpose, of.text, of.boundTo, SECOND_FACTOR_LIMITS.challengeSeconds],
  );
  // A client that asks again and again keeps no more than the newest.
  await db.query(
    `DELETE FROM admin_challenges WHERE global_user_id = $1 AND purpose = $2 AND token_sha256 NOT IN (
       SELECT token_sha256 FROM admin_challenges WHERE global_user_id = $1 AND purpose = $2
       ORDER BY expires_at DESC LIMIT $3)`,
    [of.userId, of.purpose, SECOND_FACTOR_LIMITS.challengesMax],
  );
  return token.text;
}

const FIND = `SELECT global_user_id AS user_id, challenge AS text, bound_to, failures FROM admin_challenges
  WHERE token_sha256 = $1 AND purpose = $2 AND expires_at > now() AND failures < $3`;

/** Finds the user of a challenge before the row is locked; undefined if it has expired, was answered, or failed too often. */
export async function findChallenge(
  db: Queryable,
  token: string,
  purpose: ChallengePurpose,
): Promise<Challenge | undefined> {
  return await findRow<Challenge>(db, FIND, [sha256(token), purpose, SECOND_FACTOR_LIMITS.challengeFailuresMax]);
}

/** Finds a challenge and locks its row until the transaction ends; undefined as in `findChallenge`. */
export async function holdChallenge(
  client: Queryable,
  token: string,
  purpose: ChallengePurpose,
): Promise<Challenge | undefined> {
  const parameters = [sha256(token), purpose, SECOND_FACTOR_LIMITS.challengeFailuresMax];
  return await findRow<Challenge>(client, `${FIND} FOR UPDATE`, parameters);
}

/** Removes an answered challenge; part of a transaction. */
export async function removeChallenge(client: Queryable, token: string): Promise<void> {
  await client.query('DELETE FROM admin_challenges WHERE token_sha256 = $1', [sha256(token)]);
}

/** Removes what a user was asked and has not answered; part of a transaction. */
export async function removeChallengesOf(client: Queryable, userId: number): Promise<void> {
  await client.query('DELETE FROM admin_challenges WHERE global_user_id = $1', [userId]);
}

/** Counts a wrong answer; after a few the challenge is void. */
export async function failChallenge(client: Queryable, token: string): Promise<void> {
  await client.query('UPDATE admin_challenges SET failures = failures + 1 WHERE token_sha256 = $1', [sha256(token)]);
}

/** Removes expired challenges; returns how many. */
export async function removeExpiredChallenges(db: Queryable): Promise<number> {
  const { rowCount } = await db.query('DELETE FROM admin_challenges WHERE expires_at <= now()');
  return rowCount ?? 0;
}

/** Ends every question for a second factor; returns how many. */
export async function endChallenges(client: Queryable): Promise<number> {
  return (await client.query('DELETE FROM admin_challenges')).rowCount ?? 0;
}
