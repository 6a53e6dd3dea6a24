import { z } from 'zod';
import { appendAudit } from '../../audit/audit-log.ts';
import { ServiceError } from '../../base/errors.ts';
import type { Database, Queryable } from '../../db/database.ts';
import { CHANNEL_NAMES, type ChannelName } from '../../messaging/channel.ts';
import {
  findMessage,
  listMessages,
  MESSAGE_SOURCES,
  MESSAGE_STATES,
  type MessageFilter,
  type OutgoingMessage,
  sendAgain,
} from '../../messaging/outgoing.ts';
import { actorOf } from '../contract/caller.ts';
import { resource } from '../contract/contract.ts';
import { type Handle, serve } from '../contract/endpoint.ts';
import { id, time } from '../contract/fields.ts';
import { loadPage, pageOf } from '../contract/paging.ts';
import { idParam } from '../contract/params.ts';
import { list as listWith, oneOf, text } from '../contract/query.ts';
import { replyWriter } from '../contract/reply-writer.ts';
import type { Route } from '../contract/route.ts';

export type MessagesApiParts = {
  db: Database;
  /** There is something to send. */
  wakeSender(channel: ChannelName): Promise<void>;
};

const count = z.int().nonnegative();
const messageReply = z
  .object({
    id,
    channel: z.enum(CHANNEL_NAMES),
    chat_id: z.string(),
    plugin_id: z.string().nullable().describe('Plugin that sends it; null for the service itself'),
    source: z.enum(MESSAGE_SOURCES).describe('What it belongs to'),
    user_id: id.nullable(),
    message: z.object({
      text: z.string(),
      files: z.array(z.object({ id: z.string(), caption: z.string() })),
    }),
    request_id: z.string(),
    state: z.enum(MESSAGE_STATES).describe('uncertain: it may have arrived'),
    parts_sent: count.describe('A message with files is sent in several parts'),
    attempts: count,
    next_attempt_at: time.nullable().describe('While it is queued'),
    last_error: z.string(),
    created_at: time,
    ended_at: time.nullable(),
  })
  .meta({ id: 'Message' });

/** What became of messages, for administrators (docs/messengers.md "Outgoing messages"). */
export const messages = resource('Messages', 'What became of messages to users and chats.', {
  list: {
    method: 'GET',
    path: '/api/admin/messages',
    guard: 'admin',
    key: ['read', 'operate'],
    summary: 'List outgoing messages',
    query: listWith({
      plugin: text('Only messages of this plugin'),
      state: oneOf(MESSAGE_STATES, 'Only messages in this state'),
      channel: text('Only messages of this messenger: TELEGRAM or VK'),
      request_id: text('Only messages of this request'),
    }),
    replies: { 200: pageOf(messageReply) },
  },
  get: {
    method: 'GET',
    path: '/api/admin/messages/:message',
    guard: 'admin',
    key: ['read', 'operate'],
    summary: 'Read an outgoing message',
    params: { message: idParam('message') },
    replies: { 200: messageReply },
  },
  retry: {
    method: 'POST',
    path: '/api/admin/messages/:message/retry',
    guard: 'admin',
    key: ['operate'],
    summary: 'Send a message again that has failed or may not have arrived',
    params: { message: idParam('message') },
    replies: { 200: messageReply },
    refusals: ['conflict', 'not_found'],
  },
});

const list: Handle<typeof messages.list, MessagesApiParts> = async ({ db }, { query }) => {
  const { channel, plugin, request_id, state } = query;
  const filter: MessageFilter = {
    ...(plugin === undefined ? {} : { pluginId: plugin }),
    ...(state === undefined ? {} : { state }),
    ...(channel === undefined ? {} : { channel }),
    ...(request_id === undefined ? {} : { requestId: request_id }),
  };
  const load = (before: number, limit: number) => listMessages(db, filter, before, limit);
  return { status: 200, json: await loadPage(query, load, messageJson) };
};

/** @throws ServiceError `not_found` */
async function loadMessage(db: Queryable, id: number): Promise<OutgoingMessage> {
  const found = await findMessage(db, id);
  if (found === undefined) throw new ServiceError('not_found', `there is no message ${id}`);
  return found;
}

const get: Handle<typeof messages.get, MessagesApiParts> = async ({ db }, { params }) => ({
  status: 200,
  json: messageJson(await loadMessage(db, params.message)),
});

const retry: Handle<typeof messages.retry, MessagesApiParts> = async (parts, { caller, params, request }) => {
  const id = params.message;
  const message = await parts.db.withTransaction(async client => {
    const found = await sendAgain(client, id);
    if (found === undefined) {
      await loadMessage(client, id);
      throw new ServiceError('conflict', `message ${id} has not failed: there is nothing to try again`);
    }
    await appendAudit(client, actorOf(caller, request), {
      action: 'message.retry',
      objectType: 'message',
      objectId: String(id),
      before: { state: found.state, last_error: found.lastError },
    });
    return found;
  });
  await parts.wakeSender(message.channel);
  return { status: 200, json: messageJson({ ...message, state: 'queued', attempts: 0, endedAt: null }) };
};

export const messageRoutes = (parts: MessagesApiParts): Route[] => serve(messages, parts, { list, get, retry });

const writeMessage = replyWriter(messageReply);
const messageJson = (m: OutgoingMessage) =>
  writeMessage({ ...m, nextAttemptAt: m.state === 'queued' ? m.nextAt : null });
