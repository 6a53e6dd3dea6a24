import http from 'node:http';
import path from 'node:path';
import { Ajv } from 'ajv';
import t, { type Test } from 'tap';
import { buildPlugin as buildC } from '../../sdk/c/build.ts';
import { buildPlugin as buildGo } from '../../sdk/go/build.ts';
import { buildPlugin as buildRust } from '../../sdk/rust/build.ts';
import { SCHEMAS } from '../../sdk/schema/generate.ts';
import { buildPlugin as buildTypeScript } from '../../sdk/typescript/build.ts';
import { newProject, samplesOf } from '../../src/authors/new-project.ts';
import { openDatabase } from '../../src/db/database.ts';
import { inspectModule } from '../../src/plugins/inspect.ts';
import type { Language } from '../../src/projects/project.ts';
import { callerPlugin, callHost } from './caller.ts';
import { makeDatabase } from './database.ts';
import { pattern, sha256, Uploader } from './files.ts';
import { startGraphStore } from './graph.ts';
import { listenFor } from './listen.ts';
import { messengerWorld } from './messenger-world.ts';
import { buildExample } from './sdk.ts';
import { type Json, MANY_LANES } from './service.ts';
import { missingToolchain } from './toolchains.ts';

/** The samples of every kit, installed in a service, get the same requests and give the same answers. */

/** A folder that an author begins with a sample. @returns path of a file in it */
function begun(work: string, language: Language, sample: string, file: string): string {
  const folder = path.join(work, sample);
  newProject(folder, language, sample);
  return path.join(folder, file);
}

/** How a sample is built in a language, below a folder. */
const BUILDS: Readonly<Record<Language, (work: string, sample: string) => Promise<Uint8Array>>> = {
  as: (_, sample) => buildExample(sample),
  ts: async (work, sample) => (await buildTypeScript(begun(work, 'ts', sample, 'index.ts'))).module,
  go: async (work, sample) => (await buildGo(begun(work, 'go', sample, 'main.go'))).module,
  rust: async (work, sample) => (await buildRust(begun(work, 'rust', sample, 'src/lib.rs'))).module,
  c: async (work, sample) => (await buildC(begun(work, 'c', sample, 'main.c'))).module,
};

const GRADES =
  'CREATE TABLE grades (student bigint, course text, grade int CHECK (grade BETWEEN 2 AND 5), PRIMARY KEY (student, course))';

/** A service with messengers, a graph store, a database of the university, and a weather service outside. */
async function world(t: Test) {
  const { spicedb } = await startGraphStore(t);
  const graph = { BOT_SPICEDB_ENDPOINT: spicedb.endpoint, BOT_SPICEDB_TOKEN: 'any', BOT_SPICEDB_TLS: 'false' };
  const w = await messengerWorld(t, { ...MANY_LANES, ...graph });
  const university = await makeDatabase();
  t.teardown(() => university.drop());
  const db = openDatabase(university.url, 1, () => {});
  t.teardown(() => db.close());
  await db.query(GRADES);
  const asked: Array<string | undefined> = [];
  const server = http.createServer((request, response) => {
    asked.push(request.url, request.headers.authorization);
    if (request.url === '/current?place=%D0%9A%D0%B0%D0%B7%D0%B0%D0%BD%D1%8C') response.end('{"temperature":-7.5}');
    else response.writeHead(404).end('{}');
  });
  const outside = await listenFor(t, server);
  return { ...w, university, weather: { asked, outside } };
}

type World = Awaited<ReturnType<typeof world>>;
/** Installs the sample under test. */
type Install = (config?: Json) => Promise<{ wasmKey: string }>;

async function hello(t: Test, { s, user }: World, install: Install): Promise<void> {
  await install();
  const a = await s.trigger('hello/greet?name=%D0%90%D0%BD%D0%BD%D0%B0&x="q"');
  t.equal(a.headers.get('content-type'), 'application/json');
  t.same(a.json, {
    message: 'Hello, Анна!',
    method: 'GET',
    path: '/greet',
    query: { name: 'Анна', x: '"q"' },
    body: '',
    principal: null,
  });
  const p = await s.trigger('hello/greet', { method: 'POST', body: '{"a":"\\u0000 𝄞\n"}' });
  t.match(p.json, { message: 'Hello, world!', body: '{"a":"\\u0000 𝄞\n"}', method: 'POST' });
  t.match((await s.trigger('hello/greet/Eva')).json, { message: 'Hello, Eva!' });
  const { id, token } = await user('ada');
  await s.admin('PUT', '/plugins/hello/triggers/greet/settings', { allow_user_session: true });
  const known = await s.trigger('hello/greet', { headers: { authorization: `Bearer ${token}` } });
  t.same(known.json.principal, { kind: 'user', user_id: id, service_key_id: 0 });
}

async function guestbook(t: Test, { s }: World, install: Install): Promise<void> {
  await install({ moderator_key: 'geheim', title: 'Gäste' });
  const post = (body: string) => s.trigger('guestbook/entries', { method: 'POST', body });
  const add = await post(JSON.stringify({ name: 'Ева', text: '"Hi"\n' }));
  t.equal(add.status, 201);
  t.match((await s.trigger('guestbook/entries')).json, {
    title: 'Gäste',
    entries: [{ name: 'Ева', text: '"Hi"\n' }],
    next: null,
  });
  const one = `guestbook/entries/${String(add.json.id)}`;
  t.same((await s.trigger(one)).json, add.json);
  t.equal((await s.trigger(one, { method: 'DELETE' })).status, 403);
  t.equal((await s.trigger(one, { method: 'DELETE', headers: { 'x-moderator-key': 'geheim' } })).status, 204);
  t.equal((await s.trigger(one)).status, 404);
  for (const body of ['no json', 'null', '{"name":"Ева"}', '{"name":"Ева","text":""}'])
    t.equal((await post(body)).status, 400, body);
  for (let n = 0; n < 51; n++) await post(JSON.stringify({ name: `visitor ${n}`, text: 'was here' }));
  const first = (await s.trigger('guestbook/entries')).json;
  const second = (await s.trigger(`guestbook/entries?after=${String(first.next)}`)).json;
  t.equal(second.next, null);
  const names = [first, second].flatMap(page => (page.entries as Json[]).map(entry => entry.name));
  t.equal(new Set(names).size, 51, 'two pages have all entries');
}

async function booking(t: Test, { s }: World, install: Install): Promise<void> {
  await install();
  const send = (slot: number | string, name: string, method = 'POST') =>
    s.trigger(`booking/slots/${slot}`, { method, body: JSON.stringify({ name }) });
  // Four in a row ask for the same slot: the plugin runs eight executions at a time.
  const asked = await Promise.all(Array.from({ length: 160 }, (_, n) => send(Math.floor(n / 4) + 1, `person ${n}`)));
  const won = asked.filter(a => a.status === 201);
  t.equal(won.length, 40, '40 of 160 people who ask at the same time get a slot');
  t.equal(new Set(won.map(a => a.json.slot)).size, 40, 'each slot once');
  t.equal(asked.filter(a => a.status === 409).length, 120);
  const { json } = await s.trigger('booking/slots');
  t.equal(json.booked, 40);
  const bySlot = won.map(a => a.json).sort((a, b) => Number(a.slot) - Number(b.slot));
  t.same(json.slots, bySlot, 'the list names who got an answer that says so');

  const owner = String(won[0]?.json.booked_by);
  const slot = Number(won[0]?.json.slot);
  t.match(await send(slot, 'another owner', 'DELETE'), {
    status: 409,
    json: { error: `slot ${slot} is not booked by you` },
  });
  const given = await Promise.all([1, 2, 3].map(() => send(slot, owner, 'DELETE')));
  t.same(given.map(a => a.status).sort(), [200, 409, 409]);
  t.same(given.find(a => a.status === 200)?.json, { slot, booked_by: null });
  const left = (await s.trigger('booking/slots')).json;
  t.equal(left.booked, 39);
  t.same((left.slots as Json[])[slot - 1], { slot, booked_by: null });
  const again = await Promise.all(Array.from({ length: 12 }, (_, n) => send(slot, `next ${n}`)));
  t.equal(again.filter(a => a.status === 201).length, 1, 'exactly one other caller gets it');
  t.equal((await s.trigger('booking/slots')).json.booked, 40);

  for (const wrong of ['0', '41', '07', 'x'])
    t.match(await send(wrong, 'a'), { status: 404, json: { error: 'there are slots 1 to 40' } });
  t.equal((await send(1, '')).status, 400);
}

async function grades(t: Test, { s, university }: World, install: Install): Promise<void> {
  await install({ databases: { grades: university.url } });
  const where = 'grades/students/9007199254740993';
  const put = (list: unknown) => s.trigger(where, { method: 'PUT', body: JSON.stringify(list) });
  const [algebra, physics] = [
    { course: 'Алгебра', grade: 5 },
    { course: 'Физика', grade: 4 },
  ];
  const taken = await put([algebra, physics]);
  t.match(taken.text, /"student":9007199254740993\b/, 'all digits');
  t.equal(taken.json.taken, 2);
  const refused = await put([
    { course: 'Химия', grade: 3 },
    { course: 'Физика', grade: 6 },
  ]);
  t.equal(refused.status, 422);
  t.match(refused.json, { error: /^23514: new row for relation "grades" violates check constraint/ });
  const shown = await s.trigger(where);
  t.match(shown.text, /"student":9007199254740993\b/);
  t.same(shown.json.grades, [algebra, physics], 'all of a list or none');

  await s.install(
    callerPlugin({ id: 'asks', requirements: [{ kind: 'plugins:call', target: 'grades', description: 'asks' }] }),
  );
  const answers = await callHost(s, 'asks', [
    ['plugin_call', 'grades', 'average', '{"student":9007199254740993}'],
    ['plugin_call', 'grades', 'average', '{"student":1}'],
    ['plugin_call', 'grades', 'total', ''],
  ]);
  t.same(JSON.parse(answers[0]?.text ?? ''), { average: '4.50' });
  t.same(JSON.parse(answers[1]?.text ?? ''), { average: null });
  t.match(answers[2], { code: -7, text: /^plugin "grades" reported: .*no function "total"/ });

  const many = Array.from({ length: 250 }, (_, k) => ({
    course: `c${String(k).padStart(3, '0')}`,
    grade: 2 + (k % 4),
  }));
  t.equal((await put(many)).json.taken, 250);
  t.equal(((await s.trigger(where)).json.grades as unknown[]).length, 252, 'over several pages');
  t.equal((await put([])).status, 400);
  t.equal((await put('no list')).status, 400);
  for (const id of ['x', '0', '-1']) t.equal((await s.trigger(`grades/students/${id}`)).status, 400, id);
}

async function weather(t: Test, { s, weather: { asked, outside } }: World, install: Install): Promise<void> {
  const network = { hosts: [new URL(outside).host], private: ['127.0.0.1'] };
  const place = (name: string) => s.trigger(`weather/places/${encodeURIComponent(name)}`);
  const { wasmKey } = await install({ service: 'http://127.0.0.1:1', network });
  t.match(await place('Казань'), { status: 502, json: { error: 'the weather service cannot be asked' } });
  // The configuration alone changes.
  const config = { service: outside, key: 'geheim', network };
  t.equal((await s.admin('POST', '/plugins/weather/install', { wasm_key: wasmKey, config })).status, 200);
  t.same((await place('Казань')).json, { place: 'Казань', temperature: -7.5 });
  t.same(asked, ['/current?place=%D0%9A%D0%B0%D0%B7%D0%B0%D0%BD%D1%8C', 'Bearer geheim']);
  t.match(await place('nowhere'), { status: 404, json: { error: 'the place is not known' } });
}

/** Asks the sample `weather`, which was installed before. */
async function menu(t: Test, { sides, telegram }: World, install: Install): Promise<void> {
  telegram.files.set('photo7', { type: 'image/jpeg', bytes: Buffer.from('picture of a dish') });
  await install({ dishes: 'soup; cake', place: 'Казань' });
  const before = telegram.shown.length;
  t.match(await sides[0]?.write('/menu please', { file: 'photo7' }), { status: 200 });
  const [text, list, thanks] = (await telegram.until(before + 3)).slice(before);
  t.match(text, { text: 'Today in the canteen:\n- soup\n- cake\nOutside: -7.5 C', file: null });
  t.match(list, { text: 'The menu', file: { name: 'menu.txt', text: 'soup\ncake\n' } });
  t.match(thanks, { text: 'Thank you for the picture', file: { text: 'picture of a dish' } });
}

/** What the sample computes over a file, and carries on. */
function fnv(bytes: Uint8Array, start = 0xcbf29ce484222325n): bigint {
  const content = Buffer.from(bytes);
  let state = start;
  const mix = (value: bigint): void => {
    state = BigInt.asUintN(64, (state ^ value) * 0x100000001b3n);
  };
  const words = content.length - (content.length % 8);
  for (let at = 0; at < words; at += 8) mix(content.readBigUInt64LE(at));
  for (const byte of content.subarray(words)) mix(BigInt(byte));
  return state;
}

async function filebox(t: Test, { s, user }: World, install: Install): Promise<void> {
  await install();
  for (const name of ['files', 'file', 'link', 'checksum', 'notes'])
    await s.admin('PUT', `/plugins/filebox/triggers/${name}/settings`, { allow_user_session: true });
  const box = '/api/triggers/http/filebox';
  const uploader = async (name: string): Promise<Uploader> => {
    const { id, token } = await user(name);
    return new Uploader(s.base, id, token);
  };
  const [ada, grace] = [await uploader('Ada'), await uploader('Grace')];
  const bytes = pattern(2 * 2 ** 20 + 5);
  const id = await ada.give(bytes, { name: 'Отчёт.bin', mime_type: 'application/octet-stream' });
  const ref = {
    id,
    name: 'Отчёт.bin',
    mime_type: 'application/octet-stream',
    size: bytes.length,
    file_type: 'document',
  };
  t.match(await ada.post(`${box}/files`, { file_id: id }), { status: 201, json: { files: [ref] } });
  t.same((await ada.ask('GET', `${box}/files`)).json, { files: [ref] });
  const content = await fetch(`${s.base}${box}/files/${id}`, { headers: ada.headers });
  t.equal(sha256(new Uint8Array(await content.arrayBuffer())), sha256(bytes));
  const link = await fetch(String((await ada.ask('GET', `${box}/files/${id}/link`)).json.url));
  t.equal(sha256(new Uint8Array(await link.arrayBuffer())), sha256(bytes));

  const whole = { offset: bytes.length, state: String(fnv(bytes)), eof: true };
  t.same((await ada.ask('GET', `${box}/files/${id}/checksum`)).json, whole);
  const begun = `offset=${2 ** 20}&state=${fnv(bytes.subarray(0, 2 ** 20))}`;
  t.same((await ada.ask('GET', `${box}/files/${id}/checksum?${begun}`)).json, whole, 'it is carried on');

  const note = await ada.post(`${box}/notes`, { name: 'n.txt', text: 'short', ttl_ms: 3_600_000 });
  t.match(note, { status: 201, json: { name: 'n.txt', mime_type: 'text/plain;charset=utf-8', size: 5 } });
  const noteId = String(note.json.id);
  t.equal((await ada.ask('GET', `${box}/files/${noteId}`)).text, 'short');
  for (const path of [noteId, id, `${noteId}/link`, `${noteId}/checksum`])
    t.equal((await grace.ask('GET', `${box}/files/${path}`)).status, 404, 'files of another user');
  t.same((await grace.ask('GET', `${box}/files`)).json, { files: [] });
  t.match(await grace.post(`${box}/files`, { file_id: id }), {
    status: 404,
    json: { error: `file ${id}: not found` },
  });
  t.equal((await ada.ask('DELETE', `${box}/files/${noteId}`)).status, 204);
  t.equal((await ada.ask('DELETE', `${box}/files/${noteId}`)).status, 404);
  t.equal((await ada.ask('DELETE', `/api/files/${id}`)).status, 204);
  t.same((await ada.ask('GET', `${box}/files`)).json, { files: [] }, 'a file that was deleted');
  t.equal((await ada.post(`${box}/files`, {})).status, 400);
  t.equal((await ada.post(`${box}/notes`, { name: '', text: 'x' })).status, 422);
}

/** The recipes of docs/authors.md that answer from what they are sent and what they keep. */
async function plainRecipes(t: Test, { s }: World): Promise<void> {
  const send = (where: string, body?: unknown, method = 'POST') =>
    s.trigger(`recipes/${where}`, { method, ...(body === undefined ? {} : { body: JSON.stringify(body) }) });
  t.same((await s.trigger('recipes/greet/Eva?word=%D0%9F%D1%80%D0%B8%D0%B2%D0%B5%D1%82')).json, {
    message: 'Привет, Eva!',
  });
  t.same((await s.trigger('recipes/greet/Eva')).json, { message: 'Hello, Eva!' });
  t.match(await send('orders', { dish: 'soup' }), { status: 201, json: { dish: 'soup' } });
  for (const wrong of [{}, { dish: '' }, null])
    t.match(await send('orders', wrong), { status: 400, json: { error: 'send {"dish": ...}' } });
  t.equal((await s.trigger('recipes/orders', { method: 'POST', body: 'no JSON' })).status, 400);
  const table = await s.trigger('recipes/table');
  t.same([table.headers.get('content-type'), table.text], ['text/csv', 'seat,name\n1,Ada\n']);
  t.equal((await s.trigger('recipes/me')).status, 401);
  t.equal((await s.trigger('recipes/notes/one')).status, 404);
  t.same((await s.trigger('recipes/notes/one', { method: 'PUT', body: 'Пример' })).json, { text: 'Пример' });
  t.same((await send('notes/one', undefined, 'DELETE')).json, { text: 'Пример' });
  t.equal((await s.trigger('recipes/notes/one')).status, 404);
  t.same([(await send('visits')).json, (await send('visits')).json], [{ visits: 1 }, { visits: 2 }]);

  t.equal((await s.trigger('recipes/grades/abc')).status, 404);
  t.match(await send('grades', { student: 8, courses: ['Алгебра', 'Физика'] }), { status: 201 });
  t.equal((await send('grades', { student: 7, courses: ['Химия', 'Химия'] })).status, 502, 'a course twice');
  t.same((await s.trigger('recipes/grades/7')).json, { grades: [] }, 'all of a list or none');
  t.match(await send('announcements', { group: 'no such group', text: 'x' }), {
    status: 202,
    json: { queued: 0, unreachable: 0 },
  });
  t.equal((await send('returned/978')).status, 202);
  const events = (await s.admin('GET', '/events?type=book.returned')).json.items;
  t.match(events, [{ type: 'book.returned', data: { book: '978' } }]);
  t.same((await s.trigger('recipes/outside/%D0%9A%D0%B0%D0%B7%D0%B0%D0%BD%D1%8C')).json, { temperature: -7.5 });
  t.match(await s.trigger('recipes/outside/nowhere'), { status: 503, json: { error: 'internal' } });
}

/** Asks the recipes, with the sample `weather` next to them. */
async function recipes(t: Test, w: World, install: Install): Promise<void> {
  const { link, s, sides, telegram, university, user, weather } = w;
  const network = { hosts: [new URL(weather.outside).host], private: ['127.0.0.1'] };
  await install({ service: weather.outside, key: 'geheim', network, databases: { grades: university.url } });
  await plainRecipes(t, w);

  t.same((await s.trigger('recipes/weather/%D0%9A%D0%B0%D0%B7%D0%B0%D0%BD%D1%8C')).json, { temperature: -7.5 });
  t.equal(weather.asked.at(-1), 'Bearer geheim');
  t.match(await s.trigger('recipes/weather/nowhere'), { status: 502, json: { error: /answered 404$/ } });

  for (const name of ['me', 'lines', 'claim', 'release'])
    await s.admin('PUT', `/plugins/recipes/triggers/${name}/settings`, { allow_user_session: true });
  const { id, token } = await user('Leo');
  const leo = new Uploader(s.base, id, token);
  const at = '/api/triggers/http/recipes';
  t.same((await leo.ask('GET', `${at}/me`)).json, { kind: 'user', id });
  const other = await user('Eva');
  const eva = new Uploader(s.base, other.id, other.token);
  t.same((await s.trigger('recipes/seats')).json, { seats: [], next: '' });
  t.match(await leo.post(`${at}/seats/3`), { status: 201, json: { user: String(id) } });
  t.match(await eva.post(`${at}/seats/3`), { status: 409, json: { error: 'the seat is taken' } });
  t.match(await eva.post(`${at}/seats/3/release`), { status: 409, json: { error: 'the seat is not yours' } });
  t.same((await s.trigger('recipes/seats')).json, { seats: [{ key: 'seat:3', user: String(id) }], next: '' });
  t.equal((await leo.post(`${at}/seats/3/release`)).status, 204);
  t.equal((await eva.post(`${at}/seats/3`)).status, 201, 'a seat that was given back');
  const text = `${'a line\n'.repeat(200_000)}the last one`;
  const file_id = await leo.give(new Uint8Array(Buffer.from(text)), { plugin_id: 'recipes', name: 'p.txt' });
  t.same((await leo.post(`${at}/lines`, { file_id })).json, { name: 'p.txt', lines: 200_000 }, 'of two parts');
  const report = await s.trigger('recipes/reports', { method: 'POST', body: 'Отчёт' });
  t.equal(report.status, 201);
  t.equal(await (await fetch(String(report.json.url))).text(), 'Отчёт');

  const [onTelegram] = sides;
  if (onTelegram === undefined) throw new Error('no messenger');
  await link(onTelegram, { token }, 77);
  const before = telegram.shown.length;
  telegram.files.set('photo8', { type: 'image/jpeg', bytes: Buffer.from('a photo') });
  await onTelegram.write('/dishes tomorrow', { file: 'photo8', from: 77 });
  const [reply, dishes] = (await telegram.until(before + 2)).slice(before);
  t.match(reply, { text: 'The dishes of tomorrow' });
  t.match(dishes, { text: 'Dishes', file: { name: 'dishes.txt', text: 'Soup\n' } });
  const reminder = await s.trigger('recipes/reminders', { method: 'POST', body: JSON.stringify({ reader: id }) });
  t.equal(reminder.status, 202);
  t.match((await telegram.until(before + 3)).at(-1), { text: 'Your book is due' });
}

/** In this order: the menu and the recipes ask the weather. */
const SAMPLES = { hello, guestbook, booking, grades, weather, menu, filebox, recipes };

const isManifest = new Ajv({ strict: false }).compile(JSON.parse(SCHEMAS['manifest.json']?.() ?? ''));

/** What a module declares, as the kit has written it. */
function section(module: Uint8Array): unknown {
  const [text] = WebAssembly.Module.customSections(new WebAssembly.Module(new Uint8Array(module)), 'plugin.manifest');
  return JSON.parse(new TextDecoder().decode(text));
}

/** The manifest without what follows from the language. */
const declared = (module: Uint8Array): object => ({ ...inspectModule(module).manifest, start: null });

/** Asks all samples of a kit. */
async function askSamples(t: Test, language: Language): Promise<void> {
  t.same(samplesOf(language), Object.keys(SAMPLES).sort(), 'the kit has all of them, and no others');
  const work = t.testdir({});
  const w = await world(t);
  for (const [sample, ask] of Object.entries(SAMPLES))
    await t.test(sample, async t => {
      const module = await BUILDS[language](work, sample);
      t.same(declared(module), declared(await buildExample(sample)), 'it declares the same');
      t.ok(isManifest(section(module)), JSON.stringify(isManifest.errors));
      await ask(t, w, config => w.s.install(module, config));
    });
}

/** Tests all samples of a kit; without its toolchain they are left out, which the last lines of the run say. */
export const testSamples = (kit: string, language: Language): void =>
  void t.test(
    `the samples in ${kit} give the answers all kits give`,
    { skip: missingToolchain(language) ?? false },
    t => askSamples(t, language),
  );
