import { spawn } from 'node:child_process';
import { once } from 'node:events';
import fs from 'node:fs';
import path from 'node:path';
import t from 'tap';
import { PluginHostError, pluginHost } from '../../sdk/client/client.ts';
import { API_TYPES, apiTypes } from '../../sdk/client/generate.ts';
import { openDatabase } from '../../src/db/database.ts';
import { BARE_ENV } from '../support/bare-env.ts';
import { keysOfFirstAdmin, MAIN, type Ran, runCommand } from '../support/commands.ts';
import { type Json, startTestService } from '../support/service.ts';
import { until } from '../support/until.ts';
import { watPlugin } from '../support/wat.ts';

/** The client in sdk/client, and the commands that use it. */

const s = await startTestService();
t.teardown(() => s.stop());
const makeKey = await keysOfFirstAdmin(s);
const token = await makeKey('plugins:deploy', 'plugins:accept', 'access');

const directory = fs.mkdtempSync(path.join(process.env.TEST_DIRECTORY ?? '/tmp', 'plugin-commands-'));
const moduleOf = (version: string): string => {
  const file = path.join(directory, `greeter-${version}.wasm`);
  const bytes = watPlugin({
    id: 'greeter',
    version,
    handle: '(i32.const 0)',
    requirements: [
      {
        kind: 'kv',
        description: 'counts',
        config: [{ name: 'greeting', description: 'What it says', required: true }],
      },
    ],
    triggers: [{ name: 'greet', type: 'http', path: '/greet', methods: ['GET'] }],
  });
  fs.writeFileSync(file, bytes);
  return file;
};

const run = (
  args: string[],
  env: Record<string, string> = { PLUGIN_HOST_URL: s.base, PLUGIN_HOST_TOKEN: token },
): Promise<Ran> => runCommand(['plugin', ...args], env);
const keyIn = (out: string): string => /plugin install greeter (\w+)/.exec(out)?.[1] ?? '';

t.test('upload says what the plugin asks for, install needs its configuration, list shows it', async t => {
  const uploaded = await run(['upload', moduleOf('1.0.0')]);
  t.match(uploaded, {
    code: 0,
    err: '',
    out: /^greeter 1\.0\.0 is uploaded; nothing is installed yet\npermissions: kv\n/,
  });
  t.match(uploaded.out, /trigger greet: GET \/api\/triggers\/http\/greeter\/greet, for users\n/);
  const key = keyIn(uploaded.out);
  const lacking = await run(['install', 'greeter', key]);
  t.match(lacking, { code: 3, out: '', err: /greeting/ }, 'what is not valid ends with 3');
  const file = path.join(directory, 'config.json');
  fs.writeFileSync(file, '{"greeting": "Hello"}');
  const installed = await run(['install', 'greeter', key, '--config-file', file, '--accept-permissions']);
  t.match(installed, { code: 0, out: 'greeter 1.0.0 is installed and enabled\ntrigger greet: for users\n' });
  const listed = await run(['list']);
  t.match(listed.out, /^ID +VERSION +STATE +NAME\ngreeter +1\.0\.0 +enabled/);
  const json = JSON.parse((await run(['list', '--json'])).out) as Json;
  t.match(json, { items: [{ id: 'greeter', version: '1.0.0' }] });
});

t.test('disable, enable, a second version and the way back', async t => {
  t.match(await run(['disable', 'greeter']), { code: 0, out: 'greeter is disabled\n' });
  t.match(await run(['enable', 'greeter']), { code: 0, out: 'greeter is enabled\n' });
  const versions = await pluginHost({ url: s.base, token: await makeKey('read') }).GET(
    '/api/admin/plugins/{id}/versions',
    { params: { path: { id: 'greeter' } } },
  );
  const first = versions.data?.items[0]?.wasm_key ?? '';
  const key = keyIn((await run(['upload', moduleOf('2.0.0')])).out);
  t.match(await run(['install', 'greeter', key]), {
    code: 0,
    out: 'greeter 2.0.0 is installed and enabled\ntrigger greet: for users\n',
  });
  t.match(await run(['rollback', 'greeter', first]), {
    code: 0,
    out: 'greeter is 1.0.0 again, with the configuration it had then\n',
  });
});

t.test('upload and install say who may call, and what the author suggests instead', async t => {
  const file = path.join(directory, 'suggests.wasm');
  const access = { users: true, policy: 'has_role("tutor")', reason: 'Tutors book' };
  const http = { type: 'http', path: '/b', methods: ['GET'] };
  const triggers = [
    { ...http, name: 'book', access },
    { ...http, name: 'see', path: '/s', access: { public: true, reason: 'Anyone looks' } },
    { name: 'hours', type: 'messenger' },
  ];
  fs.writeFileSync(file, watPlugin({ id: 'suggests', triggers, handle: '(i32.const 0)' }));
  const { out } = await run(['upload', file]);
  t.match(
    out,
    /trigger book: GET \S+, for users\n {2}its author suggests: for users, with the policy has_role\("tutor"\) \(Tutors book\)\n/,
  );
  t.match(
    out,
    /command \/hours\nas suggested, everyone may call \S+\/suggests\/s\n--accept-public confirms that; without it nothing is installed\ninstall it: plugin-host plugin install suggests \w+ --accept-suggested-access --accept-public\n$/,
  );
  const key = /plugin install suggests (\w+)/.exec(out)?.[1] ?? '';
  const refused = await run(['install', 'suggests', key, '--accept-suggested-access']);
  t.match(refused, { code: 1, err: /Add --accept-public to confirm/ });
  const installed = await run(['install', 'suggests', key, '--accept-suggested-access', '--accept-public']);
  t.match(installed.out, /trigger book: for users, with the policy has_role\("tutor"\)\n/);
  t.match(installed.out, /trigger see: for every caller, without a login\n/);
  t.match((await run(['upload', file])).out, /is uploaded; it is what is installed already\n/);
});

t.test('upload prints a command that can succeed, and a refusal names the options', async t => {
  const file = path.join(directory, 'fields.wasm');
  const field = { name: 'room', description: 'Where it is', required: true };
  const written = (version: string, kinds: string[]): void =>
    fs.writeFileSync(
      file,
      watPlugin({
        ...{ id: 'fields', version, triggers: [], handle: '(i32.const 0)' },
        requirements: kinds.map(kind => ({ kind, ...(kind === 'kv' ? { config: [field] } : {}) })),
      }),
    );
  written('1.0.0', ['kv']);
  const { out } = await run(['upload', file]);
  t.match(
    out,
    /\nit needs the value room: Where it is\nwrite its values as JSON, \{"room":"\.\.\."\}, into a file, here config\.json\ninstall it: plugin-host plugin install fields \w+ --config-file config\.json\n$/,
  );
  const [, key = ''] = /install fields (\w+)/.exec(out) ?? [];
  t.match(await run(['install', 'fields', key]), {
    code: 3,
    err: /is not complete \(--config-file FILE, a JSON object\)/,
  });
  const config = path.join(directory, 'fields.json');
  fs.writeFileSync(config, '{"room": "B12"}');
  t.match(await run(['install', 'fields', key, '--config-file', config]), { code: 0 });
  t.match(await run(['rollback', 'fields', '1.0.0']), { code: 1, err: /fields 1\.0\.0 is what is installed; / });
  await run(['upload', file]);
  t.match(await run(['install', 'fields', '1.0.0']), { code: 0 }, 'one that was uploaded twice is one');
  const other = watPlugin({
    ...{ id: 'fields', version: '1.5.0', triggers: [], handle: '(i32.const 0)' },
    requirements: [{ kind: 'kv', config: [field, { ...field, name: 'floor', description: 'Which floor' }] }],
  });
  fs.writeFileSync(file, other);
  t.match(
    (await run(['upload', file])).out,
    /\nit needs the value floor: Which floor\nwrite its values as JSON, \{"floor":"\.\.\."\}, into/,
    'what is there stays',
  );
  written('2.0.0', ['kv', 'notify']);
  const next = (await run(['upload', file])).out;
  t.match(next, /\ninstall it: plugin-host plugin install fields \w+ --accept-permissions\n$/);
  const refused = await run(['install', 'fields', '2.0.0']);
  t.match(refused, { code: 1, err: /permissions the installed one does not have \(--accept-permissions\): notify/ });
  t.match(await run(['install', 'fields', '2.0.0', '--accept-permissions']), { code: 0 });
  written('1.0.0', ['kv', 'events']);
  t.notMatch((await run(['upload', file])).out, /what is installed already/);
  t.match(await run(['install', 'fields', '1.0.0']), { code: 1, err: /3 uploads of fields have the version 1\.0\.0/ });
  t.match(
    await run(['rollback', 'fields', '1.0.0']),
    { code: 0, out: 'fields is 1.0.0 again, with the configuration it had then\n' },
    'the one there was',
  );
});

t.test('what cannot be done ends with 1 and one line that says why', async t => {
  t.match(await run(['enable', 'nothing']), {
    code: 1,
    out: '',
    err: /^plugin-host: there is no plugin "nothing".*\n$/,
  });
  const wrong = await run(['list'], { PLUGIN_HOST_URL: s.base, PLUGIN_HOST_TOKEN: 'pha_no.key' });
  t.match(wrong, { code: 1, err: /administration key is not valid/ });
  const away = await run(['list'], { PLUGIN_HOST_URL: 'http://127.0.0.1:1', PLUGIN_HOST_TOKEN: token });
  t.match(away, {
    code: 1,
    err: /^plugin-host: the service at http:\/\/127\.0\.0\.1:1 \(PLUGIN_HOST_URL\) cannot be reached: .+\n$/,
  });
  t.match(await run(['upload', path.join(directory, 'absent.wasm')]), { code: 1, err: /absent\.wasm cannot be read/ });
  t.match(await run(['upload', path.join(directory, 'config.json')]), { code: 3, err: /module/ });
  t.match(await run(['list'], { PLUGIN_HOST_URL: s.base }), { code: 2, err: /no administration key/ });
  t.match(await run(['list', '--url', 'nowhere', '--token', 'x']), {
    code: 2,
    err: /"nowhere" \(--url\) is not an address/,
  });
});

t.test('a refusal is thrown by the client with its code and its places', async t => {
  const host = pluginHost({ url: `${s.base}/`, token: await makeKey('admin') });
  const failed = await host
    .POST('/api/admin/users', { body: { display_name: 'x'.repeat(301) } })
    .then(() => null)
    .catch((error: unknown) => error);
  if (!(failed instanceof PluginHostError)) return t.fail('it must throw');
  t.match(failed, { status: 422, code: 'validation_failed', errors: [{ pointer: '/display_name' }] });
  const refused = await host
    .POST('/api/admin/keys', { body: { name: 'x', scopes: ['read'] } })
    .then(() => null)
    .catch((error: unknown) => error);
  if (!(refused instanceof PluginHostError) || refused.problem.code !== 'forbidden') return t.fail('it must refuse');
  // The type check: with this code the refusal has these members.
  const scopes: readonly string[] | undefined = refused.problem.missing_scopes;
  t.equal(scopes, undefined, 'no scope would help');
  const made = await host.POST('/api/admin/users', { body: { display_name: 'Ada' } });
  t.equal(made.data?.display_name, 'Ada');
});

t.test('an answer of something else than the host is an error with its status', async t => {
  const host = pluginHost({
    url: 'http://127.0.0.1:1',
    fetch: () => Promise.resolve(new Response('<h1>Bad gateway</h1>', { status: 502 })),
  });
  const failed = await host.GET('/healthz').catch((error: unknown) => error);
  t.match(failed, { name: 'PluginHostError', status: 502, code: '', message: 'the server answered 502' });
});

t.test('the types of the client are those of the document', async t => {
  t.ok(fs.readFileSync(API_TYPES, 'utf8') === apiTypes(), 'sdk/client/api.d.ts is old: run npm run client');
});

t.test('logs --follow shows each execution once, however many there are and also those seen late', async t => {
  const db = openDatabase(s.databaseUrl, 2, () => {});
  t.teardown(() => db.close());
  const record = (from: number, to: number) =>
    db.query(
      `INSERT INTO execution_records (id, request_id, plugin_id, version, trigger_name, principal, outcome, status,
         started_at, queue_wait_ms, run_ms, host_calls, peak_pages, failure, log)
       SELECT n, n, 'greeter', '2.0.0', 'greet', 'anonymous', 'trapped', 502, now(), 0, 1, 0, 1, 'unreachable', '[]'
       FROM generate_series($1::int, $2::int) n`,
      [from, to],
    );
  await record(2001, 2003);
  const child = spawn(process.execPath, [MAIN, 'plugin', 'logs', 'greeter', '--follow', '--limit', '2'], {
    env: { ...BARE_ENV, PLUGIN_HOST_URL: s.base, PLUGIN_HOST_TOKEN: token },
  });
  const closed = once(child, 'close');
  let out = '';
  child.stdout.on('data', (c: Buffer) => (out += c.toString()));
  const shown = (): number[] => [...out.matchAll(/, execution (\d+)\n/g)].map(m => Number(m[1]));
  await until(() => shown().length === 2);
  const numbers = (from: number, to: number): number[] => Array.from({ length: to - from + 1 }, (_, k) => from + k);
  await Promise.all([record(2004, 2540), record(2546, 2560)]);
  await until(() => shown().length === 2 + 552);
  // Of another host, which had the lower numbers and wrote them later.
  await record(2541, 2545);
  await until(() => shown().length === 2 + 557);
  child.kill('SIGINT');
  await closed;
  t.same(shown(), [...numbers(2002, 2540), ...numbers(2546, 2560), ...numbers(2541, 2545)]);
});
