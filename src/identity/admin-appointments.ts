import { type Actor, type AuditState, appendAudit } from '../audit/audit-log.ts';
import { messageOf, ServiceError } from '../base/errors.ts';
import type { Database, Queryable } from '../db/database.ts';
import { LOCKS, lockForTransaction } from '../db/locks.ts';
import {
  type AdminAccount,
  addCredentials,
  adminsExist,
  anotherOwnerExists,
  awaitMail,
  findAdmin,
  findAdminByEmail,
  forgetMail,
  giveTemporaryPassword,
  loadAdmin,
  type MailOrder,
  noAdmin,
  noteMail,
  removeCredentials,
  storePassword,
  storeRoles,
} from './admin-accounts.ts';
import { revokeAdminKeysBeyond, revokeAdminKeysOf } from './admin-keys.ts';
import { type AdminRoles, OWNER, scopesOf } from './admin-roles.ts';
import { findUser } from './find-users.ts';
import { forgetFailures, keyOfUser } from './login-throttle.ts';
import { hashPassword } from './password.ts';
import { revokeAllSessions } from './sessions.ts';
import { revokeAllUserTokens } from './user-tokens.ts';
import { addUser } from './users.ts';

/**
 * Adds the first administrator. Of concurrent attempts exactly one succeeds.
 *
 * @throws ServiceError `conflict` if there is an administrator already
 */
export async function addFirstAdmin(
  db: Database,
  first: { email: string; password: string; displayName: string; locale?: 'ru' | 'en' | undefined },
  by: Actor,
): Promise<AdminAccount> {
  return await db.withTransaction(async client => {
    await lockForTransaction(client, LOCKS.adminSetup);
    if (await adminsExist(client)) throw new ServiceError('conflict', 'there is an administrator already; log in');
    // Under the lock, so that of many attempts only one does the work of hashing.
    const hash = await hashPassword(first.password);
    const { displayName, locale = 'ru' } = first;
    const user = await addUser(client, { displayName, locale });
    await addCredentials(client, { id: user.id, email: first.email });
    await storePassword(client, user.id, hash);
    await appendAudit(client, by, {
      action: 'admin.setup',
      objectType: 'user',
      objectId: String(user.id),
      after: { email: first.email, ...rolesState(OWNER) },
    });
    return await loadAdmin(client, user.id);
  });
}

/** Queues the job that mails a temporary password, as part of the transaction. */
export type QueueMail = (client: Queryable, order: MailOrder) => Promise<void>;

/**
 * Makes a user an administrator. The temporary password is sent only by mail (docs/identity.md "Administrators").
 *
 * @throws ServiceError `validation_failed` for an unknown user, `conflict` if the user is an administrator or the email
 * is in use
 */
export async function appointAdmin(
  db: Database,
  user: { id: number; email: string; may: AdminRoles },
  queueMail: QueueMail,
  by: Actor,
): Promise<AdminAccount> {
  return await db.withTransaction(async client => {
    await lockAsOwner(client, by);
    await addCredentials(client, user, user.may);
    await askForMail(client, user.id, queueMail);
    await appendAudit(client, by, {
      action: 'admin.appoint',
      objectType: 'user',
      objectId: String(user.id),
      after: { email: user.email, ...rolesState(user.may) },
    });
    return await loadAdmin(client, user.id);
  });
}

const rolesState = ({ plugins, roles }: AdminRoles): AuditState => ({
  roles,
  ...(roles.includes('plugin_manager') ? { plugins } : {}),
});

/**
 * Takes the lock under which administrators are changed, and checks that an administrator who changes them is still an owner.
 *
 * @throws ServiceError `forbidden`
 */
export async function lockAsOwner(client: Queryable, by: Actor): Promise<void> {
  await lockForTransaction(client, LOCKS.adminSetup);
  if (by.kind !== 'admin') return;
  const actor = by.userId === null ? undefined : await findAdmin(client, by.userId);
  if (actor?.roles.includes('owner') !== true)
    throw new ServiceError('forbidden', 'you are not an owner any more: your roles were changed meanwhile');
}

/** @throws ServiceError `conflict` if no other owner would be there to appoint administrators */
async function assertOwnerRemains(client: Queryable, account: AdminAccount): Promise<void> {
  if (account.roles.includes('owner') && !(await anotherOwnerExists(client, account.userId)))
    throw new ServiceError('conflict', 'this is the last owner; make another administrator an owner first');
}

/**
 * Changes what an administrator may do. It counts from the next request on. Administration keys the administrator has
 * created are revoked where they open more than the new roles.
 *
 * @throws ServiceError `not_found`, or `conflict` if the last owner would be none
 */
export async function changeRoles(db: Database, userId: number, may: AdminRoles, by: Actor): Promise<AdminAccount> {
  return await db.withTransaction(async client => {
    await lockAsOwner(client, by);
    const account = await loadAdmin(client, userId);
    if (!may.roles.includes('owner')) await assertOwnerRemains(client, account);
    await storeRoles(client, userId, may);
    await revokeAdminKeysBeyond(client, userId, scopesOf(may), by);
    await appendAudit(client, by, {
      action: 'admin.roles',
      objectType: 'user',
      objectId: String(userId),
      before: rolesState(account),
      after: rolesState(may),
    });
    return await loadAdmin(client, userId);
  });
}

/** Revokes all credentials of a user, because a thief of the password may have created tokens and keys with it. */
async function revokeEverything(client: Queryable, userId: number, by: Actor): Promise<void> {
  await revokeAllSessions(client, userId);
  await revokeAllUserTokens(client, userId);
  await revokeAdminKeysOf(client, userId, by);
}

async function askForMail(client: Queryable, userId: number, queueMail: QueueMail): Promise<void> {
  await queueMail(client, await awaitMail(client, userId));
}

/**
 * Removes the password of an administrator and mails a temporary one. Ends all sessions and tokens.
 *
 * @throws ServiceError `not_found`, or `conflict` for the caller's own account, whose password must be changed instead
 */
export async function resetAdminPassword(
  db: Database,
  userId: number,
  queueMail: QueueMail,
  by: Actor,
): Promise<AdminAccount> {
  if (by.userId === userId)
    throw new ServiceError('conflict', 'this is your own account; change the password: PUT /api/admin/auth/password');
  return await db.withTransaction(async client => {
    await lockAsOwner(client, by);
    await loadAdmin(client, userId);
    await askForMail(client, userId, queueMail);
    await revokeEverything(client, userId, by);
    await appendAudit(client, by, { action: 'admin.reset_password', objectType: 'user', objectId: String(userId) });
    return await loadAdmin(client, userId);
  });
}

/**
 * Removes a user from the administrators, with all sessions, tokens, and the administration keys they created. The user
 * remains.
 *
 * @throws ServiceError `not_found`, or `conflict` for the last owner
 */
export async function removeAdmin(db: Database, userId: number, by: Actor): Promise<void> {
  await db.withTransaction(async client => {
    await lockAsOwner(client, by);
    const account = await loadAdmin(client, userId);
    await assertOwnerRemains(client, account);
    await revokeEverything(client, userId, by);
    await removeCredentials(client, userId);
    await appendAudit(client, by, {
      action: 'admin.remove',
      objectType: 'user',
      objectId: String(userId),
      before: { email: account.email, ...rolesState(account) },
    });
  });
}

/**
 * The job that mails a temporary password. Creates the password when it is sent, so that only its hash is stored; each
 * attempt creates another one.
 *
 * @throws the error of `send`, which the account then shows
 */
export async function mailTemporaryPassword(
  db: Database,
  order: MailOrder,
  send: (mail: { email: string; locale: 'ru' | 'en'; password: string; until: Date }) => Promise<void>,
): Promise<void> {
  const { userId } = order;
  const account = await findAdmin(db, userId);
  const user = await findUser(db, userId);
  if (account?.mail?.state !== 'pending' || user === undefined) return;
  const given = await giveTemporaryPassword(db, userId, order);
  if (given === null) return;
  try {
    await send({ email: account.email, locale: user.locale, password: given.password, until: given.until });
  } catch (error) {
    await noteMail(db, userId, given.hash, 'pending', messageOf(error).slice(0, 500));
    throw error;
  }
  await noteMail(db, userId, given.hash, 'sent', null);
}

/**
 * Recovery from the command line: creates an administrator, or gives an existing one a new password.
 *
 * @returns the account with its temporary password, which is shown once
 * @throws ServiceError like `appointAdmin`
 */
export async function createAdminHere(
  db: Database,
  admin: { email: string; name: string; userId: number | null },
  by: Actor,
): Promise<{ account: AdminAccount; password: string }> {
  return await db.withTransaction(async client => {
    await lockForTransaction(client, LOCKS.adminSetup);
    const id = admin.userId ?? (await addUser(client, { displayName: admin.name })).id;
    await addCredentials(client, { id, email: admin.email });
    await appendAudit(client, by, {
      action: 'admin.appoint',
      objectType: 'user',
      objectId: String(id),
      after: { email: admin.email, ...rolesState(OWNER) },
    });
    return await withTemporaryPassword(client, id);
  });
}

async function withTemporaryPassword(
  client: Queryable,
  userId: number,
): Promise<{ account: AdminAccount; password: string }> {
  const given = await giveTemporaryPassword(client, userId, null);
  if (given === null) throw noAdmin(userId);
  return { account: await loadAdmin(client, userId), password: given.password };
}

/** Recovery from the command line: sets a new temporary password and ends all sessions. */
export async function resetPasswordHere(
  db: Database,
  email: string,
  by: Actor,
): Promise<{ account: AdminAccount; password: string }> {
  return await db.withTransaction(async client => {
    const account = await findAdminByEmail(client, email);
    if (account === undefined) throw new ServiceError('not_found', `there is no administrator with the email ${email}`);
    await forgetMail(client, account.userId);
    // Logins with the new password do not wait for earlier failures.
    await forgetFailures(client, keyOfUser(account.userId));
    await revokeEverything(client, account.userId, by);
    await appendAudit(client, by, {
      action: 'admin.reset_password',
      objectType: 'user',
      objectId: String(account.userId),
    });
    return await withTemporaryPassword(client, account.userId);
  });
}

/**
 * Sets a new password, in a transaction that has locked the old one. Ends all sessions and tokens of the administrator;
 * administration keys stay valid (docs/administrators.md "Administration keys").
 */
export async function changePassword(client: Queryable, userId: number, hash: string, by: Actor): Promise<void> {
  await storePassword(client, userId, hash);
  await revokeAllSessions(client, userId);
  await revokeAllUserTokens(client, userId);
  await appendAudit(client, by, { action: 'admin.password', objectType: 'user', objectId: String(userId) });
}
