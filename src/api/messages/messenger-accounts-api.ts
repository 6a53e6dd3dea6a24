import { z } from 'zod';
import { ServiceError } from '../../base/errors.ts';
import type { Database } from '../../db/database.ts';
import { NO_STORE, type Request } from '../../http/message.ts';
import { requireUser } from '../../identity/find-users.ts';
import {
  type LinkedAccount,
  listAccounts,
  makeLinkCode,
  unlinkUser,
  unlinkUserBy,
} from '../../identity/messenger-accounts.ts';
import type { Principals } from '../../identity/principals.ts';
import { CHANNEL_NAMES, type Channel, type ChannelName } from '../../messaging/channel.ts';
import { actorOf } from '../contract/caller.ts';
import { resource } from '../contract/contract.ts';
import { type Handle, serve } from '../contract/endpoint.ts';
import { time } from '../contract/fields.ts';
import { describeAs } from '../contract/json-schema.ts';
import { pageOf, wholePage } from '../contract/paging.ts';
import { idParam } from '../contract/params.ts';
import { noParameters } from '../contract/query.ts';
import type { Route } from '../contract/route.ts';

export type MessengerAccountsParts = {
  db: Database;
  principals: Principals;
  /** Lets in who has a session, when the request comes from a page of ours or a program. */
  checkUser(request: Request): Promise<unknown>;
  channels: ReadonlyMap<ChannelName, Channel>;
};

const channel = z.enum(CHANNEL_NAMES);
const account = z.object({ channel, linked_at: time });
const channelParam = describeAs(z.string(), { type: 'string', enum: [...CHANNEL_NAMES] });

/** A user token counts as well as a session, which no guard says. */
const OF_USERS = {
  guard: 'none',
  callers: { words: 'For a logged-in user, and for a user token.', schemes: ['user_session', 'user_token'] },
  refusals: ['unauthorized', 'forbidden', 'page_proof_required'],
} as const;

/** Accounts of messengers that users link (docs/messengers.md "Accounts"). */
export const messengerAccounts = resource('Messenger accounts', 'Accounts of messengers that users linked.', {
  link: {
    method: 'POST',
    path: '/api/messengers/link-code',
    ...OF_USERS,
    skipChangeBarrier: true,
    summary: 'Make a code that links an account of a messenger',
    description:
      'The user sends /link and the code to the bot in a private chat. The code works once, for a few minutes.',
    replies: {
      201: z.object({
        code: z.string(),
        expires_at: time,
        channels: z.array(
          z.object({
            channel,
            url: z.string().nullable().describe('Opens a chat with the bot; null when there is no such address now'),
          }),
        ),
      }),
    },
  },
  list: {
    method: 'GET',
    path: '/api/messengers/accounts',
    ...OF_USERS,
    summary: 'List the accounts a user has linked',
    query: noParameters,
    replies: {
      200: z.object({
        items: z.array(account),
        bots: z.array(channel).describe('Messengers that have a bot on this service'),
      }),
    },
  },
  unlink: {
    method: 'DELETE',
    path: '/api/messengers/accounts/:channel',
    ...OF_USERS,
    skipChangeBarrier: true,
    summary: 'Unlink the account of a messenger',
    params: { channel: channelParam },
    replies: { 204: null },
  },
});

const adminPath = '/api/admin/users/:user/messenger-accounts';
const user = idParam('user');

/** Messenger accounts of any user, for administrators. */
export const userMessengerAccounts = resource(
  'Messenger accounts of users',
  'Messenger accounts of any user, for administrators.',
  {
    list: {
      method: 'GET',
      path: adminPath,
      guard: 'admin',
      key: ['people'],
      summary: 'List the messenger accounts of a user',
      query: noParameters,
      params: { user },
      replies: { 200: pageOf(account) },
    },
    unlink: {
      method: 'DELETE',
      path: `${adminPath}/:channel`,
      guard: 'admin',
      key: ['admin'],
      skipChangeBarrier: true,
      summary: 'Unlink a messenger account of a user',
      params: { user, channel: channelParam },
      replies: { 204: null },
    },
  },
);

const link: Handle<typeof messengerAccounts.link, MessengerAccountsParts> = async (parts, { request }) => {
  const userId = await userOf(parts, request);
  const { code, expiresAt } = await makeLinkCode(parts.db, userId);
  const channels = await Promise.all(
    [...parts.channels.values()].map(async c => ({
      channel: c.name,
      // The code alone will do when the messenger is away.
      url: await c.linkOf(code, AbortSignal.timeout(3000)).catch(() => null),
    })),
  );
  return { status: 201, json: { code, expires_at: expiresAt, channels }, headers: [NO_STORE] };
};

const list: Handle<typeof messengerAccounts.list, MessengerAccountsParts> = async (parts, { request }) => {
  const accounts = await listAccounts(parts.db, await userOf(parts, request));
  return { status: 200, json: { items: accounts.map(accountJson), bots: [...parts.channels.keys()] } };
};

const unlink: Handle<typeof messengerAccounts.unlink, MessengerAccountsParts> = async (parts, { params, request }) => {
  if (!(await unlinkUser(parts.db, await userOf(parts, request), params.channel)))
    throw new ServiceError('not_found', `you have linked no account of ${JSON.stringify(params.channel)}`);
  return { status: 204 };
};

const listOfUser: Handle<typeof userMessengerAccounts.list, MessengerAccountsParts> = async ({ db }, { params }) => {
  await requireUser(db, params.user);
  return { status: 200, json: wholePage((await listAccounts(db, params.user)).map(accountJson)) };
};

const unlinkOfUser: Handle<typeof userMessengerAccounts.unlink, MessengerAccountsParts> = async ({ db }, input) => {
  const { caller, params, request } = input;
  if (!(await unlinkUserBy(db, params.user, params.channel, actorOf(caller, request))))
    throw new ServiceError(
      'not_found',
      `user ${params.user} has linked no account of ${JSON.stringify(params.channel)}`,
    );
  return { status: 204 };
};

export const messengerAccountRoutes = (parts: MessengerAccountsParts): Route[] => [
  ...serve(messengerAccounts, parts, { link, list, unlink }),
  ...serve(userMessengerAccounts, parts, { list: listOfUser, unlink: unlinkOfUser }),
];

const accountJson = (a: LinkedAccount) => ({ channel: a.channel, linked_at: a.linkedAt });

/** @throws ServiceError when the request carries no user's credential, or a session that a foreign page uses */
async function userOf(parts: MessengerAccountsParts, request: Request): Promise<number> {
  const principal = await parts.principals.find(request.headers, Date.now());
  if (principal?.kind !== 'user')
    throw new ServiceError('unauthorized', 'log in first: the cookie user_session or a user token is needed', {
      headers: [['WWW-Authenticate', 'Bearer realm="plugin-host"']],
    });
  if (principal.via === 'session') await parts.checkUser(request);
  return principal.userId;
}
