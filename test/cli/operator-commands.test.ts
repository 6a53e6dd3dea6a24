import { spawn } from 'node:child_process';
import fs from 'node:fs';
import http from 'node:http';
import path from 'node:path';
import t from 'tap';
import { openDatabase } from '../../src/db/database.ts';
import { freePort } from '../../src/supervisor/embedded-postgres.ts';
import { startGraphStore } from '../support/graph.ts';
import { CookieJar } from '../support/identity-provider.ts';
import { listenFor } from '../support/listen.ts';
import { type Json, request, startTestService, TOKEN } from '../support/service.ts';
import { watPlugin } from '../support/wat.ts';

/** What operators read and mend with the command line, from anywhere, with an administration key. */

const MAIN = path.resolve(import.meta.dirname, '../../src/main.ts');

const { spicedb } = await startGraphStore(t);
const s = await startTestService();
s.service.useEmbeddedGraph(spicedb.endpoint);
const db = openDatabase(s.databaseUrl, 2, () => {});
t.teardown(async () => {
  await db.close();
  await s.stop();
});
await s.install(
  watPlugin({
    id: 'greeter',
    version: '1.0.0',
    handle: '(i32.const 0)',
    triggers: [{ name: 'greet', type: 'http', path: '/greet', methods: ['GET'] }],
  }),
);
const setup = await request(`${s.base}/api/admin/auth/setup`, {
  method: 'POST',
  headers: { authorization: `Bearer ${TOKEN}`, 'content-type': 'application/json' },
  body: JSON.stringify({ email: 'root@uni.example', password: 'correct horse battery' }),
});
const jar = new CookieJar();
jar.take(setup.headers);
async function makeKey(...scopes: string[]): Promise<string> {
  const a = await request(`${s.base}/api/admin/keys`, {
    method: 'POST',
    headers: { ...jar.header, 'content-type': 'application/json' },
    body: JSON.stringify({ name: scopes.join('+'), scopes }),
  });
  return String(a.json.key);
}
const reader = await makeKey('read');
const operator = await makeKey('read', 'operate', 'access');
const all = await makeKey('admin');

type Ran = { code: number | null; out: string; err: string };
function run(key: string, ...args: string[]): Promise<Ran> {
  const env = { PATH: process.env.PATH ?? '', PLUGIN_HOST_URL: s.base, PLUGIN_HOST_TOKEN: key };
  const child = spawn(process.execPath, [MAIN, ...args], { env });
  let [out, err] = ['', ''];
  child.stdout.on('data', (c: Buffer) => (out += c.toString()));
  child.stderr.on('data', (c: Buffer) => (err += c.toString()));
  return new Promise(resolve => child.once('close', code => resolve({ code, out, err })));
}
const json = async (key: string, ...args: string[]): Promise<Json> =>
  JSON.parse((await run(key, ...args, '--json')).out) as Json;

t.test('status shows hosts, queues, lags, suspensions and releases on one screen', async t => {
  const screen = await run(reader, 'status');
  t.match(screen, { code: 0, err: '' });
  t.match(
    screen.out,
    /^HOST +STATE +RELEASE +SINCE +PROCESSES +RUNNING +CLIENTS +CPU +MEMORY +DUTIES\n\S+ 127\.0\.0\.1:\d+ +serving +\d+\.\d+/,
  );
  t.match(screen.out, /^outbox +\d+ pending.*, 0 dead/m);
  t.match(screen.out, /^jobs +\d+ waiting, \d+ active, 0 failed today$/m);
  t.match(screen.out, /^events +0 deliveries waiting, 0 dead$/m);
  t.match(screen.out, /^suspended +nothing$/m);
  t.ok(screen.out.split('\n').length < 25, 'it fits on a screen');
  const value = await json(reader, 'status');
  t.match(value, {
    hosts: [{ state: 'serving' }],
    outbox: { dead: 0 },
    jobs: Array,
    suspensions: [],
    last_import: null,
  });
  await db.query(
    "INSERT INTO plugin_quarantine (plugin_id, trigger_name, since, until, level, cause) VALUES ('greeter', 'greet', now(), now() + interval '1 hour', 1, 'trapped three times')",
  );
  await s.service.heard();
  await db.query("SELECT pg_notify('plugin_changed', 'greeter')");
  for (let k = 0; k < 50 && !(await run(reader, 'status')).out.includes('trapped three times'); k++);
  t.match(
    (await run(reader, 'status')).out,
    /^SUSPENDED +FOR +UNTIL +CAUSE\ngreeter greet +all callers +20\d\d-\S+ \S+ +trapped three times$/m,
  );
});

t.test('relationships are added, listed, removed; the outbox shows their way', async t => {
  t.match(await run(operator, 'rel', 'add', 'faculty:3#dean@user:ext-1'), {
    code: 0,
    out: 'added faculty:3#dean@user:ext-1; the graph store has it\n',
  });
  const listed = await run(operator, 'rel', 'list', '--object', 'faculty:3');
  t.match(listed.out, /^RELATIONSHIP +FROM +SINCE\nfaculty:3#dean@user:ext-1 +manual +20/);
  t.match((await run(operator, 'rel', 'list', '--subject', 'user:ext-9')).out, 'none\n');
  const outbox = await run(reader, 'outbox', 'list', '--key', 'faculty:3');
  t.match(outbox.out, /^0 pending, 0 dead.*\nID +STATE +OPERATION .*\n\d+ +processed +TOUCH/);
  const id = String(((await json(reader, 'outbox', 'list')).items as Json[])[0]?.id);
  t.match((await run(reader, 'outbox', 'show', id)).out, /^operation +TOUCH$/m);
  t.match(await run(operator, 'rel', 'remove', 'faculty:3#dean@user:ext-1'), { code: 0, out: /^removed / });
  t.match(await run(operator, 'rel', 'remove', 'faculty:3#dean@user:ext-1'), {
    code: 1,
    err: /there is no relationship/,
  });
});

t.test('a dead entry is delivered again or given up', async t => {
  const dead = async (): Promise<string> => {
    const { rows } = await db.query<{ id: string }>(
      `INSERT INTO authz_outbox (operation, payload, attempts, dead_at, keys, last_error)
       SELECT operation, payload, 10, now(), keys, 'refused' FROM authz_outbox ORDER BY id LIMIT 1 RETURNING id`,
    );
    return rows[0]?.id ?? '';
  };
  const [first, second] = [await dead(), await dead()];
  t.match((await run(reader, 'outbox', 'list', '--state', 'dead')).out, /^\d+ pending, 2 dead/);
  t.match(
    await run(reader, 'outbox', 'discard', first),
    { code: 1, err: /scope|may not|not allowed/i },
    'reading is not mending',
  );
  t.match(await run(operator, 'outbox', 'discard', first), { code: 0, out: /is discarded/ });
  t.match(await run(operator, 'outbox', 'retry', second), { code: 0, out: /goes on as|nothing of it is left/ });
  t.match(await run(operator, 'outbox', 'retry', second), { code: 1, err: /is not dead/ });
});

t.test('executions are listed and shown with their log', async t => {
  await db.query(
    `INSERT INTO plugin_executions (request_id, plugin_id, version, trigger_name, principal, outcome, status, started_at, queue_wait_ms,
       run_ms, host_calls, peak_pages, failure, log)
     VALUES ('request-1', 'greeter', '1.0.0', 'greet', 'public', 'trapped', 502, now(), 1, 2, 3, 4, 'unreachable', '[{"level":2,"text":"careful"}]')`,
  );
  const listed = await run(reader, 'executions', 'list', 'greeter', '--outcome', 'trapped');
  t.match(
    listed.out,
    /^ID +STARTED +TRIGGER +OUTCOME .*\n\d+ +20\S+ \S+ +greet +trapped +502 +1\.0 ms +2\.0 ms +public +request-1 +unreachable\n$/,
  );
  const id = String(((await json(reader, 'executions', 'list', 'greeter')).items as Json[])[0]?.id);
  t.match(
    (await run(reader, 'executions', 'show', 'greeter', id)).out,
    /^outcome +trapped$[\s\S]*\nwarn {2}careful\n$/m,
  );
  t.match(await run(reader, 'executions', 'list', 'greeter', '--outcome', 'fine'), {
    code: 2,
    err: /--outcome is "fine"; it must be one of ok, handler_error/,
  });
});

t.test('what is mistyped is named, and nothing is taken for a number that is none', async t => {
  t.match(await run(reader, 'executions', 'list', 'greter'), { code: 1, err: /no plugin.*greter/ });
  t.match(await run(operator, 'messages', 'retry', '5'), { code: 1, err: /there is no message 5/ });
  for (const limit of ['0x10', '1e1', '', ' 3', '201'])
    t.match(await run(reader, 'outbox', 'list', '--limit', limit), {
      code: 2,
      err: /--limit is ".*"; it must be a whole number from 1 to 200/,
    });
  t.match(await run(reader, 'outbox', 'show', '1e2'), { code: 2, err: /"1e2" is not an id/ });
  t.match(await run(all, 'key', 'rotate', '1', '--overlap', ''), {
    code: 2,
    err: /--overlap is ""; it must be a whole number/,
  });
  t.match(await run(reader, 'executions', 'list'), { code: 2, err: /see: plugin-host help executions list/ });
});

t.test('an address that is no plugin host, and a key that is none, are named', async t => {
  const of = async (url: string, key: string): Promise<Ran> => await run(key, 'outbox', 'list', '--url', url);
  const server = http.createServer((request, response) => {
    if (request.url?.startsWith('/silent')) return;
    response.writeHead(200, { 'content-type': request.url?.startsWith('/html') ? 'text/html' : 'application/json' });
    response.end('{"items":[{}]}');
  });
  const base = await listenFor(t, server);
  for (const [path, type] of [
    ['', 'application/json'],
    ['/html', 'text/html'],
  ])
    t.match(await of(`${base}${path}`, reader), {
      code: 1,
      err: new RegExp(
        `^plugin-host: ${base}${path} does not answer as a plugin host does \\(status 200, ${type}\\): .*\n$`,
      ),
    });
  t.match(await of(`http://127.0.0.1:${await freePort()}`, reader), {
    code: 1,
    err: /cannot be reached: .*ECONNREFUSED/,
  });
  for (const url of ['ftp://x', 'x'])
    t.match(await of(url, reader), { code: 2, err: /is not an address: --url needs/ });
  for (const key of ['pha_one\nphb_two', 'ключ', 'a b']) {
    const refused = await of(s.base, key);
    t.match(refused, { code: 2, err: /the administration key has a space, a line break or another character/ });
    t.notMatch(refused.err, /one|two|ключ/, 'it is not shown');
  }
  t.match(await of(s.base, `${reader}\n`), { code: 0 }, 'a line break at the end of a file is no part of it');
});

t.test('output that cannot be written is one line', async t => {
  const env = { PATH: process.env.PATH ?? '', PLUGIN_HOST_URL: s.base, PLUGIN_HOST_TOKEN: reader };
  const full = fs.openSync('/dev/full', 'w');
  const child = spawn(process.execPath, [MAIN, 'outbox', 'list'], { env, stdio: ['ignore', full, 'pipe'] });
  fs.closeSync(full);
  let err = '';
  child.stderr?.on('data', (c: Buffer) => (err += c.toString()));
  t.equal(await new Promise(resolve => child.once('close', resolve)), 1);
  t.match(err, /^plugin-host: what was asked for cannot be written: ENOSPC.*\n$/);
});

t.test('jobs, messages, events, subscriptions and imports are listed', async t => {
  t.match((await run(reader, 'jobs', 'list')).out, /^QUEUE +WAITING +SINCE .*\n(.*\n)*outbox_deliver +\d+ /);
  for (const words of [
    ['messages', 'list'],
    ['events', 'list'],
    ['events', 'subscriptions'],
    ['import', 'list'],
  ]) {
    t.match(await run(reader, ...words), { code: 0, out: 'none\n', err: '' }, words.join(' '));
    t.match(await json(reader, ...words), { items: [] });
  }
  const made = await s.admin('POST', '/events/subscriptions', {
    name: 'x',
    url: 'https://example.org/hook',
    types: [],
  });
  t.equal(made.status, 401, 'the setup token is over');
  const subscribed = await request(`${s.base}/api/admin/events/subscriptions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${all}`, 'content-type': 'application/json' },
    body: JSON.stringify({ name: 'library', url: 'https://library.example/hook' }),
  });
  t.equal(subscribed.status, 201, subscribed.text);
  t.match(
    (await run(reader, 'events', 'subscriptions')).out,
    /library +enabled +0 +0 +https:\/\/library\.example\/hook/,
  );
  t.match((await run(reader, 'events', 'deliveries', String(subscribed.json.id))).out, 'none\n');
  t.match(
    (await run(operator, 'events', 'retry', String(subscribed.json.id))).out,
    '0 dead deliveries are tried again\n',
  );
  const batch = await request(`${s.base}/api/admin/university/faculties`, {
    method: 'POST',
    headers: { authorization: `Bearer ${all}`, 'content-type': 'application/json' },
    body: JSON.stringify([{ external_id: 'f1', name: 'Physics' }, { external_id: 'f2' }]),
  });
  t.equal(batch.status, 206, batch.text);
  const imports = await run(reader, 'import', 'list');
  t.match(imports.out, /\n\d+ +batch +partial /);
  const id = String(((await json(reader, 'import', 'list')).items as Json[])[0]?.id);
  t.match(
    (await run(reader, 'import', 'show', id)).out,
    /\nTYPE +STATE .*\nfaculty .*\n\nTYPE +RECORD +EXTERNAL ID .*\nfaculty +1 +f2 /,
  );
});

t.test('policies are listed, checked and explained', async t => {
  t.match(
    (await run(reader, 'policy', 'list', 'greeter')).out,
    /^TRIGGER +KIND +ACCESS +POLICY\ngreet +http +public +-\n$/,
  );
  t.match(await run(reader, 'policy', 'check', 'has_role("dean")'), { code: 0, out: /^the expression is valid\n/ });
  t.match(await run(reader, 'policy', 'check', 'has_rol("dean")'), {
    code: 1,
    err: /not valid:\n {2}column 1: .*has_role/,
  });
  const user = await request(`${s.base}/api/admin/users`, {
    method: 'POST',
    headers: { authorization: `Bearer ${all}`, 'content-type': 'application/json' },
    body: JSON.stringify({ display_name: 'Ada' }),
  });
  const id = String(user.json.id);
  const why = await run(reader, 'policy', 'explain', 'greeter', id, '--trigger', 'greet');
  t.match(why.out, /^Ada \(user \d+\) may(?: not)? call it: \d+\nSTEP +HOLDS +DETAIL\n/);
  t.match(await run(reader, 'policy', 'explain', 'greeter', id), { code: 2, err: /give --trigger or --command/ });
});

t.test('service keys are made, listed, rotated and revoked', async t => {
  const made = await run(all, 'key', 'create', 'library', '--scope', 'greeter:greet');
  t.match(made, { code: 0, out: /^phk_\S+\n$/ });
  t.match((await run(reader, 'key', 'list')).out, /^ID +NAME +SCOPES .*\n\d+ +library +greeter:greet +-/);
  t.match((await run(reader, 'key', 'list', '--administration')).out, /read\+operate\+access +read operate access/);
  const id = String(((await json(reader, 'key', 'list')).items as Json[])[0]?.id);
  const rotated = await run(all, 'key', 'rotate', id, '--overlap', '60');
  t.match(rotated.out, /^phk_\S+\n$/);
  t.not(rotated.out, made.out);
  t.match(await run(all, 'key', 'revoke', id), { code: 0, out: `key ${id} is revoked\n` });
  t.match(await run(all, 'key', 'revoke', id), { code: 1, err: /key/ });
});

t.test('what is not understood is named', async t => {
  const wrong: Array<[string[], number, RegExp]> = [
    [['outbox', 'list', '--limit', '0'], 2, /--limit is "0"; it must be a whole number from 1 to 200/],
    [['outbox', 'show', 'x'], 2, /"x" is not an id/],
    [['rel', 'add', 'faculty:3'], 2, /is not a relationship like study_group:7#member@user:ext-1/],
    [['rel', 'list', '--object', ':3'], 2, /--object is ":3"; it must be like faculty:3/],
    [['key', 'create', 'x', '--scope', 'greeter'], 2, /--scope is "greeter"; it must be PLUGIN:TRIGGER/],
    [['key', 'create', 'x'], 3, /scope/],
    [['import', 'show', '99'], 1, /import/],
  ];
  await Promise.all(
    wrong.map(async ([args, code, words]) =>
      t.match(await run(all, ...args), { code, out: '', err: words }, args.join(' ')),
    ),
  );
});

t.test('an operator makes a key on the machine itself, for an administrator', async t => {
  const local = (...args: string[]): Promise<Ran> => {
    const env = { PATH: process.env.PATH ?? '', BOT_DATABASE_URL: s.databaseUrl, BOT_DATA_DIR: s.directory };
    const child = spawn(process.execPath, [MAIN, 'admin', 'key', ...args], { env });
    let [out, err] = ['', ''];
    child.stdout.on('data', (c: Buffer) => (out += c.toString()));
    child.stderr.on('data', (c: Buffer) => (err += c.toString()));
    return new Promise(resolve => child.once('close', code => resolve({ code, out, err })));
  };
  const made = await local('--email', 'root@uni.example', '--name', 'ops', '--scope', 'read', 'operate');
  t.match(made, {
    code: 0,
    out: /^pha_\S+\nvalid until 20\S+, and as long as root@uni\.example is an administrator\n$/,
  });
  const [key = ''] = made.out.split('\n');
  t.match(await run(key, 'status'), { code: 0, out: /^HOST/ });
  t.match(await run(key, 'rel', 'add', 'faculty:3#dean@user:x'), { code: 1, err: /scope/ }, 'it has no other scope');
  const { rows } = await db.query<{ actor_kind: string }>(
    "SELECT actor_kind FROM audit_log WHERE object_type = 'admin_key' ORDER BY id DESC LIMIT 1",
  );
  t.match(rows, [{ actor_kind: 'command_line' }]);
  for (const [args, want] of [
    [['--name', 'x', '--scope', 'read'], /needs --email/],
    [['--email', 'root@uni.example', '--scope', 'read'], /needs --name/],
    [['--email', 'root@uni.example', '--name', 'x'], /needs --scope: read, /],
    [['--email', 'root@uni.example', '--name', 'x', '--scope', 'all'], /--scope is "all"; it must be one of read, /],
    [['--email', 'else@uni.example', '--name', 'x', '--scope', 'read'], /no administrator else@uni\.example/],
  ] as const)
    t.match(await local(...args), { code: 1, err: want });
});
