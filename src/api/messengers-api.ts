import { z } from 'zod';
import { appendAudit } from '../audit/audit-log.ts';
import { ServiceError } from '../base/errors.ts';
import { REQUEST_LIMITS } from '../base/request-limits.ts';
import type { Database } from '../db/database.ts';
import { jsonReply, NO_STORE, type Reply, type Request } from '../http/message.ts';
import { secretMatches, sha256 } from '../identity/bearer-secret.ts';
import type { Principals } from '../identity/principals.ts';
import { listAccounts, makeLinkCode, unlinkUser } from '../messaging/accounts.ts';
import type { Channel, ChannelName } from '../messaging/channel.ts';
import {
  listMessages,
  MESSAGE_STATES,
  type MessageFilter,
  type OutgoingMessage,
  sendAgain,
} from '../messaging/outgoing.ts';
import { actorOf, pageReply, pathIdOf, queryOf, type Route } from './route.ts';

export type MessengersApiParts = {
  db: Database;
  principals: Principals;
  /** Lets in who has a session, when the request comes from a page of ours or a program. */
  checkUser(request: Request): Promise<unknown>;
  channels: ReadonlyMap<ChannelName, Channel>;
  /** Empty: no webhook is taken. */
  telegramSecret: string;
  vkSecret: string;
  vkConfirmation: string;
  vkGroupId: string;
  receive(channel: Channel, update: unknown): Promise<void>;
  /** There is something to send. */
  wakeSender(channel: ChannelName): Promise<void>;
};

const vkCallback = z.looseObject({ type: z.string(), secret: z.string().default(''), group_id: z.unknown() });

const plain = (text: string): Reply => ({
  status: 200,
  headers: [['Content-Type', 'text/plain; charset=utf-8']],
  body: text,
});

/** Whether a secret that was sent is ours; takes the same time whatever it is. */
const isOurs = (given: string, ours: string): boolean => ours !== '' && secretMatches(given, sha256(ours));

const noSuchSecret = (key: string): ServiceError =>
  new ServiceError('unauthorized', `this is not the secret of ${key}`, {
    headers: [['WWW-Authenticate', 'Secret realm="plugin-host messengers"']],
  });

/** Webhooks of messengers (docs/messengers.md), and the accounts users link. */
export function messengerRoutes(parts: MessengersApiParts): Route[] {
  const { channels, db, principals } = parts;
  const channelFor = (name: ChannelName, key: string): Channel => {
    const channel = channels.get(name);
    if (channel === undefined) throw new ServiceError('not_found', `no bot is set up here (${key} is empty)`);
    return channel;
  };
  const userOf = async (request: Request): Promise<number> => {
    const principal = await principals.find(request.headers, Date.now());
    if (principal?.kind !== 'user')
      throw new ServiceError('unauthorized', 'log in first: the cookie user_session or a user token is needed', {
        headers: [['WWW-Authenticate', 'Bearer realm="plugin-host"']],
      });
    if (principal.via === 'session') await parts.checkUser(request);
    return principal.userId;
  };
  const linksOf = async (code: string): Promise<Array<{ channel: ChannelName; url: string | null }>> =>
    await Promise.all(
      [...channels.values()].map(async c => ({
        channel: c.name,
        // The code alone will do when the messenger is away.
        url: await c.linkOf(code, AbortSignal.timeout(3000)).catch(() => null),
      })),
    );

  return [
    {
      method: 'POST',
      path: '/api/messengers/telegram',
      guard: 'none',
      skipChangeBarrier: true,
      jsonBytesMax: REQUEST_LIMITS.webhookBodyBytesMax,
      async handle({ json, request }) {
        const channel = channelFor('TELEGRAM', 'messengers.telegram_token');
        if (!isOurs(request.headers['x-telegram-bot-api-secret-token'] ?? '', parts.telegramSecret))
          throw noSuchSecret('messengers.telegram_secret');
        await parts.receive(channel, await json());
        return jsonReply(200, {});
      },
    },
    {
      method: 'POST',
      path: '/api/messengers/vk',
      guard: 'none',
      skipChangeBarrier: true,
      jsonBytesMax: REQUEST_LIMITS.webhookBodyBytesMax,
      async handle({ json }) {
        const channel = channelFor('VK', 'messengers.vk_token');
        const body = await json();
        const call = vkCallback.safeParse(body);
        if (!call.success) throw new ServiceError('malformed_request', 'this is no call of the VK Callback API');
        if (!isOurs(call.data.secret, parts.vkSecret)) throw noSuchSecret('messengers.vk_secret');
        if (parts.vkGroupId !== '' && String(call.data.group_id) !== parts.vkGroupId)
          throw new ServiceError('forbidden', 'this is another community than messengers.vk_group_id');
        if (call.data.type === 'confirmation') return plain(parts.vkConfirmation);
        await parts.receive(channel, body);
        return plain('ok');
      },
    },
    {
      method: 'POST',
      path: '/api/messengers/link-code',
      guard: 'none',
      skipChangeBarrier: true,
      async handle({ request }) {
        const userId = await userOf(request);
        const { code, expiresAt } = await makeLinkCode(db, userId);
        return jsonReply(201, { code, expires_at: expiresAt.toISOString(), channels: await linksOf(code) }, [NO_STORE]);
      },
    },
    {
      method: 'GET',
      path: '/api/messengers/accounts',
      guard: 'none',
      async handle({ request }) {
        const accounts = await listAccounts(db, await userOf(request));
        return jsonReply(200, { items: accounts.map(a => ({ channel: a.channel, linked_at: a.linkedAt })) });
      },
    },
    {
      method: 'DELETE',
      path: '/api/messengers/accounts/:channel',
      guard: 'none',
      skipChangeBarrier: true,
      async handle({ request }) {
        const channel = request.params.channel!;
        if (!(await unlinkUser(db, await userOf(request), channel)))
          throw new ServiceError('not_found', `you have linked no account of ${JSON.stringify(channel)}`);
        return { status: 204, headers: [], body: '' };
      },
    },
    ...adminRoutes(parts),
  ];
}

const messageJson = (m: OutgoingMessage) => ({
  id: m.id,
  channel: m.channel,
  chat_id: m.chatId,
  plugin_id: m.pluginId,
  source: m.source,
  user_id: m.userId,
  message: m.message,
  request_id: m.requestId,
  state: m.state,
  parts_sent: m.partsSent,
  attempts: m.attempts,
  next_attempt_at: m.state === 'queued' ? m.nextAt : null,
  last_error: m.lastError,
  created_at: m.createdAt,
  ended_at: m.endedAt,
});

/** What became of messages, for administrators. */
function adminRoutes({ db, wakeSender }: MessengersApiParts): Route[] {
  return [
    {
      method: 'GET',
      path: '/api/admin/messages',
      guard: 'admin',
      key: ['read', 'operate'],
      async handle({ request }) {
        const query = queryOf(request, ['limit', 'cursor', 'plugin', 'state', 'channel', 'request_id']);
        const filter = filterOf(query);
        return await pageReply(query, (before, limit) => listMessages(db, filter, before, limit), messageJson);
      },
    },
    {
      method: 'POST',
      path: '/api/admin/messages/:message/retry',
      guard: 'admin',
      key: ['operate'],
      async handle({ caller, request }) {
        const id = pathIdOf(request, 'message') ?? 0;
        const message = await db.withTransaction(async client => {
          const found = await sendAgain(client, id);
          if (found === undefined)
            throw new ServiceError('conflict', `message ${id} has not failed: there is nothing to try again`);
          await appendAudit(client, actorOf(caller, request), {
            action: 'message.retry',
            objectType: 'message',
            objectId: String(id),
            before: { state: found.state, last_error: found.lastError },
          });
          return found;
        });
        await wakeSender(message.channel);
        return jsonReply(200, messageJson({ ...message, state: 'queued', attempts: 0, endedAt: null }));
      },
    },
  ];
}

function filterOf(query: ReadonlyMap<string, string>): MessageFilter {
  const raw = query.get('state');
  const state = MESSAGE_STATES.find(s => s === raw);
  if (raw !== undefined && state === undefined) {
    const message = `must be one of ${MESSAGE_STATES.join(', ')}`;
    throw new ServiceError('validation_failed', `state ${message}`, { errors: [{ pointer: 'query:state', message }] });
  }
  const [pluginId, channel, requestId] = ['plugin', 'channel', 'request_id'].map(name => query.get(name));
  return {
    ...(pluginId === undefined ? {} : { pluginId }),
    ...(state === undefined ? {} : { state }),
    ...(channel === undefined ? {} : { channel }),
    ...(requestId === undefined ? {} : { requestId }),
  };
}
