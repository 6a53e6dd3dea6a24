import { z } from 'zod';
import { ServiceError } from '../base/errors.ts';
import type { Database } from '../db/database.ts';
import { type AdminAccount, listAdmins } from '../identity/admin-accounts.ts';
import { appointAdmin, type QueueMail, removeAdmin, resetAdminPassword } from '../identity/admin-appointments.ts';
import { actorOf, type Caller } from './caller.ts';
import { resource } from './contract.ts';
import { type Handle, serve } from './endpoint.ts';
import { email, id, time } from './fields.ts';
import { loadPage, pageOf } from './paging.ts';
import { idParam } from './params.ts';
import { page } from './query.ts';
import type { Route } from './route.ts';

export type AdminsApiParts = { db: Database; queueMail: QueueMail };

const appointment = z.strictObject({
  global_user_id: id,
  email,
  password: z
    .string()
    .max(1000)
    .optional()
    .describe('Sent by legacy clients and ignored: the service makes the temporary password'),
});

const mail = z
  .object({ state: z.enum(['pending', 'sent', 'failed']), error: z.string().nullable(), at: time.nullable() })
  .nullable()
  .describe('What became of the mail with the last temporary password');
const account = z
  .object({
    global_user_id: id,
    email: z.string(),
    must_change_password: z.boolean(),
    temporary_until: time.nullable().describe('Until when the temporary password is valid'),
    created_at: time,
    mail,
  })
  .meta({ id: 'AdminAccount' });

const path = '/api/admin/admins';
const params = { user: idParam('user') };

/** Who administers (docs/identity.md "Administrators"). */
export const admins = resource('Administrators', 'Who administers the service.', {
  list: {
    method: 'GET',
    path,
    guard: 'admin',
    key: ['read'],
    summary: 'List administrators',
    query: page,
    replies: { 200: pageOf(account.extend({ display_name: z.string() })) },
  },
  appoint: {
    method: 'POST',
    path,
    guard: 'admin_recent',
    key: 'never',
    summary: 'Make a user an administrator',
    description: 'A temporary password goes to the email address; the administrator who appoints does not see it.',
    body: appointment,
    idempotency: 'answer',
    replies: { 201: account },
    refusals: ['conflict', 'not_found'],
    example: { body: { global_user_id: 7, email: 'ada@university.example' } },
  },
  resetPassword: {
    method: 'POST',
    path: `${path}/:user/reset-password`,
    guard: 'admin_recent',
    key: 'never',
    summary: 'Send an administrator a new temporary password',
    params,
    replies: { 200: account },
    refusals: ['conflict'],
  },
  remove: {
    method: 'DELETE',
    path: `${path}/:user`,
    guard: 'admin_recent',
    key: 'never',
    summary: 'Take the administration from a user',
    params,
    replies: { 204: null },
    refusals: ['conflict'],
  },
});

const list: Handle<typeof admins.list, AdminsApiParts> = async ({ db }, { query }) => ({
  status: 200,
  json: await loadPage(
    query,
    (before, limit) => listAdmins(db, before, limit),
    a => ({ ...accountJson(a), display_name: a.displayName }),
  ),
});

const appoint: Handle<typeof admins.appoint, AdminsApiParts> = async ({ db, queueMail }, input) => {
  const { body, caller, request } = input;
  refuseInSetup(caller);
  const { email, global_user_id } = await body();
  const appointed = await appointAdmin(db, { id: global_user_id, email }, queueMail, actorOf(caller, request));
  return { status: 201, json: accountJson(appointed) };
};

const resetPassword: Handle<typeof admins.resetPassword, AdminsApiParts> = async ({ db, queueMail }, input) => {
  const { caller, params, request } = input;
  const reset = await resetAdminPassword(db, params.user, queueMail, actorOf(caller, request));
  return { status: 200, json: accountJson(reset) };
};

const remove: Handle<typeof admins.remove, AdminsApiParts> = async ({ db }, { caller, params, request }) => {
  await removeAdmin(db, params.user, actorOf(caller, request));
  return { status: 204 };
};

export const adminRoutes = (parts: AdminsApiParts): Route[] =>
  serve(admins, parts, { list, appoint, resetPassword, remove });

const accountJson = (a: AdminAccount) => ({
  global_user_id: a.userId,
  email: a.email,
  must_change_password: a.mustChangePassword,
  temporary_until: a.temporaryUntil,
  created_at: a.createdAt,
  mail: a.mail,
});

/** Setup mode has one door, which one attempt goes through (docs/identity.md "Setup mode"). */
function refuseInSetup(caller: Caller): void {
  if (caller.kind === 'setup')
    throw new ServiceError('conflict', 'make the first administrator first: POST /api/admin/auth/setup');
}
