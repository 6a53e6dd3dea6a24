import { setTimeout as sleep } from 'node:timers/promises';
import { LIMITS } from '../base/limits.ts';
import type { Queryable } from '../db/database.ts';
import type { Channel, IncomingMessage } from './channel.ts';
import { listNear, type StoredUpdate, setHandled } from './updates.ts';

/**
 * The message of an album. Messengers send its parts one by one, the caption with one of them, and never say which is the last: it is
 * whole when nothing more has come for `albumQuietMs`.
 *
 * @param update the first part that is handled, inside the caller's transaction, which also holds the chat
 * @param part the same, parsed
 * @returns the text and the files of all parts; null when the album was answered before
 */
export async function wholeAlbum(
  client: Queryable,
  channel: Channel,
  update: StoredUpdate,
  part: IncomingMessage,
): Promise<IncomingMessage | null> {
  for (;;) {
    const parts = (await listNear(client, update)).flatMap(near => {
      const message = channel.parse(JSON.parse(near.payload));
      return message?.album === part.album && message?.accountId === part.accountId ? [{ ...near, message }] : [];
    });
    if (parts.some(p => p.isHandled)) return null;
    const quietMs = Math.min(...parts.map(p => p.ageMs));
    if (quietMs < LIMITS.albumQuietMs) {
      await sleep(LIMITS.albumQuietMs - Math.max(0, quietMs));
      continue;
    }
    await setHandled(
      client,
      parts.filter(p => p.id !== update.id).map(p => p.id),
      'part_of_album',
    );
    const messages = parts.flatMap(p => p.message ?? []);
    const { addressee, text } = messages.find(m => m.text !== '') ?? part;
    return { ...part, text, addressee, files: messages.flatMap(m => m.files) };
  }
}
