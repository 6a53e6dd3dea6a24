import { z } from 'zod';
import { ServiceError } from '../../base/errors.ts';
import type { Database } from '../../db/database.ts';
import { type AdminAccount, listAdmins } from '../../identity/admin-accounts.ts';
import {
  appointAdmin,
  changeRoles,
  type QueueMail,
  removeAdmin,
  resetAdminPassword,
} from '../../identity/admin-appointments.ts';
import { ADMIN_ROLES, ADMIN_SCOPES, type AdminRole, type AdminRoles, ROLE_SCOPES } from '../../identity/admin-roles.ts';
import { resetSecondFactor } from '../../identity/second-factor.ts';
import { actorOf, type Caller } from '../contract/caller.ts';
import { resource } from '../contract/contract.ts';
import { type Handle, serve } from '../contract/endpoint.ts';
import { email, id, pluginId, time } from '../contract/fields.ts';
import { loadPage, pageOf } from '../contract/paging.ts';
import { idParam } from '../contract/params.ts';
import { idFilter, list as listOf, noParameters } from '../contract/query.ts';
import { replyWriter } from '../contract/reply-writer.ts';
import type { Route } from '../contract/route.ts';

export type AdminsApiParts = { db: Database; queueMail: QueueMail };

const PLUGINS_MAX = 100;
const role = z.enum(ADMIN_ROLES);
const roles = z
  .array(role)
  .describe('What the administrator may do; GET /api/admin/admins/roles says what each includes');
const managed = z.array(pluginId).nullable().describe('The plugins a plugin manager may manage; null for all of them');
const roleMembers = {
  roles: roles.min(1, `must name at least one of ${ADMIN_ROLES.join(', ')}`).max(ADMIN_ROLES.length),
  plugins: managed
    .refine(ids => ids === null || ids.length > 0, 'must name a plugin, or be null for all')
    .refine(ids => ids === null || ids.length <= PLUGINS_MAX, `must name at most ${PLUGINS_MAX} plugins`)
    .default(null),
};
type RoleMembers = { roles: AdminRole[]; plugins: string[] | null };

function refuseIdleLimit({ plugins, roles }: RoleMembers, ctx: z.RefinementCtx): void {
  if (plugins !== null && !roles.includes('plugin_manager'))
    ctx.addIssue({
      code: 'custom',
      path: ['plugins'],
      message: 'limits the role plugin_manager, which is not among the roles; leave it out',
    });
}
const newRoles = z.strictObject(roleMembers).superRefine(refuseIdleLimit);

const appointment = z
  .strictObject({
    global_user_id: id,
    email,
    roles: roleMembers.roles.default(['owner']),
    plugins: roleMembers.plugins,
    password: z
      .string()
      .max(1000)
      .optional()
      .describe('Sent by legacy clients and ignored: the service makes the temporary password'),
  })
  .superRefine(refuseIdleLimit);

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
    roles,
    plugins: managed,
    has_second_factor: z.boolean().describe('Whether a login needs a passkey or a code besides the password'),
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
    query: listOf({ user: idFilter('user') }),
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
  listRoles: {
    method: 'GET',
    path: `${path}/roles`,
    guard: 'admin',
    key: ['read'],
    summary: 'List the roles of administrators',
    description:
      'Each role is a set of the scopes that administration keys have. Only an owner may do what no key may.',
    query: noParameters,
    replies: { 200: z.object({ items: z.array(z.object({ role, scopes: z.array(z.enum(ADMIN_SCOPES)) })) }) },
  },
  changeRoles: {
    method: 'PATCH',
    path: `${path}/:user`,
    guard: 'admin_recent',
    key: 'never',
    summary: 'Change the roles of an administrator',
    description: 'Revokes the administration keys the administrator made that open more than the new roles.',
    params,
    body: newRoles,
    replies: { 200: account },
    refusals: ['conflict'],
    example: { body: { roles: ['plugin_manager'], plugins: ['guestbook'] } },
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
  resetSecondFactor: {
    method: 'DELETE',
    path: `${path}/:user/second-factor`,
    guard: 'admin_recent',
    key: 'never',
    summary: 'Remove the second factors of an administrator who lost them',
    description: 'Ends the sessions of the administrator. The password stays. Your own are at /api/admin/auth.',
    params,
    replies: { 204: null },
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
    (before, limit) => listAdmins(db, query.user ?? null, before, limit),
    a => ({ ...accountJson(a), display_name: a.displayName }),
  ),
});

const appoint: Handle<typeof admins.appoint, AdminsApiParts> = async ({ db, queueMail }, input) => {
  const { body, caller, request } = input;
  refuseInSetup(caller);
  const { email, global_user_id, ...may } = await body();
  const user = { id: global_user_id, email, may: rolesOf(may) };
  const appointed = await appointAdmin(db, user, queueMail, actorOf(caller, request));
  return { status: 201, json: accountJson(appointed) };
};

const listRoles: Handle<typeof admins.listRoles, AdminsApiParts> = () => ({
  status: 200,
  json: { items: ADMIN_ROLES.map(one => ({ role: one, scopes: [...ROLE_SCOPES[one]] })) },
});

const change: Handle<typeof admins.changeRoles, AdminsApiParts> = async ({ db }, { body, caller, params, request }) => {
  const may = rolesOf(await body());
  return { status: 200, json: accountJson(await changeRoles(db, params.user, may, actorOf(caller, request))) };
};

const resetPassword: Handle<typeof admins.resetPassword, AdminsApiParts> = async ({ db, queueMail }, input) => {
  const { caller, params, request } = input;
  const reset = await resetAdminPassword(db, params.user, queueMail, actorOf(caller, request));
  return { status: 200, json: accountJson(reset) };
};

const resetFactor: Handle<typeof admins.resetSecondFactor, AdminsApiParts> = async (
  { db },
  { caller, params, request },
) => {
  const by = actorOf(caller, request);
  if (by.userId === params.user)
    throw new ServiceError('conflict', 'this is your own account; remove them one by one under /api/admin/auth');
  await resetSecondFactor(db, params.user, by);
  return { status: 204 };
};

const remove: Handle<typeof admins.remove, AdminsApiParts> = async ({ db }, { caller, params, request }) => {
  await removeAdmin(db, params.user, actorOf(caller, request));
  return { status: 204 };
};

export const adminRoutes = (parts: AdminsApiParts): Route[] =>
  serve(admins, parts, {
    list,
    appoint,
    listRoles,
    changeRoles: change,
    resetPassword,
    resetSecondFactor: resetFactor,
    remove,
  });

/** Each role and plugin once, in one order. */
const rolesOf = ({ plugins, roles }: RoleMembers): AdminRoles => ({
  roles: ADMIN_ROLES.filter(one => roles.includes(one)),
  plugins: plugins === null ? null : [...new Set(plugins)].sort(),
});

const writeAccount = replyWriter(account);
const accountJson = (a: AdminAccount) => writeAccount({ ...a, globalUserId: a.userId });

/** Setup mode has one door, which one attempt goes through (docs/identity.md "Setup mode"). */
function refuseInSetup(caller: Caller): void {
  if (caller.kind === 'setup')
    throw new ServiceError('conflict', 'make the first administrator first: POST /api/admin/auth/setup');
}
