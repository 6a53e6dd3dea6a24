import t from 'tap';
import { addUser } from '../../src/identity/users.ts';
import { callerPlugin, callHost } from '../support/caller.ts';
import { startGraphStore } from '../support/graph.ts';
import { messengerWorld, settled } from '../support/messenger-world.ts';
import type { Json } from '../support/service.ts';
import { makeUniversity } from '../support/university.ts';
import { watPlugin } from '../support/wat.ts';

const NOTIFY = [{ kind: 'notify', description: 'Tells' }];
const text = (m: string): string => JSON.stringify({ text: m });

t.test('a user is notified on the primary channel, or on the one that is linked', async t => {
  const { db, link, s, sides, telegram, user, vk } = await messengerWorld(t);
  await s.install(callerPlugin({ id: 'caller', requirements: NOTIFY }));
  const [onTelegram, onVk] = sides;
  if (onTelegram === undefined || onVk === undefined) throw new Error('no sides');
  const ada = await user('ada');
  const told = async (message: string): Promise<Json | undefined> => {
    const [answer] = await callHost(s, 'caller', [['notify_user', ada.id, text(message)]]);
    if (answer?.code !== 0) return { code: answer?.code ?? 0, text: answer?.text ?? '' };
    return (await settled(s, 1)).find(m => (m.message as Json).text === message);
  };
  t.match(await told('zero'), { code: -2, text: /has linked no account/ });
  await link(onTelegram, ada);
  t.match(await told('one'), {
    channel: 'TELEGRAM',
    source: 'notify_user',
    user_id: ada.id,
    plugin_id: 'caller',
    state: 'sent',
  });
  await link(onVk, ada);
  await db.query("UPDATE global_users SET primary_channel = 'TELEGRAM' WHERE id = $1", [ada.id]);
  t.match(await told('two'), { channel: 'TELEGRAM' });
  await db.query("UPDATE global_users SET primary_channel = 'VK' WHERE id = $1", [ada.id]);
  t.match(await told('three'), { channel: 'VK' });
  t.same(
    [telegram, vk].map(m => m.shown.map(x => x.text).filter(x => /one|two|three/.test(x))),
    [['one', 'two'], ['three']],
  );
  // Of one execution the same message goes once; of the next one again.
  const twice = await callHost(s, 'caller', [
    ['notify_user', ada.id, text('again')],
    ['notify_user', ada.id, text('again')],
    ['notify_user', ada.id, text('other')],
  ]);
  t.same(
    twice.map(a => a.code),
    [0, 0, 0],
  );
  await callHost(s, 'caller', [['notify_user', ada.id, text('again')]]);
  await settled(s, 7);
  t.same(
    vk.shown.map(m => m.text).filter(x => x === 'again' || x === 'other'),
    ['again', 'other', 'again'],
  );
});

t.test(
  'notify_chat sends to a chat that has written before, by its id, with the messenger if the id is ambiguous',
  async t => {
    const { db, s, sides, telegram, vk } = await messengerWorld(t);
    await s.install(callerPlugin({ id: 'caller', requirements: NOTIFY }));
    await addUser(db, { displayName: 'Ada' });
    const ask = async (chat: string, message = text('hello')) =>
      (await callHost(s, 'caller', [['notify_chat', chat, message]]))[0];
    t.match(await ask('11'), { code: -2, text: /no message has come from chat "11"/ });
    await sides[0]?.write('/help');
    await telegram.until(1);
    t.match(await ask('11'), { code: 0 });
    t.match(await ask('VK:11'), { code: -2 });
    await sides[1]?.write('/help');
    await vk.until(1);
    t.match(await ask('11'), { code: -3, text: /TELEGRAM:11 or VK:11|VK:11 or TELEGRAM:11/ });
    t.match(await ask('VK:11', text('to vk')), { code: 0 });
    t.match(await ask('TELEGRAM:11', text('to telegram')), { code: 0 });
    await settled(s, 5);
    t.equal(telegram.shown.at(-1)?.text, 'to telegram');
    t.equal(vk.shown.at(-1)?.text, 'to vk');
    const bad: Array<[string, RegExp]> = [
      ['', /is not JSON/],
      ['[]', /^the message/],
      ['{}', /must have a text or a file/],
      ['{"text":"  "}', /must have a text or a file/],
      ['{"text":1}', /\/text/],
      ['{"text":"x","html":true}', /html/],
      [JSON.stringify({ text: 'a\0b' }), /\/text must not hold a NUL/],
      [JSON.stringify({ text: 'x'.repeat(32_001) }), /\/text/],
      [JSON.stringify({ text: 'x', files: Array.from({ length: 11 }, () => ({ file: { id: 'a' } })) }), /\/files/],
    ];
    for (const [message, why] of bad)
      t.match(await ask('VK:11', message), { code: -3, text: why }, message.slice(0, 30));
    t.match(
      await ask('VK:11', '{"text":"x","files":[{"file":{"id":"a"}}]}'),
      { code: -1, text: /^permission denied$/ },
      'files are another permission',
    );
    await s.install(callerPlugin({ id: 'caller', requirements: [...NOTIFY, { kind: 'file', description: 'x' }] }));
    t.match(await ask('VK:11', '{"text":"x","files":[{"file":{"id":"a"}}]}'), {
      code: -2,
      text: /there is no file "a"/,
    });
    const [stored] = await callHost(s, 'caller', [
      ['file_store', '{"name":"n.txt","mime_type":"text/plain","file_type":"document"}', 'inside'],
    ]);
    const file = JSON.parse(stored?.text ?? '{}');
    t.match(await ask('VK:11', JSON.stringify({ text: '', files: [{ file, caption: 'c' }] })), { code: 0 });
    await settled(s, 6);
    t.match(vk.shown.at(-1), { text: 'c', file: { name: 'n.txt', text: 'inside' } });
    const taken = JSON.stringify({ text: 'taken', files: [{ file }] });
    await s.install(callerPlugin({ id: 'other' }));
    for (const [whose, change] of [
      ['of another chat', "chat = 'TELEGRAM:11'"],
      ['of a user', 'chat = NULL, user_id = (SELECT min(id) FROM global_users)'],
      ['of another plugin', "user_id = NULL, plugin_id = 'other'"],
      ['that has expired', "plugin_id = 'caller', expires_at = now() - interval '1 second'"],
    ] as const) {
      await db.query(`UPDATE files SET ${change} WHERE id = $1`, [file.id]);
      t.match(await ask('VK:11', taken), { code: -2, text: /there is no file/ }, `a message carries no file ${whose}`);
    }
    t.notOk(
      vk.shown.some(m => m.text.includes('taken')),
      'nothing of it is sent',
    );
    t.match((await callHost(s, 'caller', [['reply', text('x')]]))[0], {
      code: -3,
      text: 'reply is for messenger triggers',
    });
  },
);

t.test('one execution replies twenty times at most', async t => {
  const { s, sides } = await messengerWorld(t);
  // Replies until it is refused, and says how often it was not.
  const reply = text('x');
  const module = watPlugin({
    id: 'talks',
    imports: ['reply', 'fail'],
    triggers: [{ name: 'talk', type: 'messenger' }],
    body: `(data (i32.const 64) "${reply.replaceAll('"', '\\22')}")`,
    handle: `(local $k i32)
      (block $end (loop $next
        (br_if $end (i32.ne (call $reply (i32.const 64) (i32.const ${reply.length})) (i32.const 0)))
        (local.set $k (i32.add (local.get $k) (i32.const 1)))
        (br_if $next (i32.lt_u (local.get $k) (i32.const 99)))))
      (i32.store8 (i32.const 16) (i32.add (i32.const 48) (i32.div_u (local.get $k) (i32.const 10))))
      (i32.store8 (i32.const 17) (i32.add (i32.const 48) (i32.rem_u (local.get $k) (i32.const 10))))
      (drop (call $fail (i32.const 16) (i32.const 2)))
      (i32.const -1)`,
  });
  await s.install(module);
  await sides[0]?.write('/talk');
  const records = async () => (await s.admin('GET', '/plugins/talks/executions')).json.items as Json[];
  let items = await records();
  while (items.length === 0) items = await records();
  t.match(items, [{ outcome: 'handler_error', failure: /20/ }]);
});

t.test('a long text is sent in parts, in order, cut between words', async t => {
  const { s, sides, telegram } = await messengerWorld(t);
  await s.install(callerPlugin({ id: 'caller', requirements: NOTIFY }));
  await sides[0]?.write('/help');
  await telegram.until(1);
  const long = Array.from({ length: 2000 }, (_, k) => `word${k}`).join(' ');
  t.match((await callHost(s, 'caller', [['notify_chat', '11', text(long)]]))[0], { code: 0 });
  const pieces = (await telegram.until(6)).slice(1).map(m => m.text);
  t.equal(pieces.join(''), long);
  t.ok(pieces.every(p => p.length <= 4096 && p.startsWith('word')));
});

t.test('students are found through the graph and the database, and notified where they can be reached', async t => {
  const { spicedb } = await startGraphStore(t);
  const { db, s, telegram } = await messengerWorld(t, {
    BOT_SPICEDB_ENDPOINT: spicedb.endpoint,
    BOT_SPICEDB_TOKEN: 'any',
    BOT_SPICEDB_TLS: 'false',
  });
  await s.install(callerPlugin({ id: 'caller', requirements: NOTIFY }));
  const university = makeUniversity({ seed: 3, groups: 3, students: 30, teachers: 2 });
  for (const [path, records] of Object.entries(university)) {
    const answer = await s.admin('POST', `/university/${path}`, records);
    t.equal(answer.status, 200, path);
  }
  const delivered = async (): Promise<void> => {
    for (let k = 0; k < 400; k++) {
      const { rows } = await db.query<{ n: number }>(
        'SELECT count(*)::int AS n FROM authz_outbox WHERE processed_at IS NULL',
      );
      if (rows[0]?.n === 0) return;
      await new Promise(r => setTimeout(r, 25));
    }
    throw new Error('the graph does not follow');
  };
  await delivered();
  const notify = async (filter: Json | string, message: string) => {
    const [a] = await callHost(s, 'caller', [
      ['notify_students', typeof filter === 'string' ? filter : JSON.stringify(filter), text(message)],
    ]);
    return (a?.code ?? -1) < 0 ? { code: a?.code, text: a?.text } : JSON.parse(a?.text ?? '');
  };
  const { rows } = await db.query<{ person: string; grp: string; user_id: string; stream: string }>(
    `SELECT p.person_external_id AS person, p.group_external_id AS grp, u.id AS user_id, g.stream_external_id AS stream
     FROM student_positions p JOIN global_users u ON u.external_id = p.person_external_id JOIN groups g ON g.external_id = p.group_external_id
     WHERE p.holds ORDER BY p.person_external_id`,
  );
  const first = rows[0];
  if (first === undefined) throw new Error('no student');
  const mates = new Set(rows.filter(r => r.grp === first.grp).map(r => r.user_id));
  const onStream = new Set(rows.filter(r => r.stream === first.stream).map(r => r.user_id));
  const all = new Set(rows.map(r => r.user_id));
  t.same(await notify({ groups: [first.grp] }, 'no one has linked'), { queued: 0, unreachable: mates.size });
  // Every student of that group links an account; the chat has the user's number.
  for (const id of mates)
    await db.query(
      "INSERT INTO messenger_accounts (channel, account_id, global_user_id, chat_id) VALUES ('TELEGRAM', $1, $2, $1)",
      [`9${id}`, id],
    );
  t.same(await notify({ groups: [first.grp] }, 'the group'), { queued: mates.size, unreachable: 0 });
  t.same(await notify({ streams: [first.stream] }, 'the stream'), {
    queued: mates.size,
    unreachable: onStream.size - mates.size,
  });
  t.same(await notify({ all: true }, 'all students'), { queued: mates.size, unreachable: all.size - mates.size });
  t.same(await notify({ groups: ['no-such-group'] }, 'none'), { queued: 0, unreachable: 0 });
  await db.query("UPDATE global_users SET funding_type = 'contract', nationality_type = 'foreign' WHERE id = $1", [
    first.user_id,
  ]);
  await db.query("UPDATE global_users SET funding_type = 'budget' WHERE id = ANY ($1)", [
    [...mates].filter(id => id !== first.user_id),
  ]);
  t.same(await notify({ groups: [first.grp], funding_type: 'contract', nationality_type: ['foreign'] }, 'one'), {
    queued: 1,
    unreachable: 0,
  });
  const shown = await telegram.until(mates.size * 3 + 1, 60_000);
  t.same(
    shown.filter(m => m.text === 'one').map(m => m.chat),
    [`9${first.user_id}`],
  );
  t.same(new Set(shown.filter(m => m.text === 'the group').map(m => m.chat)), new Set([...mates].map(id => `9${id}`)));
  // A student who leaves the group gets no more messages.
  const position = university['student-positions'].find(
    p => p.person_external_id === first.person && p.group_external_id === first.grp,
  );
  await s.admin('POST', '/university/student-positions', [{ ...position, status: 'expelled' }]);
  await delivered();
  t.same(await notify({ groups: [first.grp] }, 'without'), { queued: mates.size - 1, unreachable: 0 });
  for (const [filter, why] of [
    ['{}', /must name streams/],
    ['[]', /the filter/],
    ['{"groups":"a"}', /\/groups/],
    ['{"colour":"red"}', /colour/],
    ['{"funding_type":"gift"}', /\/funding_type/],
    ['x', /is not JSON/],
  ] as Array<[string, RegExp]>)
    t.match(await notify(filter, 'bad'), { code: -3, text: why }, filter);
});
