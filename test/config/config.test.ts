import path from 'node:path';
import t from 'tap';
import {
  configToEnv,
  describeConfig,
  envNameOf,
  loadConfig,
  publicBaseOf,
  publicUrlProblem,
} from '../../src/config/load.ts';

const file = (t: Tap, text: string): string => path.join(t.testdir({ 'host.yaml': text }), 'host.yaml');
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
    /unknown key "BOT_SMTP_PASWORD_FILE"; did you mean "BOT_SMTP_PASSWORD"/,
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
