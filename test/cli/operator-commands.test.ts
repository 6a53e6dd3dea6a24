import { spawn } from 'node:child_process';
import fs from 'node:fs';
import http from 'node:http';
import path from 'node:path';
import t from 'tap';
import { openDatabase } from '../../src/db/database.ts';
import { BARE_ENV } from '../support/bare-env.ts';
import { keysOfFirstAdmin, MAIN, type Ran, runCommand } from '../support/commands.ts';
import { startGraphStore } from '../support/graph.ts';
import { listenFor } from '../support/listen.ts';
import { takePort } from '../support/ports.ts';
import { type Json, request, startTestService } from '../support/service.ts';
import { watPlugin } from '../support/wat.ts';

/** What operators read and mend with the command line, from anywhere, with an administration key. */

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
const makeKey = await keysOfFirstAdmin(s);
const reader = await makeKey('read', 'people');
const operator = await makeKey('read', 'operate', 'access');
const all = await makeKey('admin');

const run = (key: string, ...args: string[]): Promise<Ran> =>
  runCommand(args, { PLUGIN_HOST_URL: s.base, PLUGIN_HOST_TOKEN: key });
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
    "INSERT INTO plugin_quarantine (plugin_id, trigger_name, since, until, level, reason, details, cause) VALUES ('greeter', 'greet', now(), now() + interval '1 hour', 1, 'trapped', '{\"failure\": \"x\", \"version\": null, \"crashes\": []}', 'trapped three times')",
  );
  await s.service.heard();
  await db.query("SELECT pg_notify('plugin_changed', 'greeter')");
  for (let k = 0; k < 50 && !(await run(reader, 'status')).out.includes('trapped three times'); k++);
  t.match(
    (await run(reader, 'status')).out,
    /^SUSPENDED +FOR +UNTIL +CAUSE\ngreeter greet +all callers +20\d\d-\S+ \S+ +trapped three times\nresume it: plugin-host plugin resume greeter greet$/m,
  );
  const resume = (key: string, ...trigger: string[]) => run(key, 'plugin', 'resume', 'greeter', ...trigger);
  t.match(await resume(reader, 'greet'), { code: 1, err: /operate/ });
  t.match(await resume(operator), { code: 0, out: 'greeter was not suspended\n' }, 'one trigger is, not the plugin');
  t.match(await resume(operator, 'greet'), { code: 0, out: 'greeter greet is resumed\n' });
  t.match((await run(reader, 'status')).out, /^suspended +nothing$/m);
  t.match(await resume(operator, 'greet'), { code: 0, out: 'greeter greet was not suspended\n' });
  t.match(await resume(operator, 'gret'), { code: 1, err: /gret/ });
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
    `INSERT INTO execution_records (request_id, plugin_id, version, trigger_name, principal, outcome, status, started_at, queue_wait_ms,
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
    /^outcome +trapped$[\s\S]*\nwarn {2}careful\nunreachable\n$/m,
  );
  await db.query("UPDATE execution_records SET started_at = now() - interval '3 hours' WHERE request_id = 'request-1'");
  const since = async (time: string): Promise<unknown> =>
    await json(reader, 'executions', 'list', 'greeter', '--since', time);
  t.match(await since('4h'), { items: [{ request_id: 'request-1' }] });
  t.notMatch(await since('2h'), { items: [{ request_id: 'request-1' }] });
  t.match(
    await since('2020-01-31 08:00:00'),
    { items: [{ request_id: 'request-1' }] },
    'as a table shows times, in UTC',
  );
  for (const time of ['yesterday', '1', '1w', '2026-02-30', ''])
    t.match(await run(reader, 'executions', 'list', 'greeter', '--since', time), {
      code: 2,
      err: `--since is "${time}"; it must be a length of time like 1h, 90m or 7d, or a time in UTC like`,
    });
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
  const server = http.createServer((_request, response) => {
    response.writeHead(200, { 'content-type': 'text/html' });
    response.end('{"items":[{}]}');
  });
  const base = await listenFor(t, server);
  t.match(await of(base, reader), {
    code: 1,
    err: new RegExp(
      `^plugin-host: ${base} \\(--url\\) does not answer as a plugin host does \\(status 200, text/html\\): .*\n$`,
    ),
  });
  t.match(await of(`${s.base}/api`, reader), {
    code: 2,
    err: /\/api \(--url\) is a path of a service: give the address alone, like http:\/\/127\.0\.0\.1:\d+\n$/,
  });
  t.match(await of(`http://127.0.0.1:${await takePort()}`, reader), {
    code: 1,
    err: /\(--url\) cannot be reached: .*ECONNREFUSED.*: nothing listens there; does the service run\?/,
  });
  for (const url of ['ftp://x', 'x'])
    t.match(await of(url, reader), { code: 2, err: /\(--url\) is not an address: give one like/ });
  for (const key of ['pha_one\nphb_two', 'ключ', 'a b']) {
    const refused = await of(s.base, key);
    t.match(refused, { code: 2, err: /the administration key has a space, a line break or another character/ });
    t.notMatch(refused.err, /one|two|ключ/, 'it is not shown');
  }
  t.match(await of(s.base, `${reader}\n`), { code: 0 }, 'a line break at the end of a file is no part of it');
});

t.test('without an address the configuration says it, and an error says where the address came from', async t => {
  const { port } = new URL(s.base);
  const configOf = (name: string, text: string): string => {
    const file = path.join(s.directory, name);
    fs.writeFileSync(file, text);
    return file;
  };
  const here = configOf('here.yaml', `http: { port: ${port} }\n`);
  const free = await takePort();
  const away = configOf('away.yaml', `http: { host: 0.0.0.0, port: ${free} }\n`);
  const secure = configOf(
    'secure.yaml',
    `http: { port: ${port}, public_url: "https://127.0.0.1:${port}", tls: { cert: c, key: k } }\n`,
  );
  const bare = (env: Record<string, string>, ...args: string[]): Promise<Ran> =>
    runCommand(['outbox', 'list', ...args], { PLUGIN_HOST_TOKEN: reader, ...env });
  t.match(await bare({}, '--config', here), { code: 0 });
  t.match(await bare({ BOT_CONFIG: here, PLUGIN_HOST_URL: '' }), { code: 0 });
  t.match(await bare({ BOT_HTTP_PORT: port }), { code: 0 });
  t.match(await bare({ BOT_CONFIG: away, PLUGIN_HOST_URL: s.base }), { code: 0 }, 'the variable for it counts before');
  t.match(await bare({ PLUGIN_HOST_URL: s.base }, '--config', away), {
    code: 1,
    err: `plugin-host: the service at http://127.0.0.1:${free} (http.host of ${away} and http.port of ${away}) cannot`,
  });
  t.match(await bare({ BOT_HTTP_PORT: String(free) }), {
    code: 1,
    err: `http://127.0.0.1:${free} (BOT_HTTP_PORT) cannot`,
  });
  t.match(await bare({ BOT_HTTP_PORT: '0' }), {
    code: 2,
    err: /http\.port is 0 \(BOT_HTTP_PORT\), which takes a free one; give --url/,
  });
  t.match(await bare({}, '--config', secure), {
    code: 1,
    err: new RegExp(`https://127\\.0\\.0\\.1:${port} \\(http\\.public_url of .*is it http://\\?`),
  });
  t.match(await bare({}, '--config', '/nowhere.yaml'), {
    code: 1,
    err: /cannot read the configuration file \/nowhere/,
  });
});

t.test('output that cannot be written is one line', async t => {
  const env = { ...BARE_ENV, PLUGIN_HOST_URL: s.base, PLUGIN_HOST_TOKEN: reader };
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
  const invalid = await run(reader, 'policy', 'check', 'has_rol("dean")', '--json');
  t.match(invalid, { code: 1, err: '' }, 'a check that fails is an answer, not an error');
  t.match(JSON.parse(invalid.out), { valid: false, errors: [{ message: /has_role/ }] });
  const user = await request(`${s.base}/api/admin/users`, {
    method: 'POST',
    headers: { authorization: `Bearer ${all}`, 'content-type': 'application/json' },
    body: JSON.stringify({ display_name: 'Ada' }),
  });
  const id = String(user.json.id);
  const why = await run(reader, 'policy', 'explain', 'greeter', `user:${id}`, '--trigger', 'greet');
  t.match(why.out, /^Ada \(user \d+\) may(?: not)? call it: \d+\nSTEP +HOLDS +DETAIL\n/);
  t.match(await run(reader, 'policy', 'explain', 'greeter', `user:${id}`), {
    code: 2,
    err: /give --trigger or --command/,
  });
});

t.test('service keys are made, listed, rotated and revoked', async t => {
  const made = await run(all, 'key', 'create', 'library', '--scope', 'greeter:greet');
  t.match(made, { code: 0, out: /^phk_\S+\n$/ });
  t.match((await run(reader, 'key', 'list')).out, /^ID +NAME +SCOPES .*\n\d+ +library +greeter:greet +-/);
  const short = JSON.parse(
    (await run(all, 'key', 'create', 'short', '--scope', 'greeter:greet', '--expires', '1d', '--json')).out,
  ) as { id: number; expires_at: string };
  t.ok(Math.abs(Date.parse(short.expires_at) - Date.now() - 24 * 3_600_000) < 600_000);
  t.match(await run(all, 'key', 'revoke', String(short.id)), { code: 0 });
  t.match(await run(all, 'key', 'create', 'x', '--scope', 'greeter:greet', '--expires', 'soon'), { code: 2 });
  t.match((await run(reader, 'key', 'list', '--administration')).out, /read\+operate\+access +read operate access/);
  const id = String(((await json(reader, 'key', 'list')).items as Json[])[0]?.id);
  const rotated = await run(all, 'key', 'rotate', id, '--overlap', '1m');
  t.match(rotated.out, /^phk_\S+\n$/);
  t.not(rotated.out, made.out);
  t.match(await run(all, 'key', 'revoke', id), { code: 0, out: `key ${id} is revoked\n` });
  t.match(await run(all, 'key', 'revoke', id), { code: 1, err: /key/ });
});

t.test('with --json every command prints one object, and an error names what the service said', async t => {
  const lists = ['outbox list', 'jobs list', 'messages list', 'events list', 'events subscriptions', 'import list'];
  for (const words of [...lists, 'executions list greeter', 'rel list', 'key list', 'key list --administration'])
    t.match(await json(all, ...words.split(' ')), { items: Array }, words);
  t.match(await json(all, 'plugin', 'list'), { items: [{ id: 'greeter' }] });
  t.match(await json(all, 'policy', 'list', 'greeter'), { triggers: Array, commands: Array });
  const refused = async (key: string, ...args: string[]): Promise<Json> => {
    const { err, out } = await run(key, ...args, '--json');
    t.same([out, err.split('\n').length], ['', 2], args.join(' '));
    return JSON.parse(err) as Json;
  };
  t.match(await refused(all, 'import', 'show', '99'), {
    error: { kind: 'failed', exit_code: 1, message: /99/, service: { status: 404, code: 'not_found' } },
  });
  t.match(await refused(all, 'key', 'create', 'x', '--scope', 'no:one'), {
    error: { kind: 'refused', exit_code: 3, service: { status: 422, errors: [{ pointer: '/scopes/0/plugin_id' }] } },
  });
  t.match(await refused('pha_no.key', 'status'), { error: { service: { status: 401, code: 'unauthorized' } } });
});

t.test('what is not understood is named', async t => {
  const wrong: Array<[string[], number, RegExp]> = [
    [['outbox', 'list', '--limit', '0'], 2, /--limit is "0"; it must be a whole number from 1 to 200/],
    [['outbox', 'show', 'x'], 2, /"x" is not an id/],
    [['rel', 'add', 'faculty:3'], 2, /is not a relationship like study_group:7#member@user:ext-1/],
    [['rel', 'list', '--object', ':3'], 2, /--object is ":3"; it must be like faculty:3/],
    [['key', 'create', 'x', '--scope', 'greeter'], 2, /--scope is "greeter"; it must be PLUGIN:TRIGGER/],
    [['key', 'create', 'x'], 2, /this command needs --scope PLUGIN:TRIGGER/],
    [['key', 'create', 'x', '--scope', 'no:one'], 3, /plugin "no" is not installed \(give --allow-unknown to make/],
    [['rel', 'add', 'x:1#dean@user:y'], 3, /: the type of the object must be one of user, faculty/],
    [['rel', 'list', '--object', 'x:1'], 3, /: the type of --object must be one of user, faculty/],
    [['outbox', 'list', '--key', 'faculty'], 2, /--key is "faculty"; it must be an entity like faculty:3/],
    [['messages', 'list', '--plugin', 'greter'], 1, /there is no plugin "greter"/],
    [['events', 'list', '--plugin', 'greter'], 1, /there is no plugin "greter"/],
    [['plugin', 'install', 'x', 'y', '--config-file', '/nowhere'], 1, /\/nowhere cannot be read: it is not there/],
    [['import', 'show', '99'], 1, /import/],
  ];
  await Promise.all(
    wrong.map(async ([args, code, words]) =>
      t.match(await run(all, ...args), { code, out: '', err: words }, args.join(' ')),
    ),
  );
});

t.test('an operator makes a key on the machine itself, for an administrator', async t => {
  const local = (...args: string[]): Promise<Ran> =>
    runCommand(['admin', 'key', ...args], { BOT_DATABASE_URL: s.databaseUrl, BOT_DATA_DIR: s.directory });
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
  const DAY_MS = 24 * 3_600_000;
  const ends = async (...args: string[]): Promise<string | null> => {
    const { out } = await local('--email', 'root@uni.example', '--name', 'y', '--scope', 'read', '--json', ...args);
    return (JSON.parse(out) as { expires_at: string | null }).expires_at;
  };
  const inDays = (time: string | null): number => Math.round((Date.parse(time ?? '') - Date.now()) / DAY_MS);
  t.equal(inDays(await ends()), 90, 'as with the API');
  t.equal(inDays(await ends('--expires', '12d')), 12);
  t.equal(await ends('--expires', 'never'), null);
  t.equal(await ends('--expires', '2999-01-31'), '2999-01-31T00:00:00.000Z');
  for (const when of ['soon', '2026-02-30', '', '90', '2020-01-01'])
    t.match(await local('--email', 'root@uni.example', '--name', 'y', '--scope', 'read', '--expires', when), {
      code: 2,
      err: `--expires is "${when}"`,
    });
  const wrong: Array<[string[], number, RegExp]> = [
    [['--name', 'x', '--scope', 'read'], 2, /needs --email/],
    [['--email', 'root@uni.example', '--scope', 'read'], 2, /needs --name/],
    [['--email', 'root@uni.example', '--name', 'x'], 2, /needs --scope: read, /],
    [['--email', 'root@uni.example', '--name', 'x', '--scope', 'all'], 2, /--scope is "all"; it must be one of read, /],
    [['--email', 'else@uni.example', '--name', 'x', '--scope', 'read'], 1, /no administrator else@uni\.example/],
  ];
  for (const [args, code, err] of wrong) t.match(await local(...args), { code, err });
});
