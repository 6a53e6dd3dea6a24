import { z } from 'zod';
import { ServiceError } from '../base/errors.ts';
import { LIMITS } from '../base/limits.ts';
import type { Database } from '../db/database.ts';
import { jsonReply, type Request } from '../http/message.ts';
import { findAdmin } from '../identity/admin-accounts.ts';
import type { UserAttributes } from '../identity/user-attributes.ts';
import { changeUser, createUser, findUser, type GlobalUser, listUsers, userState } from '../identity/users.ts';
import { idOf } from './auth-api.ts';
import { parseBody } from './body.ts';
import { actorOf, pageReply, queryOf, type Route } from './route.ts';

const text = z.string().min(1, 'must not be empty').max(300);

/** Attributes of docs/identity.md "Users"; what is left out keeps its value. */
const userBody = z.strictObject({
  /** The name in the graph, too. */
  external_id: text.max(LIMITS.graphIdCharsMax).nullable().optional(),
  idp_accounts_id: text.nullable().optional(),
  display_name: z.string().max(300).optional(),
  primary_channel: z.enum(['TELEGRAM', 'VK']).nullable().optional(),
  locale: z.enum(['ru', 'en']).optional(),
  nationality_type: z.enum(['domestic', 'foreign']).nullable().optional(),
  funding_type: z.enum(['budget', 'contract']).nullable().optional(),
  education_form: z.enum(['full_time', 'part_time', 'remote']).nullable().optional(),
});

const userJson = (u: GlobalUser) => ({ id: u.id, ...userState(u), created_at: u.createdAt, updated_at: u.updatedAt });

/** Members that were left out are left out again. */
function attributesOf(b: z.infer<typeof userBody>): Partial<UserAttributes> {
  return {
    ...(b.external_id === undefined ? {} : { externalId: b.external_id }),
    ...(b.idp_accounts_id === undefined ? {} : { idpAccountsId: b.idp_accounts_id }),
    ...(b.display_name === undefined ? {} : { displayName: b.display_name }),
    ...(b.primary_channel === undefined ? {} : { primaryChannel: b.primary_channel }),
    ...(b.locale === undefined ? {} : { locale: b.locale }),
    ...(b.nationality_type === undefined ? {} : { nationalityType: b.nationality_type }),
    ...(b.funding_type === undefined ? {} : { fundingType: b.funding_type }),
    ...(b.education_form === undefined ? {} : { educationForm: b.education_form }),
  };
}

const unknownUser = (request: Request): ServiceError =>
  new ServiceError('not_found', `there is no user ${request.params.user}`);

/** People (docs/identity.md "Users"): looked up, added and changed by administrators. */
export function userRoutes({ db }: { db: Database }): Route[] {
  const path = '/api/admin/users';
  return [
    {
      method: 'GET',
      path,
      guard: 'admin',
      key: ['read'],
      async handle({ request }) {
        const query = queryOf(request, ['limit', 'cursor', 'search']);
        const search = query.get('search') ?? '';
        return await pageReply(query, (before, limit) => listUsers(db, search, before, limit), userJson);
      },
    },
    {
      method: 'POST',
      path,
      guard: 'admin_recent',
      key: ['admin'],
      async handle({ caller, json, request }) {
        const body = parseBody(userBody, await json());
        return jsonReply(201, userJson(await createUser(db, attributesOf(body), actorOf(caller, request))));
      },
    },
    {
      method: 'GET',
      path: `${path}/:user`,
      guard: 'admin',
      key: ['read'],
      async handle({ request }) {
        const user = await findUser(db, idOf(request, 'user'));
        if (user === undefined) throw unknownUser(request);
        return jsonReply(200, userJson(user));
      },
    },
    {
      method: 'PATCH',
      path: `${path}/:user`,
      guard: 'admin_recent',
      key: ['admin'],
      async handle({ caller, json, request }) {
        const body = parseBody(userBody, await json());
        const id = idOf(request, 'user');
        // Who holds the provider's account of an administrator is that administrator, and keys make none.
        if (
          caller.kind === 'admin_key' &&
          body.idp_accounts_id !== undefined &&
          (await findAdmin(db, id)) !== undefined
        )
          throw new ServiceError(
            'forbidden',
            'the idp_accounts_id of an administrator is changed by administrators who are logged in, not with a key',
            { errors: [{ pointer: '/idp_accounts_id', message: 'must be left out here' }] },
          );
        const user = await changeUser(db, id, attributesOf(body), actorOf(caller, request));
        if (user === undefined) throw unknownUser(request);
        return jsonReply(200, userJson(user));
      },
    },
  ];
}
