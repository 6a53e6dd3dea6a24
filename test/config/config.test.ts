import fs from 'node:fs';
import path from 'node:path';
import t from 'tap';
import { messageOf } from '../../src/base/errors.ts';
import {
  configFromEnv,
  configToEnv,
  describeConfig,
  envNameOf,
  loadConfig,
  originOf,
  publicBaseOf,
  publicUrlProblem,
} from '../../src/config/load.ts';
import { credstoreHint, readCredstore } from '../../src/config/value-files.ts';

const file = (t: Tap, text: string): string => path.join(t.testdir({ 'host.yaml': text }), 'host.yaml');

function caught(work: () => unknown): unknown {
  try {
    return work();
  } catch (error) {
    return error;
  }
}

type Tap = { testdir(files: Record<string, string>): string };

t.test('a value comes from the environment, else from the file, else from the defaults', async t => {
  const f = file(t, 'http:\n  port: 9000\n  host: 127.0.0.2\n');
  const config = loadConfig(f, { BOT_HTTP_PORT: '9001', PATH: '/bin' });
  t.equal(config.values['http.port'], 9001);
  t.equal(config.values['http.host'], '127.0.0.2');
  t.equal(config.values['data.dir'], './data');
  t.same(
    [config.sources['http.port'], config.sources['http.host'], config.sources['data.dir']],
    ['env', 'file', 'default'],
  );
});

t.test('a value comes from a file that a variable names, or from the credentials of systemd', async t => {
  const directory = t.testdir({
    password: 'from a file\n',
    'host.yaml': 'smtp:\n  password: from the configuration\n',
    credentials: {
      'smtp.password': 'from a credential\n',
      'smtp.from': 'a@b.example',
      'other-service': 'x',
      'tls.pem': 'y',
    },
  });
  const env = { CREDENTIALS_DIRECTORY: path.join(directory, 'credentials'), BOT_SMTP_FROM: 'c@d.example' };
  const config = loadConfig(path.join(directory, 'host.yaml'), env);
  t.equal(config.values['smtp.password'], 'from a credential', 'a credential counts before the file');
  t.equal(config.sources['smtp.password'], 'credential');
  t.equal(config.values['smtp.from'], 'c@d.example', 'and the environment before a credential');
  const named = loadConfig(null, { ...env, BOT_SMTP_PASSWORD_FILE: path.join(directory, 'password') });
  t.equal(named.values['smtp.password'], 'from a file', 'without the line break at its end');
  t.equal(named.sources['smtp.password'], 'env');
  t.notMatch(JSON.stringify(describeConfig(named)), /from a file/);
  t.equal(
    loadConfig(null, { BOT_SPICEDB_CA_FILE: '/x/ca.pem' }).values['spicedb.ca_file'],
    '/x/ca.pem',
    'a key of its own',
  );
});

t.test('a file with a value that cannot be used is refused and named', async t => {
  const directory = t.testdir({
    password: 'x',
    empty: '\n',
    large: 'x'.repeat(70_000),
    credentials: { 'smtp.pasword': 'x' },
  });
  const name = path.join(directory, 'password');
  t.throws(
    () => loadConfig(null, { BOT_SMTP_PASSWORD_FILE: '/nowhere/x' }),
    /BOT_SMTP_PASSWORD_FILE: cannot read \/nowhere\/x/,
  );
  t.throws(
    () => loadConfig(null, { BOT_SMTP_PASSWORD_FILE: path.join(directory, 'large') }),
    /large: it has 70000 bytes; at most 65536 are read/,
  );
  t.throws(
    () => loadConfig(null, { BOT_SMTP_PASSWORD_FILE: name, BOT_SMTP_PASSWORD: 'y' }),
    /BOT_SMTP_PASSWORD and BOT_SMTP_PASSWORD_FILE are both set/,
  );
  t.throws(
    () => loadConfig(null, { BOT_SMTP_PASWORD_FILE: name }),
    /unknown key "BOT_SMTP_PASWORD_FILE"; did you mean "BOT_SMTP_PASSWORD_FILE"/,
  );
  t.throws(
    () => loadConfig(null, { CREDENTIALS_DIRECTORY: path.join(directory, 'credentials') }),
    /credentials in .*: unknown key "smtp.pasword"; did you mean "smtp.password"/,
  );
  t.throws(() => loadConfig(null, { CREDENTIALS_DIRECTORY: '/nowhere' }), /CREDENTIALS_DIRECTORY: .*\/nowhere/);
  t.throws(
    () => loadConfig(null, { BOT_SMTP_PASSWORD_FILE: path.join(directory, 'empty') }),
    /empty is empty; remove it, or write the value into it/,
  );
  t.throws(() => loadConfig(null, { BOT_SMTP_PASSWORD_FILE: directory }), /it is not a file/);
  t.throws(() => loadConfig(null, { BOT_HTTP_PORT_FILE: name }), /BOT_HTTP_PORT_FILE: http.port is "x"/);
});

t.test('a command with the configuration of a unit reads the credentials of that unit', t => {
  const store = t.testdir({
    'plugin-host.smtp.password': 'of the unit\n',
    'plugin-host.second.smtp.password': 'of the instance\n',
    'other.smtp.password': 'of another program\n',
  });
  const placed = (at: string) => ({ config: '/etc/plugin-host', store: at });
  const KEYS = ['smtp.password', 'database.url'];
  const read = (file: string, at = store) =>
    Object.fromEntries(readCredstore(file, KEYS, name => new Error(`? ${name}`), placed(at)));
  t.match(read('/etc/plugin-host/config.yaml'), { 'smtp.password': { value: 'of the unit' } });
  t.match(read('/etc/plugin-host/second.yaml'), { 'smtp.password': { value: 'of the instance' } });
  t.same(read('/srv/config.yaml'), {}, 'another configuration has none');
  t.same(read('/etc/plugin-host/config.yaml', path.join(store, 'none')), {});
  // A file cannot be listed, as little as a directory of root's.
  const unlisted = path.join(store, 'other.smtp.password');
  t.same(read('/etc/plugin-host/config.yaml', unlisted), {});
  const hint = (file: string | null, at: string) => credstoreHint(file, placed(at));
  t.match(hint('/etc/plugin-host/config.yaml', unlisted), /can be read by root alone: run the command as root/);
  t.equal(hint('/etc/plugin-host/config.yaml', store), '');
  t.equal(hint('/srv/config.yaml', unlisted), '');
  t.equal(hint(null, unlisted), '');
  fs.writeFileSync(path.join(store, 'plugin-host.smtp.pasword'), 'x');
  t.throws(() => read('/etc/plugin-host/config.yaml'), /\? smtp\.pasword/);
  t.end();
});

t.test('an unknown key is refused and the nearest known one is named', async t => {
  t.throws(() => loadConfig(file(t, 'http:\n  prot: 1\n'), {}), /unknown key "http.prot"; did you mean "http.port"/);
  t.throws(() => loadConfig(file(t, 'htpp:\n  port: 1\n'), {}), /unknown key "htpp"; did you mean "http"/);
  t.throws(() => loadConfig(null, { BOT_HTTP_PROT: '1' }), /unknown key "BOT_HTTP_PROT"; did you mean "BOT_HTTP_PORT"/);
});

t.test('a wrong value is refused with its place and what is right', async t => {
  t.throws(() => loadConfig(null, { BOT_HTTP_PORT: 'many' }), /BOT_HTTP_PORT: http.port is "many".*port to listen on/);
  t.throws(() => loadConfig(file(t, 'http:\n  port: 70000\n'), {}), /http.port is 70000/);
  t.throws(() => loadConfig(file(t, 'http: 8080\n'), {}), /section "http" must be a mapping/);
  t.throws(() => loadConfig(file(t, 'http: [\n'), {}), /host.yaml/);
  t.throws(() => loadConfig('/nowhere/x.yaml', {}), /cannot read the configuration file/);
});

t.test('each mistake is one line with its file, key and value, and what would be right', t => {
  const wrong: Array<[string, string]> = [
    ['http: { port: many }', 'http.port is "many"; it must be a whole number from 0 to 65535 (port to listen on'],
    ['http:\n  port:\n', 'http.port has no value; it must be a whole number from 0 to 65535'],
    ['http: { port: true }', 'http.port is true; it must be a whole number'],
    ['http: { max_body: 10MB }', 'http.max_body is "10MB"; it must be a whole number, at least 1'],
    ['http: { max_body: 1.5 }', 'http.max_body is 1.5; it must be a whole number'],
    ['port: 8080', '"port" stands at the top and has no section; did you mean http.port, smtp.port, metrics.port?'],
    ['http.tls.cert: x', 'a key stands below its section: http: { tls: { cert: ... } }'],
    ['zebra: 1', 'unknown key "zebra"; plugin-host config example lists all keys'],
    ['http: 8080', 'http is 8080; section "http" must be a mapping of keys, like http: { host: ... }'],
    ['database: postgresql://u:pw@h/d', 'database is (hidden); section "database" must be a mapping of keys'],
    ['smtp: [geheim]', 'smtp is (hidden); section "smtp" must be a mapping of keys'],
    ['http: { tls: yes }', 'http.tls is "yes"; "http.tls" must be a mapping of keys, like tls: { cert: ... }'],
    ['- a', 'it must hold sections with keys below them'],
    ['http:\n\tport: 1\n', 'line 2, column 1: this is not YAML: Tabs are not allowed as indentation'],
    ['a: 1\n---\nb: 1', 'it holds several documents, divided by ---; keep one'],
    ['http: { host: "" }', 'http.host is ""; it must not be empty'],
    ['messengers: { vk_group_id: 77 }', 'vk_group_id is 77; it must be text: put it in quotes, like "77"'],
    ['smtp: { password: 12345 }', 'smtp.password is (hidden); it must be text: put it in quotes (password at it)'],
    ['university_sync: { interval: 5 minutes }', '"5 minutes"; it must be a length of time like 15m, 1h30m or 90s'],
    ['university_sync: { interval: 30 }', 'interval is 30; it must be a length of time like 15m, 1h30m or 90s'],
    ['http: { trusted_proxies: [10.0.0.0/33] }', '"10.0.0.0/33" in it is not an address or a CIDR range like'],
    ['admin: { setup: never }', 'admin.setup is "never"; it must be one of token, loopback, open'],
    ['files: { direct_links: perhaps }', 'files.direct_links is "perhaps"; it must be true or false'],
    ['database: { url: localhost/db }', 'database.url is (hidden); it must be an address like postgresql://user:'],
    ['secrets: { key: abc }', 'secrets.key is (hidden); it must be 32 bytes in base64; make one with: openssl'],
    ['http: { public_url: "https://u:pw@x" }', 'http.public_url is "https://(hidden)@x"; it must be an address'],
    [
      'university_sync: { base_url: "https://u:pw@x/y?token=z" }',
      'university_sync.base_url is "https://(hidden)@x/y?(hidden)"; it must be',
    ],
  ];
  for (const [content, words] of wrong) {
    const at = file(t, content);
    const message = messageOf(caught(() => loadConfig(at, {})));
    t.ok(message.startsWith(`${at}: `) && message.includes(words) && !message.includes('\n'), `${content}: ${message}`);
  }
  t.match(
    messageOf(caught(() => loadConfig(null, { BOT_HTTP_PORT: '' }))),
    /^BOT_HTTP_PORT: http\.port is ""; it must be/,
    'an empty value is not the port 0',
  );
  t.match(messageOf(caught(() => loadConfig('/tmp', {}))), /\/tmp: it is a folder, not a file$/);
  t.end();
});

t.test('secrets are hidden where the configuration is shown, also in errors', async t => {
  const config = loadConfig(null, { BOT_DATABASE_URL: 'postgresql://u:hunter2@h/d', BOT_ADMIN_SETUP_TOKEN: 'hunter2' });
  t.notMatch(JSON.stringify(describeConfig(config)), /hunter2/);
  t.match(
    describeConfig(config).find(r => r.key === 'database.url'),
    { value: '(hidden)', source: 'env', env: 'BOT_DATABASE_URL' },
  );
});

t.test('the environment made for a child gives it the same values', async t => {
  const config = loadConfig(file(t, 'http:\n  trusted_proxies: [10.0.0.0/8, 192.168.0.0/16]\n'), {
    BOT_HTTP_PORT: '0',
    BOT_LOG_LEVEL: 'warn',
  });
  t.same(loadConfig(null, configToEnv(config)).values, config.values);
  const again = configFromEnv(configToEnv(config), originOf(config));
  t.same([again.values, again.sources, again.file], [config.values, config.sources, config.file]);
  const later = { file: null, sources: { ...config.sources, 'a.later_key': 'file' as const } };
  t.same(configFromEnv(configToEnv(config), later).sources, config.sources, 'a key of another release is left out');
  t.same(configFromEnv({ ...configToEnv(config), BOT_A_LATER_KEY: '1' }).values, config.values, 'and so is its value');
  t.same(
    Object.keys(configToEnv(loadConfig(null, {}))),
    [],
    'defaults are of the release that reads them, lists as well',
  );
});

t.test('environment names are made from the keys', async t => {
  t.equal(envNameOf('http.max_body'), 'BOT_HTTP_MAX_BODY');
});

t.test('a service that listens elsewhere never names 127.0.0.1, and says that http.public_url is missing', t => {
  const shown = (env: Record<string, string>) => {
    const config = loadConfig(null, env);
    return { base: publicBaseOf(config, 8080), problem: publicUrlProblem(config) };
  };
  t.same(shown({}), { base: 'http://127.0.0.1:8080', problem: null });
  t.same(shown({ BOT_HTTP_HOST: '0.0.0.0', BOT_HTTP_PUBLIC_URL: 'https://p.example/' }), {
    base: 'https://p.example',
    problem: null,
  });
  for (const host of ['0.0.0.0', '::', '10.1.2.3']) {
    const { base, problem } = shown({ BOT_HTTP_HOST: host });
    t.notMatch(base, /127\.|\[::1?\]|0\.0\.0\.0/, host);
    t.match(problem, `name ${base};`);
    t.match(problem, /http\.public_url \(BOT_HTTP_PUBLIC_URL\) is not set/);
  }
  t.end();
});
