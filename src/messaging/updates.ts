import { LIMITS } from '../base/limits.ts';
import type { Database, Queryable } from '../db/database.ts';
import { tryLockNamedForTransaction } from '../db/locks.ts';
import { findRow, findRows } from '../db/rows.ts';
import type { ChannelName, Update } from './channel.ts';

/** Updates of messengers as they came: stored first, handled later, each once (docs/messengers.md "Updates"). */

export type StoredUpdate = { id: number; channel: ChannelName; chatId: string; payload: string; attempts: number };

/**
 * Stores an update, inside the caller's transaction.
 *
 * @returns its number; undefined for one that came before
 */
export async function appendUpdate(client: Queryable, channel: ChannelName, u: Update): Promise<number | undefined> {
  const added = await findRow<{ id: number }>(
    client,
    `INSERT INTO messenger_updates (channel, update_id, chat_id, payload) VALUES ($1, $2, $3, $4)
     ON CONFLICT (channel, update_id) DO NOTHING RETURNING id`,
    [channel, u.updateId, u.chatId, u.payload],
  );
  if (added === undefined) return undefined;
  await client.query(
    `INSERT INTO messenger_chats (channel, chat_id, is_private) VALUES ($1, $2, $3)
     ON CONFLICT (channel, chat_id) DO UPDATE SET seen_at = now() WHERE messenger_chats.seen_at < now() - interval '1 hour'`,
    [channel, u.chatId, u.isPrivate],
  );
  return added.id;
}

/** The messenger does not answer what must be known first: the update waits, and has failed no attempt. */
export class MessengerAway extends Error {
  override readonly name = 'MessengerAway';
}

export type Chat = { channel: ChannelName; chatId: string };

/** Chats with unhandled updates that came a while ago, or before the clock was set back: the host that had them has ended. */
export async function listLeftChats(db: Queryable, olderMs: number): Promise<Chat[]> {
  return await findRows<Chat>(
    db,
    `SELECT DISTINCT channel, chat_id FROM messenger_updates
     WHERE handled_at IS NULL AND received_at NOT BETWEEN now() - make_interval(secs => $1::float8 / 1000) AND now() LIMIT 100`,
    [olderMs],
  );
}

/**
 * Handles the oldest update of a chat, in one transaction with all it leads to: whatever ends the process, it is handled wholly or not at
 * all, and a chat is answered in order on all hosts together.
 *
 * @param handle does the work inside the transaction; says in a word what became of it
 * @returns whether there was one, and no other host was at that chat
 */
export async function handleNext(
  db: Database,
  chat: Chat,
  handle: (client: Queryable, update: StoredUpdate) => Promise<string>,
): Promise<boolean> {
  return await db.withTransaction(async client => {
    await client.query("SET LOCAL idle_in_transaction_session_timeout = '5min'");
    if (!(await tryLockNamedForTransaction(client, 'chat', `${chat.channel} ${chat.chatId}`))) return false;
    const open = await findRow<StoredUpdate>(
      client,
      `SELECT * FROM messenger_updates WHERE channel = $1 AND chat_id = $2 AND handled_at IS NULL ORDER BY id LIMIT 1`,
      [chat.channel, chat.chatId],
    );
    if (open === undefined) return false;
    // Counted whatever becomes of the transaction: an update that ends its host each time must not do so for ever.
    const counted = await findRow<StoredUpdate>(
      db,
      'UPDATE messenger_updates SET attempts = attempts + 1 WHERE id = $1 RETURNING *',
      [open.id],
    );
    const outcome = await handle(client, counted ?? open).catch(async (error: unknown) => {
      if (error instanceof MessengerAway)
        await db.query('UPDATE messenger_updates SET attempts = attempts - 1 WHERE id = $1', [open.id]);
      throw error;
    });
    await client.query('UPDATE messenger_updates SET handled_at = now(), outcome = $2 WHERE id = $1', [
      open.id,
      outcome,
    ]);
    return true;
  });
}

/** An update of the chat of another one, and how long ago it came. */
export type NearUpdate = { id: number; payload: string; isHandled: boolean; ageMs: number };

/** How many updates of the chat before and after one are looked at. */
const NEAR_MAX = 100;

/** What came in the chat of an update within five minutes of it, the update itself among it, the first one first. */
export async function listNear(client: Queryable, { channel, chatId, id }: StoredUpdate): Promise<NearUpdate[]> {
  return await findRows<NearUpdate>(
    client,
    `WITH near AS MATERIALIZED (
       SELECT id, payload, handled_at IS NOT NULL AS is_handled,
              (extract(epoch FROM clock_timestamp() - received_at) * 1000)::float8 AS age_ms
       FROM messenger_updates, (SELECT received_at AS at FROM messenger_updates WHERE id = $3) AS own
       WHERE channel = $1 AND chat_id = $2 AND (id = $3 OR received_at BETWEEN own.at - interval '5 minutes' AND own.at + interval '5 minutes')
     )
     SELECT * FROM (SELECT * FROM near WHERE id <= $3 ORDER BY id DESC LIMIT $4) AS before
     UNION ALL
     SELECT * FROM (SELECT * FROM near WHERE id > $3 ORDER BY id LIMIT $4) AS after
     ORDER BY id`,
    [channel, chatId, id, NEAR_MAX],
  );
}

/** Notes updates as handled with another one, inside its transaction. */
export async function setHandled(client: Queryable, ids: readonly number[], outcome: string): Promise<void> {
  await client.query('UPDATE messenger_updates SET handled_at = now(), outcome = $2 WHERE id = ANY ($1)', [
    ids,
    outcome,
  ]);
}

/** Old updates are forgotten: messengers repeat them for a day at most. @returns how many */
export async function removeOldUpdates(db: Queryable): Promise<number> {
  const { rowCount } = await db.query(
    'DELETE FROM messenger_updates WHERE received_at < now() - make_interval(days => $1) AND handled_at IS NOT NULL',
    [LIMITS.messengerUpdateDays],
  );
  return rowCount ?? 0;
}

/** The chat plugins mean by an id, with or without its channel in front. */
export async function findChats(db: Queryable, channels: readonly ChannelName[], text: string): Promise<Chat[]> {
  const [, channel, chatId] = /^([A-Z]+):(.+)$/s.exec(text) ?? [null, null, text];
  return await findRows<Chat>(
    db,
    'SELECT channel, chat_id FROM messenger_chats WHERE chat_id = $1 AND ($2::text IS NULL OR channel = $2) AND channel = ANY ($3)',
    [chatId, channel, channels],
  );
}

/** What came from private chats, the newest first; the payload as the messenger sent it. */
export async function listUpdatesOf(db: Queryable, chats: readonly Chat[], limit: number): Promise<object[]> {
  const { rows } = await db.query<object>(
    `SELECT channel, update_id, chat_id, payload, received_at, handled_at, outcome FROM messenger_updates
     WHERE (channel, chat_id) IN (SELECT * FROM unnest($1::text[], $2::text[])) ORDER BY id DESC LIMIT $3`,
    [chats.map(c => c.channel), chats.map(c => c.chatId), limit],
  );
  return rows;
}

/** Removes what came from chats, and that they are known. @param chats private ones: accounts are linked nowhere else @returns how many messages */
export async function eraseUpdatesOf(client: Queryable, chats: readonly Chat[]): Promise<number> {
  const values = [chats.map(c => c.channel), chats.map(c => c.chatId)];
  const of = '(channel, chat_id) IN (SELECT * FROM unnest($1::text[], $2::text[]))';
  const { rowCount } = await client.query(`DELETE FROM messenger_updates WHERE ${of}`, values);
  await client.query(`DELETE FROM messenger_chats WHERE ${of}`, values);
  return rowCount ?? 0;
}
