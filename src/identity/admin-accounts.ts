import { randomInt } from 'node:crypto';
import { ServiceError } from '../base/errors.ts';
import { LIMITS } from '../base/limits.ts';
import type { Queryable } from '../db/database.ts';
import { findRow, findRows } from '../db/rows.ts';
import { ADMIN_ROLES, type AdminRole, type AdminRoles, OWNER } from './admin-roles.ts';
import { sha256 } from './bearer-secret.ts';
import { findUser } from './find-users.ts';
import { hashPassword } from './password.ts';

/** A user who may log in as an administrator (docs/identity.md "Administrators"). */
export type AdminAccount = AdminRoles & {
  userId: number;
  email: string;
  mustChangePassword: boolean;
  temporaryUntil: Date | null;
  createdAt: Date;
  /** Whether a login needs a passkey or a code besides the password. */
  hasSecondFactor: boolean;
  /** A browser logs in without a password only if its last login is later. */
  passwordlessAfter: Date;
  /** State of the mail with the last temporary password; null if none was requested. */
  mail: { state: 'pending' | 'sent' | 'failed'; error: string | null; at: Date | null } | null;
};

/** An account as it is stored. */
type StoredAdmin = Omit<AdminAccount, 'roles' | 'mail'> & {
  roles: string[];
  mailState: 'pending' | 'sent' | 'failed' | null;
  mailError: string | null;
  mailAt: Date | null;
};

const isRole = (text: string): text is AdminRole => ADMIN_ROLES.some(role => role === text);

const readAccount = <A extends StoredAdmin>({ mailAt, mailError, mailState, roles, ...account }: A) => ({
  ...account,
  roles: roles.filter(isRole),
  mail: mailState === null ? null : { state: mailState, error: mailError, at: mailAt },
});

const COLUMNS = `a.global_user_id AS user_id, a.email, a.roles, a.plugins, a.must_change_password, a.temporary_until, a.created_at,
  a.passwordless_after, a.mail_state, a.mail_error, a.mail_at,
  EXISTS (SELECT 1 FROM admin_passkeys p WHERE p.global_user_id = a.global_user_id)
    OR EXISTS (SELECT 1 FROM admin_totp t WHERE t.global_user_id = a.global_user_id) AS has_second_factor`;

const WITH_HASH = `SELECT ${COLUMNS}, a.password_hash FROM admin_credentials a`;

/** A value that is the hash of no password: the account waits for its temporary password. */
const NO_PASSWORD = '!';
/** Letters and digits that are not easily confused; four groups of five are 97 bits. */
const LETTERS = 'abcdefghjkmnpqrstuvwxyz23456789';

function makeTemporaryPassword(): string {
  const group = (): string => Array.from({ length: 5 }, () => LETTERS[randomInt(LETTERS.length)]).join('');
  return [group(), group(), group(), group()].join('-');
}

/** Whether any administrator exists: setup mode ends with the first (docs/identity.md "Setup mode"). */
export async function adminsExist(db: Queryable): Promise<boolean> {
  const { rows } = await db.query<{ found: boolean }>('SELECT EXISTS (SELECT 1 FROM admin_credentials) AS found');
  return rows[0]?.found === true;
}

export async function findAdmin(db: Queryable, userId: number): Promise<AdminAccount | undefined> {
  const row = await findRow<StoredAdmin>(db, `SELECT ${COLUMNS} FROM admin_credentials a WHERE a.global_user_id = $1`, [
    userId,
  ]);
  return row === undefined ? undefined : readAccount(row);
}

export type NamedAdmin = AdminAccount & { id: number; displayName: string };
type StoredNamedAdmin = StoredAdmin & Pick<NamedAdmin, 'id' | 'displayName'>;

const NAMED = `SELECT ${COLUMNS}, u.id, u.display_name FROM admin_credentials a JOIN global_users u ON u.id = a.global_user_id`;

/**
 * Lists administrators with their names, in descending order of user ids.
 *
 * @param userId null for all, or the id of the only user to list
 */
export async function listAdmins(
  db: Queryable,
  userId: number | null,
  before: number,
  limit: number,
): Promise<NamedAdmin[]> {
  const rows = await findRows<StoredNamedAdmin>(
    db,
    `${NAMED} WHERE a.global_user_id < $1 AND ($3::bigint IS NULL OR a.global_user_id = $3)
     ORDER BY a.global_user_id DESC LIMIT $2`,
    [before, limit, userId],
  );
  return rows.map(r => readAccount(r));
}

/** Lists all administrators, oldest first, for the command line. */
export async function listAllAdmins(db: Queryable): Promise<NamedAdmin[]> {
  const rows = await findRows<StoredNamedAdmin>(db, `${NAMED} ORDER BY a.created_at, a.global_user_id`);
  return rows.map(r => readAccount(r));
}

export async function findAdminByEmail(db: Queryable, email: string): Promise<AdminAccount | undefined> {
  return (await findCredentials(db, email))?.account;
}

/** The account with an email, and the hash of its password; null while it waits for a password. */
export async function findCredentials(
  db: Queryable,
  email: string,
): Promise<{ account: AdminAccount; hash: string | null } | undefined> {
  // PostgreSQL lowers both sides, because its lower() differs from JavaScript's.
  const row = await findRow<StoredAdmin & { passwordHash: string }>(
    db,
    `${WITH_HASH} WHERE lower(a.email) = lower($1)`,
    [email.trim()],
  );
  if (row === undefined) return undefined;
  const { passwordHash, ...account } = row;
  return { account: readAccount(account), hash: passwordHash === NO_PASSWORD ? null : passwordHash };
}

/** Adds the record that makes a user an administrator, without a password. Part of a transaction. */
export async function addCredentials(
  client: Queryable,
  user: { id: number; email: string },
  may: AdminRoles = OWNER,
): Promise<void> {
  // In a statement of its own, before the look: an erasure under way is waited for.
  await client.query('SELECT 1 FROM global_users WHERE id = $1 FOR UPDATE', [user.id]);
  if ((await findUser(client, user.id)) === undefined)
    throw new ServiceError('validation_failed', `there is no user ${user.id}`, {
      errors: [
        {
          pointer: '/global_user_id',
          message: 'must be the id of a user; see GET /api/admin/users',
          code: 'not_found',
        },
      ],
    });
  if ((await findAdmin(client, user.id)) !== undefined)
    throw new ServiceError('conflict', `user ${user.id} is already an administrator`, {
      errors: [{ pointer: '/global_user_id', message: 'must not be an administrator yet', code: 'taken' }],
    });
  if ((await findAdminByEmail(client, user.email)) !== undefined)
    throw new ServiceError('conflict', 'another administrator has this email', {
      errors: [{ pointer: '/email', message: 'must not belong to another administrator', code: 'taken' }],
    });
  await client.query(
    `INSERT INTO admin_credentials (global_user_id, email, password_hash, must_change_password, roles, plugins)
     VALUES ($1, $2, $3, true, $4, $5)`,
    [user.id, user.email, NO_PASSWORD, may.roles, may.plugins],
  );
}

export async function loadAdmin(db: Queryable, userId: number): Promise<AdminAccount> {
  const account = await findAdmin(db, userId);
  if (account === undefined) throw noAdmin(userId);
  return account;
}

export const noAdmin = (userId: number): ServiceError =>
  new ServiceError('not_found', `user ${userId} is not an administrator`);

/** A requested mail with a temporary password; `request` distinguishes it from later requests. */
export type MailOrder = { userId: number; request: string };

/**
 * Sets a new temporary password.
 *
 * @param order the mail it is for, or null if it is printed on the command line
 * @returns the password, or null if the administrator was removed or does not wait for this mail any more
 */
export async function giveTemporaryPassword(
  db: Queryable,
  userId: number,
  order: MailOrder | null,
): Promise<{ password: string; hash: string; until: Date } | null> {
  const password = makeTemporaryPassword();
  const hash = await hashPassword(password);
  const { rows } = await db.query<{ temporary_until: Date }>(
    `UPDATE admin_credentials SET password_hash = $2, must_change_password = true,
       temporary_until = now() + make_interval(hours => $3), updated_at = now()
     WHERE global_user_id = $1 AND ($4 OR (mail_state = 'pending' AND mail_request = $5::uuid))
     RETURNING temporary_until`,
    [userId, hash, LIMITS.temporaryPasswordHours, order === null, order?.request ?? null],
  );
  return rows[0] === undefined ? null : { password, hash, until: rows[0].temporary_until };
}

/** Removes the password. The account now waits for this mail, and not for an earlier one. */
export async function awaitMail(client: Queryable, userId: number): Promise<MailOrder> {
  const { rows } = await client.query<{ mail_request: string }>(
    `UPDATE admin_credentials SET password_hash = $2, must_change_password = true, temporary_until = NULL,
       mail_state = 'pending', mail_error = NULL, mail_at = NULL, mail_request = gen_random_uuid(), updated_at = now()
     WHERE global_user_id = $1 RETURNING mail_request`,
    [userId, NO_PASSWORD],
  );
  if (rows[0] === undefined) throw noAdmin(userId);
  return { userId, request: rows[0].mail_request };
}

/** Stores the result of an attempt to mail a password, unless another mail was requested meanwhile. */
export async function noteMail(
  db: Queryable,
  userId: number,
  hash: string,
  state: 'pending' | 'sent',
  error: string | null,
): Promise<void> {
  await db.query(
    `UPDATE admin_credentials SET mail_state = $2, mail_error = $3, mail_at = now() WHERE global_user_id = $1 AND mail_state = 'pending' AND password_hash = $4`,
    [userId, state, error, hash],
  );
}

/** Marks the mail of an account as failed, with the error of the last attempt. */
export async function giveUpMail(db: Queryable, order: MailOrder): Promise<void> {
  await db.query(
    `UPDATE admin_credentials SET mail_state = 'failed', mail_at = now(), mail_error = coalesce(mail_error, 'the attempts were broken off')
     WHERE global_user_id = $1 AND mail_state = 'pending' AND mail_request = $2::uuid`,
    [order.userId, order.request],
  );
}

/** Temporary passwords whose mail was given up. */
export async function listUnsentMails(db: Queryable): Promise<Array<{ email: string; error: string }>> {
  const { rows } = await db.query<{ email: string; error: string }>(
    "SELECT email, mail_error AS error FROM admin_credentials WHERE mail_state = 'failed' ORDER BY mail_at DESC",
  );
  return rows;
}

/** Clears the state of the mail. */
export async function forgetMail(client: Queryable, userId: number): Promise<void> {
  await client.query('UPDATE admin_credentials SET mail_state = NULL, mail_error = NULL WHERE global_user_id = $1', [
    userId,
  ]);
}

/** A value that changes with every change of the password and tells nothing of it; undefined without an account. */
export async function markOfCredentials(db: Queryable, userId: number): Promise<string | undefined> {
  const { rows } = await db.query<{ password_hash: string }>(
    'SELECT password_hash FROM admin_credentials WHERE global_user_id = $1',
    [userId],
  );
  return rows[0] === undefined ? undefined : sha256(rows[0].password_hash).toString('base64url');
}

/**
 * Lets no browser log in without a password until its next login with one: factors were added, or sessions ended. Part of a
 * transaction.
 */
export async function endPasswordless(client: Queryable, userId: number): Promise<void> {
  await client.query('UPDATE admin_credentials SET passwordless_after = now() WHERE global_user_id = $1', [userId]);
}

/** Lets no administrator's browser log in without a password until its next login with one. */
export async function endAllPasswordless(client: Queryable): Promise<void> {
  await client.query('UPDATE admin_credentials SET passwordless_after = now()');
}

/** An account with the hash of its password, locked until the transaction ends. */
export async function holdCredentials(
  client: Queryable,
  userId: number,
): Promise<{ account: AdminAccount; hash: string } | undefined> {
  // A statement of its own: one that has waited for the lock sees other tables as they were before it waited.
  await client.query('SELECT 1 FROM admin_credentials WHERE global_user_id = $1 FOR UPDATE', [userId]);
  const row = await findRow<StoredAdmin & { passwordHash: string }>(
    client,
    `${WITH_HASH} WHERE a.global_user_id = $1`,
    [userId],
  );
  if (row === undefined) return undefined;
  const { passwordHash, ...account } = row;
  return { account: readAccount(account), hash: passwordHash };
}

/**
 * Marks a temporary password as used; false if it has expired or was used before. Compared with the time of the statement: that of the
 * transaction lies before the use that this one has waited for, if it began first.
 */
export async function useTemporaryPassword(db: Queryable, userId: number, hash: string): Promise<boolean> {
  const { rowCount } = await db.query(
    'UPDATE admin_credentials SET temporary_until = now() WHERE global_user_id = $1 AND password_hash = $2 AND temporary_until > clock_timestamp()',
    [userId, hash],
  );
  return rowCount === 1;
}

/**
 * Stores the hash of a password the administrator has chosen, and ends retries of a mail, which would replace the
 * password.
 */
export async function storePassword(client: Queryable, userId: number, hash: string): Promise<void> {
  await client.query(
    `UPDATE admin_credentials SET password_hash = $2, must_change_password = false, temporary_until = NULL, updated_at = now(),
       mail_state = CASE mail_state WHEN 'pending' THEN 'sent' ELSE mail_state END WHERE global_user_id = $1`,
    [userId, hash],
  );
}

/** Whether another administrator is an owner. The caller holds the lock that serializes changes of owners. */
export async function anotherOwnerExists(client: Queryable, userId: number): Promise<boolean> {
  const { rows } = await client.query<{ found: boolean }>(
    "SELECT EXISTS (SELECT 1 FROM admin_credentials WHERE global_user_id <> $1 AND 'owner' = ANY (roles)) AS found",
    [userId],
  );
  return rows[0]?.found === true;
}

/** Stores what an administrator may do. Part of a transaction. */
export async function storeRoles(client: Queryable, userId: number, { plugins, roles }: AdminRoles): Promise<void> {
  await client.query(
    'UPDATE admin_credentials SET roles = $2, plugins = $3, updated_at = now() WHERE global_user_id = $1',
    [userId, roles, plugins],
  );
}

/** Removes the record that makes a user an administrator. Part of a transaction. */
export async function removeCredentials(client: Queryable, userId: number): Promise<void> {
  await client.query('DELETE FROM admin_credentials WHERE global_user_id = $1', [userId]);
}

/** Mails that were to be sent when a backup was made: their jobs are not in it. */
export async function failPendingMails(client: Queryable, why: string): Promise<void> {
  await client.query(
    "UPDATE admin_credentials SET mail_state = 'failed', mail_error = $1, mail_at = now() WHERE mail_state = 'pending'",
    [why],
  );
}
