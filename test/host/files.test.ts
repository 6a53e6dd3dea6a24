import fs from 'node:fs';
import t from 'tap';
import { addServiceKey } from '../../src/identity/service-keys.ts';
import { callerPlugin, callHost, type ScriptedCall } from '../support/caller.ts';
import { filesWorld, pattern, sha256, type Uploader } from '../support/files.ts';
import type { TestService } from '../support/service.ts';
import { until } from '../support/until.ts';
import { watPlugin } from '../support/wat.ts';

const FUNCTIONS = ['file_meta', 'file_url', 'file_read', 'file_read_into', 'file_store'];
const MIB = 1024 * 1024;

/**
 * A plugin that calls one file function: the body is the letter of the function, the id's length, offset (i64), maximum
 * (i32), the id, and for a store the bytes behind it. It answers the result, and what was parked, read or said.
 */
const probe = (id: string, abi: number, requirements: Array<Record<string, unknown>>): Uint8Array =>
  watPlugin({
    id,
    abi,
    imports: [
      'respond',
      'input_len',
      'input_read',
      'result_read',
      'error_len',
      'error_read',
      ...FUNCTIONS.filter(f => abi >= 4 || f !== 'file_read_into'),
    ],
    memory: '512',
    requirements,
    handle: `(local $n i32) (local $op i32) (local $idl i32) (local $off i64) (local $max i32) (local $r i32) (local $m i32)
      (local.set $n (call $input_len (i32.const 1)))
      (drop (call $input_read (i32.const 1) (i32.const 65536) (local.get $n)))
      (local.set $op (i32.load8_u (i32.const 65536)))
      (local.set $idl (i32.load16_u (i32.const 65540)))
      (local.set $off (i64.load (i32.const 65544)))
      (local.set $max (i32.load (i32.const 65552)))
      (if (i32.eq (local.get $op) (i32.const ${'m'.charCodeAt(0)})) (then
        (local.set $r (call $file_meta (i32.const 65556) (local.get $idl)))))
      (if (i32.eq (local.get $op) (i32.const ${'u'.charCodeAt(0)})) (then
        (local.set $r (call $file_url (i32.const 65556) (local.get $idl)))))
      (if (i32.eq (local.get $op) (i32.const ${'r'.charCodeAt(0)})) (then
        (local.set $r (call $file_read (i32.const 65556) (local.get $idl) (local.get $off) (local.get $max)))))
      ${
        abi >= 4
          ? `(if (i32.eq (local.get $op) (i32.const ${'i'.charCodeAt(0)})) (then
        (local.set $r (call $file_read_into (i32.const 65556) (local.get $idl) (local.get $off) (i32.const 8388612) (local.get $max)))))`
          : ''
      }
      (if (i32.eq (local.get $op) (i32.const ${'s'.charCodeAt(0)})) (then
        (local.set $r (call $file_store (i32.const 65556) (local.get $idl) (i32.add (i32.const 65556) (local.get $idl)) (local.get $max)))))
      (i32.store (i32.const 8388608) (local.get $r))
      (if (i32.lt_s (local.get $r) (i32.const 0)) (then
        (local.set $m (call $error_len)) (drop (call $error_read (i32.const 8388612) (local.get $m))))
      (else (if (i32.eq (local.get $op) (i32.const ${'i'.charCodeAt(0)}))
        (then (local.set $m (i32.and (local.get $r) (i32.const 0x3fffffff))))
        (else (local.set $m (local.get $r)) (drop (call $result_read (i32.const 8388612) (local.get $m)))))))
      (drop (call $respond (i32.const 200) (i32.const 0) (i32.const 0) (i32.const 8388608) (i32.add (local.get $m) (i32.const 4))))
      (i32.const 0)`,
  });

type Call = { op: string; id: string | Buffer; offset?: bigint; max?: number; bytes?: Uint8Array };

function script({ bytes, id, max = 0, offset = 0n, op }: Call): Uint8Array<ArrayBuffer> {
  const name = Buffer.from(id);
  const head = Buffer.alloc(20);
  head.write(op, 0);
  head.writeUInt16LE(name.length, 4);
  head.writeBigInt64LE(offset, 8);
  head.writeInt32LE(bytes?.length ?? max, 16);
  return new Uint8Array(Buffer.concat([head, name, bytes ?? Buffer.alloc(0)]));
}

type Asker = Record<string, string>;

async function world(t: Parameters<typeof filesWorld>[0], env: Record<string, string> = {}) {
  const w = await filesWorld(t, env);
  const file = [{ kind: 'file', description: 'f' }];
  await w.s.install(probe('one', 4, file));
  await w.s.install(probe('two', 4, file));
  await w.s.install(probe('old', 3, file));
  await w.s.install(probe('none', 4, []));
  for (const id of ['one', 'two', 'old', 'none'])
    await w.s.admin('PUT', `/plugins/${id}/triggers/run/settings`, {
      allow_user_session: true,
      allow_service_key: true,
    });
  const call = async (plugin: string, who: Asker, c: Call): Promise<[number, Buffer]> => {
    const r = await fetch(`${w.s.base}/api/triggers/http/${plugin}/run`, {
      method: 'POST',
      headers: who,
      body: script(c),
    });
    const answer = Buffer.from(await r.arrayBuffer());
    if (r.status !== 200) throw new Error(`${r.status} ${answer.toString()}`);
    return [answer.readInt32LE(0), answer.subarray(4)];
  };
  return { ...w, call };
}

const give = (who: Uploader, plugin: string, bytes: Uint8Array<ArrayBuffer>) => who.give(bytes, { plugin_id: plugin });
const NOT_FOUND = [-2, 'not found'];
const said = ([code, text]: [number, Buffer]): [number, string] => [code, text.toString()];

t.test(
  'a file is read by the plugin it was given to, for the user who gave it, and by no other plugin or user',
  async t => {
    const { call, db, s, user } = await world(t);
    const [ada, bob] = [await user('Ada'), await user('Bob')];
    const bytes = pattern(1000);
    const ofAda = { one: await give(ada, 'one', bytes), two: await give(ada, 'two', bytes) };
    const own = new Map<string, string>();
    for (const plugin of ['one', 'two']) {
      const [code, ref] = await call(plugin, ada.headers, {
        op: 's',
        id: '{"name":"own.bin","mime_type":"application/octet-stream","file_type":"document"}',
        bytes,
      });
      t.ok(code > 0);
      own.set(plugin, String((JSON.parse(ref.toString()) as { id: string }).id));
    }
    const key = await addServiceKey(
      db,
      'phk_',
      {
        name: 'k',
        scopes: ['one', 'two'].map(pluginId => ({ pluginId, trigger: 'run' })),
        expiresAt: null,
      },
      { kind: 'setup', userId: null, name: 'test', requestId: 'r', address: '' },
    );
    const askers: Array<[string, Asker]> = [
      ['Ada', ada.headers],
      ['Bob', bob.headers],
      ['a service', { authorization: `Bearer ${key.text}` }],
      ['no one', {}],
    ];
    for (const [who, headers] of askers) {
      const open = who === 'no one';
      for (const id of ['one', 'two'])
        await s.admin('PUT', `/plugins/${id}/triggers/run/settings`, {
          allow_user_session: !open,
          allow_service_key: !open,
          accept_public: open,
        });
      for (const plugin of ['one', 'two'] as const)
        for (const given of ['one', 'two'] as const)
          for (const [whose, id] of [
            ['Ada', ofAda[given]],
            ['the plugin', own.get(given) ?? ''],
          ] as const)
            for (const op of ['m', 'u', 'r', 'i']) {
              const allowed = plugin === given && (whose === 'the plugin' || who === 'Ada');
              const what = `${op}: plugin ${plugin} for ${who}, a file of ${whose} with plugin ${given}`;
              const answer = await call(plugin, headers, { op, id, max: 100 });
              if (allowed) t.ok(answer[0] > 0, what);
              else t.same(said(answer), NOT_FOUND, what);
            }
    }
    t.same(said(await call('one', {}, { op: 'm', id: 'f'.repeat(32) })), NOT_FOUND, 'an id that no file has');
    t.same(said(await call('one', {}, { op: 'm', id: '' })), NOT_FOUND);
    for (const id of ["x' OR 1=1 --", 'a\0b', 'f'.repeat(60_000)])
      t.same(said(await call('one', {}, { op: 'm', id })), NOT_FOUND);
    for (const op of ['m', 'u', 'r', 'i', 's'])
      t.same(said(await call('none', ada.headers, { op, id: ofAda.one, max: 1 })), [-1, 'permission denied'], op);
  },
);

t.test('chunks: from any place, at most 1 MB, with the end marked', async t => {
  const { call, user } = await world(t);
  const ada = await user('Ada');
  const bytes = pattern(2 * MIB + 5);
  const id = await give(ada, 'one', bytes);
  const legacy = await give(ada, 'old', bytes);
  const END = 1 << 30;
  const into = (offset: bigint, max: number) => call('one', ada.headers, { op: 'i', id, offset, max });
  const rows: Array<[bigint, number, number, boolean]> = [
    [0n, 10, 10, false],
    [0n, MIB, MIB, false],
    [0n, MIB + 1, MIB, false],
    [BigInt(MIB), MIB, MIB, false],
    [BigInt(2 * MIB), MIB, 5, true],
    [BigInt(2 * MIB), 4, 4, false],
    [BigInt(2 * MIB), 5, 5, true],
    [BigInt(2 * MIB + 5), 5, 0, true],
    [BigInt(2 * MIB + 6), 5, 0, true],
    [9_000_000_000_000_000_000n, 5, 0, true],
    [5n, 0, 0, false],
  ];
  for (const [offset, max, length, end] of rows) {
    const [code, got] = await into(offset, max);
    t.same([code & ~END, (code & END) !== 0], [length, end], `read_into ${offset} ${max}`);
    t.equal(sha256(got), sha256(bytes.subarray(Number(offset), Number(offset) + length)), `bytes of ${offset} ${max}`);
    // Zero is "as much as there is" in the older function.
    const want = max === 0 ? MIB : length;
    const [oldCode, old] = await call('old', ada.headers, { op: 'r', id: legacy, offset, max });
    t.same([oldCode, old[0]], [want + 1, end ? 1 : 0], `read ${offset} ${max}`);
    t.equal(sha256(old.subarray(1)), sha256(bytes.subarray(Number(offset), Number(offset) + want)));
  }
  t.match(said(await into(-1n, 5)), [-3, /offset is below zero/]);
  t.match(said(await call('old', ada.headers, { op: 'r', id: legacy, max: -1 })), [-3, /below zero/]);
  t.match(said(await into(0n, 100 * MIB)), [-3, /do not lie inside the memory/]);
  t.match(said(await call('one', ada.headers, { op: 'm', id: Buffer.from([0xff]) })), [-3, /UTF-8/]);
});

t.test('a plugin stores files of its own, for ever or for a time, within its quota', async t => {
  const { call, db, user } = await world(t, { BOT_FILES_PLUGIN_QUOTA: '1000' });
  const ada = await user('Ada');
  const store = (said: unknown, bytes: Uint8Array) =>
    call('one', ada.headers, { op: 's', id: typeof said === 'string' ? said : JSON.stringify(said), bytes });
  const good = { name: 'Итог.txt', mime_type: 'text/plain', file_type: 'document' };
  const [code, ref] = await store(good, pattern(300));
  const stored = JSON.parse(ref.toString()) as { id: string };
  t.equal(code, ref.length);
  t.strictSame(stored, { id: stored.id, ...good, size: 300 });
  const [, url] = await call('one', ada.headers, { op: 'u', id: stored.id });
  t.equal(sha256(new Uint8Array(await (await fetch(url.toString())).arrayBuffer())), sha256(pattern(300)));

  const [, short] = await store({ ...good, ttl_ms: 60_000 }, pattern(200));
  const shortId = (JSON.parse(short.toString()) as { id: string }).id;
  const [, shortUrl] = await call('one', ada.headers, { op: 'u', id: shortId });
  const end = Number(new URL(shortUrl.toString()).searchParams.get('expires')) * 1000 - Date.now();
  t.ok(end > 50_000 && end <= 60_000, 'a link lives no longer than its file');
  await db.query('UPDATE files SET expires_at = now() WHERE id = $1', [shortId]);
  t.same(said(await call('one', ada.headers, { op: 'm', id: shortId })), NOT_FOUND);
  t.equal((await fetch(shortUrl.toString())).status, 404);

  t.match(said(await store(good, pattern(600))), [-4, /files\.plugin_quota allows 1000/]);
  t.match(said(await store('nonsense', pattern(1))), [-3, /JSON like/]);
  t.match(said(await store({ ...good, name: 'a/b' }, pattern(1))), [-3, /plain file name/]);
  t.match(said(await store({ ...good, file_type: 'photo' }, pattern(1))), [-3, /does not go with/]);
  t.match(said(await store({ ...good, ttl_ms: -1 }, pattern(1))), [-3, /JSON like/]);
  t.match(said(await store({ ...good, size: 1 }, pattern(1))), [-3, /JSON like/]);
  t.equal((await store(good, new Uint8Array(0)))[0] > 0, true, 'an empty file is a file');
});

t.test('a host without direct links returns an empty link and no error', async t => {
  const { call, user } = await world(t, { BOT_FILES_DIRECT_LINKS: 'false' });
  const ada = await user('Ada');
  const id = await give(ada, 'one', pattern(10));
  t.same(said(await call('one', ada.headers, { op: 'u', id })), [0, '']);
  t.same(said(await call('two', ada.headers, { op: 'u', id })), NOT_FOUND);
});

/** Stored files this process has open. */
const openFiles = (s: TestService): number =>
  fs.readdirSync('/proc/self/fd').filter(fd => {
    try {
      const leadsTo = fs.readlinkSync(`/proc/self/fd/${fd}`);
      return leadsTo.startsWith(s.directory) && leadsTo.includes('/ready/');
    } catch {
      return false;
    }
  }).length;

t.test('an execution has at most sixteen files open, and reads them all the same', async t => {
  const { s, user } = await world(t, { BOT_EXECUTION_TIMEOUT_MS: '3000' });
  const ada = await user('Ada');
  await s.install(callerPlugin({ id: 'reader', requirements: [{ kind: 'file' }] }));
  await s.admin('PUT', '/plugins/reader/triggers/run/settings', { allow_user_session: true });
  const ids: string[] = [];
  for (let k = 0; k < 24; k++) ids.push(await give(ada, 'reader', pattern(5000, k)));
  const read = ids.map((id): ScriptedCall => ['file_read_into', id, 0n, 10]);
  const all = await callHost(s, 'reader', [...read, ...read], ada.headers);
  t.same(
    all.map(a => a.text),
    [...ids, ...ids].map((_, k) => Buffer.from(pattern(5000, k % 24).subarray(0, 10)).toString()),
  );
  let over = false;
  const killed = callHost(s, 'reader', [...read, 'loop'], ada.headers)
    .catch((e: Error) => e.message)
    .finally(() => {
      over = true;
    });
  let most = 0;
  while (!over) {
    most = Math.max(most, openFiles(s));
    await new Promise(resolve => setTimeout(resolve, 5));
  }
  t.match(await killed, /^504 /);
  t.equal(most, 16);
});

t.test("an execution's open files and connections are closed when it ends, also when it is killed", async t => {
  const { call, s, user } = await world(t, { BOT_EXECUTION_TIMEOUT_MS: '3000' });
  const ada = await user('Ada');
  await s.install(
    watPlugin({
      id: 'spinner',
      imports: ['file_read_into', 'input_read'],
      requirements: [{ kind: 'file', description: 'f' }],
      memory: '64',
      handle: `(drop (call $input_read (i32.const 1) (i32.const 1024) (i32.const 32)))
        (drop (call $file_read_into (i32.const 1024) (i32.const 32) (i64.const 0) (i32.const 65536) (i32.const 1000)))
        (loop $l (br $l)) (i32.const 0)`,
    }),
  );
  await s.admin('PUT', '/plugins/spinner/triggers/run/settings', { allow_user_session: true });
  const id = await give(ada, 'one', pattern(5000));
  const spun = await give(ada, 'spinner', pattern(5000));
  const open = () => openFiles(s);
  for (let k = 0; k < 20; k++) await call('one', ada.headers, { op: 'i', id, max: 100 });
  const killed = fetch(`${s.base}/api/triggers/http/spinner/run`, { method: 'POST', headers: ada.headers, body: spun });
  await until(() => open() !== 0);
  t.equal((await killed).status, 504);
  await until(() => open() <= 0);
  t.equal(open(), 0);
});
