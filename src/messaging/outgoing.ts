import { LIMITS } from '../base/limits.ts';
import type { Queryable } from '../db/database.ts';
import { removeInBatches } from '../db/remove-in-batches.ts';
import { findRow, findRows } from '../db/rows.ts';
import type { ChannelName } from './channel.ts';

/** Messages on their way out: queued in the transaction of what they belong to, sent by one host at a time (docs/messengers.md "Outgoing messages"). */

/** A message as plugins make it (docs/messengers.md "Outgoing messages"). */
export type Message = { text: string; files: Array<{ id: string; caption: string }> };

export const MESSAGE_SOURCES = ['reply', 'notify_user', 'notify_chat', 'notify_students', 'host'] as const;
export const MESSAGE_STATES = ['queued', 'sending', 'sent', 'failed', 'uncertain'] as const;
export type MessageSource = (typeof MESSAGE_SOURCES)[number];
export type MessageState = (typeof MESSAGE_STATES)[number];

export type NewMessage = {
  channel: ChannelName;
  chatId: string;
  pluginId: string | null;
  source: MessageSource;
  userId: number | null;
  message: Message;
  requestId: string;
  /** Names what is sent once, however often the execution behind it is repeated; null for what never is. */
  onceKey: string | null;
};

export type OutgoingMessage = NewMessage & {
  id: number;
  state: MessageState;
  partsSent: number;
  attempts: number;
  nextAt: Date;
  lastError: string;
  createdAt: Date;
  endedAt: Date | null;
};

const COLUMNS = `id, channel, chat_id, plugin_id, source, user_id, message, request_id, once_key, state, parts_sent, attempts, next_at,
  last_error, created_at, ended_at`;

/** Answers come before messages to many. */
const isUrgent = (source: MessageSource): boolean => source === 'reply' || source === 'host';

/** Queues messages. @returns how many were not queued before */
export async function appendMessages(client: Queryable, messages: readonly NewMessage[]): Promise<number> {
  let queued = 0;
  for (let from = 0; from < messages.length; from += LIMITS.messagesAppendedAtOnce) {
    const some = messages.slice(from, from + LIMITS.messagesAppendedAtOnce);
    const { rowCount } = await client.query(
      `INSERT INTO outgoing_messages (channel, chat_id, plugin_id, source, user_id, message, request_id, once_key, urgent)
       SELECT * FROM jsonb_to_recordset($1) AS m (channel text, chat_id text, plugin_id text, source text, user_id bigint,
         message jsonb, request_id text, once_key text, urgent boolean)
       ON CONFLICT (once_key) DO NOTHING`,
      [
        JSON.stringify(
          some.map(m => ({
            channel: m.channel,
            chat_id: m.chatId,
            plugin_id: m.pluginId,
            source: m.source,
            user_id: m.userId,
            message: m.message,
            request_id: m.requestId,
            once_key: m.onceKey,
            urgent: isUrgent(m.source),
          })),
        ),
      ],
    );
    queued += rowCount ?? 0;
  }
  return queued;
}

/** How many messages of a plugin wait, counted up to a bound. */
export async function countWaiting(db: Queryable, pluginId: string, max: number): Promise<number> {
  const { rows } = await db.query<{ n: string }>(
    "SELECT count(*) AS n FROM (SELECT 1 FROM outgoing_messages WHERE plugin_id = $1 AND state = 'queued' LIMIT $2) AS w",
    [pluginId, max],
  );
  return Number(rows[0]?.n ?? 0);
}

/**
 * Messages that may be sent now: of each chat its first one alone, answers before messages to many. A wait that is longer than any is was
 * begun before the clock was set back: it is over.
 *
 * @param without chats that must wait, and groups whose topics must
 * @returns in order
 */
export async function listDue(
  db: Queryable,
  channel: ChannelName,
  without: readonly string[],
  limit: number,
): Promise<OutgoingMessage[]> {
  return await findRows<OutgoingMessage>(
    db,
    `WITH heads AS (
       SELECT DISTINCT ON (chat_id) id, chat_id, state, urgent, next_at FROM outgoing_messages
       WHERE channel = $1 AND state IN ('queued', 'sending') ORDER BY chat_id, id)
     SELECT ${COLUMNS} FROM outgoing_messages m JOIN (
       SELECT id FROM heads WHERE state = 'queued' AND split_part(chat_id, ':', 1) <> ALL ($2)
         AND (next_at <= now() OR next_at > now() + make_interval(secs => $4::float8 / 1000))
       ORDER BY urgent DESC, next_at, id LIMIT $3) h USING (id)
     ORDER BY m.urgent DESC, m.next_at, m.id`,
    [channel, without, limit, LIMITS.messengerBusyMsMax],
  );
}

/** When the next one of those that wait for their time may go, in ms from now; null when none waits. */
export async function nextDueMs(db: Queryable, channel: ChannelName): Promise<number | null> {
  const { rows } = await db.query<{ ms: number | null }>(
    `SELECT (extract(epoch FROM min(next_at) - now()) * 1000)::float8 AS ms FROM outgoing_messages
     WHERE channel = $1 AND state = 'queued'`,
    [channel],
  );
  return rows[0]?.ms ?? null;
}

/** Notes that the next part of a message is about to leave. */
export async function setSending(db: Queryable, id: number): Promise<void> {
  await db.query("UPDATE outgoing_messages SET state = 'sending' WHERE id = $1", [id]);
}

/** A part has arrived. @param isLast whether it was the last one */
export async function setPartSent(db: Queryable, id: number, isLast: boolean): Promise<void> {
  await db.query(
    `UPDATE outgoing_messages SET parts_sent = parts_sent + 1, state = CASE WHEN $2 THEN 'sent' ELSE 'sending' END,
       ended_at = CASE WHEN $2 THEN now() END, last_error = '' WHERE id = $1`,
    [id, isLast],
  );
}

/** Lets a message wait until it is tried again. @param counts whether that was an attempt that failed, or the messenger only let us wait */
export async function setWaiting(
  db: Queryable,
  id: number,
  of: { afterMs: number; why: string; counts: boolean },
): Promise<void> {
  await db.query(
    `UPDATE outgoing_messages SET state = 'queued', next_at = now() + make_interval(secs => $2::float8 / 1000), last_error = $3,
       attempts = attempts + $4 WHERE id = $1`,
    [id, of.afterMs, of.why.slice(0, 1000), of.counts ? 1 : 0],
  );
}

export async function setEnded(db: Queryable, id: number, state: 'failed' | 'sent', why: string): Promise<void> {
  await db.query(
    'UPDATE outgoing_messages SET state = $2, ended_at = now(), last_error = $3, attempts = attempts + 1 WHERE id = $1',
    [id, state, why.slice(0, 1000)],
  );
}

/**
 * What a host that ended was about to send: a messenger that shows a part once is given it again, with others it is unknown whether it has
 * arrived. The host that calls this must be the only sender.
 *
 * @param underWay messages that are being sent
 */
export async function settleLeft(
  db: Queryable,
  channel: ChannelName,
  sendsOnce: boolean,
  underWay: readonly number[],
): Promise<void> {
  await db.query(
    sendsOnce
      ? "UPDATE outgoing_messages SET state = 'queued' WHERE channel = $1 AND state = 'sending' AND id <> ALL ($2)"
      : `UPDATE outgoing_messages SET state = 'uncertain', ended_at = now(),
           last_error = 'what became of it was not noted while it was being sent; it may have arrived'
         WHERE channel = $1 AND state = 'sending' AND id <> ALL ($2)`,
    [channel, underWay],
  );
}

export type MessageFilter = { pluginId?: string; state?: MessageState; channel?: string; requestId?: string };

/** Messages, the newest first. */
export async function listMessages(
  db: Queryable,
  f: MessageFilter,
  before: number,
  limit: number,
): Promise<OutgoingMessage[]> {
  return await findRows<OutgoingMessage>(
    db,
    `SELECT ${COLUMNS} FROM outgoing_messages WHERE id < $1 AND ($2::text IS NULL OR plugin_id = $2) AND ($3::text IS NULL OR state = $3)
       AND ($4::text IS NULL OR channel = $4) AND ($5::text IS NULL OR request_id = $5) ORDER BY id DESC LIMIT $6`,
    [before, f.pluginId ?? null, f.state ?? null, f.channel ?? null, f.requestId ?? null, limit],
  );
}

/** An administrator has it tried again. @returns the message as it was; undefined when there is none that has failed */
export async function sendAgain(client: Queryable, id: number): Promise<OutgoingMessage | undefined> {
  const failed = await findRow<OutgoingMessage>(
    client,
    `SELECT ${COLUMNS} FROM outgoing_messages WHERE id = $1 AND state IN ('failed', 'uncertain') FOR UPDATE`,
    [id],
  );
  if (failed === undefined) return undefined;
  await client.query(
    "UPDATE outgoing_messages SET state = 'queued', attempts = 0, next_at = now(), ended_at = NULL WHERE id = $1",
    [id],
  );
  return failed;
}

export async function findMessage(db: Queryable, id: number): Promise<OutgoingMessage | undefined> {
  return await findRow<OutgoingMessage>(db, `SELECT ${COLUMNS} FROM outgoing_messages WHERE id = $1`, [id]);
}

/** Messages that ended long ago are forgotten. @returns how many */
export async function removeOldMessages(db: Queryable, ageMs: number): Promise<number> {
  return await removeInBatches(
    db,
    `DELETE FROM outgoing_messages WHERE id IN
       (SELECT id FROM outgoing_messages WHERE ended_at < now() - $1 * interval '1 ms' LIMIT $2)`,
    [ageMs],
  );
}

/** What waits on a channel, for how many seconds the oldest has, and what failed within a day. */
export type MessageCounts = {
  channel: string;
  waiting: number;
  failed: number;
  /** How many of the failed ones may have arrived. */
  uncertain: number;
  oldestSeconds: number;
};

/** Messages that wait and that failed within a day, by channel. */
export async function countMessages(db: Queryable): Promise<MessageCounts[]> {
  const { rows } = await db.query<Omit<MessageCounts, 'oldestSeconds'> & { oldestSeconds: number | null }>(
    `SELECT channel, count(*) FILTER (WHERE state IN ('queued', 'sending'))::int AS waiting,
       count(*) FILTER (WHERE state IN ('failed', 'uncertain'))::int AS failed,
       count(*) FILTER (WHERE state = 'uncertain')::int AS uncertain,
       extract(epoch FROM now() - min(created_at) FILTER (WHERE state IN ('queued', 'sending')))::float8 AS "oldestSeconds"
     FROM outgoing_messages
     WHERE state IN ('queued', 'sending') OR state IN ('failed', 'uncertain') AND ended_at > now() - interval '1 day'
     GROUP BY channel`,
  );
  return rows.map(r => ({ ...r, oldestSeconds: r.oldestSeconds ?? 0 }));
}

type PrivateChat = { channel: ChannelName; chatId: string };

/** Messages to a user, and those to the user's private chats. */
const OF_PERSON = 'user_id = $1 OR (channel, chat_id) IN (SELECT * FROM unnest($2::text[], $3::text[]))';
const ofPerson = (userId: number, chats: readonly PrivateChat[]): unknown[] => [
  userId,
  chats.map(c => c.channel),
  chats.map(c => c.chatId),
];

/** Messages to a user. */
export async function listMessagesOf(
  db: Queryable,
  userId: number,
  chats: readonly PrivateChat[],
  limit: number,
): Promise<OutgoingMessage[]> {
  return await findRows<OutgoingMessage>(
    db,
    `SELECT ${COLUMNS} FROM outgoing_messages WHERE ${OF_PERSON} ORDER BY id DESC LIMIT $4`,
    [...ofPerson(userId, chats), limit],
  );
}

/** Removes messages to a user, and those to the user's private chats. @returns how many */
export async function eraseMessagesOf(
  client: Queryable,
  userId: number,
  chats: readonly PrivateChat[],
): Promise<number> {
  const { rowCount } = await client.query(`DELETE FROM outgoing_messages WHERE ${OF_PERSON}`, ofPerson(userId, chats));
  return rowCount ?? 0;
}
