import { spawnSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import t from 'tap';
import { BARE_ENV } from '../support/bare-env.ts';

const PROJECT = path.resolve(import.meta.dirname, '../..');

type Ran = { code: number | null; out: string; err: string };

function runWith(env: NodeJS.ProcessEnv, ...args: string[]): Ran {
  const r = spawnSync(process.execPath, [path.join(PROJECT, 'src/main.ts'), ...args], {
    encoding: 'utf8',
    env: { ...BARE_ENV, ...env },
  });
  return { code: r.status, out: r.stdout, err: r.stderr };
}

const run = (...args: string[]): Ran => runWith({}, ...args);

/** Every command, and the options its help names in addition to `--help` and `--config`. */
const COMMANDS: Record<string, string[]> = {
  serve: ['sample'],
  reload: ['json'],
  'migrate status': ['json'],
  'migrate up': ['json'],
  'config check': ['json'],
  'config example': [],
  doctor: ['json'],
  'support-bundle': ['json'],
  ready: ['json'],
  openapi: [],
  version: ['json'],
  'admin create': ['email', 'name', 'user', 'json'],
  'admin reset-password': ['email', 'json'],
  'admin reset-second-factor': ['email', 'json'],
  'admin list': ['json'],
  'admin key': ['email', 'name', 'scope', 'expires', 'json'],
  'authz drift': ['repair', 'json'],
  'sync once': ['release-brake', 'json'],
  'secrets rotate': ['json'],
  'secrets reset': ['json'],
  backup: ['json'],
  restore: ['keep-credentials', 'json'],
  'person export': ['json'],
  'person erase': ['yes', 'json'],
  status: ['url', 'token', 'json'],
  'outbox list': ['url', 'token', 'json', 'state', 'key', 'limit'],
  'outbox show': ['url', 'token', 'json'],
  'outbox retry': ['url', 'token', 'json'],
  'outbox discard': ['url', 'token', 'json'],
  'executions list': ['url', 'token', 'json', 'outcome', 'trigger', 'since', 'request-id', 'limit'],
  'executions show': ['url', 'token', 'json'],
  'jobs list': ['url', 'token', 'json'],
  'messages list': ['url', 'token', 'json', 'state', 'plugin', 'limit'],
  'messages retry': ['url', 'token', 'json'],
  'events list': ['url', 'token', 'json', 'plugin', 'type', 'limit'],
  'events subscriptions': ['url', 'token', 'json', 'limit'],
  'events deliveries': ['url', 'token', 'json', 'state', 'limit'],
  'events retry': ['url', 'token', 'json', 'event'],
  'import list': ['url', 'token', 'json', 'limit'],
  'import show': ['url', 'token', 'json', 'limit'],
  'rel list': ['url', 'token', 'json', 'object', 'relation', 'subject', 'limit'],
  'rel add': ['url', 'token', 'json'],
  'rel remove': ['url', 'token', 'json'],
  'policy list': ['url', 'token', 'json'],
  'policy check': ['url', 'token', 'json'],
  'policy explain': ['url', 'token', 'json', 'trigger', 'command'],
  'policy set': ['url', 'token', 'json', 'trigger', 'command', 'accept-public'],
  'policy remove': ['url', 'token', 'json', 'trigger', 'command', 'accept-public'],
  'key list': ['url', 'token', 'json', 'administration', 'limit'],
  'key create': ['url', 'token', 'json', 'scope', 'expires', 'allow-unknown'],
  'key rotate': ['url', 'token', 'json', 'overlap'],
  'key revoke': ['url', 'token', 'json', 'administration'],
  'trigger list': ['url', 'token', 'json'],
  'trigger set': [
    ...['url', 'token', 'json', 'enabled', 'users', 'service-keys', 'policy', 'record'],
    ...['suggested', 'accept-public'],
  ],
  'command list': ['url', 'token', 'json'],
  'command set': [
    ...['url', 'token', 'json', 'enabled', 'policy', 'record', 'system-role', 'global-role', 'plugin-role'],
  ],
  'user list': ['url', 'token', 'json', 'search', 'limit'],
  'user show': ['url', 'token', 'json'],
  'user add': ['url', 'token', 'json', 'name', 'external-id', 'account', 'locale'],
  'user set': ['url', 'token', 'json', 'name', 'external-id', 'account', 'locale'],
  'role list': ['url', 'token', 'json'],
  'role users': ['url', 'token', 'json', 'limit'],
  'role give': ['url', 'token', 'json', 'kind', 'plugin'],
  'role take': ['url', 'token', 'json', 'kind', 'plugin'],
  'plugin new': ['lang', 'template', 'dev', 'port', 'json'],
  'plugin build': ['out', 'json'],
  'plugin inspect': ['json'],
  'plugin test': ['serve'],
  'plugin dev': ['port', 'remote', 'accept-public', 'url', 'token'],
  'plugin message': ['as', 'file', 'mime-type', 'save', 'port', 'json'],
  'plugin keygen': ['json'],
  'plugin sign': ['key', 'frontend', 'comment', 'json'],
  'plugin list': ['url', 'token', 'json'],
  'plugin upload': ['url', 'token', 'json', 'frontend'],
  'plugin install': [
    ...['url', 'token', 'json', 'config-file'],
    ...['accept-permissions', 'accept-suggested-access', 'accept-public', 'accept-widening'],
  ],
  'plugin rollback': ['url', 'token', 'json', 'accept-public', 'accept-widening'],
  'plugin logs': ['url', 'token', 'json', 'follow', 'limit'],
  'plugin enable': ['url', 'token', 'json'],
  'plugin versions': ['url', 'token', 'json'],
  'plugin uninstall': ['url', 'token', 'json', 'yes'],
  'plugin disable': ['url', 'token', 'json'],
  'plugin resume': ['url', 'token', 'json'],
  'plugin call': ['method', 'data', 'header', 'bearer', 'url', 'json'],
  'plugin replay': ['module', 'plugin', 'set', 'save', 'url', 'token', 'json'],
  bench: [
    ...['path', 'method', 'data', 'header', 'connections', 'rate', 'seconds'],
    ...['config-file', 'compare', 'json'],
  ],
  completion: [],
  man: [],
  help: [],
};

t.test('help names every command, and the help of a command its options', async t => {
  const page = run('help');
  t.match(page, { code: 0, err: '' });
  const named = [...page.out.matchAll(/^ {2}([a-z][a-z-]*(?: [a-z-]+)?)(?: <\w+>)*(?: \[\w+\])*(?: {2,}\S|$)/gm)].map(
    m => m[1],
  );
  t.same(named, Object.keys(COMMANDS));
  t.same([run('--help').out, run('-h').out, run().out], [page.out, page.out, page.out]);
  for (const [name, options] of Object.entries(COMMANDS)) {
    const { code, err, out } = run(...name.split(' '), '--help');
    t.same([code, err], [0, ''], name);
    const shown = [...out.matchAll(/^ {2}(?:-[a-z], )?--([a-z-]+)/gm)].map(m => m[1]);
    t.same(shown, [...options, 'help', 'config'], name);
  }
  t.equal(run('help', 'admin', 'create').out, run('admin', 'create', '--help').out);
  t.match(run('help', 'admin'), { code: 0, out: /^ {2}admin list/m });
});

t.test('a command that is not understood prints one line, with what was probably meant, and ends with 2', async t => {
  const refused: Array<[string[], RegExp]> = [
    [['srve'], /^plugin-host: there is no command "srve"; did you mean "serve"\? See: plugin-host help\n$/],
    [
      ['admin', 'lits'],
      /^plugin-host: there is no command "admin lits"; did you mean "list"\? See: plugin-host help admin\n$/,
    ],
    [['help', 'config', 'chekc'], /^plugin-host: there is no command "config chekc"; did you mean "check"\?.*\n$/],
    [['gibberish'], /^plugin-host: there is no command "gibberish"; see: plugin-host help\n$/],
    [['serve', '--smaple'], /^plugin-host: unknown option '--smaple'; did you mean "--sample"\?.*\n$/],
    [['version', '--repair'], /^plugin-host: unknown option '--repair'; see: plugin-host help version\n$/],
    [['config', 'check', '--config'], /^plugin-host: option '--config <file>' argument missing; see: .*\n$/],
    [['admin', 'create'], /^plugin-host: this command needs --email ADDRESS\n$/],
    [['admin', 'create', '--email', 'x'], /^plugin-host: --email is "x"; it must be an email address\n$/],
    [
      ['admin', 'create', '--email', 'x@y', '--user', 'z'],
      /^plugin-host: --user is "z"; it must be the id of a user\n$/,
    ],
    [['admin', 'reset-password'], /^plugin-host: this command needs --email ADDRESS\n$/],
    [['admin', 'reset-second-factor'], /^plugin-host: this command needs --email ADDRESS\n$/],
    [['completion', 'fish'], /^plugin-host: there is completion for bash, not for "fish"\n$/],
    [['executions', 'list', ''], /^plugin-host: argument 'plugin' is empty; see: plugin-host help executions list\n$/],
    [['migrate', 'stauts'], /^plugin-host: there is no command "migrate stauts"; did you mean "status"\?.*\n$/],
    [['--json', 'version'], /"message":"--json stands behind the command; see: plugin-host help version"/],
    [['version', 'now'], /^plugin-host: too many arguments for 'version'.*\n$/],
  ];
  for (const [args, words] of refused) t.match(run(...args), { code: 2, out: '', err: words }, args.join(' '));
  t.match(run('admin'), { code: 2, out: '', err: /^Usage: plugin-host admin/ }, 'the command is missing');
});

t.test('with --json an error is one JSON object on standard error, and nothing else is there', t => {
  const refused: Array<[string[], Record<string, unknown>]> = [
    [['admin', 'list', '--jso', '--json'], { kind: 'usage', exit_code: 2, message: /unknown option '--jso'; did you/ }],
    [['admin', 'key', '--json'], { kind: 'usage', exit_code: 2, message: /needs --email/ }],
    [['status', '--json'], { kind: 'usage', exit_code: 2, message: /no administration key/ }],
    [['restore', '/nowhere', '--json'], { kind: 'failed', exit_code: 1, message: /there is no folder \/nowhere/ }],
  ];
  for (const [args, error] of refused) {
    const { code, err, out } = run(...args);
    t.same([code, out, err.split('\n').length], [error.exit_code, '', 2], args.join(' '));
    t.match(JSON.parse(err), { error });
  }
  t.end();
});

t.test('a command that fails prints one line and ends with 1', async t => {
  const file = '/nowhere/config.yaml';
  for (const args of [
    ['config', 'check', '--config', file],
    ['--config', file, 'config', 'check'],
    ['config', '--config', file, 'check'],
  ])
    t.match(run(...args), { code: 1, out: '', err: /^plugin-host: cannot read .*\/nowhere\/config\.yaml.*\n$/ });
  t.match(run('migrate'), {
    code: 1,
    out: '',
    err: /^plugin-host: migrate needs database\.url \(BOT_DATABASE_URL\).*\n$/,
  });
});

t.test('options mean what they say wherever they stand', async t => {
  const file = path.join(t.testdir({ 'config.yaml': 'log: { level: warn }\n' }), 'config.yaml');
  for (const args of [
    ['config', 'check', '--json', '--config', file],
    ['--config', file, 'config', 'check', '--json'],
  ]) {
    const { code, out } = run(...args);
    t.equal(code, 0);
    const shown = JSON.parse(out) as { file: string; values: Array<{ key: string; value: unknown }> };
    t.equal(shown.file, file);
    t.match(shown.values.find(v => v.key === 'log.level')?.value, 'warn');
  }
  t.match(
    runWith({ BOT_CONFIG: '' }, 'config', 'check'),
    { code: 0, out: /^log\.level +default/m },
    'no file is named',
  );
  t.match(run('config', 'check', '--config', ''), {
    code: 2,
    err: /--config is empty: name a file, or leave it out\n$/,
  });
  t.match(run('config', 'check').out, /^log\.level +default +"info"$/m);
  const manifest = JSON.parse(fs.readFileSync(path.join(PROJECT, 'package.json'), 'utf8')) as { version: string };
  for (const word of ['version', '--version', '-V']) t.equal(run(word).out, `${manifest.version}\n`);
  t.same(JSON.parse(run('version', '--json').out), { version: manifest.version, node: process.version });
});
