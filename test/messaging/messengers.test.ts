import fs from 'node:fs';
import path from 'node:path';
import t from 'tap';
import { LIMITS } from '../../src/base/limits.ts';
import type { Database } from '../../src/db/database.ts';
import { addSession } from '../../src/identity/sessions.ts';
import { startBrowser } from '../support/browser.ts';
import { callerPlugin, callHost } from '../support/caller.ts';
import { messengerWorld, settled } from '../support/messenger-world.ts';
import {
  replier,
  startTelegram,
  startVk,
  telegramPost,
  telegramUpdate,
  VK_GROUP,
  VK_SECRET,
  vkPost,
  vkUpdate,
} from '../support/messengers.ts';
import { buildExample } from '../support/sdk.ts';
import { type Json, request, startTestService } from '../support/service.ts';
import { until } from '../support/until.ts';
import { watPlugin } from '../support/wat.ts';

t.test('a command travels from the webhook to a reply with a file, on both messengers', async t => {
  const { s, sides, telegram, vk } = await messengerWorld(t);
  const picture = Buffer.from('\x89PNG picture of a dish', 'latin1');
  telegram.files.set('photo7', { type: 'image/jpeg', bytes: picture });
  vk.files.set('photo7', { type: 'image/jpeg', bytes: picture });
  await s.install(await buildExample('menu'), { dishes: 'soup; cake' });
  for (const { name, server, write } of sides) {
    t.match(await write('/menu please', { file: 'photo7' }), { status: 200 }, name);
    const [text, list, thanks] = await server.until(3);
    t.match(text, { chat: '11', text: 'Today in the canteen:\n- soup\n- cake', file: null }, name);
    t.match(list, { chat: '11', text: 'The menu', file: { name: 'menu.txt', text: 'soup\ncake\n' } }, name);
    t.match(thanks?.file?.text, /picture of a dish/, `${name}: the file that came is one the plugin may send`);
    t.equal(thanks?.kind, name === 'VK' ? 'photo' : 'sendPhoto');
  }
  const items = await settled(s, 2);
  t.same(
    items.map(i => [i.state, i.source, i.plugin_id, i.parts_sent]),
    [
      ['sent', 'reply', 'menu', 3],
      ['sent', 'reply', 'menu', 3],
    ],
  );
  const { json } = await s.admin('GET', '/plugins/menu/executions');
  t.match((json.items as Json[])[0], { trigger: 'menu', outcome: 'ok', principal: 'public' });
});

t.test('repeats of an update are dropped, whatever is in them', async t => {
  const { s, sides } = await messengerWorld(t);
  await s.install(replier('echo', 'say'));
  for (const { name, server, write } of sides) {
    for (const text of ['/say', '/say', '/help']) t.equal((await write(text, { id: '77' })).status, 200, name);
    await write('/say', { id: '78' });
    await server.until(2);
    t.same(
      server.shown.map(m => m.text),
      ['echo says hello', 'echo says hello'],
      name,
    );
  }
});

t.test('a webhook without our secret, of another community, or of what is no message changes nothing', async t => {
  const { db, s } = await messengerWorld(t);
  const update = telegramUpdate(5, '/help', { from: 11, chat: 11, language: 'en' });
  t.match(await telegramPost(s.base, update, ''), { status: 401 });
  t.match(await telegramPost(s.base, update, 'wrong'), { status: 401 });
  const vk = vkUpdate('e5', '/help', { from: 11, chat: 11 });
  t.match(await vkPost(s.base, { ...vk, secret: 'wrong' }), { status: 401 });
  t.match(await vkPost(s.base, { ...vk, group_id: 1 }), { status: 403 });
  const confirmation = await vkPost(s.base, { type: 'confirmation', group_id: Number(VK_GROUP), secret: VK_SECRET });
  t.same([confirmation.status, confirmation.text], [200, 'c0nf1rm']);
  const odd: Json[] = [
    { type: 'message_typing_state', group_id: Number(VK_GROUP), secret: VK_SECRET },
    { ...vkUpdate('e6', 'x', { from: -4242, chat: 11 }) },
    { ...vkUpdate('e7', 'NUL \0 and half a character \ud800', { from: -4242, chat: 11 }) },
  ];
  for (const body of odd) t.same([(await vkPost(s.base, body)).text], ['ok']);
  const others: Json[] = [
    {},
    { update_id: 1 },
    { update_id: 'x' },
    { update_id: 2, edited_message: {} },
    // A messenger repeats what is refused, and holds back what comes behind it.
    { update_id: 3, edited_message: { text: 'NUL \0 and half a character \ud800' } },
  ];
  for (const body of others) t.equal((await telegramPost(s.base, body)).status, 200);
  t.equal((await request(`${s.base}/api/messengers/telegram`)).status, 405);
  t.same((await db.query('SELECT count(*)::int AS n FROM messenger_updates')).rows, [{ n: 0 }]);
  const none = await startTestService();
  t.teardown(() => none.stop());
  for (const where of ['telegram', 'vk'])
    t.match(
      await request(`${none.base}/api/messengers/${where}`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: '{}',
      }),
      { status: 404 },
    );
});

t.test('unknown, denied, disabled and failed commands are answered politely, in the language of the user', async t => {
  const { link, s, sides, user } = await messengerWorld(t);
  await s.install(replier('echo', 'say'));
  await s.install(replier('twin', 'Say'));
  await s.install(replier('secret', 'hidden'));
  await s.install(watPlugin({ id: 'broken', triggers: [{ name: 'crash', type: 'messenger' }], handle: 'unreachable' }));
  await s.admin('PUT', '/plugins/secret/commands/hidden/policy', { expression: "has_role('cook')" });
  await s.install(replier('off', 'off'));
  await s.admin('PUT', '/plugins/off/commands/off/enabled', { enabled: false });
  const [telegram] = sides;
  if (telegram === undefined) throw new Error('no side');
  let count = 0;
  const says = async (text: string, language = 'en', from = 11): Promise<string> => {
    await telegram.write(text, { language, from });
    count++;
    return (await telegram.server.until(count))[count - 1]?.text ?? '';
  };
  t.match(await says('/nothing'), /no command \/nothing here/);
  t.match(await says('/nothing', 'ru'), /Команды \/nothing здесь нет/);
  t.match(await says('hello there'), /I understand commands/);
  t.match(await says('/say'), /Several plugins know \/say.*\/(echo|twin)\.[sS]ay or/);
  t.equal(await says('/twin.say'), 'twin says hello');
  t.match(await says('/off'), /switched off/);
  t.match(await says('/hidden'), /link this chat to your account first/);
  t.match(await says('/crash'), /did not work/);
  t.match(await says('/crash', 'ru'), /Не получилось выполнить/);
  const ada = await user('ada', 'ru');
  await link(telegram, ada);
  count++;
  t.match(await says('/hidden'), /команда \/hidden вам недоступна/, "the user's own language counts more");
  t.match(await says('/help'), /\/crash[\s\S]*\/echo\.say — Says echo[\s\S]*\/unlink/);
  t.notMatch(telegram.server.shown.at(-1)?.text, /hidden|off/, 'help tells of what this user may run alone');
  t.equal((await s.admin('PUT', `/users/${ada.id}/roles/database/cook`)).status, 200);
  t.equal(await says('/hidden'), 'secret says hello');
  const records = (await s.admin('GET', '/plugins/secret/executions')).json.items as Json[];
  const decisionOf = async (principal: string): Promise<unknown> => {
    const found = records.find(r => r.outcome === 'refused' && r.principal === principal);
    return (await s.admin('GET', `/plugins/secret/executions/${found?.id}`)).json.decision;
  };
  t.match(await decisionOf(`user:${ada.id}`), { reason: 'policy', roles: [], policy: { verdict: 'denied' } });
  t.match(await decisionOf('public'), { reason: 'unknown_user', roles: [], policy: null });
  // In a group only commands are answered, also when they name the bot.
  await telegram.write('hello all', { chat: -100 });
  await telegram.write('/twin.say@university_bot', { chat: -100 });
  await telegram.server.until(++count);
  t.match(telegram.server.shown.at(-1), { chat: '-100', text: 'twin says hello' });
});

t.test(
  'an account is linked with a code that is shown once, works once, in a private chat, for ten minutes',
  async t => {
    const { db, s, sides, user } = await messengerWorld(t);
    const [ada, eve] = [await user('ada'), await user('eve')];
    const codeOf = (token: string) =>
      request(`${s.base}/api/messengers/link-code`, { method: 'POST', headers: { authorization: `Bearer ${token}` } });
    const accounts = async (token: string) =>
      (await request(`${s.base}/api/messengers/accounts`, { headers: { authorization: `Bearer ${token}` } })).json
        .items;
    t.equal((await codeOf('pht_nobody.x')).status, 401);
    for (const { name, server, write } of sides) {
      let count = server.shown.length;
      const says = async (text: string, more: { from?: number; chat?: number } = {}): Promise<string> => {
        await write(text, { language: 'en', ...more });
        return (await server.until(++count))[count - 1]?.text ?? '';
      };
      const first = await codeOf(ada.token);
      t.match(first, { status: 201, json: { code: /^[2-9A-Z]{8}$/ } });
      t.match(first.json.channels, [
        { channel: 'TELEGRAM', url: `https://t.me/university_bot?start=${first.json.code}` },
        { channel: 'VK', url: `https://vk.me/club${VK_GROUP}` },
      ]);
      const second = await codeOf(ada.token);
      const wrong = name === 'VK' ? /Код не подошёл/ : /did not work/;
      t.match(await says(`/link ${first.json.code}`), wrong, 'a newer code takes its place');
      t.match(await says(`/link ${second.json.code}`, { chat: name === 'VK' ? 2_000_000_001 : -5 }), /private|личном/);
      t.match(await says(`/link ${String(second.json.code).toLowerCase()}`), /is linked|связан с вашей/);
      t.match(await says(`/link ${second.json.code}`, { from: 12 }), wrong, 'it works once');
      t.match(await accounts(ada.token), [{ channel: name }]);
      const late = await codeOf(eve.token);
      await db.query("UPDATE messenger_link_codes SET expires_at = now() - interval '1 second'");
      t.match(await says(`/link ${late.json.code}`, { from: 12 }), wrong, 'it has an end');
      for (let k = 0; k < 3; k++) await says('/link ABCDEFGH', { from: 12 });
      const good = await codeOf(eve.token);
      t.match(await says(`/link ${good.json.code}`, { from: 12 }), /Too many|Слишком много/, 'guessing has an end');
      // The user who takes the account over is the only one who has it.
      t.match(await says(`/start ${good.json.code}`), /is linked|связан с вашей/);
      t.same(
        ((await accounts(eve.token)) as Json[]).map(a => a.channel),
        name === 'VK' ? ['TELEGRAM', 'VK'] : ['TELEGRAM'],
      );
      t.same(await accounts(ada.token), []);
      t.match(await says('/unlink'), /no longer linked|больше не связан/);
      t.match(await says('/unlink'), /not linked|не связан/);
      const again = await codeOf(eve.token);
      await says(`/link ${again.json.code}`);
    }
    const away = (channel: string) =>
      request(`${s.base}/api/messengers/accounts/${channel}`, {
        method: 'DELETE',
        headers: { authorization: `Bearer ${eve.token}` },
      });
    t.equal((await away('VK')).status, 204);
    t.equal((await away('VK')).status, 404);
    t.match(await accounts(eve.token), [{ channel: 'TELEGRAM' }]);
    // An administrator sees the accounts of a user, and unlinks one.
    const theirs = `/users/${eve.id}/messenger-accounts`;
    t.match((await s.admin('GET', theirs)).json, {
      items: [{ channel: 'TELEGRAM', linked_at: String }],
      next_cursor: null,
    });
    t.equal((await s.admin('DELETE', `${theirs}/TELEGRAM`)).status, 204);
    t.match((await s.admin('DELETE', `${theirs}/TELEGRAM`)).json, { status: 404, detail: /has linked no account/ });
    t.same(await accounts(eve.token), []);
    t.match((await s.admin('GET', '/audit?action=messenger.unlink')).json.items, [
      { object_id: String(eve.id), before: { channel: 'TELEGRAM' } },
    ]);
  },
);

t.test(
  'a messenger that wants us to wait is waited for, one that fails is tried again, one that refuses is not',
  async t => {
    const { s, sides } = await messengerWorld(t);
    await s.install(replier('echo', 'say'));
    for (const [k, { name, server, write }] of sides.entries()) {
      const before = server.shown.length;
      server.faults.push(
        name === 'VK'
          ? { status: 429, body: {}, headers: { 'retry-after': '2' } }
          : {
              status: 429,
              body: { ok: false, error_code: 429, description: 'Too Many Requests', parameters: { retry_after: 2 } },
            },
      );
      const at = performance.now();
      await write('/say');
      await server.until(before + 1);
      t.ok(performance.now() - at >= 2000, `${name}: not before its time`);
      server.faults.push(name === 'VK' ? { status: 502, body: {} } : 'reset');
      await write('/say');
      await server.until(before + 2, 30_000);
      await write('/say', { from: name === 'VK' ? 901 : 403 });
      await write('/say', { from: 12 });
      await server.until(before + 3);
      const items = (await settled(s, 4 * (k + 1))).filter(i => i.channel === name);
      t.match(
        items.find(i => i.chat_id === '901' || i.chat_id === '403'),
        { state: 'failed', last_error: /blocked|permission/ },
      );
      t.match(
        items.find(i => i.attempts === 1 && i.state === 'sent'),
        { state: 'sent', last_error: '' },
      );
    }
    const failed = (await settled(s, 8)).find(i => i.state === 'failed');
    t.same((await s.admin('GET', `/messages/${failed?.id}`)).json, failed, 'one is read as the list has it');
    t.equal((await s.admin('POST', `/messages/${failed?.id}/retry`)).status, 200);
    t.match((await s.admin('GET', '/audit?action=message.retry')).json.items, [{ object_id: String(failed?.id) }]);
    await settled(s, 8);
    t.equal((await s.admin('POST', '/messages/999999/retry')).status, 404);
    t.match((await s.admin('GET', '/messages/999999')).json, { status: 404, detail: 'there is no message 999999' });
    t.equal((await s.admin('GET', '/messages?state=lost')).status, 422);
  },
);

t.test('what one chat sends holds up no other, and no message stops its chat for good', async t => {
  const { db, s, sides, telegram } = await messengerWorld(t, { BOT_EXECUTION_TIMEOUT_MS: '1000' });
  await s.install(
    watPlugin({
      id: 'spin',
      triggers: [{ name: 'spin', type: 'messenger' }],
      handle: '(loop $l (br $l)) (i32.const 0)',
    }),
  );
  const [side] = sides;
  // Half a character where it would be cut, a NUL, a direction that turns: what is repeated is text all the same.
  for (const [k, word] of [`${'a'.repeat(149)}\u{1f600}`, 'a\0b', '\u202eabc', '\ud800'].entries()) {
    await side?.write(`/${word}`, { from: 40 + k, language: 'en' });
    await telegram.until(k + 1);
    t.match(telegram.shown.at(-1), { chat: String(40 + k), text: /There is no command/ });
  }
  for (let k = 0; k < 3; k++) await side?.write('/spin', { from: 66 });
  const at = performance.now();
  await side?.write('/help', { from: 77 });
  for (let k = 0; k < 200 && !telegram.shown.some(m => m.chat === '77'); k++) await new Promise(r => setTimeout(r, 20));
  t.ok(telegram.shown.some(m => m.chat === '77'));
  t.ok(
    !telegram.shown.some(
      (m, k) => m.chat === '66' && telegram.shown.slice(0, k).filter(x => x.chat === '66').length === 2,
    ),
    'before the busy chat was through',
  );
  t.comment(`${Math.round(performance.now() - at)} ms`);
  await telegram.until(8);
  // One that fails each time is given up after its last attempt, and the next one has its turn.
  await db.query(
    "INSERT INTO messenger_updates (channel, update_id, chat_id, payload, attempts) VALUES ('TELEGRAM', 'x', '88', '{', $1)",
    [LIMITS.updateAttemptsMax - 1],
  );
  await side?.write('/help', { from: 88, language: 'en' });
  const answered = await telegram.until(10, 30_000);
  const last = answered.filter(m => m.chat === '88').map(m => m.text);
  t.match(last, [/Попробуйте через минуту[\s\S]*try again in a minute/, /no commands for you|Commands you can use/]);
  const { rows } = await db.query("SELECT attempts, outcome FROM messenger_updates WHERE update_id = 'x'");
  t.same(rows, [{ attempts: LIMITS.updateAttemptsMax + 1, outcome: 'given_up' }]);
});

t.test('a chat that must wait delays no other chat; a file that cannot be read is tried again later', async t => {
  const { db, s, sides, telegram } = await messengerWorld(t);
  await s.install(replier('echo', 'say'));
  const [side] = sides;
  telegram.faults.push({
    status: 429,
    body: { ok: false, error_code: 429, description: 'Too Many Requests', parameters: { retry_after: 30 } },
  });
  await side?.write('/say', { from: 51 });
  for (let k = 0; k < 200 && telegram.faults.length > 0; k++) await new Promise(r => setTimeout(r, 20));
  await side?.write('/say', { from: 52 });
  await telegram.until(1);
  t.equal(telegram.shown[0]?.chat, '52');
  // A record of a file whose bytes are gone.
  await s.install(callerPlugin({ id: 'caller', requirements: [{ kind: 'notify' }, { kind: 'file' }] }));
  const [stored] = await callHost(s, 'caller', [
    ['file_store', '{"name":"n","mime_type":"text/plain","file_type":"document"}', 'x'],
  ]);
  const file = JSON.parse(stored?.text ?? '{}');
  fs.rmSync(path.join(s.directory, 'files'), { recursive: true });
  await callHost(s, 'caller', [
    ['notify_chat', '52', JSON.stringify({ text: 'before', files: [{ file, caption: '' }] })],
  ]);
  for (let k = 0; k < 200; k++) {
    const { rows } = await db.query<{ attempts: number }>(
      "SELECT attempts FROM outgoing_messages WHERE source = 'notify_chat'",
    );
    if ((rows[0]?.attempts ?? 0) > 0) break;
    await new Promise(r => setTimeout(r, 20));
  }
  const { json } = await s.admin('GET', '/messages?plugin=caller');
  t.match(json.items, [{ state: 'queued', parts_sent: 1, attempts: 1, last_error: /cannot be read/ }]);
});

/** Queues notifications to `chats` chats, `each` of them for every chat. */
const tellMany = (db: Database, chats: number, each: number) =>
  db.query(
    `INSERT INTO outgoing_messages (channel, chat_id, source, message, request_id, urgent)
     SELECT 'TELEGRAM', (1000 + chat)::text, 'notify_students', jsonb_build_object('text', n || ' of ' || chat, 'files', '[]'::jsonb), 'r', false
     FROM generate_series(1, $1::int) chat, generate_series(1, $2::int) n ORDER BY n, chat`,
    [chats, each],
  );

t.test('messages go no faster than a messenger takes them, each chat in order', async t => {
  // Ten at once and ten a second are sent. The messenger takes thirty in a second: a machine that stands still for most
  // of one is no reason to be told; all of them together are.
  const { db, s, telegram, sides } = await messengerWorld(t, { BOT_MESSENGERS_TELEGRAM_PER_SECOND: '10' });
  await s.install(replier('echo', 'say'));
  telegram.perSecond = 30;
  await sides[0]?.write('/help', { from: 500 });
  await telegram.until(1);
  await tellMany(db, 15, 3);
  await sides[0]?.write('/say', { from: 501 });
  const shown = await telegram.until(47, 60_000);
  for (let chat = 1; chat <= 15; chat++)
    t.same(
      shown.filter(m => m.chat === String(1000 + chat)).map(m => m.text),
      [1, 2, 3].map(n => `${n} of ${chat}`),
    );
  t.equal(telegram.calls.filter(c => c.startsWith('fault')).length, 0);
  t.same(
    (await db.query("SELECT count(*)::int AS n FROM outgoing_messages WHERE last_error <> ''")).rows,
    [{ n: 0 }],
    'the messenger refused none',
  );
});

t.test('an answer is sent before notifications to many chats', async t => {
  const { db, s, telegram, sides } = await messengerWorld(t, { BOT_MESSENGERS_TELEGRAM_PER_SECOND: '1000' });
  await s.install(replier('echo', 'say'));
  telegram.perSecond = Number.POSITIVE_INFINITY;
  const atOnce = LIMITS.messagesSentAtOnce;
  // The messenger holds what comes in: as many as are sent at once, until the answer to a command is queued behind all
  // of them, and then as many again.
  const gates = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const full = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  let arrived = 0;
  telegram.before = async () => {
    const turn = Math.floor(arrived++ / atOnce);
    if (arrived % atOnce === 0) full[turn]?.resolve();
    await gates[turn]?.promise;
  };
  await tellMany(db, 6 * atOnce, 1);
  // A command of whose chat nothing is under way wakes the sender; its own answer may be one of those that are held.
  await sides[0]?.write('/help', { from: 500 });
  await full[0]?.promise;
  await sides[0]?.write('/say', { from: 501 });
  const stateOfAnswer = async (): Promise<unknown> =>
    (await db.query<{ state: string }>("SELECT state FROM outgoing_messages WHERE chat_id = '501'")).rows[0]?.state;
  await until(async () => (await stateOfAnswer()) !== undefined);
  t.equal(await stateOfAnswer(), 'queued');
  t.equal(telegram.shown.length, 0);
  gates[0]?.resolve();
  await full[1]?.promise;
  t.equal(await stateOfAnswer(), 'sending', 'it is among the first that are sent behind what was under way');
  gates[1]?.resolve();
  await telegram.until(6 * atOnce + 2, 60_000);
  t.same(
    (await db.query("SELECT count(*)::int AS n FROM outgoing_messages WHERE last_error <> ''")).rows,
    [{ n: 0 }],
    'those that were held let all others through to the messenger',
  );
});

t.test('in development the host asks for updates itself', async t => {
  const telegram = await startTelegram(t);
  const vk = await startVk(t);
  telegram.updates.push(telegramUpdate(1, '/help', { from: 11, chat: 11, language: 'en' }));
  vk.updates.push(vkUpdate('e1', 'help', { from: 11, chat: 11 }));
  const s = await startTestService({
    ...telegram.env(),
    ...vk.env(),
    BOT_MESSENGERS_TELEGRAM_MODE: 'polling',
    BOT_MESSENGERS_VK_MODE: 'polling',
  });
  t.teardown(() => s.stop());
  t.match(await telegram.until(1), [{ chat: '11', text: /no commands for you here yet/ }]);
  telegram.updates.push(telegramUpdate(2, '/link', { from: 11, chat: 11, language: 'en' }));
  t.match((await telegram.until(2))[1], { text: /one-time code/ });
  t.match(await vk.until(1), [{ text: /нет команд/ }]);
});

t.test('in a browser: a user who is logged in is shown a code, sends it, and sees the account', async t => {
  const { db, s, sides, telegram, user } = await messengerWorld(t);
  const ada = await user('ada');
  const [side] = sides;
  const login = {
    kind: 'user',
    userId: ada.id,
    withPassword: false,
    address: '',
    userAgent: '',
    browser: true,
  } as const;
  const { secret } = await addSession(db, login);
  const browser = await startBrowser();
  t.teardown(() => browser.close());
  const context = await browser.newContext({ locale: 'en-GB' });
  const page = await context.newPage();
  const errors: string[] = [];
  page.on('pageerror', error => errors.push(error.message));
  await page.goto(`${s.base}/messengers`);
  await page.getByText('No login for users is set up').waitFor();
  await context.addCookies([{ name: 'user_session', value: secret, url: s.base }]);
  await page.reload();
  await page.getByRole('button', { name: 'Link a messenger' }).click();
  const text = (await page.getByRole('status').locator('code').textContent()) ?? '';
  t.match(text, /^\/link \S+$/);
  t.equal(
    await page.getByRole('link', { name: 'Open the chat in Telegram' }).getAttribute('href'),
    `https://t.me/university_bot?start=${text.slice(6)}`,
  );
  await side?.write(text);
  await telegram.until(1);
  await page.getByText('Linked since').waitFor();
  await page.getByRole('button', { name: 'Unlink' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Unlink' }).click();
  await page.getByText('Linked since').waitFor({ state: 'detached' });
  t.same(errors, []);
});
