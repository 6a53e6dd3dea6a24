import { z } from 'zod';
import { ServiceError } from '../../base/errors.ts';
import { REQUEST_LIMITS } from '../../base/request-limits.ts';
import { secretMatches, sha256 } from '../../identity/bearer-secret.ts';
import type { Channel, ChannelName } from '../../messaging/channel.ts';
import { resource } from '../contract/contract.ts';
import { type Handle, serve } from '../contract/endpoint.ts';
import type { Route } from '../contract/route.ts';
import { type MessagesApiParts, messageRoutes } from './messages-api.ts';
import { type MessengerAccountsParts, messengerAccountRoutes } from './messenger-accounts-api.ts';

export type MessengersApiParts = MessengerAccountsParts &
  MessagesApiParts & {
    /** Empty: no webhook is taken. */
    telegramSecret: string;
    vkSecret: string;
    vkConfirmation: string;
    vkGroupId: string;
    receive(channel: Channel, update: unknown): Promise<void>;
  };

const vkCallback = z.looseObject({ type: z.string(), secret: z.string().default(''), group_id: z.unknown() });

/** A messenger repeats what is refused: nothing that a person can write may be, so the body is described and not checked. */
const WEBHOOK = {
  method: 'POST',
  guard: 'none',
  skipChangeBarrier: true,
  jsonBytesMax: REQUEST_LIMITS.webhookBodyBytesMax,
} as const;

/** Webhooks of messengers (docs/messengers.md "Updates"). */
export const messengerWebhooks = resource('Webhooks of messengers', 'Where messengers deliver what users write.', {
  telegram: {
    ...WEBHOOK,
    path: '/api/messengers/telegram',
    callers: { words: 'For Telegram.', schemes: ['telegram_secret'] },
    summary: 'Take an update of the Telegram Bot API',
    body: { media: 'application/json', description: 'An update of the Bot API', schema: z.looseObject({}) },
    replies: { 200: z.object({}) },
    refusals: ['unauthorized', 'not_found'],
  },
  vk: {
    ...WEBHOOK,
    path: '/api/messengers/vk',
    callers: { words: 'For VK: the body holds the value of messengers.vk_secret.', schemes: [] },
    summary: 'Take a call of the VK Callback API',
    body: { media: 'application/json', description: 'A call of the Callback API', schema: vkCallback },
    replies: {
      200: { media: 'text/plain', description: 'ok, or the value of messengers.vk_confirmation when it is asked for' },
    },
    refusals: ['unauthorized', 'forbidden', 'not_found'],
  },
});

const telegram: Handle<typeof messengerWebhooks.telegram, MessengersApiParts> = async (parts, { json, request }) => {
  const channel = channelFor(parts, 'TELEGRAM', 'messengers.telegram_token');
  if (!isOurs(request.headers['x-telegram-bot-api-secret-token'] ?? '', parts.telegramSecret))
    throw noSuchSecret('messengers.telegram_secret');
  await parts.receive(channel, await json());
  return { status: 200, json: {} };
};

const vk: Handle<typeof messengerWebhooks.vk, MessengersApiParts> = async (parts, { json }) => {
  const channel = channelFor(parts, 'VK', 'messengers.vk_token');
  const body = await json();
  const call = vkCallback.safeParse(body);
  if (!call.success) throw new ServiceError('malformed_request', 'this is no call of the VK Callback API');
  if (!isOurs(call.data.secret, parts.vkSecret)) throw noSuchSecret('messengers.vk_secret');
  if (parts.vkGroupId !== '' && String(call.data.group_id) !== parts.vkGroupId)
    throw new ServiceError('forbidden', 'this is another community than messengers.vk_group_id');
  if (call.data.type === 'confirmation') return plain(parts.vkConfirmation);
  await parts.receive(channel, body);
  return plain('ok');
};

/** Webhooks, the accounts users link, and what became of messages. */
export const messengerRoutes = (parts: MessengersApiParts): Route[] => [
  ...serve(messengerWebhooks, parts, { telegram, vk }),
  ...messengerAccountRoutes(parts),
  ...messageRoutes(parts),
];

function channelFor({ channels }: MessengersApiParts, name: ChannelName, key: string): Channel {
  const channel = channels.get(name);
  if (channel === undefined) throw new ServiceError('not_found', `no bot is set up here (${key} is empty)`);
  return channel;
}

/** Whether a secret that was sent is ours; takes the same time whatever it is. */
const isOurs = (given: string, ours: string): boolean => ours !== '' && secretMatches(given, sha256(ours));

const noSuchSecret = (key: string): ServiceError =>
  new ServiceError('unauthorized', `this is not the secret of ${key}`, {
    headers: [['WWW-Authenticate', 'Secret realm="plugin-host messengers"']],
  });

const plain = (text: string) => ({
  status: 200 as const,
  headers: [['Content-Type', 'text/plain; charset=utf-8']] satisfies Array<[string, string]>,
  body: text,
});
