import { type Actor, appendAudit } from '../audit/audit-log.ts';
import { ServiceError } from '../base/errors.ts';
import { networkOf } from '../base/ip-address.ts';
import type { Database, Queryable } from '../db/database.ts';
import { type AdminAccount, findCredentials, holdCredentials, useTemporaryPassword } from './admin-accounts.ts';
import { sha256 } from './bearer-secret.ts';
import {
  type Challenge,
  failChallenge,
  findChallenge,
  holdChallenge,
  type LoginPurpose,
  removeChallenge,
} from './challenges.ts';
import {
  type Attempt,
  accountKey,
  beginAttempt,
  countFailures,
  dropAttempt,
  failAttempt,
  keyOfUser,
  succeed,
} from './login-throttle.ts';
import { passwordMatches } from './password.ts';
import type { PasswordTurn } from './password-queue.ts';
import { SECOND_FACTOR_LIMITS } from './second-factor-limits.ts';

/** The challenge for administrators (RFC 9110 section 11.6.1). */
export const ADMIN_CHALLENGE = 'Cookie realm="plugin-host admin", cookie-name="admin_session"';

const wrong = (): ServiceError =>
  new ServiceError('unauthorized', 'email or password is wrong', { headers: [['WWW-Authenticate', ADMIN_CHALLENGE]] });

type Known = { account: AdminAccount; hash: string | null } | undefined;
type Verified = { account: AdminAccount; hash: string };

/**
 * Counts the attempt, compares the password, and runs `act` if it is right.
 *
 * @param from whose turn it is to have a password compared
 * @param act runs in a transaction that has locked the row; returns null to refuse all the same
 * @param isComplete whether nothing more is asked; only then earlier failures are forgotten
 * @returns the result of `act`; null for a wrong password, which counts as a failure
 * @throws ServiceError `too_many_attempts` with `Retry-After`
 */
async function attemptWith<T extends object>(
  db: Database,
  attempt: Attempt,
  known: Known,
  password: string,
  from: Pick<PasswordTurn, 'known' | 'address'>,
  act: (client: Queryable, verified: Verified) => Promise<T | null>,
  isComplete: (given: T) => boolean = () => true,
): Promise<T | null> {
  const { accountFailures, id } = await beginAttempt(db, attempt);
  try {
    const hash = known?.hash ?? null;
    const turn = { ...from, account: attempt.account, accountFailures };
    const right = await passwordMatches(password, hash, turn);
    const done =
      right && known !== undefined && hash !== null
        ? await db.withTransaction(async client => {
            // As it is now: a second factor may have been added, or the password changed, while this was compared.
            const held = await holdCredentials(client, known.account.userId);
            if (held?.hash !== hash) return null;
            const given = await act(client, held);
            if (given !== null && isComplete(given)) await succeed(client, attempt);
            else if (given !== null) await dropAttempt(client, id);
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

/** Outcome of a login: sessions, or the question for the second factor. */
export type LoginStep<Opened, Asked> = { opened: Opened } | { asked: Asked };

const hasLapsed = ({ mustChangePassword, temporaryUntil }: AdminAccount): boolean =>
  mustChangePassword && (temporaryUntil?.getTime() ?? 0) <= Date.now();

/**
 * Logs in with email and password. An unknown email takes the same time and gets the same answer as a wrong password. A
 * temporary password works once, before it expires.
 *
 * @param open begins the sessions, in a transaction that checks that the account still has this password
 * @param ask asks for the second factor instead, when the account has one; `boundTo` is void when the password changes
 * @throws ServiceError `unauthorized`, or `too_many_attempts` with `Retry-After`
 */
export async function logIn<Opened, Asked>(
  db: Database,
  request: LoginRequest,
  open: (client: Queryable, account: AdminAccount) => Promise<Opened>,
  ask: (client: Queryable, account: AdminAccount, boundTo: Buffer) => Promise<Asked>,
): Promise<LoginStep<Opened, Asked>> {
  const { browserOf, email, password, stranger } = request;
  const known = await findCredentials(db, email);
  const userId = known?.account.userId;
  const { browser, caller } = callerOf(request.address, userId, browserOf);
  const attempt = { account: await accountKey(db, userId, email), caller };
  const step = await attemptWith<LoginStep<Opened, Asked>>(
    db,
    attempt,
    known,
    password,
    { known: browser !== null, address: request.address },
    async (client, { account, hash }) => {
      // It is used up by the second half.
      if (account.hasSecondFactor)
        return hasLapsed(account) ? null : { asked: await ask(client, account, sha256(hash)) };
      if (account.mustChangePassword && !(await useTemporaryPassword(client, account.userId, hash))) return null;
      return { opened: await open(client, account) };
    },
    given => 'opened' in given,
  );
  if (step !== null) return step;
  // An unknown email is not logged, because some people type their password into that field.
  await appendAudit(db, stranger, {
    action: 'admin.login_failed',
    objectType: 'user',
    objectId: userId === undefined ? 'unknown' : String(userId),
    after: { email: known?.account.email ?? null, known_browser: browser !== null },
  });
  throw wrong();
}

/** The key under which attempts are counted: the browser if the account knows it, otherwise the address. */
function callerOf(address: string, userId: number | undefined, browserOf: LoginRequest['browserOf']) {
  const browser = userId === undefined ? null : browserOf(userId);
  return { browser, caller: browser === null ? `address ${networkOf(address)}` : `browser ${browser}` };
}

const tooLate = (): ServiceError =>
  new ServiceError('unauthorized', 'the login was not completed in time, or failed too often; begin it again', {
    headers: [['WWW-Authenticate', ADMIN_CHALLENGE]],
  });

/**
 * The second half of a login whose password was right, or a login without one. Wrong answers count as failed
 * logins, and a few of them end it.
 *
 * @param accept whether the answer is right; uses it up. It is given how many answers to this account were wrong lately
 * @throws ServiceError `unauthorized`, or `too_many_attempts` with `Retry-After`
 */
export async function completeLogin<Opened>(
  db: Database,
  request: Omit<LoginRequest, 'email' | 'password'> & { continuation: string; purpose: LoginPurpose },
  accept: (client: Queryable, challenge: Challenge, failures: number) => Promise<boolean>,
  open: (client: Queryable, account: AdminAccount) => Promise<Opened>,
): Promise<Opened> {
  const { address, browserOf, continuation, purpose, stranger } = request;
  const userId = (await findChallenge(db, continuation, purpose))?.userId;
  if (userId === undefined) throw tooLate();
  // It is begun without the password: its failures slow down nothing else.
  const isAlone = purpose === 'passwordless';
  const counted = `${isAlone ? 'passwordless login' : 'second factor'} of ${keyOfUser(userId)}`;
  const { caller } = callerOf(address, userId, browserOf);
  const attempt = { account: counted, caller: isAlone ? `passwordless from ${caller}` : caller };
  const { id } = await beginAttempt(db, attempt);
  let step: { opened: Opened } | { left: number };
  try {
    step = await db.withTransaction(async client => {
      const challenge = await holdChallenge(client, continuation, purpose);
      const held = await holdCredentials(client, userId);
      if (challenge === undefined || held === undefined || !sha256(held.hash).equals(challenge.boundTo))
        throw tooLate();
      const { account, hash } = held;
      // Answers to one account come one after another here, so each is given all that were wrong before it.
      if (!(await accept(client, challenge, await countFailures(client, counted)))) {
        await failChallenge(client, continuation);
        await failAttempt(client, id);
        return { left: SECOND_FACTOR_LIMITS.challengeFailuresMax - challenge.failures - 1 };
      }
      await removeChallenge(client, continuation);
      if (account.mustChangePassword && !(await useTemporaryPassword(client, userId, hash))) throw tooLate();
      const opened = await open(client, account);
      await succeed(client, attempt);
      return { opened };
    });
  } catch (error) {
    await dropAttempt(db, id).catch(() => {});
    throw error;
  }
  if ('opened' in step) return step.opened;
  const of = { objectType: 'user', objectId: String(userId) } as const;
  await appendAudit(
    db,
    stranger,
    isAlone
      ? { action: 'admin.login_failed', ...of, after: { passwordless: true } }
      : { action: 'admin.second_factor_failed', ...of },
  );
  throw new ServiceError(
    'unauthorized',
    step.left === 0
      ? 'this is not right, and was the last attempt; begin the login again'
      : `this is not right; ${step.left} more ${step.left === 1 ? 'attempt' : 'attempts'}`,
    { headers: [['WWW-Authenticate', ADMIN_CHALLENGE]], extra: { attempts_left: step.left } },
  );
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
  const refused = !who.passwordGiven && hasLapsed(account);
  const done = await attemptWith(
    db,
    { account: key, caller: key },
    known,
    password,
    { known: true, address: by.address },
    async client => (refused ? null : await act(client)),
  );
  if (done !== null) return done;
  await appendAudit(db, by, { action: 'admin.confirm_failed', objectType: 'user', objectId: String(account.userId) });
  throw new ServiceError('validation_failed', 'this is not your current password', {
    errors: [{ pointer, message: 'must be your current password', code: 'wrong_secret' }],
  });
}
