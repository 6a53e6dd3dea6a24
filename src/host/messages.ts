import { Buffer } from 'node:buffer';
import { createHash } from 'node:crypto';
import { HOST_ERROR } from '../abi/host-functions.ts';
import { type HostResult, hostError } from '../abi/host-result.ts';
import { CallTooLate } from '../base/gatherer.ts';
import { LIMITS } from '../base/limits.ts';
import type { Database } from '../db/database.ts';
import { mayRead } from '../files/file-access.ts';
import type { Files } from '../files/files.ts';
import type { Graph } from '../graph/graph.ts';
import { GraphError } from '../graph/graph-store.ts';
import { listReachable } from '../identity/messenger-accounts.ts';
import type { ChannelName } from '../messaging/channel.ts';
import { countWaiting, type Message, type MessageSource, type NewMessage } from '../messaging/outgoing.ts';
import { findStudents } from '../messaging/students.ts';
import { type Chat, findChats } from '../messaging/updates.ts';
import { askerOf } from './files.ts';
import type { HostHandler, PermittedCall } from './host-functions.ts';
import { assertFits, assertMayReply, assertUserId, parseMessage, parseStudentFilter } from './message-arguments.ts';
import { Refusal } from './refusal.ts';

/**
 * Messages of plugins: answers to the writer of a command, and notifications (permission `notify`; docs/messengers.md
 * "Outgoing messages", docs/messengers.md "Notifications").
 */

export type MessagesParts = {
  db: Database;
  files: Files;
  graph: Pick<Graph, 'lookupUsers'>;
  /** The configured messengers. */
  channels: readonly ChannelName[];
  /** Queues messages and wakes the sender. @returns how many were not queued before @throws CallTooLate, and none is queued */
  queue(messages: readonly NewMessage[], deadline: number): Promise<number>;
};

/** Parses a message and checks that this execution may read its files. */
async function readMessage(store: Pick<Files, 'find'>, call: PermittedCall, json: string): Promise<Message> {
  const { files, text } = parseMessage(json);
  if (files.length > 0 && !call.plugin.permissions.has('file'))
    throw new Refusal(HOST_ERROR.denied, 'permission denied');
  for (const { id } of files) {
    const found = await store.find(id);
    if (found === undefined || !mayRead(found, askerOf(call), Date.now()))
      throw new Refusal(HOST_ERROR.notFound, `there is no file ${JSON.stringify(id)}`);
    assertFits(id, found.size);
  }
  return { text, files };
}

/** Queues notifications: within one execution, the same message to the same chat is sent once. */
class Notifier {
  readonly #parts: Pick<MessagesParts, 'db' | 'queue'>;
  /** Keys of the messages each execution has queued. */
  readonly #queued = new WeakMap<PermittedCall, Set<string>>();

  constructor(parts: Pick<MessagesParts, 'db' | 'queue'>) {
    this.#parts = parts;
  }

  /** Queues a message to chats. @returns how many were queued now */
  async notify(
    call: PermittedCall,
    source: MessageSource,
    to: ReadonlyArray<Chat & { userId: number | null }>,
    m: Message,
  ): Promise<number> {
    let before = this.#queued.get(call);
    if (before === undefined) {
      before = new Set();
      this.#queued.set(call, before);
    }
    const digest = createHash('sha256').update(JSON.stringify(m)).digest('base64url');
    const fresh = new Map<string, NewMessage>();
    for (const { channel, chatId, userId } of to) {
      const key = `${channel}:${chatId} ${digest}`;
      if (before.has(key)) continue;
      fresh.set(key, {
        channel,
        chatId,
        pluginId: call.plugin.id,
        source,
        userId,
        message: m,
        requestId: call.requestId,
        // A command that is run again, because its host ended during the first run, notifies no user twice.
        onceKey: call.message === null ? null : `${call.message.key} ${call.plugin.id} ${key}`,
      });
    }
    if (fresh.size === 0) return 0;
    if (fresh.size * JSON.stringify(m).length > LIMITS.messagesQueuedBytesMax)
      throw new Refusal(
        HOST_ERROR.tooLarge,
        `${fresh.size} messages of this size have more than ${LIMITS.messagesQueuedBytesMax} bytes together (messagesQueuedBytesMax)`,
      );
    const waiting = await countWaiting(this.#parts.db, call.plugin.id, LIMITS.messagesWaitingMax);
    if (waiting + fresh.size > LIMITS.messagesWaitingMax)
      throw new Refusal(
        HOST_ERROR.tooLarge,
        `${waiting} messages of this plugin wait to be sent; at most ${LIMITS.messagesWaitingMax} may wait (messagesWaitingMax)`,
      );
    const count = await this.#parts.queue([...fresh.values()], call.deadline);
    // Noted only after queueing, so that a message that was not queued can be tried again.
    for (const key of fresh.keys()) before.add(key);
    return count;
  }
}

/** Turns refusals and failures of the graph into results. */
const guarded =
  (work: HostHandler): HostHandler =>
  async (call, args) => {
    try {
      return await work(call, args);
    } catch (error) {
      if (error instanceof Refusal) return hostError(error.code, error.message);
      if (error instanceof CallTooLate) return hostError(HOST_ERROR.deadline);
      if (error instanceof GraphError)
        return hostError(
          HOST_ERROR.unavailable,
          'the students cannot be determined right now: the graph store is unavailable',
        );
      throw error;
    }
  };

export function messageHandlers(
  parts: MessagesParts,
): Record<'reply' | 'notify_user' | 'notify_chat' | 'notify_students', HostHandler> {
  const notifier = new Notifier(parts);
  return {
    reply: guarded(async (call, args): Promise<HostResult> => {
      const { kind, message } = call;
      assertMayReply(kind, message?.replies.length ?? 0);
      if (message === null) throw new Error('bug: a messenger trigger runs without a message');
      const { replies } = message;
      replies.push(await readMessage(parts.files, call, args.text(0)));
      return { code: 0 };
    }),
    notify_user: guarded(async (call, args) => {
      const userId = args.long(0);
      const m = await readMessage(parts.files, call, args.text(1));
      assertUserId(userId);
      // Ids are given out from 1 on: none has so many digits.
      const ids = Number.isSafeInteger(userId) ? [userId] : [];
      const [account] = await listReachable(parts.db, parts.channels, ids);
      if (account === undefined)
        throw new Refusal(HOST_ERROR.notFound, `user ${userId} has linked no account of a messenger`);
      await notifier.notify(call, 'notify_user', [account], m);
      return { code: 0 };
    }),
    notify_chat: guarded(async (call, args) => {
      const id = args.text(0);
      const m = await readMessage(parts.files, call, args.text(1));
      const chats = id.includes('\0') ? [] : await findChats(parts.db, parts.channels, id);
      const [chat] = chats;
      if (chat === undefined)
        throw new Refusal(HOST_ERROR.notFound, `no message has come from chat ${JSON.stringify(id.slice(0, 100))}`);
      if (chats.length > 1)
        throw new Refusal(
          HOST_ERROR.invalid,
          `several messengers have a chat ${id}; name one: ${chats.map(c => `${c.channel}:${c.chatId}`).join(' or ')}`,
        );
      await notifier.notify(call, 'notify_chat', [{ ...chat, userId: null }], m);
      return { code: 0 };
    }),
    notify_students: guarded(async (call, args) => {
      const filter = parseStudentFilter(args.text(0));
      const m = await readMessage(parts.files, call, args.text(1));
      const students = await findStudents(parts.db, parts.graph, filter);
      if (students.length > LIMITS.studentsToldMax)
        throw new Refusal(
          HOST_ERROR.tooLarge,
          `the filter matches more than ${LIMITS.studentsToldMax} students (studentsToldMax)`,
        );
      const accounts = await listReachable(parts.db, parts.channels, students);
      const count = await notifier.notify(call, 'notify_students', accounts, m);
      const data = JSON.stringify({ queued: count, unreachable: students.length - accounts.length });
      return { code: Buffer.byteLength(data), data };
    }),
  };
}
