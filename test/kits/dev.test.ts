import { once } from 'node:events';
import fs from 'node:fs';
import http from 'node:http';
import net from 'node:net';
import path from 'node:path';
import t from 'tap';
import { edit, made, run, startDev } from '../support/author.ts';
import { startTestService, TOKEN } from '../support/service.ts';
import { until } from '../support/until.ts';

/** What `plugin dev` simulates, and tests without code (sdk/typescript/README.md "Run it"). */

const FIXTURE = `# greets, and counts how often
GET /greet/Ada
[Host]
user: 7
kv greeted:Ada = 1

HTTP 200
Content-Type: application/json
{"message": "Hello, Ada!", "times": 2}

# without the permission nothing is counted
GET /greet/Ada
[Host]
grant:

FAILS permission denied

# with roles, the access that the plugin suggests decides first
GET /greet/Ada
[Host]
roles: teacher

HTTP 401

# and lets users in
GET /greet/Ada
[Host]
user: 7
roles: teacher, dean

HTTP 200
`;

t.test('tests without code pass, and say the line of the test that fails', async t => {
  const folder = await made(t, 'plain');
  const file = path.join(folder, 'test/plugin.http');
  fs.writeFileSync(file, FIXTURE);
  const passed = await run(['test', folder, 'test/plugin.http']);
  t.equal(passed.code, 0, passed.out);
  t.match(passed.out, /greets, and counts how often \(line 2\)/);
  fs.writeFileSync(file, FIXTURE.replace('"times": 2', '"times": 3'));
  const failed = await run(['test', folder, 'test/plugin.http']);
  t.equal(failed.code, 1);
  t.match(failed.out, /not ok 1 - greets, and counts how often \(line 2\)/);
  fs.writeFileSync(file, FIXTURE.replace('HTTP 200', 'HTP 200'));
  const wrong = await run(['test', folder, 'test/plugin.http']);
  t.equal(wrong.code, 1);
  t.match(wrong.out, /test\/plugin\.http:\d+: what must come of "GET \/greet\/Ada" is missing/);
  t.notMatch(wrong.out + wrong.err, /OperatorError|fixture\.ts/, 'and nothing of our code');
});

const WITH_FILES = `# its own file
POST /lines
[Host]
user: 7
file poem.txt = one
{"file_id": "{{poem.txt}}"}

HTTP 200
{"name": "poem.txt", "lines": 1}

# what user 7 has uploaded is not there for user 8
POST /lines
[Host]
user: 8
{"file_id": "00000000000000000000000000000001"}

HTTP 404
`;
const WITH_ANSWERS = `[Config]
service: https://weather.example
key: a secret

GET /places/Oslo
[Host]
user: 7
answer GET https://weather.example/current?place=Oslo = 200 {"temperature":3}

HTTP 200
{"place": "Oslo", "temperature": 3}

# another host that does not know
GET /places/Nowhere
[Host]
user: 7
answer GET https://weather.example/current?place=Nowhere = 404

HTTP 404
`;

t.test('tests without code have files, and answers of other hosts', async t => {
  for (const [template, fixture] of Object.entries({ files: WITH_FILES, weather: WITH_ANSWERS })) {
    const folder = await made(t, template, '--template', template);
    const file = path.join(folder, 'test/plugin.http');
    fs.writeFileSync(file, fixture);
    const passed = await run(['test', folder, 'test/plugin.http']);
    t.equal(passed.code, 0, passed.out);
  }
  const folder = await made(t, 'asking', '--template', 'weather');
  fs.writeFileSync(path.join(folder, 'test/plugin.http'), WITH_ANSWERS.replace(/^answer .*Oslo.*\n/m, ''));
  const failed = await run(['test', folder, 'test/plugin.http']);
  t.match(
    failed,
    { code: 1, out: /HTTP 200 is expected, and the answer is 502: / },
    'a request that has no answer fails',
  );
  fs.writeFileSync(path.join(folder, 'test/plugin.http'), WITH_ANSWERS.replace('[Host]', '[Hots]'));
  const mistyped = await run(['test', folder, 'test/plugin.http']);
  t.match(mistyped, { code: 1, out: /plugin\.http:6: \[Hots\] is no section of a test: \[Host\] is/ });
});

t.test('plugin message sends a command with a file, and shows what comes back and what goes to others', async t => {
  const folder = await made(t, 'canteen', '--template', 'messenger');
  edit(folder, 'Requirements: [', "Requirements: [NotifyReq('Tells the cook').Build(), ");
  edit(folder, 'import {', 'import { NotifyReq,');
  edit(
    folder,
    'ctx.Reply(',
    "ctx.NotifyUser(8n, NewMessage('a guest asks'));\n  if (ctx.HasFiles()) ctx.Reply(NewMessage(ctx.Files()[0]?.Name ?? ''));\n  ctx.Reply(",
  );
  const { base, shows } = await startDev(t, folder);
  await shows(/plugin-host plugin message "\/menu" --as user:7/);
  const port = ['--port', new URL(base).port];
  // The cook has written once, so that there is a chat.
  t.match(await run(['message', '/help', '--as', 'user:8', ...port]), { code: 0, out: /user:8 gets: .*\/menu/s });
  const file = path.join(folder, 'wish.txt');
  fs.writeFileSync(file, 'soup');
  const saved = path.join(folder, 'received');
  const sent = await run(['message', '/menu tomorrow', '--as', 'user:7', '--file', file, '--save', saved, ...port]);
  t.equal(sent.code, 0, sent.out + sent.err);
  t.match(sent.out, /user:7 gets: wish\.txt\n/);
  t.match(sent.out, /user:7 gets: Here is the menu of tomorrow\.\n/);
  t.match(sent.out, /user:7 gets the file menu\.txt \(text\/plain, \d+ bytes\)\n/);
  t.match(sent.out, /user:8 gets: a guest asks/);
  t.match(fs.readFileSync(path.join(saved, 'menu.txt'), 'utf8'), /Menu of tomorrow/);
  await shows(/message to user:7: Here is the menu of tomorrow\./);
  const guest = await run(['message', '/menu', '--as', 'guest', '--json', ...port]);
  const { messages, outcome } = JSON.parse(guest.out) as { outcome: string; messages: Array<{ to: string }> };
  t.equal(outcome, 'ran');
  t.ok(
    messages.some(m => m.to === 'guest:0'),
    'without a user',
  );
  t.match(await run(['message', '/menu', '--as', 'ada', ...port]), {
    code: 1,
    err: /"ada" is no sender: write user:7/,
  });
  const unknown = await run(['message', '/nothing', '--as', 'user:7', ...port]);
  t.match(unknown, { code: 1, out: /nothing ran: unknown_command/ });
  t.notMatch(unknown.out, /terminal/, 'which has no more to say');
  t.match(await run(['message', '/menu', '--file', 'none', ...port]), { code: 1, err: /none cannot be read/ });
  t.match(await run(['message', '/menu', '--port', '1']), { code: 1, err: /start plugin-host plugin dev/ });
  const page = await fetch(`${base}/dev/messages`, { method: 'POST', body: '{}' });
  t.match([page.status, await page.text()], [400, /content type must be application\/json/], 'no form of a page');
});

t.test('a frontend is built, delivered, and opened as a user', async t => {
  const folder = await made(t, 'faced');
  const settings = path.join(folder, 'plugin-host.json');
  fs.writeFileSync(settings, fs.readFileSync(settings, 'utf8').replace('{', '{\n  "frontend": "frontend",'));
  t.match(await run(['build', folder]), { code: 3, err: /frontend\/index\.html: a frontend begins with it/ });
  fs.mkdirSync(path.join(folder, 'frontend'));
  fs.writeFileSync(path.join(folder, 'frontend/index.html'), '<!doctype html><title>Faced</title>');
  const built = await run(['build', folder]);
  t.equal(built.code, 0, built.err);
  t.match(built.out, /upload \S+faced\.wasm --frontend \S+faced\.zip/);
  const { base, shows } = await startDev(t, folder);
  await shows(/open \S+\/dev\/as\/user:7/);
  const led = await fetch(`${base}/dev/as/user:7`, { redirect: 'manual' });
  t.equal(led.headers.get('location'), '/plugins/faced/app/');
  const cookie = led.headers.getSetCookie()[0]?.split(';')[0] ?? '';
  t.match(led.headers.getSetCookie()[0], /HttpOnly; SameSite=Strict/);
  const page = await fetch(`${base}/plugins/faced/app/`, { headers: { cookie } });
  t.match(await page.text(), /<title>Faced<\/title>/);
  const call = await fetch(`${base}/api/triggers/http/faced/greet/ada`, { headers: { cookie } });
  t.equal(call.status, 200, 'its calls are those of the user');
  const elsewhere = await new Promise<number | undefined>((resolve, reject) => {
    const where = `${base}/api/triggers/http/faced/greet/ada`;
    http
      .get(where, { headers: { cookie, host: 'evil.example' } }, answer => {
        answer.resume();
        resolve(answer.statusCode);
      })
      .on('error', reject);
  });
  t.not(elsewhere, 200, 'a page of another name gets no principal');
});

t.test('one command makes a plugin and runs it', async t => {
  const folder = path.join(t.testdir({}), 'quick');
  t.match(await run(['new', folder, '--dev', '--json']), { code: 2, err: /leave out --json/ });
  t.notOk(fs.existsSync(folder), 'nothing is half done');
  const taken = net.createServer();
  await once(taken.listen(0, '127.0.0.1'), 'listening');
  const address = taken.address();
  const port = typeof address === 'object' && address !== null ? address.port : 0;
  t.match(await run(['new', folder, '--dev', '--port', String(port)]), {
    code: 1,
    err: `port ${port} is in use: name another one with --port`,
  });
  taken.close();
  t.notOk(fs.existsSync(folder), 'neither where it could not listen');
  const { call } = await startDev(t, folder, ['--dev', '--port', '0'], {}, 'new');
  t.match(await call('quick/greet/ada', { 'x-dev-principal': 'user:7' }), { status: 200, text: /Hello, ada!/ });
});

t.test('users of plugin dev have the roles and groups of plugin-host.json, and policies decide by them', async t => {
  const folder = await made(t, 'tutoring');
  edit(
    folder,
    "Users('Users may be greeted')",
    `Users('Tutors').Policy('has_role("tutor") && is_member("study_group", "cs-101") && user.locale == "en"')`,
  );
  const settings = path.join(folder, 'plugin-host.json');
  const before = JSON.parse(fs.readFileSync(settings, 'utf8'));
  const write = (users: object): void => fs.writeFileSync(settings, JSON.stringify({ ...before, dev: { users } }));
  const tutor = { roles: ['tutor'], groups: ['cs-101'], locale: 'en', relationships: ['faculty:physics#dean'] };

  write({ 7: { ...tutor, relationships: ['faculty:physics#boss'] } });
  const refused = await run(['dev', folder, '--port', '0']);
  t.equal(refused.code, 1);
  t.match(refused.err, /\/dev\/users\/7: "faculty:physics#boss" is no relationship .*must be one of .*dean/);

  write({ 7: tutor, 8: { ...tutor, groups: [] }, 9: { ...tutor, roles: [] } });
  const { call, child, ended, shows } = await startDev(t, folder);
  const as = async (id: number) => (await call('tutoring/greet/ada', { 'x-dev-principal': `user:${id}` })).status;
  t.same([await as(7), await as(8), await as(9), await as(10)], [200, 403, 403, 403]);
  await shows(/ 403 .*\n {2}users have the roles, groups and attributes of "dev": /);
  const many = Array.from({ length: 12 }, (_, n) => 31 - n);
  t.same(await Promise.all(many.map(as)), Array(12).fill(403), 'users that are asked for at once are all made');
  // A slow editor: the file is empty for a moment, and the two changes come right after each other.
  fs.writeFileSync(settings, '');
  await new Promise(resolve => setTimeout(resolve, 20));
  write({ 7: tutor });
  await shows(
    /plugin-host\.json has changed: its configuration is read at each change, all else at the start, so start/,
  );
  child.kill('SIGTERM');
  await ended;

  write({ 7: { ...tutor, roles: [] }, 8: { ...tutor, external_id: 's8' }, 9: { groups: ['cs-101'] } });
  const again = await startDev(t, folder);
  const now = async (id: number) =>
    (await again.call('tutoring/greet/ada', { 'x-dev-principal': `user:${id}` })).status;
  t.same([await now(7), await now(8), await now(9)], [403, 200, 403], 'what the file says now, and no more');
});

t.test('plugin dev shows how a trigger is called once it can be, also after a build that failed', async t => {
  const folder = await made(t, 'later');
  edit(folder, "Access: Users('Users may be greeted'),", "Access: ServiceKeys('Programs greet')");
  edit(folder, 'TriggerHTTP, Users }', 'ServiceKeys, TriggerHTTP }');
  const { call, shows } = await startDev(t, folder);
  edit(folder, "ServiceKeys('Programs greet')", "ServiceKeys('Programs greet'),");
  await shows(/curl -H 'X-Dev-Principal: service:1' \S+\/later\/greet\/name/);
  const as = { 'x-dev-principal': 'service:1' };
  t.match(await call('later/greet/ada', as), { status: 200, text: /Hello, ada!/ });

  const configured = (config: object): void => {
    const file = path.join(folder, 'plugin-host.json');
    fs.writeFileSync(file, JSON.stringify({ ...JSON.parse(fs.readFileSync(file, 'utf8')), dev: { config } }));
  };
  configured({ nope: 'x', none: 'y' });
  await shows(
    /not installed; the version before goes on:\nit cannot be installed: .*\/config\/nope is not a field of this plugin; .*; plugin-host\.json has it below "dev": .*\n {2}\/config\/none is/,
  );
  configured({});
  await shows(/later 0\.1\.0 is live/);
  edit(folder, "Requirements: [KV('Counts who was greeted').Build()]", 'Requirements: []');
  await shows(/later 0\.1\.0 is live/);
  t.equal((await call('later/greet/ada', as)).status, 502);
  await shows(/HostError: permission denied\n.*\n {2}this host call needs a requirement in the /);
  edit(folder, "ID: 'later'", "ID: 'latest'");
  await shows(/later answers no more: the plugin is latest now; what later has stored is kept/);
  await shows(/latest 0\.1\.0 is live/);
  t.equal((await call('latest/greet/ada', as)).status, 502);
  t.equal((await call('later/greet/ada', as)).status, 404);
  edit(folder, "ID: 'latest'", "ID: 'later'");
  edit(folder, 'Requirements: []', "Requirements: [KV('Counts').Build()]");
  await shows(/later 0\.1\.0 is live/);
  await until(async () => (await call('later/greet/ada', as)).text.includes('"times":2'));
  t.equal((await call('latest/greet/ada', as)).status, 404);
});

t.test(
  'plugin dev shows where an endless loop of a compiled plugin is, and what goes on from the run before',
  async t => {
    const folder = await made(t, 'spinning', '--lang', 'as');
    const file = path.join(folder, 'index.ts');
    const source = fs.readFileSync(file, 'utf8');
    const loop = 'function spin(): i32 {\n  let n = 0;\n  while (true) n++;\n  return n;\n}\n';
    fs.writeFileSync(file, `${loop}${source.replace('const name =', 'spin();\n  const name =')}`);
    const first = await startDev(t, folder);
    const answer = first.call('spinning/greet/ada', { 'x-dev-principal': 'user:7' });
    await first.shows(/after 3\.5 s it is still at index\/(?:spin|greet) \(index\.ts:3\)/);
    await first.shows(/greet: deadline: /);
    t.equal((await answer).status, 504);
    first.child.kill('SIGTERM');
    await first.ended;

    fs.writeFileSync(file, `${source}nothing(;\n`);
    const second = await startDev(t, folder, ['--port', '0']);
    t.equal((await second.call('spinning/nothing')).status, 404);
    fs.writeFileSync(file, `${source}nothing();\n`);
    await second.shows(/not built; spinning 0\.1\.0 goes on, which was installed before:\n/);
  },
);

t.test('plugin dev --remote uploads and installs each change, and shows what is executed there', async t => {
  const s = await startTestService();
  t.teardown(() => s.stop());
  const folder = await made(t, 'far');
  edit(folder, "Access: Users('Users may be greeted'),", "Access: Public('Anyone may be greeted'),");
  edit(
    folder,
    'import { type Context, definePlugin, KV, TriggerHTTP, Users }',
    'import { type Context, definePlugin, KV, Public, TriggerHTTP }',
  );
  const env = { PLUGIN_HOST_URL: s.base, PLUGIN_HOST_TOKEN: TOKEN };
  const refused = await startDev(t, folder, ['--remote'], env);
  await refused.shows(/not installed:\n.*accept/s);
  refused.child.kill('SIGTERM');
  const { shows } = await startDev(t, folder, ['--remote', '--accept-public'], env);
  await shows(/far 0\.1\.0 is live/);
  await shows(/is uploaded and installed/);
  t.match(await s.trigger('far/greet/ada'), { status: 200, text: /Hello, ada!/ });
  await shows(/greet ok 200 \d+\.\d ms/);
  edit(folder, 'Hello,', 'Hi,');
  await shows(/far 0\.1\.0 is live/);
  t.match(await s.trigger('far/greet/ada'), { status: 200, text: /Hi, ada!/ });
});
