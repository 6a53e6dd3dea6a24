import type { Database, Queryable } from '../db/database.ts';
import type { Channel, ChannelName } from './channel.ts';
import { appendUpdate } from './updates.ts';

export const UPDATE_QUEUE = 'messenger_update';

/** Tells which chat has something new. */
export type UpdateJob = { channel: ChannelName; chatId: string };

/**
 * Stores an update and queues its handling, in one transaction: then it may be answered. A repeated one changes nothing.
 *
 * @returns whether it is new
 */
export async function receiveUpdate(
  db: Database,
  channel: Channel,
  update: unknown,
  enqueue: (client: Queryable, queue: string, job: UpdateJob) => Promise<void>,
): Promise<boolean> {
  const message = channel.parse(update);
  if (message === null) return false;
  const { chatId, isPrivate, updateId } = message;
  return await db.withTransaction(async client => {
    const stored = { updateId, chatId, isPrivate, payload: JSON.stringify(update) };
    if ((await appendUpdate(client, channel.name, stored)) === undefined) return false;
    await enqueue(client, UPDATE_QUEUE, { channel: channel.name, chatId });
    return true;
  });
}
