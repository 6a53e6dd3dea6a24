import t from 'tap';
import { openDatabase } from '../../src/db/database.ts';
import { childServices } from '../support/child-service.ts';
import { makeDatabase } from '../support/database.ts';
import { random } from '../support/graph.ts';
import {
  replier,
  startTelegram,
  startVk,
  telegramPost,
  telegramUpdate,
  vkPost,
  vkUpdate,
} from '../support/messengers.ts';
import { request, TOKEN } from '../support/service.ts';

const ROUNDS = 3;
const EACH_ROUND = 16;

t.test('kill -9 anywhere between an update and its reply loses nothing and replies once', async t => {
  const seed = Number(process.env.KILL_SEED ?? Math.floor(Math.random() * 2 ** 31));
  t.comment(`seed ${seed}, KILL_SEED=${seed} repeats it`);
  const rnd = random(seed);
  const [telegram, vk] = [await startTelegram(t), await startVk(t)];
  const database = await makeDatabase();
  t.teardown(() => database.drop());
  const db = openDatabase(database.url, 2, () => {});
  t.teardown(() => db.close());
  // A messenger that takes a while is more often caught in the middle.
  for (const server of [telegram, vk]) server.before = () => new Promise(resolve => setTimeout(resolve, rnd() * 20));
  const start = childServices(t, database.serviceUrl, { ...telegram.env(), ...vk.env() });
  type Update = { channel: 'TELEGRAM' | 'VK'; n: number; stored: boolean };
  const updates: Update[] = [];
  const write = async (base: string, u: Update): Promise<void> => {
    const { channel, n } = u;
    const answer =
      channel === 'VK'
        ? await vkPost(base, vkUpdate(`e${n}`, '/say', { from: n, chat: n }))
        : await telegramPost(base, telegramUpdate(n, '/say', { from: n, chat: n, language: 'en' }));
    u.stored ||= answer.status === 200;
  };
  for (let round = 0; round <= ROUNDS; round++) {
    const { base, child } = await start();
    if (round === 0) {
      const headers = { authorization: `Bearer ${TOKEN}` };
      const form = new FormData();
      form.append('file', new Blob([new Uint8Array(replier('echo', 'say'))]), 'p.wasm');
      const uploaded = await request(`${base}/api/admin/plugins/upload`, { method: 'POST', headers, body: form });
      const installed = await request(`${base}/api/admin/plugins/echo/install`, {
        method: 'POST',
        headers: { ...headers, 'content-type': 'application/json' },
        body: JSON.stringify({ wasm_key: uploaded.json.wasm_key }),
      });
      t.equal(installed.status, 200);
    }
    // What was not answered is sent again, as messengers do.
    for (const u of updates.filter(u => !u.stored)) await write(base, u);
    if (round === ROUNDS) {
      await telegram.until(0);
      for (let k = 0; k < 600; k++) {
        const { rows } = await db.query<{ open: number }>(
          `SELECT (SELECT count(*) FROM messenger_updates WHERE handled_at IS NULL)::int
             + (SELECT count(*) FROM outgoing_messages WHERE state IN ('queued', 'sending'))::int AS open`,
        );
        if (rows[0]?.open === 0) break;
        await new Promise(resolve => setTimeout(resolve, 50));
      }
      child.kill('SIGKILL');
      break;
    }
    const writing = Array.from({ length: EACH_ROUND }, async () => {
      const u: Update = { channel: rnd() < 0.5 ? 'TELEGRAM' : 'VK', n: 1000 + updates.length, stored: false };
      updates.push(u);
      await new Promise(resolve => setTimeout(resolve, rnd() * 150));
      await write(base, u).catch(() => {});
    });
    await new Promise(resolve => setTimeout(resolve, 30 + rnd() * 200));
    child.kill('SIGKILL');
    await Promise.all(writing);
  }
  t.ok(
    updates.every(u => u.stored),
    'every update was taken in the end',
  );
  const { rows: left } = await db.query<{ channel: string; chat_id: string; state: string }>(
    "SELECT channel, chat_id, state FROM outgoing_messages WHERE state <> 'sent'",
  );
  t.ok(
    left.every(m => m.state === 'uncertain' && m.channel === 'TELEGRAM'),
    'nothing failed; only messages that were being sent to Telegram are uncertain',
  );
  const unsure = new Set(left.map(m => m.chat_id));
  for (const { channel, n } of updates) {
    const shown = (channel === 'VK' ? vk : telegram).shown.filter(m => m.chat === String(n)).length;
    if (unsure.has(String(n))) t.ok(shown <= 1, `${channel} ${n}: once at most`);
    else t.equal(shown, 1, `${channel} ${n}: once`);
  }
  t.comment(`${updates.length} updates, ${unsure.size} uncertain`);
});
