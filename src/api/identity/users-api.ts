import { z } from 'zod';
import { type Actor, appendAudit } from '../../audit/audit-log.ts';
import { ServiceError } from '../../base/errors.ts';
import { LIMITS } from '../../base/limits.ts';
import type { Database } from '../../db/database.ts';
import { unknownUser } from '../../db/held-rows.ts';
import { NO_STORE } from '../../http/message.ts';
import { findAdmin } from '../../identity/admin-accounts.ts';
import { findUser, listUsers } from '../../identity/find-users.ts';
import type { UserAttributes } from '../../identity/user-attributes.ts';
import { changeUser, createUser } from '../../identity/users.ts';
import { findContact, listPositions, POSITION_KINDS } from '../../university/positions.ts';
import { settlePositions } from '../../university/settle.ts';
import { actorOf } from '../contract/caller.ts';
import { resource } from '../contract/contract.ts';
import { type Handle, serve } from '../contract/endpoint.ts';
import { anyObject, id, time } from '../contract/fields.ts';
import { loadPage, pageOf } from '../contract/paging.ts';
import { idParam } from '../contract/params.ts';
import { list as listOf, noParameters, text as textParam } from '../contract/query.ts';
import { replyWriter } from '../contract/reply-writer.ts';
import type { Route } from '../contract/route.ts';

export type UsersApiParts = {
  db: Database;
  /** Everything the service holds of a user but the bytes of files; undefined when there is no such user. */
  exportUser(user: number): Promise<object | undefined>;
  /** @throws ServiceError `conflict` for an administrator; undefined when there is no such user */
  eraseUser(
    user: number,
    by: Actor,
  ): Promise<{ removed: Record<string, number>; remarks: readonly string[] } | undefined>;
};

const text = z.string().min(1).max(300);
const channel = z.enum(['TELEGRAM', 'VK']).nullable();
const locale = z.enum(['ru', 'en']);
const nationality = z.enum(['domestic', 'foreign']).nullable();
const funding = z.enum(['budget', 'contract']).nullable();
const education = z.enum(['full_time', 'part_time', 'remote']).nullable();

/** Attributes of docs/identity.md "Users"; what is left out keeps its value. */
const attributes = z.strictObject({
  external_id: text
    .max(LIMITS.graphIdCharsMax)
    .nullable()
    .optional()
    .describe('Id in the university system, by which the graph knows the user'),
  idp_accounts_id: text.nullable().optional().describe('Id of the account at the identity provider'),
  display_name: z.string().max(300).optional(),
  primary_channel: channel.optional(),
  locale: locale.optional(),
  nationality_type: nationality.optional(),
  funding_type: funding.optional(),
  education_form: education.optional(),
});

const user = z
  .object({
    id,
    external_id: z.string().nullable(),
    idp_accounts_id: z.string().nullable(),
    display_name: z.string(),
    primary_channel: channel,
    locale,
    nationality_type: nationality,
    funding_type: funding,
    education_form: education,
    created_at: time,
    updated_at: time,
  })
  .meta({ id: 'User' });

const day = z.iso.date().nullable();
const position = z
  .object({
    kind: z.enum(POSITION_KINDS),
    external_id: z.string().describe('Id of the record in the university’s systems'),
    object_type: z.string().describe('Type in the graph of where it is'),
    object_id: z.string(),
    object_name: z.string().nullable(),
    title: z.string().nullable().describe('Status of a student, title, course or office'),
    start_date: day,
    end_date: day,
    holds: z.boolean().describe('Whether it counts today'),
  })
  .meta({ id: 'UserPosition' });

const POSITIONS_MAX = 500;

const path = '/api/admin/users';
const params = { user: idParam('user') };

/** People (docs/identity.md "Users"): looked up, added and changed by administrators. */
export const users = resource('Users', 'People the service knows.', {
  list: {
    method: 'GET',
    path,
    guard: 'admin',
    key: ['people'],
    summary: 'List users',
    query: listOf({ search: textParam('Part of the name or email, or a whole id; of ids of ours as user:7') }),
    replies: { 200: pageOf(user) },
  },
  create: {
    method: 'POST',
    path,
    guard: 'admin_recent',
    key: ['admin'],
    summary: 'Add a user',
    body: attributes,
    idempotency: 'answer',
    replies: { 201: user },
    refusals: ['conflict'],
    example: { body: { external_id: 'p-1001', display_name: 'Ada Lovelace', locale: 'en' } },
  },
  get: {
    method: 'GET',
    path: `${path}/:user`,
    guard: 'admin',
    key: ['people'],
    summary: 'Read a user',
    params,
    replies: { 200: user },
  },
  change: {
    method: 'PATCH',
    path: `${path}/:user`,
    guard: 'admin_recent',
    key: ['admin'],
    summary: 'Change a user',
    description:
      'A member that is left out keeps its value. With another `external_id` the user is another person: what the university’s data gave goes with the former one, and what they give the new one comes.',
    params,
    body: attributes,
    replies: { 200: user },
    refusals: ['conflict'],
    example: { body: { locale: 'ru' } },
  },
  university: {
    method: 'GET',
    path: `${path}/:user/university`,
    guard: 'admin',
    key: ['people'],
    summary: 'Read what the university data say of a user',
    description: `Positions that count today come first; there are ${POSITIONS_MAX} at most. \`person\` is null when the data have no such person.`,
    query: noParameters,
    params,
    replies: {
      200: z.object({
        person: z
          .object({
            email: z.string().nullable(),
            phone: z.string().nullable(),
            is_active: z.boolean().describe('Whether the last import had the person'),
          })
          .nullable(),
        positions: z.array(position),
      }),
    },
  },
  export: {
    method: 'GET',
    path: `${path}/:user/export`,
    guard: 'admin_recent',
    key: 'never',
    summary: 'Read everything the service holds of a user',
    description:
      'Account, records of the university, relationships, roles, sessions, tokens, messages, executions, requests, files and entries of the audit log; never a secret. plugin-host person export brings the bytes of files too.',
    params,
    replies: { 200: anyObject },
  },
  erase: {
    method: 'POST',
    path: `${path}/:user/erase`,
    guard: 'admin_recent',
    key: 'never',
    summary: 'Erase a user, with everything the service holds of the person',
    description:
      'In one transaction; the person’s rights end at once, here and in the graph. An administrator’s appointment has to end first. Plugins may hold more.',
    params,
    body: z.strictObject({ erase: z.literal(true).describe('Says that it is meant') }),
    replies: {
      200: z.object({
        removed: z.array(z.object({ what: z.string(), count: z.int() })),
        remarks: z.array(z.string()).describe('What stays, and for how long'),
      }),
    },
    refusals: ['conflict'],
    example: { body: { erase: true } },
  },
});

const exported: Handle<typeof users.export, UsersApiParts> = async (
  { db, exportUser },
  { caller, params, request },
) => {
  const held = await exportUser(params.user);
  if (held === undefined) throw unknownUser(params.user);
  const by = actorOf(caller, request);
  await appendAudit(db, by, { action: 'person.export', objectType: 'user', objectId: String(params.user) });
  const name = `person-${params.user}.json`;
  return { status: 200, json: held, headers: [['Content-Disposition', `attachment; filename="${name}"`], NO_STORE] };
};

const erase: Handle<typeof users.erase, UsersApiParts> = async ({ eraseUser }, { body, caller, params, request }) => {
  await body();
  const erased = await eraseUser(params.user, actorOf(caller, request));
  if (erased === undefined) throw unknownUser(params.user);
  const removed = Object.entries(erased.removed).map(([what, count]) => ({ what, count }));
  return { status: 200, json: { removed, remarks: [...erased.remarks] } };
};

const list: Handle<typeof users.list, UsersApiParts> = async ({ db }, { query }) => ({
  status: 200,
  json: await loadPage(query, (before, limit) => listUsers(db, query.search ?? '', before, limit), userJson),
});

const create: Handle<typeof users.create, UsersApiParts> = async ({ db }, { body, caller, request }) => ({
  status: 201,
  json: userJson(await createUser(db, attributesOf(await body()), actorOf(caller, request), settlePositions)),
});

const get: Handle<typeof users.get, UsersApiParts> = async ({ db }, { params }) => {
  const found = await findUser(db, params.user);
  if (found === undefined) throw unknownUser(params.user);
  return { status: 200, json: userJson(found) };
};

const university: Handle<typeof users.university, UsersApiParts> = async ({ db }, { params }) => {
  const found = await findUser(db, params.user);
  if (found === undefined) throw unknownUser(params.user);
  const { externalId } = found;
  if (externalId === null) return { status: 200, json: { person: null, positions: [] } };
  const [person, positions] = await Promise.all([
    findContact(db, externalId),
    listPositions(db, externalId, POSITIONS_MAX),
  ]);
  return { status: 200, json: { person: person ?? null, positions } };
};

const change: Handle<typeof users.change, UsersApiParts> = async ({ db }, { body, caller, params, request }) => {
  const wanted = await body();
  const isKey = caller.kind === 'admin_key';
  // A user who holds the provider's account of an administrator is that administrator, and keys make none.
  if (isKey && wanted.idp_accounts_id !== undefined && (await findAdmin(db, params.user)) !== undefined)
    throw new ServiceError(
      'forbidden',
      'the idp_accounts_id of an administrator is changed by administrators who are logged in, not with a key',
      { errors: [{ pointer: '/idp_accounts_id', message: 'must be left out here', code: 'unknown_field' }] },
    );
  const changed = await changeUser(db, params.user, attributesOf(wanted), actorOf(caller, request), settlePositions);
  if (changed === undefined) throw unknownUser(params.user);
  return { status: 200, json: userJson(changed) };
};

export const userRoutes = (parts: UsersApiParts): Route[] =>
  serve(users, parts, { list, create, get, university, change, export: exported, erase });

const userJson = replyWriter(user);

/** Members that were left out are left out again. */
function attributesOf(b: z.infer<typeof attributes>): Partial<UserAttributes> {
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
