import { type Actor, appendAudit } from '../audit/audit-log.ts';
import { ServiceError } from '../base/errors.ts';
import { networkOf } from '../base/ip-address.ts';
import type { Database, Queryable } from '../db/database.ts';
import { type AdminAccount, findCredentials, holdPassword, useTemporaryPassword } from './admin-accounts.ts';
import { type Attempt, accountKey, beginAttempt, dropAttempt, failAttempt, succeed } from './login-throttle.ts';
import { passwordMatches } from './password.ts';

/** The challenge for administrators (RFC 9110 section 11.6.1). */
export const ADMIN_CHALLENGE = 'Cookie realm="plugin-host admin", cookie-name="admin_session"';

const wrong = (): ServiceError =>
  new ServiceError('unauthorized', 'email or password is wrong', { headers: [['WWW-Authenticate', ADMIN_CHALLENGE]] });

type Known = { account: AdminAccount; hash: string | null } | undefined;
type Verified = { account: AdminAccount; hash: string };

/**
 * Counts the attempt, compares the password, and runs `act` if it is right.
 *
 * @param act runs in a transaction that has locked the row; returns null to refuse all the same
 * @returns the result of `act`; null for a wrong password, which counts as a failure
 * @throws ServiceError `too_many_attempts` with `Retry-After`
 */
async function attemptWith<T extends object>(
  db: Database,
  attempt: Attempt,
  known: Known,
  password: string,
  act: (client: Queryable, verified: Verified) => Promise<T | null>,
): Promise<T | null> {
  const id = await beginAttempt(db, attempt);
  try {
    const hash = known?.hash ?? null;
    const right = await passwordMatches(password, hash);
    const done =
      right && known !== undefined && hash !== null
        ? await db.withTransaction(async client => {
            if (!(await holdPassword(client, known.account.userId, hash))) return null;
            const given = await act(client, { account: known.account, hash });
            if (given !== null) await succeed(client, attempt);
            return given;
          })
        : null;
    if (done === null) await failAttempt(db, id);
    return done;
  } catch (error) {
    // Too many passwords are being compared, or the database is unavailable: not a failure of the caller.
    await dropAttempt(db, id).catch(() => {});
    throw error;
  }
}

export type LoginRequest = {
  email: string;
  password: string;
  address: string;
  /** The id of the browser, if this user has logged in with it before. */
  browserOf(userId: number): string | null;
  /** The actor in the audit log for a failed login. */
  stranger: Actor;
};

/**
 * Logs in with email and password. An unknown email takes the same time and gets the same answer as a wrong password. A
 * temporary password works once, before it expires.
 *
 * @param open begins the sessions, in a transaction that checks that the account still has this password
 * @throws ServiceError `unauthorized`, or `too_many_attempts` with `Retry-After`
 */
export async function logIn<T extends object>(
  db: Database,
  request: LoginRequest,
  open: (client: Queryable, account: AdminAccount) => Promise<T>,
): Promise<T> {
  const { address, browserOf, email, password, stranger } = request;
  const known = await findCredentials(db, email);
  const userId = known?.account.userId;
  const browser = userId === undefined ? null : browserOf(userId);
  const attempt = {
    account: await accountKey(db, userId, email),
    caller: browser === null ? `address ${networkOf(address)}` : `browser ${browser}`,
  };
  const opened = await attemptWith(db, attempt, known, password, async (client, { account, hash }) => {
    if (account.mustChangePassword && !(await useTemporaryPassword(client, account.userId, hash))) return null;
    return await open(client, account);
  });
  if (opened !== null) return opened;
  // An unknown email is not logged, because some people type their password into that field.
  await appendAudit(db, stranger, {
    action: 'admin.login_failed',
    objectType: 'user',
    objectId: userId === undefined ? 'unknown' : String(userId),
    after: { email: known?.account.email ?? null, known_browser: browser !== null },
  });
  throw wrong();
}

/**
 * Checks the password of a logged-in administrator again. Failures count per session, separately from logins, so that
 * an attacker who guesses at the login cannot block the administrator.
 *
 * @param act runs in a transaction that checks that the account still has this password
 * @throws ServiceError `validation_failed` at `pointer` if the password is wrong
 */
export async function withPassword<T extends object>(
  db: Database,
  who: { account: AdminAccount; counted: string; passwordGiven: boolean; by: Actor },
  password: string,
  pointer: string,
  act: (client: Queryable) => Promise<T>,
): Promise<T> {
  const { account, by, counted: key } = who;
  const known = await findCredentials(db, account.email);
  // In a session that began without the password, a temporary password must not have expired.
  const lapsed = (account.temporaryUntil?.getTime() ?? 0) <= Date.now();
  const refused = account.mustChangePassword && !who.passwordGiven && lapsed;
  const done = await attemptWith(db, { account: key, caller: key }, known, password, async client =>
    refused ? null : await act(client),
  );
  if (done !== null) return done;
  await appendAudit(db, by, { action: 'admin.confirm_failed', objectType: 'user', objectId: String(account.userId) });
  throw new ServiceError('validation_failed', 'this is not your current password', {
    errors: [{ pointer, message: 'must be your current password' }],
  });
}
