import { ServiceError } from '../base/errors.ts';
import { LIMITS } from '../base/limits.ts';
import type { Database, Queryable } from '../db/database.ts';
import { LOCKS, lockCallerForTransaction } from '../db/locks.ts';

/** A login attempt. Failures are counted separately by account and by caller. */
export type Attempt = {
  account: string;
  /** An address, an IPv6 network of 64 bits, a known browser, or a session. */
  caller: string;
};

/** Seconds from the last failure to the next attempt: 1, 2, 4 and so on up to a minute. */
export function delayAfter(failures: number): number {
  return failures === 0 ? 0 : Math.min(2 ** (failures - 1), LIMITS.loginDelaySecondsMax);
}

/** Failures of the caller, attempts under way, failures at the account, and seconds since the caller's last failure. */
export type Counts = { failed: number; running: number; account_failed: number; since_last: number | null };

const COUNTS = `
  SELECT count(*) FILTER (WHERE caller = $1 AND NOT running)::int AS failed,
    count(*) FILTER (WHERE caller = $1 AND running)::int AS running,
    count(*) FILTER (WHERE account = $2 AND NOT running)::int AS account_failed,
    extract(epoch FROM now() - max(failed_at) FILTER (WHERE caller = $1 AND NOT running))::float8 AS since_last
  FROM (SELECT caller, account, failed_at, pending AND failed_at > now() - make_interval(secs => $4) AS running
    FROM login_failures WHERE (caller = $1 OR account = $2) AND failed_at > now() - make_interval(secs => $3)) AS counted`;

/**
 * The seconds a caller must wait. A caller without failures never waits, whatever others do with the account. Otherwise
 * the wait begins at the caller's last failure and depends on the larger of the caller's and the account's count.
 */
export function waitOf(c: Counts): number {
  if (c.failed === 0) return c.running >= LIMITS.loginsAtOnceMax ? 1 : 0;
  const wait = delayAfter(Math.max(c.failed, c.account_failed)) - (c.since_last ?? 0);
  return wait > 0 ? Math.ceil(wait) : c.running > 0 ? 1 : 0;
}

async function countsOf(db: Queryable, { account, caller }: Attempt): Promise<Counts> {
  const { rows } = await db.query<Counts>(COUNTS, [
    caller,
    account,
    LIMITS.loginFailureWindowSeconds,
    LIMITS.loginPendingSeconds,
  ]);
  return rows[0] ?? { failed: 0, running: 0, account_failed: 0, since_last: null };
}

/**
 * Stores an attempt before the password is compared, so that concurrent attempts count each other.
 *
 * @returns its id, for `failAttempt` or `dropAttempt`, and how many attempts at the account failed lately
 * @throws ServiceError `too_many_attempts` with `Retry-After`; the attempt is not counted then
 */
export async function beginAttempt(db: Database, attempt: Attempt): Promise<{ id: number; accountFailures: number }> {
  // A caller that must wait is refused without taking the lock.
  refuse(waitOf(await countsOf(db, attempt)));
  return await db.withTransaction(async client => {
    await lockCallerForTransaction(client, LOCKS.login, attempt.caller);
    const counts = await countsOf(client, attempt);
    refuse(waitOf(counts));
    const { rows } = await client.query<{ id: string }>(
      'INSERT INTO login_failures (account, caller) VALUES ($1, $2) RETURNING id',
      [attempt.account, attempt.caller],
    );
    return { id: Number(rows[0]?.id), accountFailures: counts.account_failed };
  });
}

function refuse(seconds: number): void {
  if (seconds > 0)
    throw new ServiceError('too_many_attempts', `the last attempts failed; try again in ${seconds} s`, {
      headers: [['Retry-After', String(seconds)]],
    });
}

/** Counts the attempt as failed; the wait begins now. */
export async function failAttempt(db: Queryable, id: number): Promise<void> {
  await db.query('UPDATE login_failures SET pending = false, failed_at = now() WHERE id = $1', [id]);
}

/** Removes an attempt whose password was not compared. */
export async function dropAttempt(db: Queryable, id: number): Promise<void> {
  await db.query('DELETE FROM login_failures WHERE id = $1', [id]);
}

/**
 * Removes the failures of this caller at this account after a right password. Keeps failures at other accounts;
 * otherwise a caller with an account could guess at others without waiting.
 */
export async function succeed(client: Queryable, { account, caller }: Attempt): Promise<void> {
  await client.query('DELETE FROM login_failures WHERE account = $1 AND caller = $2', [account, caller]);
}

/** Removes all failures at an account that has a new password. */
export async function forgetFailures(client: Queryable, account: string): Promise<void> {
  await client.query('DELETE FROM login_failures WHERE account = $1', [account]);
}

/** How many attempts at an account failed lately, over all callers. */
export async function countFailures(db: Queryable, account: string): Promise<number> {
  const { rows } = await db.query<{ count: number }>(
    `SELECT count(*)::int AS count FROM login_failures
     WHERE account = $1 AND NOT pending AND failed_at > now() - make_interval(secs => $2)`,
    [account, LIMITS.loginFailureWindowSeconds],
  );
  return rows[0]?.count ?? 0;
}

/** Removes failures that are too old to count; returns how many. */
export async function removeOldFailures(db: Queryable): Promise<number> {
  const { rowCount } = await db.query(
    'DELETE FROM login_failures WHERE failed_at < now() - make_interval(secs => $1)',
    [LIMITS.loginFailureWindowSeconds],
  );
  return rowCount ?? 0;
}

/**
 * The key for failures at an account. Unknown emails are counted too, because otherwise the wait would reveal which
 * accounts exist. The email is lowered as in the look-up of the account, and hashed, because some people type their
 * password into that field.
 */
export async function accountKey(db: Queryable, userId: number | undefined, email: string): Promise<string> {
  const { rows } = await db.query<{ hash: string }>(
    "SELECT encode(sha256(convert_to(lower($1), 'UTF8')), 'hex') AS hash",
    [email.trim()],
  );
  return userId === undefined ? `email ${rows[0]?.hash ?? ''}` : keyOfUser(userId);
}

export const keyOfUser = (userId: number): string => `user ${userId}`;
