import t from 'tap';
import { type Database, openDatabase } from '../../src/db/database.ts';
import { guardedCalls } from '../../src/host/guarded-calls.ts';
import { type Account, findAccountUser, linkAccount, makeLinkCode } from '../../src/identity/messenger-accounts.ts';
import { addUser } from '../../src/identity/users.ts';
import type { ChannelName } from '../../src/messaging/channel.ts';
import { appendMessages } from '../../src/messaging/outgoing.ts';
import { MessageSender } from '../../src/messaging/sender.ts';
import { telegramChannel } from '../../src/messaging/telegram.ts';
import { vkChannel } from '../../src/messaging/vk.ts';
import { makeDatabase } from '../support/database.ts';
import { startTelegram, startVk, TELEGRAM_TOKEN, VK_TOKEN } from '../support/messengers.ts';
import { until } from '../support/until.ts';

type Teardown = { teardown(fn: () => unknown): void };

async function databaseOf(t: Teardown): Promise<{ db: Database; url: string }> {
  const { drop, url } = await makeDatabase();
  t.teardown(drop);
  const db = openDatabase(url, 5, () => {});
  t.teardown(() => db.close());
  return { db, url };
}

/** A host that sends to both messengers, with nothing else of the service. */
async function world(t: Teardown) {
  const [telegram, vk] = [await startTelegram(t), await startVk(t)];
  const { db, url } = await databaseOf(t);
  const http = guardedCalls({
    privateRanges: [],
    rangesKey: 'messengers.private_ranges',
    configured: [telegram.base, vk.base],
    resolve: () => Promise.resolve([]),
    callMs: 30_000,
  });
  t.teardown(() => http.close());
  const channels = [
    telegramChannel({ apiUrl: telegram.base, token: TELEGRAM_TOKEN, perSecond: 1000, http }),
    vkChannel({ apiUrl: vk.base, token: VK_TOKEN, groupId: '1', perSecond: 1000, http }),
  ];
  const sender = new MessageSender({
    db,
    databaseUrl: url,
    channels: new Map(channels.map(c => [c.name, c])),
    findFile: () => Promise.resolve(undefined),
    readFile: () => Promise.reject(new Error('no file is sent here')),
    onError: error => t.teardown(() => Promise.reject(error)),
  });
  t.teardown(() => sender.close());
  const queue = (channel: ChannelName, chatId: string, ...texts: string[]) =>
    appendMessages(
      db,
      texts.map(text => ({
        channel,
        chatId,
        pluginId: null,
        source: 'notify_chat',
        userId: null,
        message: { text, files: [] },
        requestId: 'r',
        onceKey: null,
      })),
    );
  type Row = { chat: string; state: string; why: string; ended: boolean };
  const rows = async (): Promise<Row[]> =>
    (
      await db.query<Row>(
        `SELECT channel || ' ' || chat_id AS chat, state, last_error AS why, ended_at IS NOT NULL AS ended FROM outgoing_messages ORDER BY id`,
      )
    ).rows;
  const ended = async (): Promise<Row[]> => {
    for (;;) {
      const all = await rows();
      if (all.every(r => r.ended)) return all;
      await new Promise(r => setTimeout(r, 20));
    }
  };
  return { telegram, vk, db, sender, queue, ended };
}

t.test(
  'a message whose sending was cut off is uncertain where it may come twice, and sent again where it cannot',
  async t => {
    const { db, ended, queue, sender, telegram, vk } = await world(t);
    await queue('TELEGRAM', '1', 'cut off', 'behind it');
    await queue('TELEGRAM', '2', 'another chat');
    await queue('VK', '3', 'cut off');
    // As a host leaves it that is killed between its request and the answer.
    await db.query("UPDATE outgoing_messages SET state = 'sending' WHERE message->>'text' = 'cut off'");
    sender.kick('TELEGRAM');
    sender.kick('VK');
    const unknown = 'what became of it was not noted while it was being sent; it may have arrived';
    t.same(await ended(), [
      { chat: 'TELEGRAM 1', state: 'uncertain', why: unknown, ended: true },
      { chat: 'TELEGRAM 1', state: 'sent', why: '', ended: true },
      { chat: 'TELEGRAM 2', state: 'sent', why: '', ended: true },
      { chat: 'VK 3', state: 'sent', why: '', ended: true },
    ]);
    t.same(telegram.shown.map(m => m.text).sort(), ['another chat', 'behind it']);
    t.same(
      vk.shown.map(m => m.text),
      ['cut off'],
      'VK knows a repeated message by its number',
    );
  },
);

t.test('two messages of one chat are never sent at once, and a chat that is slow holds up no other', async t => {
  const { ended, queue, sender, telegram } = await world(t);
  const underWay = new Map<string, number>();
  const most = new Map<string, number>();
  const { promise: slow, resolve: release } = Promise.withResolvers<void>();
  const { promise: arrived, resolve: arrive } = Promise.withResolvers<void>();
  telegram.before = async ({ chat, text }) => {
    const now = (underWay.get(chat) ?? 0) + 1;
    underWay.set(chat, now);
    most.set(chat, Math.max(most.get(chat) ?? 0, now));
    if (text === 'slow 1') {
      arrive();
      await slow;
    }
    await new Promise(r => setImmediate(r));
    underWay.set(chat, now - 1);
  };
  await queue('TELEGRAM', '1', 'slow 1', 'slow 2', 'slow 3');
  sender.kick('TELEGRAM');
  await arrived;
  // What is kicked while one is under way looks at the same rows again.
  for (let k = 0; k < 12; k++) {
    await queue('TELEGRAM', `other ${k}`, 'x', 'y', 'z');
    sender.kick('TELEGRAM');
  }
  await telegram.until(36);
  t.same(
    telegram.shown.filter(m => m.chat === '1'),
    [],
    'the slow chat waits',
  );
  release();
  const all = await ended();
  t.ok(all.every(r => r.state === 'sent'));
  t.same(new Set(most.values()), new Set([1]), JSON.stringify([...most]));
  t.same(
    telegram.shown.filter(m => m.chat === '1').map(m => m.text),
    ['slow 1', 'slow 2', 'slow 3'],
    'each once, in order',
  );
  t.equal(telegram.shown.length, 39);
});

t.test("linking an account of a messenger ends its former link, and the user's former account", async t => {
  const { db } = await databaseOf(t);
  const users = await Promise.all(
    ['ada', 'bob'].map(name => addUser(db, { displayName: name, externalId: name, locale: 'en' })),
  );
  const [ada, bob] = users.map(u => u.id);
  const account = (channel: ChannelName, accountId: string): Account => ({ channel, accountId, chatId: accountId });
  const link = async (user: number | undefined, of: Account): Promise<void> => {
    const { code } = await makeLinkCode(db, user ?? 0);
    t.match(await db.withTransaction(client => linkAccount(client, of, code)), { kind: 'linked', userId: user });
    t.match(await db.withTransaction(client => linkAccount(client, of, code)), { kind: 'wrong' }, 'a code links once');
  };
  const userOf = async (channel: ChannelName, accountId: string): Promise<number | null> =>
    (await findAccountUser(db, channel, accountId))?.userId ?? null;
  await link(ada, account('TELEGRAM', 'a'));
  await link(ada, account('VK', 'a'));
  await link(bob, account('TELEGRAM', 'b'));
  t.same([await userOf('TELEGRAM', 'a'), await userOf('VK', 'a'), await userOf('TELEGRAM', 'b')], [ada, ada, bob]);
  await link(bob, account('TELEGRAM', 'a'));
  t.same(
    [await userOf('TELEGRAM', 'a'), await userOf('VK', 'a'), await userOf('TELEGRAM', 'b')],
    [bob, ada, null],
    'the account is of its new user alone, who has no other one there',
  );
  const { rows } = await db.query('SELECT channel, account_id FROM messenger_accounts WHERE global_user_id = $1', [
    ada,
  ]);
  t.same(rows, [{ channel: 'VK', account_id: 'a' }], 'its former user cannot be reached by it');
});

/** What Telegram answers that wants to hear nothing of a chat for a while. */
const tooMany = (seconds: number) => ({
  status: 429,
  body: { ok: false, error_code: 429, description: 'Too Many Requests', parameters: { retry_after: seconds } },
});

t.test('two chats that must wait for long hold up no third one for long', async t => {
  const { db, queue, sender, telegram } = await world(t);
  for (const [k, chat] of ['501', '502'].entries()) {
    telegram.faults.push(tooMany(k === 0 ? 30 : 1800));
    await queue('TELEGRAM', chat, 'x');
    sender.kick('TELEGRAM');
    await until(() => telegram.faults.length === 0);
  }
  await queue('TELEGRAM', '503', 'y');
  sender.kick('TELEGRAM');
  t.match(await telegram.until(1), [{ chat: '503' }]);
  await db.query('DELETE FROM outgoing_messages');
});

t.test('the topics of a group share its pace', async t => {
  const { ended, queue, sender, telegram } = await world(t);
  for (let k = 0; k < 6; k++) await queue('TELEGRAM', `-100:${k}`, 'x');
  await queue('TELEGRAM', '-200:1', 'of another group');
  sender.kick('TELEGRAM');
  await ended();
  const group = telegram.shown.filter(m => m.chat === '-100').map(m => m.at);
  t.equal(group.length, 6);
  t.ok((group[5] ?? 0) - (group[0] ?? 0) > 1000, 'five at once, and the sixth when the group may be sent to again');
});

t.test('a message that is a day old is given up where the messenger is always busy, and the next one goes', async t => {
  const { db, ended, queue, sender, telegram } = await world(t);
  await queue('TELEGRAM', '1', 'old', 'next');
  await db.query(
    `UPDATE outgoing_messages SET created_at = now() - interval '30 days', attempts = 19 WHERE message->>'text' = 'old'`,
  );
  telegram.faults.push(tooMany(1), tooMany(1));
  sender.kick('TELEGRAM');
  t.match(await ended(), [
    { state: 'failed', why: /Too Many Requests/ },
    { state: 'sent', why: '' },
  ]);
});
