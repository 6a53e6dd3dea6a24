import type { Database, Queryable } from '../db/database.ts';
import { ServiceError } from '../errors.ts';
import { LIMITS } from '../limits.ts';
import { type AdminAccount, findCredentials, holdPassword, useTemporaryPassword } from './admin-accounts.ts';
import { passwordMatches } from './password.ts';

/** Any constant: login attempts are counted one at a time over all hosts. */
const LOGIN_LOCK = 7_391_044;

/** How an administrator proves who they are, as a challenge of RFC 9110 section 11.6.1. */
export const ADMIN_CHALLENGE = 'Cookie realm="plugin-host admin", cookie-name="admin_session"';

/**
 * Counts an attempt as failed before it is checked, one at a time, so that attempts in parallel count each other; a right
 * password takes it back.
 *
 * @returns 0, or the seconds to wait after too many failures of the account or the address; the attempt is not counted then
 */
async function countAttempt(db: Database, account: string, address: string): Promise<number> {
  // Who waits already is told so without the lock, which is for those that are counted.
  const waiting = await secondsToWait(db, account, address);
  if (waiting > 0) return waiting;
  return await db.withTransaction(async client => {
    await client.query('SELECT pg_advisory_xact_lock($1)', [LOGIN_LOCK]);
    const wait = await secondsToWait(client, account, address);
    if (wait === 0)
      await client.query('INSERT INTO login_failures (account, address) VALUES ($1, $2)', [account, address]);
    return wait;
  });
}

async function secondsToWait(db: Queryable, account: string, address: string): Promise<number> {
  const { rows } = await db.query<{ wait: number | null }>(
    `SELECT max(wait)::float8 AS wait FROM (
       SELECT extract(epoch FROM (array_agg(failed_at ORDER BY failed_at DESC))[$4]) + $3 - extract(epoch FROM now()) AS wait
       FROM login_failures WHERE account = $1 AND failed_at > now() - make_interval(secs => $3)
       UNION ALL
       SELECT extract(epoch FROM (array_agg(failed_at ORDER BY failed_at DESC))[$4]) + $3 - extract(epoch FROM now())
       FROM login_failures WHERE address = $2 AND failed_at > now() - make_interval(secs => $3)) AS both_of`,
    [account, address, LIMITS.loginFailureWindowSeconds, LIMITS.loginFailuresMax],
  );
  return Math.max(0, Math.ceil(rows[0]?.wait ?? 0));
}

const wrong = (): ServiceError =>
  new ServiceError('unauthorized', 'email or password is wrong', { headers: [['WWW-Authenticate', ADMIN_CHALLENGE]] });

/** An address as it is counted: whoever has an IPv6 address has the whole network of 64 bits. */
export function networkOf(address: string): string {
  if (!address.includes(':')) return address;
  const [head = '', tail] = address.split('::');
  const left = head === '' ? [] : head.split(':');
  const right = tail === undefined || tail === '' ? [] : tail.split(':');
  const gap = tail === undefined ? 0 : Math.max(0, 8 - left.length - right.length);
  return `${[...left, ...Array<string>(gap).fill('0'), ...right].slice(0, 4).join(':')}::/64`;
}

/** Counts, compares, and says what the password matched; the caller must hold the row before it acts on it. */
async function verify(
  db: Database,
  email: string,
  password: string,
  counted: { account: string; address: string },
): Promise<{ account: AdminAccount; hash: string } | null> {
  const wait = await countAttempt(db, counted.account, counted.address);
  if (wait > 0)
    throw new ServiceError('too_many_attempts', `too many failed attempts; try again in ${wait} s`, {
      headers: [['Retry-After', String(wait)]],
    });
  const known = await findCredentials(db, email);
  const right = await passwordMatches(password, known?.hash ?? null);
  return right && known !== undefined && known.hash !== null ? { account: known.account, hash: known.hash } : null;
}

/**
 * A login (service.md 5.4.3). An unknown email takes the same time and gets the same answer as a wrong password; a temporary
 * password opens once, and not after its time.
 *
 * @param open begins the sessions, in the transaction that makes sure the password still is the account's
 * @throws ServiceError `unauthorized`, or `too_many_attempts` with `Retry-After` after five failures in 15 minutes
 */
export async function logIn<T>(
  db: Database,
  email: string,
  password: string,
  address: string,
  open: (client: Queryable, account: AdminAccount) => Promise<T>,
): Promise<T> {
  const key = email.trim().toLowerCase();
  const verified = await verify(db, email, password, { account: key, address: networkOf(address) });
  if (verified === null) throw wrong();
  const { account, hash } = verified;
  return await db.withTransaction(async client => {
    if (!(await holdPassword(client, account.userId, hash))) throw wrong();
    if (account.mustChangePassword && !(await useTemporaryPassword(client, account.userId, hash))) throw wrong();
    await forgetFailures(client, key);
    return await open(client, account);
  });
}

/**
 * Asks an administrator who is logged in for the password again. Failures are counted by session, apart from those of logins:
 * a stranger who guesses at the login must not keep an administrator from acting.
 *
 * @param act done in the transaction that makes sure the password still is the account's
 * @throws ServiceError `validation_failed` at `pointer` when it is wrong
 */
export async function withPassword<T>(
  db: Database,
  who: { account: AdminAccount; sessionId: number; passwordGiven: boolean },
  password: string,
  pointer: string,
  act: (client: Queryable) => Promise<T>,
): Promise<T> {
  const { account, sessionId } = who;
  const key = `session ${sessionId}`;
  const refuse = (): ServiceError =>
    new ServiceError('validation_failed', 'this is not your current password', {
      errors: [{ pointer, message: 'must be your current password' }],
    });
  const verified = await verify(db, account.email, password, { account: key, address: key });
  if (verified === null) throw refuse();
  // A session that was begun another way needs a temporary password that is still good.
  const lapsed = (account.temporaryUntil?.getTime() ?? 0) <= Date.now();
  if (account.mustChangePassword && !who.passwordGiven && lapsed) throw refuse();
  return await db.withTransaction(async client => {
    if (!(await holdPassword(client, account.userId, verified.hash))) throw refuse();
    await forgetFailures(client, key);
    return await act(client);
  });
}

/** Lets an account try again at once. */
export async function forgetFailures(db: Queryable, account: string): Promise<void> {
  await db.query('DELETE FROM login_failures WHERE account = $1', [account.trim().toLowerCase()]);
}

/** Removes failures that count no more; returns how many. */
export async function removeOldFailures(db: Queryable): Promise<number> {
  const { rowCount } = await db.query(
    'DELETE FROM login_failures WHERE failed_at < now() - make_interval(secs => $1)',
    [LIMITS.loginFailureWindowSeconds],
  );
  return rowCount ?? 0;
}
