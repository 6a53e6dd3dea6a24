import type { Database, Queryable } from '../db/database.ts';
import { ServiceError } from '../errors.ts';
import { type AdminAccount, findCredentials, useTemporaryPassword } from './admin-accounts.ts';
import { passwordMatches } from './password.ts';

/** Any constant: login attempts are counted one at a time over all hosts. */
const LOGIN_LOCK = 7_391_044;

const FAILURES_MAX = 5;
const FAILURE_WINDOW_SECONDS = 15 * 60;

/**
 * Counts an attempt as failed before it is checked, one at a time, so that attempts in parallel count each other; a right
 * password takes it back.
 *
 * @returns 0, or the seconds to wait after too many failures of the account or the address; the attempt is not counted then
 */
async function countAttempt(db: Database, account: string, address: string): Promise<number> {
  return await db.withTransaction(async client => {
    await client.query('SELECT pg_advisory_xact_lock($1)', [LOGIN_LOCK]);
    const { rows } = await client.query<{ wait: number | null }>(
      `SELECT max(wait)::float8 AS wait FROM (
         SELECT extract(epoch FROM (array_agg(failed_at ORDER BY failed_at DESC))[$4]) + $3 - extract(epoch FROM now()) AS wait
         FROM login_failures WHERE account = $1 AND failed_at > now() - make_interval(secs => $3)
         UNION ALL
         SELECT extract(epoch FROM (array_agg(failed_at ORDER BY failed_at DESC))[$4]) + $3 - extract(epoch FROM now())
         FROM login_failures WHERE address = $2 AND failed_at > now() - make_interval(secs => $3)) AS both_of`,
      [account, address, FAILURE_WINDOW_SECONDS, FAILURES_MAX],
    );
    const wait = Math.max(0, Math.ceil(rows[0]?.wait ?? 0));
    if (wait === 0)
      await client.query('INSERT INTO login_failures (account, address) VALUES ($1, $2)', [account, address]);
    return wait;
  });
}

/**
 * Checks email and password. An unknown email takes the same time and gets the same answer as a wrong password.
 *
 * @param accept what else must hold, asked once the password is right
 * @throws ServiceError `unauthorized`, or `too_many_attempts` with `Retry-After` after five failures in 15 minutes
 */
async function verify(
  db: Database,
  email: string,
  password: string,
  address: string,
  accept: (account: AdminAccount, hash: string) => Promise<boolean>,
): Promise<AdminAccount> {
  const account = email.trim().toLowerCase();
  const wait = await countAttempt(db, account, address);
  if (wait > 0)
    throw new ServiceError('too_many_attempts', `too many failed logins; try again in ${wait} s`, {
      headers: [['Retry-After', String(wait)]],
    });
  const known = await findCredentials(db, account);
  const right = await passwordMatches(password, known?.hash ?? null);
  if (!right || known === undefined || known.hash === null || !(await accept(known.account, known.hash)))
    throw new ServiceError('unauthorized', 'email or password is wrong');
  await forgetFailures(db, account);
  return known.account;
}

/** A login (service.md 5.4.3). A temporary password opens once, and not after its time. */
export async function logIn(db: Database, email: string, password: string, address: string): Promise<AdminAccount> {
  return await verify(
    db,
    email,
    password,
    address,
    async (account, hash) => !account.mustChangePassword || (await useTemporaryPassword(db, account.userId, hash)),
  );
}

/** Whether this is the password of an administrator who is logged in. Failures count like failed logins. */
export async function checkPassword(
  db: Database,
  admin: AdminAccount,
  password: string,
  address: string,
): Promise<void> {
  await verify(db, admin.email, password, address, async () => true);
}

/** Lets an account try again at once. */
export async function forgetFailures(db: Queryable, email: string): Promise<void> {
  await db.query('DELETE FROM login_failures WHERE account = $1', [email.trim().toLowerCase()]);
}

/** Removes failures that count no more; returns how many. */
export async function removeOldFailures(db: Queryable): Promise<number> {
  const { rowCount } = await db.query(
    'DELETE FROM login_failures WHERE failed_at < now() - make_interval(secs => $1)',
    [FAILURE_WINDOW_SECONDS],
  );
  return rowCount ?? 0;
}
