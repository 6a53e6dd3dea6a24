import fs from 'node:fs';
import http from 'node:http';
import path from 'node:path';
import t, { type Test } from 'tap';
import { type FixtureCase, readFixture } from '../../src/authors/fixture.ts';
import { newProject } from '../../src/authors/new-project.ts';
import { openDatabase } from '../../src/db/database.ts';
import { addSession } from '../../src/identity/sessions.ts';
import { listGallery } from '../../src/projects/gallery.ts';
import { type Language, readProject } from '../../src/projects/project.ts';
import { run } from '../support/author.ts';
import { startBrowser } from '../support/browser.ts';
import { makeDatabase } from '../support/database.ts';
import { Uploader } from '../support/files.ts';
import { startGraphStore } from '../support/graph.ts';
import { listenFor } from '../support/listen.ts';
import { messengerWorld, settled } from '../support/messenger-world.ts';
import { type Json, MANY_LANES, request } from '../support/service.ts';
import { until } from '../support/until.ts';

/** The plugins of the gallery, installed in a service as an administrator does it, and used. */

/** User 1 has the roles that the plugins' policies ask for, user 4 speaks for the students, the others have none. */
const ROLES: Readonly<Record<number, readonly string[]>> = {
  1: ['teacher', 'secretary', 'staff', 'dean'],
  4: ['student_council'],
};
const USERS = [1, 2, 3, 4];
const GALLERY = path.resolve(import.meta.dirname, '../../examples');

async function world(t: Test) {
  const { spicedb } = await startGraphStore(t);
  const graph = { BOT_SPICEDB_ENDPOINT: spicedb.endpoint, BOT_SPICEDB_TOKEN: 'any', BOT_SPICEDB_TLS: 'false' };
  const w = await messengerWorld(t, { ...MANY_LANES, ...graph });
  const tokens = new Map<number, string>();
  for (const number of USERS) {
    const { id, token } = await w.user(`user ${number}`);
    if (id !== number) throw new Error(`the transcripts name user ${number}, whose id is ${id}`);
    tokens.set(id, token);
    for (const role of ROLES[number] ?? []) await w.s.admin('PUT', `/users/${id}/roles/database/${role}`);
  }
  const university = await makeDatabase();
  t.teardown(() => university.drop());
  return { ...w, university, tokens, keys: new Map<string, string>() };
}
type World = Awaited<ReturnType<typeof world>>;

/** One click in the gallery, then the installation with everything the plugin suggests. */
async function install({ keys, s }: World, id: string, config: Json = {}): Promise<void> {
  const uploaded = await s.admin('POST', `/gallery/${id}`);
  if (uploaded.status !== 201) throw new Error(uploaded.text);
  const { new_permissions, wasm_key } = uploaded.json;
  const installed = await s.admin('POST', `/plugins/${id}/install`, {
    ...{ wasm_key, config, accept_permissions: new_permissions },
    ...{ accept_suggested_access: true, accept_public: true, accept_widening: true },
  });
  if (installed.status !== 200) throw new Error(installed.text);
  const key = await s.admin('POST', '/service-keys', { name: id, scopes: [{ plugin_id: id, trigger: '*' }] });
  keys.set(id, String(key.json.key));
}

const credentialOf = (w: World, id: string, { host }: FixtureCase): Record<string, string> => {
  const bearer = host.service_key === undefined ? w.tokens.get(Number(host.user ?? 0)) : w.keys.get(id);
  return bearer === undefined ? {} : { authorization: `Bearer ${bearer}` };
};

async function sendRequest(t: Test, w: World, id: string, one: FixtureCase): Promise<void> {
  const [method = '', where = ''] = one.what.split(' ');
  const answer = await request(`${w.s.base}/api/triggers/http/${id}${where}`, {
    method,
    headers: { ...credentialOf(w, id, one), ...one.headers },
    ...(one.body === '' ? {} : { body: one.body }),
    redirect: 'manual',
  });
  const { expected } = one;
  t.equal(answer.status, expected.status, `${one.name}: ${answer.text}`);
  for (const [name, value] of Object.entries(expected.headers)) t.equal(answer.headers.get(name), value, one.name);
  if (expected.body === null) return;
  if (expected.body.startsWith('{')) t.same(answer.json, JSON.parse(expected.body), one.name);
  else t.equal(answer.text.trim().replaceAll('\r', ''), expected.body, one.name);
}

async function sendMessage(t: Test, w: World, one: FixtureCase): Promise<void> {
  const [side] = w.sides;
  if (side === undefined) throw new Error('no messenger');
  const { expected } = one;
  const before = side.server.shown.length;
  await side.write(one.what, { from: Number(one.host.user) });
  const { shown } = side.server;
  await side.server.until(before + expected.replies.length);
  // A file of the command before may be shown in between.
  const isShown = (): boolean => shown.slice(before).some(m => m.text === expected.replies[0]);
  await until(isShown).catch(() => {});
  t.ok(isShown(), `${one.name}: ${JSON.stringify(shown.slice(before).map(m => m.text))}`);
}

/** What stands in the transcript of a plugin. */
async function follow(t: Test, w: World, id: string, folder: string): Promise<void> {
  const file = path.join(folder, 'test/plugin.http');
  const { cases, config } = readFixture(fs.readFileSync(file, 'utf8'), file);
  await install(w, id, id === 'gradebook' ? { ...config, databases: { grades: w.university.url } } : config);
  for (const one of cases)
    if (one.kind === 'http') await sendRequest(t, w, id, one);
    else await sendMessage(t, w, one);
}

type Answered = { status: number; json: Json; text: string };
type Ask = (method: string, where: string, body?: unknown) => Promise<Answered>;
const as =
  (w: World, id: string, user: number): Ask =>
  (method, where, body) =>
    new Uploader(w.s.base, user, w.tokens.get(user) ?? '').ask(method, `/api/triggers/http/${id}${where}`, body);

/** The same; what is asked and answered must stand on the page of the plugin, under "In use". */
const shown =
  (t: Test, w: World, id: string, user: number): Ask =>
  async (method, where, body) => {
    const answer = await as(w, id, user)(method, where, body);
    standsOnPage(t, id, method, where, body, answer);
    return answer;
  };

function standsOnPage(t: Test, id: string, method: string, where: string, body: unknown, answer: Answered): void {
  const page = fs.readFileSync(path.join(GALLERY, id, 'README.md'), 'utf8');
  const [, inUse = ''] = /\n## In use\n([\s\S]*?)\n## /.exec(page) ?? [];
  const asked = `${method} ${where}${body === undefined ? '' : ` ${JSON.stringify(body)}`}`;
  const lines = `${asked}\n${answer.status} ${answer.text}`
    .replace(/"[0-9a-f]{32}"/g, '"FILE_ID"')
    .replaceAll(/[\r\uFEFF]/g, '')
    .trimEnd();
  t.ok(inUse.includes(`\n${lines}\n`), `its page shows:\n${lines}`);
}

/** What a transcript cannot say, because it needs something outside. */
const STORIES: Readonly<Record<string, (t: Test, w: World) => Promise<void>>> = {
  async 'room-booking'(t, w) {
    const [teacher, council] = [as(w, 'room-booking', 1), as(w, 'room-booking', 4)];
    const hours = { from: 8, to: 12 };
    for (let day = 10; day < 16; day++) {
      const where = `/days/2030-12-${day}/A-101`;
      const booked = await Promise.all([teacher, council, teacher, council].map(ask => ask('POST', where, hours)));
      t.equal(booked.filter(b => b.status === 201).length, 1, 'of several at once one has the room');
      await Promise.all([teacher, council].map(ask => ask('DELETE', where, hours)));
      // Twice at once, and another booking next to it: what was just booked stays.
      t.equal((await teacher('POST', where, hours)).status, 201, 'hours that were given back are free');
      const [, , theirs] = await Promise.all([
        teacher('DELETE', where, hours),
        teacher('DELETE', where, hours),
        council('POST', where, hours),
      ]);
      const { bookings } = (await teacher('GET', `/days/2030-12-${day}`)).json;
      t.equal((bookings as Json[]).length, theirs.status === 201 ? 4 : 0);
    }
  },
  async 'office-hours'(t, w) {
    const times = Array.from({ length: 6 }, (_, k) => `2030-12-09T1${k}:00`);
    await as(w, 'office-hours', 1)('PUT', '/plan', { slots: times });
    for (const time of times) {
      const asked = await Promise.all([2, 4, 2, 4].map(user => as(w, 'office-hours', user)('POST', `/slots/${time}`)));
      t.equal(asked.filter(a => a.status === 201).length, 1, 'of several at once one student has the slot');
      const freed = await Promise.all([2, 4].map(user => as(w, 'office-hours', user)('DELETE', `/slots/${time}`)));
      t.same(freed.map(f => f.status).sort(), [200, 404]);
    }
    // Requests of one student to book and to give up come together: at most one slot is theirs at the end.
    const four = as(w, 'office-hours', 4);
    for (let round = 0; round < 10; round++) {
      await Promise.all(times.flatMap(time => [four('POST', `/slots/${time}`), four('DELETE', `/slots/${time}`)]));
      const { slots } = (await as(w, 'office-hours', 1)('GET', '/plan')).json;
      const own = (Array.isArray(slots) ? slots : []).filter(s => Object(s).user === 4).map(s => Object(s).time);
      t.ok(own.length <= 1, `${own} are held`);
      t.equal((await four('GET', '/slots')).json.yours, own[0] ?? null);
      for (const time of own) await four('DELETE', `/slots/${time}`);
    }
    t.match((await as(w, 'office-hours', 3)('GET', '/slots')).json, { free: ['2030-12-02T10:00', ...times] });
  },
  async gradebook(t, w) {
    const teacher = as(w, 'gradebook', 1);
    const student = as(w, 'gradebook', 2);
    const [enters, looks] = [shown(t, w, 'gradebook', 1), shown(t, w, 'gradebook', 2)];
    t.same((await student('GET', '/mine')).json, { grades: [] }, 'before there is a table');
    const grades = [
      { student: 2, grade: 5 },
      { student: 3, grade: 4 },
    ];
    t.same((await enters('PUT', '/courses/algebra', grades)).json, { course: 'algebra', entered: 2 });
    t.match(
      await teacher('PUT', '/courses/algebra', [
        { student: 2, grade: 3 },
        { student: 3, grade: 7 },
      ]),
      {
        status: 422,
        json: { error: 'a grade is 2, 3, 4 or 5' },
      },
    );
    t.same(
      (await teacher('GET', '/courses/algebra')).json,
      { course: 'algebra', grades, average: 4.5 },
      'none was taken',
    );
    t.same((await looks('GET', '/mine')).json, { grades: [{ course: 'algebra', grade: 5 }] });
    t.equal((await student('GET', '/courses/algebra')).status, 403);
  },
  async 'sql-report'(t, w) {
    const db = openDatabase(w.university.url, 1, () => {});
    await db.query(
      `CREATE TABLE study AS SELECT 'g-' || n AS name, n * 10 AS students, NULL::text AS note FROM generate_series(3, 3) n`,
    );
    await db.query(`INSERT INTO study VALUES ('=1+1', 1, '<b>')`);
    await db.close();
    const query = 'SELECT name, students, note FROM study ORDER BY students DESC';
    await install(w, 'sql-report', { title: 'Groups', query, databases: { report: w.university.url } });
    const staff = shown(t, w, 'sql-report', 1);
    const rows = [
      ['g-3', '30', ''],
      ['=1+1', '1', '<b>'],
    ];
    t.same((await staff('GET', '/report')).json, {
      title: 'Groups',
      columns: ['name', 'students', 'note'],
      rows,
      whole: true,
    });
    t.equal((await staff('GET', '/report.csv')).text, "name,students,note\r\ng-3,30,\r\n'=1+1,1,<b>\r\n");
    const page = await request(`${w.s.base}/api/triggers/http/sql-report/report`, {
      headers: { authorization: `Bearer ${w.tokens.get(1)}`, accept: 'text/html' },
    });
    t.match(page.text, /<td>=1\+1<\/td><td>1<\/td><td>&lt;b&gt;<\/td>/);
    t.equal((await as(w, 'sql-report', 2)('GET', '/report')).status, 403);
    const writes = 'WITH gone AS (DELETE FROM study RETURNING name) SELECT name FROM gone';
    await install(w, 'sql-report', { title: 'Groups', query: writes, databases: { report: w.university.url } });
    t.match((await as(w, 'sql-report', 1)('GET', '/report')).json, {
      error: /^the query must only read: 25006: cannot execute SELECT in a read-only transaction$/,
    });
  },
  async 'chat-relay'(t, w) {
    const texts: unknown[] = [];
    let status = 503;
    const server = http.createServer((asked, answer) => {
      asked.setEncoding('utf8').on('data', (body: string) => {
        if (status === 200) texts.push(JSON.parse(body).text);
      });
      asked.on('end', () => answer.writeHead(status).end());
    });
    const chat = await listenFor(t, server);
    const network = { hosts: [new URL(chat).host], private: ['127.0.0.1'] };
    await install(w, 'chat-relay', { webhook: `${chat}/hooks/secret`, network });
    const post = (text: string): Promise<Answered> =>
      request(`${w.s.base}/api/triggers/http/chat-relay/events/exam.moved`, {
        method: 'POST',
        headers: { authorization: `Bearer ${w.keys.get('chat-relay')}` },
        body: JSON.stringify({ text }),
      });
    const send = async (text: string): Promise<Answered> => {
      const answer = await post(text);
      standsOnPage(t, 'chat-relay', 'POST', '/events/exam.moved', { text }, answer);
      return answer;
    };
    t.match(await send('to Friday'), { status: 202, json: { waiting: 1 } });
    status = 200;
    t.match(await send('to A-101'), { status: 200, json: { waiting: 0 } });
    t.same(texts, ['exam.moved: to Friday', 'exam.moved: to A-101']);
    const { items } = (await w.s.admin('GET', '/events?plugin=chat-relay')).json;
    t.match(items, [{ type: 'exam.moved', data: { text: 'to A-101' } }, { data: { text: 'to Friday' } }]);
    t.notMatch((await w.s.admin('GET', '/plugins/chat-relay')).text, /hooks\/secret/, 'the address is a secret');
    const burst = Array.from({ length: 6 }, (_, k) => `at ${k}`);
    await Promise.all(burst.map(text => post(text)));
    await until(() => texts.length === 8);
    t.same(
      texts.slice(2).sort(),
      burst.map(text => `exam.moved: ${text}`),
      'none waits for the next event',
    );
  },
  async announcements(t, w) {
    for (const [list, records] of Object.entries({
      faculties: [{ external_id: 'f', name: 'F' }],
      departments: [{ external_id: 'd', name: 'D', faculty_external_id: 'f' }],
      programs: [{ external_id: 'pr', name: 'P', department_external_id: 'd' }],
      streams: [{ external_id: 'st', name: 'S', program_external_id: 'pr' }],
      groups: [{ external_id: 'g-1', name: 'G', stream_external_id: 'st' }],
      persons: [2, 3].map(n => ({ external_id: `user ${n}`, first_name: 'N', last_name: 'N' })),
      'student-positions': [2, 3].map(n => ({
        external_id: `s${n}`,
        person_external_id: `user ${n}`,
        group_external_id: 'g-1',
      })),
    }))
      t.equal((await w.s.admin('POST', `/university/${list}`, records)).status, 200, list);
    await install(w, 'announcements');
    const dean = as(w, 'announcements', 1);
    const order = { groups: ['g-1'], text: 'The exam is on Friday' };
    const before = w.telegram.shown.length;
    // User 2 has linked a chat, user 3 has not.
    const shownDean = shown(t, w, 'announcements', 1);
    t.match(await shownDean('POST', '/announcements', order), { status: 202, json: { queued: 1, unreachable: 1 } });
    t.match((await w.telegram.until(before + 1)).at(-1), { chat: '2', text: order.text });
    t.equal((await shownDean('POST', '/announcements', order)).status, 409, 'a second click');
    await settled(w.s, 1);
    t.equal(w.telegram.shown.length, before + 1);
    t.match((await dean('GET', '/announcements')).json, { announcements: [{ ...order, by: 1, queued: 1 }] });
    t.equal((await as(w, 'announcements', 2)('POST', '/announcements', order)).status, 403);
  },
  async 'hand-in'(t, w) {
    await install(w, 'hand-in', { tasks: 'algebra-3' });
    const student = new Uploader(w.s.base, 2, w.tokens.get(2) ?? '');
    const bytes = new Uint8Array(Buffer.from('one two three'));
    const file_id = await student.give(bytes, { plugin_id: 'hand-in', name: 'essay.txt' });
    const at = '/tasks/algebra-3/files';
    t.match(await shown(t, w, 'hand-in', 2)('POST', at, { file_id }), {
      status: 201,
      json: { name: 'essay.txt', size: 13 },
    });
    t.equal((await as(w, 'hand-in', 3)('POST', at, { file_id })).status, 400, 'a file of another user');
    t.equal((await as(w, 'hand-in', 2)('GET', '/tasks/algebra-3')).status, 403);
    const { files } = (await as(w, 'hand-in', 1)('GET', '/tasks/algebra-3')).json;
    const [one] = files as Json[];
    t.match(one, { user: 2, name: 'essay.txt', size: 13 });
    t.equal(await (await fetch(String(one?.url))).text(), 'one two three', 'the teacher reads it');
  },
};

/** An author begins with the plugin, and its own tests pass. */
async function testOwn(t: Test, id: string, language: Language): Promise<void> {
  const folder = path.join(t.testdir({}), `my-${id}`);
  newProject(folder, language, id);
  const page = fs.readFileSync(path.join(folder, 'README.md'), 'utf8');
  t.match(page, /^# My /, 'its page has the name of the new plugin');
  t.notMatch(page, `--template ${id}`, 'and no longer says how to begin with it');
  const tested = await run(['test', folder]);
  t.equal(tested.code, 0, tested.out);
  t.match(tested.out, /pass [1-9]|passed/);
}

/** User 3, logged in, answers the survey and hands in a file. */
async function usePages(t: Test, w: World): Promise<void> {
  const { secret } = await addSession(w.db, {
    ...{ kind: 'user', userId: 3, withPassword: false, address: '', userAgent: '', browser: false },
  });
  const browser = await startBrowser();
  t.teardown(() => browser.close());
  const context = await browser.newContext({ viewport: { width: 320, height: 700 } });
  await context.addCookies([{ name: 'user_session', value: secret, url: w.s.base, httpOnly: true, sameSite: 'Lax' }]);
  const page = await context.newPage();
  const problems: string[] = [];
  page.on('console', m => {
    if (m.type() === 'error') problems.push(m.text());
  });
  page.on('pageerror', e => problems.push(String(e)));
  await page.goto(`${w.s.base}/plugins/survey/app/`);
  await page.getByRole('heading', { name: 'Lectures of this term' }).waitFor();
  await page.getByLabel('fair').check();
  await page.getByLabel('What should change?').fill('Fewer slides');
  await page.getByRole('button', { name: 'Send' }).click();
  await page.getByText('You have answered. Thank you.').waitFor();
  t.match((await as(w, 'survey', 1)('GET', '/answers.csv')).text, /^fair,Fewer slides\r$/m);

  await page.goto(`${w.s.base}/plugins/hand-in/app/`);
  await page.getByLabel('Task').selectOption('algebra-3');
  const buffer = Buffer.from('four');
  await page.getByLabel('File, at most 8 MB').setInputFiles({ name: 'proof.txt', mimeType: 'text/plain', buffer });
  await page.getByRole('button', { name: 'Hand in' }).click();
  await page.getByText('proof.txt is handed in for algebra-3').waitFor();
  await page.getByRole('listitem').getByText('algebra-3: proof.txt').waitFor();
  const width = await page.evaluate('document.documentElement.scrollWidth');
  t.equal(width, 320, 'nothing is wider than a phone');
  t.same(problems, [], 'the browser complains of nothing');
}

t.test('each plugin of the gallery is installed with one click, and does what its page says', async t => {
  const w = await world(t);
  const listed = await w.s.admin('GET', '/gallery');
  const plugins = listGallery();
  t.equal(plugins.length, 10);
  t.same(
    (listed.json.items as Json[]).map(p => [p.id, p.installed_version]),
    plugins.map(p => [p.id, null]),
  );
  const [side] = w.sides;
  if (side === undefined) throw new Error('no messenger');
  await w.link(side, { token: w.tokens.get(2) ?? '' }, 2);
  for (const { folder, id, name, summary } of plugins)
    await t.test(id, async t => {
      t.match(summary, /^[A-Z].{20,}\.$/, `${name}: ${summary}`);
      if (fs.existsSync(path.join(folder, 'test/plugin.http'))) await follow(t, w, id, folder);
      await testOwn(t, id, readProject(folder).language);
      await STORIES[id]?.(t, w);
      t.match((await w.s.admin('GET', `/plugins/${id}`)).json, { id, name, version: '1.0.0', findings: Array });
    });
  const after = (await w.s.admin('GET', '/gallery')).json.items as Json[];
  t.ok(after.every(p => p.installed_version === '1.0.0'));
  t.match(await w.s.admin('POST', '/gallery/no-such'), { status: 404, json: { detail: /has no plugin "no-such"/ } });
  await t.test('their pages are used in a browser', t => usePages(t, w));
  const page = await request(`${w.s.base}/kits/`);
  t.equal(page.status, 200);
  for (const { id, name } of plugins)
    t.match(page.text, `<a href="/admin/plugins/gallery?plugin=${id}">Review and install ${name}</a>`);
});
