import http from 'node:http';
import path from 'node:path';
import t, { type Test } from 'tap';
import { buildPlugin as buildAssemblyScript } from '../../sdk/assemblyscript/build.ts';
import { buildPlugin as buildC } from '../../sdk/c/build.ts';
import { buildPlugin as buildGo } from '../../sdk/go/build.ts';
import { buildPlugin as buildRust } from '../../sdk/rust/build.ts';
import { buildPlugin as buildTypeScript } from '../../sdk/typescript/build.ts';
import { customSections } from '../../src/abi/custom-section.ts';
import { readRecording, replay } from '../../src/authors/replay.ts';
import { openDatabase } from '../../src/db/database.ts';
import { inspectModule } from '../../src/plugins/inspect.ts';
import { callerPlugin, callHost } from '../support/caller.ts';
import { makeDatabase } from '../support/database.ts';
import { startGraphStore } from '../support/graph.ts';
import { listenFor } from '../support/listen.ts';
import { messengerWorld, settled } from '../support/messenger-world.ts';
import type { Json, JsonValue } from '../support/service.ts';
import { missingToolchain } from '../support/toolchains.ts';
import { withManifest } from '../support/wat.ts';

/** One plugin, written in every kit, must answer the same cases alike. */

const SDK = path.resolve(import.meta.dirname, '../../sdk');
const MIB = 1024 * 1024;

/** Without a toolchain its kit is left out, which the last lines of the run say. */
const KITS: Array<{ kit: string; language: string; build(): Promise<Uint8Array> }> = [
  {
    kit: 'TypeScript',
    language: 'ts',
    build: async () => (await buildTypeScript(path.join(SDK, 'typescript/conformance/index.ts'))).module,
  },
  {
    kit: 'Go',
    language: 'go',
    build: async () => (await buildGo(path.join(SDK, 'go/conformance/main.go'))).module,
  },
  {
    kit: 'Rust',
    language: 'rust',
    build: async () => (await buildRust(path.join(SDK, 'rust/conformance/src/lib.rs'))).module,
  },
  {
    kit: 'C',
    language: 'c',
    build: async () => (await buildC(path.join(SDK, 'c/conformance/main.c'))).module,
  },
  {
    kit: 'AssemblyScript',
    language: 'as',
    build: () => buildAssemblyScript(path.join(SDK, 'assemblyscript/conformance/index.ts')),
  },
];

/** An answer of the service, as it is and as JSON. */
type Told = { status: number; text: string; json: Json };

async function world(t: Test, module: Uint8Array) {
  const { spicedb } = await startGraphStore(t);
  const graph = { BOT_SPICEDB_ENDPOINT: spicedb.endpoint, BOT_SPICEDB_TOKEN: 'any', BOT_SPICEDB_TLS: 'false' };
  const w = await messengerWorld(t, { ...graph, BOT_EXECUTION_TIMEOUT_MS: '5000' });
  const own = await makeDatabase();
  t.teardown(() => own.drop());
  const db = openDatabase(own.url, 1, () => {});
  t.teardown(() => db.close());
  await db.query('CREATE TABLE marks (id bigint PRIMARY KEY, name text NOT NULL)');
  const server = http.createServer(async (asked, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of asked) chunks.push(chunk as Buffer);
    response.writeHead(418, { 'x-answer': 'short and stout' });
    response.end(`${asked.method} ${asked.headers['content-type'] ?? '-'} ${Buffer.concat(chunks)}`);
  });
  const outside = await listenFor(t, server);
  const target = await buildTypeScript(path.join(import.meta.dirname, 'target-plugin.ts'));
  await w.s.install(target.module);
  await w.s.install(module, {
    title: 'Заголовок',
    databases: { default: own.url },
    network: { private: ['127.0.0.1'] },
  });
  const send = async (name: string, body: string | Uint8Array, headers: Record<string, string> = {}): Promise<Told> =>
    w.s.trigger(`conformance/run/${name}?q=first&q=${encodeURIComponent('ü 😀')}&empty=`, {
      method: 'POST',
      body: typeof body === 'string' ? body : new Uint8Array(body),
      headers,
    });
  /** The result of a case, or the code and text of its error. */
  const run = async (name: string, ...given: JsonValue[]): Promise<JsonValue> => {
    const { json, status, text } = await send(name, JSON.stringify(given));
    if (status !== 200) throw new Error(`${name}: ${status} ${text}`);
    return 'result' in json ? (json.result ?? null) : json;
  };
  /** The digits as they were sent: `JSON.parse` would round them. */
  const digits = async (name: string, ...given: JsonValue[]): Promise<string> =>
    (await send(name, JSON.stringify(given))).text;
  return { ...w, own, outside, send, run, digits };
}
type World = Awaited<ReturnType<typeof world>>;

const base64 = (bytes: Uint8Array): string => Buffer.from(bytes).toString('base64');
const TEXT = 'Ünïcödé, кириллица, 😀, \u0000\u001f"\\';

async function requests(t: Test, { run, s, send, user }: World): Promise<void> {
  const { token } = await user('ada');
  const asked = await send('request', '[]', { authorization: `Bearer ${token}`, 'x-test': 'a header' });
  t.match(asked.json.result, {
    method: 'POST',
    path: '/run/request',
    query: { q: 'ü 😀', empty: '' },
    query_all: { q: ['first', 'ü 😀'], empty: [''] },
    raw_query: 'q=first&q=%C3%BC%20%F0%9F%98%80&empty=',
    header: 'a header',
    param: 'request',
    address: '127.0.0.1',
  });
  t.notMatch(asked.text, /u0026/, 'nothing is escaped for HTML');
  t.equal((asked.json.result as Json).auth, null, 'a public trigger has no principal');
  const answer = await send('respond', JSON.stringify([418, { 'Content-Type': 'text/x-own' }, TEXT]));
  t.same([answer.status, answer.text], [418, TEXT]);
  const bytes = new Uint8Array([0, 255, 128, 200]);
  const url = `${s.base}/api/triggers/http/conformance/run/respond_bytes`;
  const raw = await fetch(url, { method: 'POST', body: JSON.stringify([base64(bytes)]) });
  t.same(new Uint8Array(await raw.arrayBuffer()), bytes);
  t.equal((await send('silent', '[]')).status, 204, 'a handler that does not answer');
  t.equal((await send('body_bytes', new Uint8Array(5 * MIB))).json.result, 5 * MIB);
  t.equal((await send('large', JSON.stringify([5 * MIB]))).text.length, 5 * MIB + '{"result":""}'.length);
  t.equal(await run('config', 'title'), 'Заголовок');
  t.equal(await run('config', 'none'), null);
  t.equal(await run('host_info'), 5);
}

async function principals(t: Test, { s, send, user }: World): Promise<void> {
  const { id, token } = await user('grace');
  const access = await s.admin('PUT', '/plugins/conformance/triggers/run/settings', { allow_user_session: true });
  t.equal(access.status, 200, access.text);
  const asked = await send('request', '[]', { authorization: `Bearer ${token}` });
  t.match((asked.json.result as Json).auth, { kind: 'user', user_id: id });
  await s.admin('PUT', '/plugins/conformance/triggers/run/settings', {
    allow_user_session: false,
    accept_public: true,
  });
}

/** Seconds until a row of the service ends; units differ from kit to kit, and a wrong one is off by a thousand. */
async function secondsLeft(
  { db }: World,
  table: 'plugin_kv' | 'files',
  column: string,
  value: string,
): Promise<number> {
  const { rows } = await db.query<{ left: number }>(
    `SELECT extract(epoch FROM expires_at - now())::float8 AS left FROM ${table} WHERE ${column} = $1`,
    [value],
  );
  return rows[0]?.left ?? 0;
}

async function keyValues(t: Test, w: World): Promise<void> {
  const { digits, run } = w;
  await run('kv_set', 'hour', 'x', 3600);
  const left = await secondsLeft(w, 'plugin_kv', 'key', 'hour');
  t.ok(left > 1800 && left <= 3600, `a value of an hour has ${left} s left`);
  t.equal(await run('kv_delete', 'hour'), true);
  t.equal(await run('kv_get', 'a'), null);
  t.equal(await run('kv_set', 'a', TEXT, 0), null);
  t.equal(await run('kv_get', 'a'), TEXT);
  const bytes = base64(new Uint8Array([0, 255, 1, 254]));
  await run('kv_set_bytes', 'bytes', bytes);
  t.equal(await run('kv_get_bytes', 'bytes'), bytes);
  await run('kv_set', 'empty', '', 0);
  t.same(await run('kv_get_many', ['a', 'none', 'empty']), [TEXT, null, '']);
  t.same(await run('kv_get_many_bytes', ['bytes', 'none', 'empty']), [bytes, null, '']);
  t.same(await run('kv_set_if_absent', 'a', 'x'), { written: false, present: TEXT });
  t.match(await run('kv_set_if_absent', 'b', 'x'), { written: true });
  t.same(await run('kv_compare_and_set', 'b', 'y', 'z'), { written: false, present: 'x' });
  t.same(await run('kv_compare_and_set', 'none', 'y', 'z'), { written: false, present: null });
  t.match(await run('kv_compare_and_set', 'b', 'x', 'z'), { written: true });
  t.equal(await digits('kv_increment', 'n', '9007199254740993'), '{"result":9007199254740993}');
  t.equal(await digits('kv_increment', 'n', '-9007199254740994'), '{"result":-1}');
  t.match(await run('kv_increment', 'b', '1'), { code: 'invalid_argument', text: /int64/ });
  t.same(await run('kv_list', '', '', 2), { keys: ['a', 'b'], next: 'b' });
  t.same(await run('kv_list', '', 'bytes', 0), { keys: ['empty', 'n'], next: null });
  t.same([await run('kv_delete', 'b'), await run('kv_delete', 'b')], [true, false]);
  t.match(await run('kv_set', '', 'x', 0), { code: 'invalid_argument' });
  t.match(await run('kv_set', 'a', 'x'.repeat(MIB + 1), 0), { code: 'too_large', text: /1048576|1 MiB/ });
}

async function databases(t: Test, { digits, run }: World): Promise<void> {
  t.equal(
    await run('sql_exec', 'INSERT INTO marks VALUES ($1, $2), ($3, $4)', [1, 'Ада', 2, TEXT.replace('\0', '')]),
    2,
  );
  t.same(await run('sql_query', 'SELECT id, name FROM marks ORDER BY id', [], 1), [
    { id: 1, name: 'Ада' },
    { id: 2, name: TEXT.replace('\0', '') },
  ]);
  t.same(await run('sql_query', 'SELECT name FROM marks WHERE id = ANY($1)', [[1]], 0), [{ name: 'Ада' }]);
  t.same(await run('sql_query', 'SELECT $1::jsonb AS j, $2::bool AS b, $3::text AS n', [{ a: [1] }, true, null], 0), [
    { j: { a: [1] }, b: true, n: null },
  ]);
  t.equal(await digits('sql_integer'), '{"result":9007199254740993}');
  t.equal(await run('sql_bytes'), base64(new Uint8Array([0, 255])));
  t.equal(await run('sql_transaction', false, 'DELETE FROM marks'), 2);
  t.equal(await run('sql_transaction', true, 'DELETE FROM marks WHERE id = 1'), 1);
  t.same(await run('sql_query', 'SELECT id FROM marks', [], 0), [{ id: 2 }]);
  t.match(await run('sql_exec', 'INSERT INTO marks VALUES (2, $1)', ['x']), { code: 'conflict', text: /^23505: / });
  t.match(await run('sql_query', 'SELECT wrong', [], 0), { code: 'invalid_argument', text: /^42703: / });
  t.same(await run('sql_other', 'undeclared'), { code: 'permission_denied', text: 'permission denied' });
}

async function outsideRequests(t: Test, { outside, run }: World): Promise<void> {
  t.same(await run('http_request', 'PUT', outside, { 'Content-Type': 'text/x-own' }, TEXT.slice(0, 20)), {
    status: 418,
    header: 'short and stout',
    body: `PUT text/x-own ${TEXT.slice(0, 20)}`,
  });
  t.equal(await run('http_get', outside), 'GET - ');
  t.equal(await run('http_post', outside, 'text/plain', 'ü'), 'POST text/plain ü');
  t.match(await run('http_get', 'http://10.0.0.1/'), { code: 'invalid_argument', text: /10\.0\.0\.1/ });
}

async function filesOfPlugins(t: Test, w: World): Promise<void> {
  const { run } = w;
  const content = new Uint8Array(MIB + 7).map((_, k) => k * 7);
  const stored = (await run('file_store', 'ü.bin', 'application/x-own', 'document', base64(content))) as Json;
  t.match(stored, { name: 'ü.bin', mime_type: 'application/x-own', size: content.length, file_type: 'document' });
  const id = String(stored.id);
  t.match(await run('file_meta', id), { id, size: content.length });
  t.same(await run('file_read', id, 0, 0), { length: MIB, first: 0, eof: false });
  t.same(await run('file_read', id, MIB, 0), { length: 7, first: content[MIB], eof: true });
  t.same(await run('file_read', id, 1, 10), { length: 10, first: 7, eof: false });
  const sum = content.reduce((a, b, k) => (a + b * ((k % 251) + 1)) % 1_000_003, 0);
  t.same(await run('file_read_all', id), { length: content.length, sum });
  t.equal(await run('file_url', id), true);
  const short = (await run('file_store_ttl', 'short.txt', 3_600_000)) as Json;
  t.match(short, { size: 11 });
  const left = await secondsLeft(w, 'files', 'id', String(short.id));
  t.ok(left > 1800 && left <= 3600, `a file of an hour has ${left} s left`);
  t.match(await run('file_meta', '0'.repeat(32)), { code: 'not_found' });
}

async function messages(t: Test, { run, s, sides, telegram, user, link }: World): Promise<void> {
  const [side] = sides;
  if (side === undefined) throw new Error('no messenger');
  const { id, token } = await user('lin');
  await link(side, { token });
  const before = telegram.shown.length;
  await side.write('/say file.txt 😀');
  const [said, file] = (await telegram.until(before + 2)).slice(before);
  t.match(JSON.parse(said?.text ?? ''), {
    text: '/say file.txt 😀',
    args: ['file.txt', '😀'],
    chat: '11',
    user: id,
  });
  t.same(JSON.parse(said?.text ?? '').files, []);
  t.match(file, { text: 'Here', file: { name: 'file.txt', text: 'in it' } });
  telegram.files.set('photo', { type: 'image/jpeg', bytes: Buffer.from('a photo, ü') });
  await side.write('/say', { file: 'photo' });
  const [withFile] = (await telegram.until(before + 3)).slice(before + 2);
  const { args, files, text: caption } = JSON.parse(withFile?.text ?? '');
  t.same([caption, args, files], ['/say', [], ['photo: a photo, ü']]);
  t.equal(await run('notify_user', String(id), 'to the user'), null);
  t.equal(await run('notify_chat', '11', 'to the chat'), null);
  t.same(await run('notify_students', 'no such group', 'x'), { queued: 0, unreachable: 0 });
  t.same(await run('notify_students', null, 'x'), { queued: 0, unreachable: 0 }, 'no group is no student, not all');
  t.match(await run('notify_user', '9007199254740993', 'x'), { code: 'not_found' });
  await settled(s, 5);
  const texts = telegram.shown.map(m => m.text);
  t.ok(texts.includes('to the user') && texts.includes('to the chat'), texts.join(', '));
  t.equal(await run('publish', 'kit.event', { a: 'ü' }), null);
  const { json } = await s.admin('GET', '/events?limit=1');
  t.match(json.items, [{ type: 'kit.event' }]);
  t.match(await run('publish', 'not a name', {}), { code: 'invalid_argument' });
}

async function calls(t: Test, { run, s, send }: World): Promise<void> {
  const large = await send('call', '["same",{"id":9007199254740993}]');
  t.equal(large.text, '{"result":{"id":9007199254740993}}', 'digits that a float64 does not hold');
  t.same(await run('call', 'double', 21), { doubled: 42, from: 'conformance' });
  t.equal(await run('call_raw', 'reverse', base64(new Uint8Array([1, 0, 255]))), base64(new Uint8Array([255, 0, 1])));
  t.equal(await run('call', 'silent', null), null, 'a function that gives no answer has run');
  t.match(await run('call', 'refuse', null), { code: 'internal', text: /refused by its author/ });
  await s.install(callerPlugin({ id: 'caller', requirements: [{ kind: 'plugins:call', target: 'conformance' }] }));
  const answers = await callHost(s, 'caller', [
    ['plugin_call', 'conformance', 'double', '4'],
    ['plugin_call', 'conformance', 'reverse', 'abc'],
    ['plugin_call', 'conformance', 'refuse', ''],
    ['plugin_call', 'conformance', 'none', ''],
  ]);
  t.same(JSON.parse(answers[0]?.text ?? ''), { doubled: 8, from: 'caller' });
  t.equal(answers[1]?.text, 'cba');
  t.match(answers[2], { code: -7, text: /refused by its author/ });
  t.match(answers[3], { code: -7, text: /none/ });
}

async function failures(t: Test, { run, s, send }: World): Promise<void> {
  const lastOf = async (outcome: string): Promise<Json> => {
    const list = await s.admin('GET', `/plugins/conformance/executions?outcome=${outcome}&limit=1`);
    const [item] = list.json.items as Json[];
    return (await s.admin('GET', `/plugins/conformance/executions/${item?.id}`)).json;
  };
  t.equal(await run('log', 'ü'), null);
  t.match((await lastOf('ok')).log, [
    { level: 'info', text: 'ü' },
    { level: 'error', text: 'ü' },
  ]);
  t.equal((await send('throw', JSON.stringify([`because ${TEXT.slice(0, 10)}`]))).status, 502);
  const failure = String((await lastOf('failed')).failure);
  t.match(failure, `because ${TEXT.slice(0, 10)}`);
  t.match(failure, /(index|main|lib)\.\w+:\d+/, 'the file and line of the author');
  t.equal((await send('give_back', JSON.stringify(['0'.repeat(32)]))).status, 502);
  const givenBack = String((await lastOf('failed')).failure);
  t.match(givenBack, /no file|not found/i, 'the text of the host');
  t.match(givenBack, /\n {4}at .*(index|main|lib)\.\w+:\d+/, 'with the place of the call');
  t.equal((await send('loop', '[]')).status, 504);
  t.match(
    (await lastOf('deadline')).failure,
    /stopped at its deadline, after .* look for an endless loop|at \w+ \(index\.ts:\d+/,
  );
  const [a, b] = [await run('random'), await run('random')];
  t.notSame(a, b, 'two executions draw different random numbers');
  t.equal(new Set([a, b].flat()).size, 4, 'each draws two');
  const now = Number(await run('clock'));
  t.ok(Math.abs(now - Date.now()) < 60_000, 'the clock is that of the execution');
}

/** A recorded execution runs again as it ran, with the clock and the random numbers it drew. */
async function replays(t: Test, { run, s, send }: World, module: Uint8Array): Promise<void> {
  const set = await s.admin('PUT', '/plugins/conformance/triggers/run/settings', { record: true });
  t.equal(set.status, 200, set.text);
  const recordingOfLast = async (): Promise<string> => {
    const { json } = await s.admin('GET', '/plugins/conformance/executions?limit=1');
    const [item] = json.items as Json[];
    return (await s.admin('GET', `/plugins/conformance/executions/${item?.id}/recording`)).text;
  };
  for (const [name, ...given] of [['random'], ['clock'], ['kv_get', 'a']] as const) {
    await run(name, ...given);
    const again = await replay(module, readRecording(await recordingOfLast(), name), {});
    t.same([again.differences, again.outcome.kind], [[], 'ok'], name);
  }
  const file = '0'.repeat(32);
  await send('give_back', JSON.stringify([file]));
  const other = (await recordingOfLast()).replace(`["${file}"]`, '["another"]');
  const { differences } = await replay(module, readRecording(other, 'give_back'), {});
  const expected = /^host call 1: then file_meta\("another"\), now file_meta\("0+"\) at .*(index|main|lib)\.\w+:\d+/;
  t.match(differences[0], expected, 'with the place of the call');
}

/** Cases that call each function of the host that needs a permission. */
const NEEDING: ReadonlyArray<[name: string, ...given: JsonValue[]]> = [
  ['kv_get', 'a'],
  ['kv_get_many', 'a'],
  ['kv_set', 'a', 'b', 0],
  ['kv_set_if_absent', 'a', 'b'],
  ['kv_increment', 'a', '1'],
  ['kv_list', '', '', 0],
  ['kv_delete', 'a'],
  ['sql_exec', 'SELECT 1', []],
  ['http_get', 'http://127.0.0.1/'],
  ['notify_user', '1', 'x'],
  ['notify_chat', '1', 'x'],
  ['notify_students', 'g', 'x'],
  ['publish', 'kit.event', {}],
  ['call', 'double', 1],
  ['file_meta', 'x'],
  ['file_read', 'x', 0, 0],
  ['file_url', 'x'],
  ['file_store', 'a.txt', 'text/plain', 'document', ''],
];

async function withoutPermissions(t: Test, { s }: World, module: Uint8Array): Promise<void> {
  const { manifest } = inspectModule(module);
  const declared = manifest ?? (await s.admin('GET', '/plugins/conformance')).json.installed;
  const [section] = customSections(module, 'plugin.manifest');
  const bare =
    section === undefined ? module : Buffer.concat([module.subarray(0, section.at), module.subarray(section.end)]);
  await s.install(withManifest(bare, { ...Object(declared), id: 'denied', requirements: [] }));
  for (const [name, ...given] of NEEDING) {
    const { text } = await s.trigger(`denied/run/${name}`, { method: 'POST', body: JSON.stringify(given) });
    t.same(JSON.parse(text), { code: 'permission_denied', text: 'permission denied' }, name);
  }
}

for (const { build, kit, language } of KITS) {
  const skip = missingToolchain(language) ?? false;
  t.test(`a plugin of the kit for ${kit} has every function of the host`, { skip }, async t => {
    const module = await build();
    const w = await world(t, module);
    const parts = {
      requests,
      keyValues,
      databases,
      outsideRequests,
      filesOfPlugins,
      messages,
      calls,
      failures,
      principals,
    };
    for (const [name, part] of Object.entries(parts)) await t.test(name, t => part(t, w));
    await t.test('a replay', t => replays(t, w, module));
    await t.test('permissions that are not required', t => withoutPermissions(t, w, module));
  });
}
