import type { Database, Queryable } from '../db/database.ts';
import { ServiceError } from '../errors.ts';
import { notifyIdentity } from './identity-changes.ts';
import { hashPassword, passwordMatches } from './password.ts';
import { revokeAllSessions } from './sessions.ts';
import { addUser } from './users.ts';

/** Who may obtain an admin session (service.md 2.11). */
export type AdminAccount = {
  userId: number;
  email: string;
  mustChangePassword: boolean;
  temporaryUntil: Date | null;
  createdAt: Date;
};

type AdminSql = {
  global_user_id: string;
  email: string;
  password_hash: string;
  must_change_password: boolean;
  temporary_until: Date | null;
  created_at: Date;
};

const toAccount = (r: AdminSql): AdminAccount => ({
  userId: Number(r.global_user_id),
  email: r.email,
  mustChangePassword: r.must_change_password,
  temporaryUntil: r.temporary_until,
  createdAt: r.created_at,
});

/** Any constant: one first administrator over all hosts of a database. */
const SETUP_LOCK = 7_391_043;
/** Any constant: login attempts are counted one at a time over all hosts. */
const LOGIN_LOCK = 7_391_044;

const FAILURES_MAX = 5;
const FAILURE_WINDOW_SECONDS = 15 * 60;

/** Whether any administrator exists: setup mode ends with the first (service.md 3.3). */
export async function adminsExist(db: Queryable): Promise<boolean> {
  const { rows } = await db.query<{ found: boolean }>('SELECT EXISTS (SELECT 1 FROM admin_credentials) AS found');
  return rows[0]?.found === true;
}

export async function findAdmin(db: Queryable, userId: number): Promise<AdminAccount | undefined> {
  const { rows } = await db.query<AdminSql>('SELECT * FROM admin_credentials WHERE global_user_id = $1', [userId]);
  return rows[0] === undefined ? undefined : toAccount(rows[0]);
}

/**
 * Makes the first administrator; of any number of attempts one wins.
 *
 * @throws ServiceError `conflict` when there is an administrator already
 */
export async function addFirstAdmin(
  db: Database,
  first: { email: string; password: string; displayName: string },
): Promise<AdminAccount> {
  const hash = await hashPassword(first.password);
  return await db.withTransaction(async client => {
    await client.query('SELECT pg_advisory_xact_lock($1)', [SETUP_LOCK]);
    if (await adminsExist(client)) throw new ServiceError('conflict', 'there is an administrator already; log in');
    const user = await addUser(client, first.displayName);
    const { rows } = await client.query<AdminSql>(
      'INSERT INTO admin_credentials (global_user_id, email, password_hash) VALUES ($1, $2, $3) RETURNING *',
      [user.id, first.email, hash],
    );
    await notifyIdentity(client, { what: 'admins', id: user.id });
    const row = rows[0];
    if (row === undefined) throw new Error('INSERT returned no row');
    return toAccount(row);
  });
}

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
 * @throws ServiceError `unauthorized`, or `too_many_attempts` with `Retry-After` after five failures in 15 minutes
 */
export async function logIn(db: Database, email: string, password: string, address: string): Promise<AdminAccount> {
  const account = email.trim().toLowerCase();
  const wait = await countAttempt(db, account, address);
  if (wait > 0)
    throw new ServiceError('too_many_attempts', `too many failed logins; try again in ${wait} s`, {
      headers: [['Retry-After', String(wait)]],
    });
  const { rows } = await db.query<AdminSql>('SELECT * FROM admin_credentials WHERE lower(email) = $1', [account]);
  const row = rows[0];
  const lapsed = row?.temporary_until != null && row.temporary_until.getTime() <= Date.now();
  const right = await passwordMatches(password, row?.password_hash ?? null);
  if (!right || row === undefined || lapsed) throw new ServiceError('unauthorized', 'email or password is wrong');
  await db.query('DELETE FROM login_failures WHERE account = $1', [account]);
  return toAccount(row);
}

/** Whether this is the password of an administrator. Failures count like failed logins. */
export async function checkPassword(
  db: Database,
  admin: AdminAccount,
  password: string,
  address: string,
): Promise<void> {
  await logIn(db, admin.email, password, address);
}

/** Sets a new password; every session of the administrator ends. */
export async function setPassword(db: Database, userId: number, password: string): Promise<void> {
  const hash = await hashPassword(password);
  await db.withTransaction(async client => {
    await client.query(
      'UPDATE admin_credentials SET password_hash = $2, must_change_password = false, temporary_until = NULL, updated_at = now() WHERE global_user_id = $1',
      [userId, hash],
    );
    await revokeAllSessions(client, userId);
  });
}

/** Removes failures that count no more; returns how many. */
export async function removeOldFailures(db: Queryable): Promise<number> {
  const { rowCount } = await db.query(
    'DELETE FROM login_failures WHERE failed_at < now() - make_interval(secs => $1)',
    [FAILURE_WINDOW_SECONDS],
  );
  return rowCount ?? 0;
}
