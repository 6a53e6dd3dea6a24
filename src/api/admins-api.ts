import { z } from 'zod';
import { ServiceError } from '../base/errors.ts';
import type { Database } from '../db/database.ts';
import { jsonReply } from '../http/message.ts';
import { type AdminAccount, listAdmins } from '../identity/admin-accounts.ts';
import { appointAdmin, type QueueMail, removeAdmin, resetAdminPassword } from '../identity/admin-appointments.ts';
import { email, idOf } from './auth-api.ts';
import { parseBody } from './body.ts';
import { actorOf, type Caller, pageReply, queryOf, type Route } from './route.ts';

export type AdminsApiParts = { db: Database; queueMail: QueueMail };

/** `password` is what legacy clients send: taken and left alone (docs/identity.md "Administrators"). */
const appointBody = z.strictObject({
  global_user_id: z.int().positive(),
  email,
  password: z.string().max(1000).optional(),
});

/** `mail` tells what became of the temporary password: pending, sent, or failed with the reason. */
const adminJson = (a: AdminAccount) => ({
  global_user_id: a.userId,
  email: a.email,
  must_change_password: a.mustChangePassword,
  temporary_until: a.temporaryUntil,
  created_at: a.createdAt,
  mail: a.mail,
});

/** Setup mode has one door, which one attempt goes through (docs/identity.md "Setup mode"). */
function notInSetup(caller: Caller): void {
  if (caller.kind === 'setup')
    throw new ServiceError('conflict', 'make the first administrator first: POST /api/admin/auth/setup');
}

/** Who administers (docs/identity.md "Administrators"). */
export function adminRoutes({ db, queueMail }: AdminsApiParts): Route[] {
  const path = '/api/admin/admins';
  return [
    {
      method: 'GET',
      path,
      guard: 'admin',
      key: ['read'],
      handle: ({ request }) =>
        pageReply(
          queryOf(request, ['limit', 'cursor']),
          (before, limit) => listAdmins(db, before, limit),
          a => ({ ...adminJson(a), display_name: a.displayName }),
        ),
    },
    {
      method: 'POST',
      path,
      guard: 'admin_recent',
      key: 'never',
      async handle({ caller, json, request }) {
        notInSetup(caller);
        const body = parseBody(appointBody, await json());
        const user = { id: body.global_user_id, email: body.email };
        return jsonReply(201, adminJson(await appointAdmin(db, user, queueMail, actorOf(caller, request))));
      },
    },
    {
      method: 'POST',
      path: `${path}/:user/reset-password`,
      guard: 'admin_recent',
      key: 'never',
      async handle({ caller, request }) {
        const account = await resetAdminPassword(db, idOf(request, 'user'), queueMail, actorOf(caller, request));
        return jsonReply(200, adminJson(account));
      },
    },
    {
      method: 'DELETE',
      path: `${path}/:user`,
      guard: 'admin_recent',
      key: 'never',
      async handle({ caller, request }) {
        await removeAdmin(db, idOf(request, 'user'), actorOf(caller, request));
        return { status: 204, headers: [], body: '' };
      },
    },
  ];
}
