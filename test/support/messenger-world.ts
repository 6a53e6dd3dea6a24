import { openDatabase } from '../../src/db/database.ts';
import { addUserToken } from '../../src/identity/user-tokens.ts';
import { addUser } from '../../src/identity/users.ts';
import {
  type FakeTelegram,
  type FakeVk,
  startTelegram,
  startVk,
  telegramPost,
  telegramUpdate,
  vkPost,
  vkUpdate,
} from './messengers.ts';
import { type Answer, type Json, request, startTestService, type TestService } from './service.ts';

type Teardown = { teardown(fn: () => unknown): void };
/** One messenger as a test drives it: the same story on both. */
export type Side = {
  name: 'TELEGRAM' | 'VK';
  server: FakeTelegram | FakeVk;
  /** A user of the messenger sends a message to the bot. */
  write(
    text: string,
    more?: { from?: number; chat?: number; id?: string; file?: string; language?: string },
  ): Promise<Answer>;
};

export async function messengerWorld(t: Teardown, env: Record<string, string> = {}) {
  const telegram = await startTelegram(t);
  const vk = await startVk(t);
  const s = await startTestService({ ...telegram.env(), ...vk.env(), ...env });
  t.teardown(() => s.stop());
  const db = openDatabase(s.databaseUrl, 2, () => {});
  t.teardown(() => db.close());
  let next = 1;
  const sides: Side[] = [
    {
      name: 'TELEGRAM',
      server: telegram,
      write: (text, { chat, file, from = 11, id, language = 'ru' } = {}) =>
        telegramPost(s.base, telegramUpdate(Number(id ?? next++), text, { from, chat: chat ?? from, language, file })),
    },
    {
      name: 'VK',
      server: vk,
      write: (text, { chat, file, from = 11, id } = {}) =>
        vkPost(
          s.base,
          vkUpdate(`e${id ?? next++}`, text, {
            from,
            chat: chat ?? from,
            file: file === undefined ? undefined : `${vk.base}/attached/${file}`,
          }),
        ),
    },
  ];
  const user = async (name: string, locale: 'ru' | 'en' = 'en'): Promise<{ id: number; token: string }> => {
    const { id } = await addUser(db, { displayName: name, externalId: name, locale });
    const { text: token } = await addUserToken(db, 'pht_', { userId: id, name, expiresAt: null });
    return { id, token };
  };
  const link = async (side: Side, u: { token: string }, from = 11): Promise<void> => {
    const { json } = await request(`${s.base}/api/messengers/link-code`, {
      method: 'POST',
      headers: { authorization: `Bearer ${u.token}` },
    });
    const count = side.server.shown.length;
    await side.write(`/link ${json.code}`, { from });
    await side.server.until(count + 1);
  };
  return { s, db, telegram, vk, sides, user, link };
}

/** Waits until no message is on its way, and at least so many have ended. */
export const settled = async (s: TestService, count: number): Promise<Json[]> => {
  for (let k = 0; k < 200; k++) {
    const { json } = await s.admin('GET', '/messages?limit=200');
    const items = json.items as Json[];
    if (items.length >= count && items.every(i => i.state !== 'queued' && i.state !== 'sending')) return items;
    await new Promise(r => setTimeout(r, 50));
  }
  throw new Error('messages are still on their way');
};
