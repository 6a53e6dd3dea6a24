import t from 'tap';
import { keysOfFirstAdmin, type Ran, runCommand } from '../support/commands.ts';
import { type Json, request, startTestService } from '../support/service.ts';
import { watPlugin } from '../support/wat.ts';

/** What administrators set with the command line: triggers, commands, policies, users, roles, versions. */

const s = await startTestService();
t.teardown(() => s.stop());
const greeter = (version: string, triggers: Json[]): Uint8Array =>
  watPlugin({ id: 'greeter', version, handle: '(i32.const 0)', triggers });
const TRIGGERS: Json[] = [
  {
    name: 'greet',
    type: 'http',
    path: '/greet',
    methods: ['GET'],
    access: { users: true, service_keys: true, policy: 'has_role("dean")', public: false, reason: 'deans greet' },
  },
  { name: 'wave', type: 'http', path: '/wave', methods: ['GET', 'POST'] },
  { name: 'say', type: 'messenger' },
];
const { wasmKey: first } = await s.install(greeter('1.0.0', TRIGGERS), {}, 'default');
const makeKey = await keysOfFirstAdmin(s);
const KEY = await makeKey('admin');

const run = (...args: string[]): Promise<Ran> => runCommand(args, { PLUGIN_HOST_URL: s.base, PLUGIN_HOST_TOKEN: KEY });
const json = async (...args: string[]): Promise<Json> => JSON.parse((await run(...args, '--json')).out) as Json;

t.test('triggers are listed with what their author suggests, and set in one step', async t => {
  t.match(await run('trigger', 'list', 'greeter'), {
    code: 0,
    out: /^TRIGGER +METHODS +PATH +ENABLED +USERS +SERVICE KEYS +RECORD +ACCESS +POLICY +ITS AUTHOR SUGGESTS\ngreet +GET +\/greet +on +on +off +off +user +- +users and service keys, has_role\("dean"\) \(deans greet\)\nwave +GET POST +\/wave +on +on +off +off +user +- +-\n$/,
  });
  t.match(await run('trigger', 'set', 'greeter', 'greet', '--suggested', '--service-keys', 'off'), {
    code: 0,
    out: /^greeter greet: for users, with the policy has_role\("dean"\)\n/,
  });
  t.match((await json('trigger', 'list', 'greeter')).items, [
    { allow_service_key: false, policy_expression: 'has_role("dean")', suggested: { service_keys: true } },
    { suggested: null },
  ]);
  t.match(await run('trigger', 'set', 'greeter', 'wave', '--suggested'), {
    code: 1,
    err: /suggests nothing for .*wave/,
  });
  t.match(
    await run('trigger', 'set', 'greeter', 'wave', '--users', 'off'),
    { code: 1, err: /Add --accept-public/ },
    'no trigger becomes public unasked',
  );
  t.match(await run('trigger', 'set', 'greeter', 'wave', '--users', 'off', '--accept-public'), {
    code: 0,
    out: 'greeter wave: for every caller, without a login\n',
  });
  t.match(await run('trigger', 'set', 'greeter', 'wave', '--users', 'maybe'), {
    code: 2,
    err: /--users is "maybe"; it must be on or off/,
  });
  t.match(await run('trigger', 'set', 'greeter', 'wave'), { code: 2, err: /there is nothing to set: give --enabled/ });
  t.match(await run('trigger', 'set', 'greeter', 'none', '--enabled', 'on'), { code: 1, err: /none/ });
});

t.test('policies are set and removed, of triggers and of commands', async t => {
  t.match(await run('policy', 'set', 'greeter', 'has_role("tutor")', '--trigger', 'wave'), { code: 0 });
  t.match(await run('policy', 'set', 'greeter', 'has_rol("tutor")', '--trigger', 'wave'), { code: 3, err: /has_role/ });
  t.match(await run('policy', 'set', 'greeter', 'user.locale == "ru"', '--command', 'say'), {
    code: 0,
    out: 'greeter /say: restricted\n',
  });
  t.match(
    (await run('policy', 'list', 'greeter')).out,
    /wave .*has_role\("tutor"\)\nsay +command +restricted +user\.loc/,
  );
  t.match(await run('policy', 'remove', 'greeter', '--command', 'say'), { code: 0, out: /open to everyone/ });
  t.match(await run('policy', 'remove', 'greeter', '--trigger', 'wave'), { code: 1, err: /Add --accept-public/ });
  t.match(await run('policy', 'set', 'greeter', 'true'), { code: 2, err: /give --trigger or --command/ });
});

t.test('commands are listed, and one setting is changed at a time', async t => {
  t.match(await run('command', 'set', 'greeter', 'say', '--global-role', 'student', '--global-role', 'tutor'), {
    code: 0,
  });
  t.match(
    (await run('command', 'list', 'greeter')).out,
    /^COMMAND +ENABLED +RECORD +SYSTEM ROLE +GLOBAL ROLES +PLUGIN ROLE +POLICY\nsay +on +off +- +student tutor +- +-\n$/,
  );
  t.match(await run('command', 'set', 'greeter', 'say', '--global-role', 'none', '--plugin-role', 'clerk'), {
    code: 0,
  });
  t.match((await json('command', 'list', 'greeter')).items, [{ global_roles: [], plugin_role: 'clerk' }]);
  t.match(await run('command', 'set', 'greeter', 'say', '--enabled', 'off'), { out: 'greeter /say: disabled\n' });
  t.match(await run('command', 'set', 'greeter', 'say', '--enabled', 'on', '--policy', 'true'), {
    code: 2,
    err: /these are several changes, each of which may fail: give --enabled, --policy/,
  });
});

t.test('users are named by external id, whole name or user:ID, and never by what two of them could mean', async t => {
  t.match(await run('user', 'add'), { code: 2, err: /a user needs --name, --external-id or --account/ });
  const ada = Number((await json('user', 'add', '--name', 'Ada Lovelace', '--external-id', 'ext-1')).id);
  t.match(await run('user', 'add', '--name', 'Other', '--external-id', String(ada)), { code: 0 });
  for (const text of ['ext-1', 'Ada Lovelace', `user:${ada}`])
    t.match(await run('user', 'show', text), { code: 0, out: /display_name +Ada Lovelace\n[\s\S]*\n\nnone\n$/ }, text);
  t.match((await json('user', 'show', String(ada))).display_name, 'Other', 'a number is an external id');
  t.match(await run('user', 'show', '4711'), { code: 1, err: /there is no user "4711": .* or user:4711\n$/ });
  t.match(await run('user', 'add', '--name', 'Other'), { code: 0 });
  t.match(await run('user', 'show', 'Other'), {
    code: 1,
    err: /"Other" names more than one user: say which, user:\d+/,
  });
  t.match(await run('user', 'show', 'Lovelace'), {
    code: 1,
    err: /there is no user "Lovelace": give an external id, .*; names with it: user:\d+ \(Ada Lovelace, ext-1\)\n$/,
  });
  t.match(await run('user', 'show', 'user:99999'), { code: 1, err: /99999/ });
  t.match(await run('user', 'set', 'ext-1', '--locale', 'en'), { code: 0, out: `user:${ada} is changed\n` });
  t.match(await run('user', 'set', 'ext-1', '--locale', 'de'), { code: 2, err: /--locale is "de"; it must be one of/ });
  t.match((await run('user', 'list', '--search', 'love')).out, /^ID .*\n\d+ +Ada Lovelace +ext-1 +- +en .*\n$/);
  t.match(await run('policy', 'explain', 'greeter', 'ext-1', '--trigger', 'greet'), {
    code: 0,
    out: /^Ada Lovelace \(/,
  });
});

t.test('roles are given and taken', async t => {
  t.match(await run('role', 'give', 'ext-1', 'dean'), { code: 0, out: /^user:\d+ has the database role dean\n/ });
  t.match(await run('role', 'give', 'ext-1', 'dean'), { code: 0, out: /has the database role dean already\n/ });
  t.match(await run('role', 'give', 'ext-1', 'clerk', '--plugin', 'greeter'), {
    code: 0,
    out: /the plugin role clerk/,
  });
  t.match(await run('role', 'give', 'ext-1', 'staff', '--kind', 'global'), { code: 0, out: /the global role staff/ });
  t.match(
    (await run('user', 'show', 'ext-1')).out,
    /ROLE +KIND +FROM +SINCE\n(?=[\s\S]*dean +database)(?=[\s\S]*greeter\/clerk +plugin)[\s\S]*staff +global/,
  );
  t.match((await run('role', 'list')).out, /^ROLE +USERS +FROM\n(.*\n)*dean +1 +manual\n/);
  t.match((await run('role', 'users', 'dean')).out, /^USER +NAME +FROM +SINCE +BY\nuser:\d+ +Ada Lovelace +manual /);
  const access = ['--token', await makeKey('access')];
  t.match(await run('role', 'give', 'ext-1', 'tutor', ...access), {
    code: 1,
    err: /a user named by anything but user:ID needs the scope people; the administration key "access" has access/,
  });
  t.match(await run('role', 'give', 'user:1', 'tutor', ...access), { code: 0, out: /^user:1 has/ });
  t.match(await run('role', 'take', 'ext-1', 'dean'), { code: 0, out: /no longer has the database role dean\n/ });
  t.match(await run('role', 'take', 'ext-1', 'dean'), { code: 0, out: /role dean, and had not\n/ });
  t.match(await run('role', 'give', 'ext-1', 'x', '--kind', 'odd'), { code: 2, err: /--kind is "odd"/ });
  t.match(await run('role', 'give', 'ext-1', 'x', '--kind', 'global', '--plugin', 'greeter'), { code: 2 });
});

t.test('keys and executions are found by what people know of them', async t => {
  t.match(await run('key', 'create', 'library', '--scope', 'greeter:greet'), { code: 0 });
  t.match(await run('key', 'rotate', 'library'), { code: 0, out: /^phk_/ });
  t.match(await run('key', 'revoke', 'libary'), { code: 1, err: /there is no service key named "libary"/ });
  t.match(await run('key', 'create', 'library', '--scope', 'greeter:greet'), { code: 0 });
  t.match(await run('key', 'revoke', 'library'), { code: 1, err: /"library" names 2 service keys: give the id/ });
  t.match(await run('events', 'deliveries', 'nothing'), { code: 1, err: /there is no subscription named "nothing"/ });
  t.match(await run('executions', 'show', 'greeter', 'request-0815'), {
    code: 1,
    err: /greeter has no record of an execution of the request request-0815/,
  });
});

t.test('versions are listed, named as their author wrote them, and uninstalled only when it is said', async t => {
  const second = await s.upload(greeter('2.0.0', TRIGGERS)).then(a => (a.status === 401 ? null : a));
  t.equal(second, null, 'the setup token is over');
  const form = new FormData();
  form.append('file', new Blob([new Uint8Array(greeter('2.0.0', TRIGGERS))]), 'plugin.wasm');
  const upload = (): Promise<{ status: number }> =>
    request(`${s.base}/api/admin/plugins/upload`, {
      method: 'POST',
      headers: { authorization: `Bearer ${KEY}` },
      body: form,
    });
  t.equal((await upload()).status, 201);
  t.match(
    (await run('plugin', 'versions', 'greeter')).out,
    new RegExp(
      `^VERSION +WASM_KEY +STATE +UPLOADED +FRONTEND +SIGNED BY +PERMISSIONS\\n2\\.0\\.0 +[0-9a-f]{32} +uploaded .*\\n1\\.0\\.0 +${first} +installed `,
    ),
  );
  t.match(await run('plugin', 'install', 'greeter', '2.0.0'), { code: 0, out: /^greeter 2\.0\.0 is installed/ });
  t.match(await run('plugin', 'rollback', 'greeter', '1.0.0'), {
    code: 0,
    out: 'greeter is 1.0.0 again, with the configuration it had then\n',
  });
  t.match(await run('plugin', 'install', 'greeter', '3.0.0'), {
    code: 1,
    err: /greeter has no uploaded version 3\.0\.0: it has 2\.0\.0, 1\.0\.0/,
  });
  t.match(await run('plugin', 'uninstall', 'greeter'), {
    code: 1,
    err: /this uninstalls greeter 1\.0\.0 \(enabled\) with its settings, keys and values; .* Say so with --yes/,
  });
  t.match(await json('plugin', 'list'), { items: [{ id: 'greeter' }] });
  t.match(await run('plugin', 'uninstall', 'greeter', '--yes'), { code: 0, out: 'greeter is uninstalled\n' });
  t.match(await json('plugin', 'list'), { items: [] });
});
