import t from 'tap';
import { LIMITS } from '../../src/base/limits.ts';
import { partsOf } from '../../src/messaging/sender.ts';
import { telegramChannel } from '../../src/messaging/telegram.ts';
import { messengerWorld } from '../support/messenger-world.ts';
import { replier, telegramPost, telegramUpdate } from '../support/messengers.ts';
import { buildExample } from '../support/sdk.ts';
import type { Json } from '../support/service.ts';
import { until } from '../support/until.ts';

/** Everything that can be seen of a message arrives, where it was asked, once (docs/messengers.md). */

let next = 1000;
/** An update of Telegram with further members of its message. */
function update(text: string, more: Json = {}, chat = 11): Json {
  const id = next++;
  const made = telegramUpdate(id, text, { from: 11, chat, language: 'en' });
  return { ...made, message: { ...(made.message as Json), ...more } };
}
const group = (id: number): Json => ({ chat: { id, type: 'supergroup' } });

t.test('pieces of a long text of which nothing can be seen are left out, and everything else is sent', t => {
  const texts = (text: string): string[] => partsOf({ text, files: [] }).map(p => (p.kind === 'text' ? p.text : ''));
  const blank = '\n'.repeat(9000);
  t.same(
    texts(`${'a'.repeat(4000)}${blank}b`).map(p => p.trim()),
    ['a'.repeat(4000), 'b'],
  );
  for (const nothing of [blank, ' \u200b\u2060\ufeff', '\u00ad'.repeat(5000), '']) t.same(texts(nothing), []);
  for (const seen of ['.', '😀', 'я', '\u200b!', '㋿']) t.same(texts(seen), [seen]);
  t.end();
});

t.test('what Telegram does not take as a picture goes as a document, and so at VK', async t => {
  const { s, sides, telegram, vk } = await messengerWorld(t);
  await s.install(await buildExample('menu'), { dishes: 'soup' });
  const picture = Buffer.from('a picture of odd dimensions');
  for (const server of [telegram, vk]) server.files.set('photo7', { type: 'image/jpeg', bytes: picture });
  telegram.refuses = method => (method === 'sendPhoto' ? { description: 'PHOTO_INVALID_DIMENSIONS' } : null);
  vk.refusesPhotos = true;
  for (const { name, server, write } of sides) {
    await write('/menu', { file: 'photo7' });
    const thanks = (await server.until(3))[2];
    t.equal(thanks?.kind, name === 'VK' ? 'doc' : 'sendDocument');
    t.match(thanks?.file?.text, /odd dimensions/, name);
  }
  telegram.refuses = (_, chat) => (chat === '12' ? { description: 'chat not found' } : null);
  await sides[0]?.write('/menu', { from: 12, file: 'photo7' });
  await sides[0]?.write('/menu');
  await telegram.until(5);
  t.notOk(
    telegram.shown.some(m => m.chat === '12'),
    'what is refused in every form stays refused',
  );
});

t.test('a group that has become a supergroup gets its messages under its new id, these and later ones', async t => {
  const { s, telegram } = await messengerWorld(t);
  await s.install(replier('say', 'say'));
  telegram.refuses = (_, chat) =>
    chat === '-500'
      ? { description: 'group chat was upgraded to a supergroup chat', parameters: { migrate_to_chat_id: -1001 } }
      : null;
  for (let k = 1; k <= 2; k++) {
    await telegramPost(s.base, update('/say', group(-500)));
    t.match((await telegram.until(k)).at(-1), { chat: '-1001', text: 'say says hello' });
  }
  t.equal(telegram.calls.filter(c => c === 'sendMessage').length, 3, 'the old id was tried once');
});

t.test('an answer goes to the topic of the forum where it was asked, and threads of other groups are none', async t => {
  const { db, s, telegram } = await messengerWorld(t);
  await s.install(replier('say', 'say'));
  await telegramPost(s.base, update('/say', { ...group(-100), message_thread_id: 77, is_topic_message: true }));
  t.match((await telegram.until(1))[0], { chat: '-100', topic: '77' });
  await telegramPost(s.base, update('/say', { ...group(-101), message_thread_id: 55 }));
  const [, plain] = await telegram.until(2);
  t.match(plain, { chat: '-101' });
  t.equal(plain?.topic, undefined);
  const { rows } = await db.query("SELECT chat_id FROM messenger_chats WHERE channel = 'TELEGRAM' ORDER BY chat_id");
  t.same(rows, [{ chat_id: '-100:77' }, { chat_id: '-101' }], 'a topic is a chat that plugins can notify');
});

t.test('a command that names a bot waits until our name is known, and one for another bot is none', async t => {
  const { db, s, telegram } = await messengerWorld(t);
  await s.install(replier('say', 'say'));
  let tell = (): void => {};
  telegram.named = new Promise(resolve => {
    tell = resolve;
  });
  await telegramPost(s.base, update('/say@OtherBot', group(-100)));
  await telegramPost(s.base, update('/say@University_Bot', group(-101)));
  await telegramPost(s.base, update('/say', group(-102)));
  t.match(await telegram.until(1), [{ chat: '-102' }], 'the others wait meanwhile');
  tell();
  t.match((await telegram.until(2))[1], { chat: '-101', text: 'say says hello' });
  const open = async (): Promise<number> =>
    (await db.query('SELECT 1 FROM messenger_updates WHERE handled_at IS NULL')).rows.length;
  await until(async () => (await open()) <= 0);
  const { rows } = await db.query("SELECT outcome FROM messenger_updates WHERE chat_id = '-100'");
  t.same(rows, [{ outcome: 'ignored' }]);
  t.equal(telegram.shown.length, 2);
});

t.test('a command that names a bot waits as long as our name is not known, without an answer', async t => {
  const { db, s, telegram } = await messengerWorld(t);
  telegram.named = Promise.reject(new Error('Telegram is away'));
  telegram.named.catch(() => {});
  // More often than an update is handled that fails each time: each one looks at the oldest of its chat.
  for (let k = 0; k <= LIMITS.updateAttemptsMax; k++) {
    const asked = telegram.calls.filter(c => c === 'getMe').length;
    await telegramPost(s.base, update('/menu@OtherBot', group(-100)));
    await until(() => telegram.calls.filter(c => c === 'getMe').length > asked);
  }
  const counted = async (): Promise<number> =>
    (await db.query('SELECT 1 FROM messenger_updates WHERE attempts > 0')).rows.length;
  await until(async () => (await counted()) === 0);
  const { rows } = await db.query('SELECT 1 FROM messenger_updates WHERE handled_at IS NOT NULL');
  t.same([rows, telegram.shown], [[], []]);
});

t.test('an album is one message: its caption is the command, and all its files come with it', async t => {
  const { db, s, telegram } = await messengerWorld(t);
  await s.install(await buildExample('menu'), { dishes: 'soup' });
  // The chat is busy: more came in the last minutes than is looked at.
  await db.query(
    `INSERT INTO messenger_updates (channel, update_id, chat_id, payload, handled_at, outcome)
     SELECT 'TELEGRAM', 'before-' || k, '11', '{}', now(), 'ignored' FROM generate_series(1, 150) AS k`,
  );
  const part = (file: string, more: Json = {}): Json => {
    telegram.files.set(file, { type: 'image/jpeg', bytes: Buffer.from(file) });
    const { text: _, ...message } = update('', {
      media_group_id: 'album',
      photo: [{ file_id: file, width: 9, height: 9 }],
      ...more,
    }).message as Json;
    return { update_id: next++, message };
  };
  // The caption may come last, and another message in between.
  await telegramPost(s.base, part('first'));
  await telegramPost(s.base, part('second'));
  await telegramPost(s.base, update('/help'));
  await telegramPost(s.base, part('third', { caption: '/menu' }));
  await telegram.until(4);
  await telegramPost(s.base, part('late'));
  await telegramPost(s.base, update('/help'));
  const shown = await telegram.until(5);
  t.equal(shown.length, 5, 'three answers of the plugin, and help twice');
  t.notOk(
    shown.some(m => /no command|not a command/i.test(m.text)),
    'no part is taken for a message of its own',
  );
  const { rows } = await db.query<{ outcome: string }>(
    "SELECT outcome FROM messenger_updates WHERE payload::text LIKE '%album%' ORDER BY id",
  );
  t.same(
    rows.map(r => r.outcome),
    ['ran', 'part_of_album', 'part_of_album', 'part_of_album'],
  );
  t.match((await db.query('SELECT count(*)::int AS n FROM files')).rows, [{ n: 4 }], 'three pictures, and the menu');
});

t.test('people who speak as a chat are answered; what a channel posts in its group is not a command', t => {
  const channel = telegramChannel({
    apiUrl: 'http://127.0.0.1:1',
    token: 'x',
    perSecond: 1,
    http: { call: () => Promise.reject(new Error('not here')), download: () => Promise.reject(new Error('not here')) },
  });
  const bot = { id: 1087968824, is_bot: true, first_name: 'Group' };
  const anonymous = update('/say', { ...group(-100), from: bot, sender_chat: { id: -100, type: 'supergroup' } });
  t.match(channel.parse(anonymous), { chatId: '-100', accountId: '-100', text: '/say' });
  t.equal(channel.parse(update('/say', { ...group(-100), from: bot })), null, 'a bot');
  const post = { ...group(-100), sender_chat: { id: -7, type: 'channel' }, is_automatic_forward: true };
  t.equal(channel.parse(update('/say', post)), null);
  t.end();
});
