import { randomBytes } from 'node:crypto';
import fs from 'node:fs';
import http from 'node:http';
import https from 'node:https';
import net from 'node:net';
import path from 'node:path';
import { generate } from 'selfsigned';
import t, { type Test } from 'tap';
import type { Check } from '../../src/app/doctor/check.ts';
import { doctor, shownChecks } from '../../src/app/doctor/doctor.ts';
import { configCheck } from '../../src/cli/local/config-check.ts';
import { loadConfig } from '../../src/config/load.ts';
import { openDatabase } from '../../src/db/database.ts';
import { startServer } from '../../src/http/server.ts';
import { fingerprintOf } from '../../src/secrets/secret-key.ts';
import { asService, makeDatabase, makeEmptyDatabase } from '../support/database.ts';
import { CLIENT, startIdentityProvider } from '../support/identity-provider.ts';
import { testIntake } from '../support/intake.ts';
import { listenFor } from '../support/listen.ts';
import { startMailServer } from '../support/mail-server.ts';
import { startTelegram, startVk, TELEGRAM_TOKEN, VK_GROUP, VK_TOKEN } from '../support/messengers.ts';
import { startS3Server } from '../support/s3-server.ts';
import { makeUniversity } from '../support/university.ts';
import { SOURCE_TOKEN, startUniversitySource } from '../support/university-source.ts';

async function world(t: { teardown(fn: () => unknown): void; testdir(): string }) {
  const database = await makeDatabase();
  t.teardown(() => database.drop());
  const directory = t.testdir();
  const run = (env: Record<string, string>): Promise<Check[]> =>
    doctor(
      loadConfig(null, { BOT_DATABASE_URL: database.serviceUrl, BOT_DATA_DIR: path.join(directory, 'data'), ...env }),
    );
  return { database, directory, run };
}

const of = (checks: readonly Check[], name: string): Check | undefined => checks.find(c => c.name === name);

t.test('without anything wrong every row says so', async t => {
  const { run } = await world(t);
  const checks = await run({ BOT_HTTP_PUBLIC_URL: await healthyServer(t) });
  t.same(
    checks.map(c => [c.name, c.state]),
    [
      ['data directory', 'ok'],
      ['open files', 'ok'],
      ['public address', 'ok'],
      ['graph store', 'ok'],
      ['files', 'ok'],
      ['database', 'ok'],
      ['database role', 'ok'],
      ['database session', 'ok'],
      // Other tests use connections of the same server.
      ['connections', of(checks, 'connections')?.state],
      ['clock', 'ok'],
      ['audit log', 'ok'],
      ['stored secrets', 'ok'],
    ],
  );
  t.match(of(checks, 'connections')?.detail, /^\d+ of \d+ connections of the database are used/);
  t.match(shownChecks(checks), /^ok {6}database +remote PostgreSQL \d+/m);
  t.match(of(await run({}), 'public address'), { state: 'warn', detail: /http\.public_url is not set/ });
});

/** The server of the service, answering for its health. */
async function healthyServer(t: Test): Promise<string> {
  const server = await startServer('127.0.0.1', 0, {
    triggerPrefix: '/t/',
    clientAddress: peer => peer,
    intake: testIntake(t),
    handleTrigger: () => undefined,
    handleRoute: x => x.reply({ status: 200, headers: [], body: '{"status":"alive"}' }),
    onUnknownError: error => t.fail(String(error)),
  });
  t.teardown(() => server.close());
  return `http://127.0.0.1:${server.port}`;
}

t.test('a proxy that speaks HTTP/1.0 to the service is named, with what to set', async t => {
  const { run } = await world(t);
  const behind = Number(new URL(await healthyServer(t)).port);
  let version = '1.0';
  const proxy = http.createServer((_, answer) => {
    const socket = net.connect(behind, '127.0.0.1');
    socket.on('data', data => {
      answer.writeHead(Number(/^HTTP\/1.1 (\d+)/.exec(data.toString())?.[1] ?? 502));
      answer.end(data.toString().split('\r\n\r\n')[1]);
      socket.destroy();
    });
    socket.write(`GET /healthz HTTP/${version}\r\nHost: a\r\n\r\n`);
  });
  const BOT_HTTP_PUBLIC_URL = await listenFor(t, proxy);
  t.match(of(await run({ BOT_HTTP_PUBLIC_URL }), 'public address'), {
    state: 'failed',
    detail: /HTTP\/1\.0 .*505; in nginx set "proxy_http_version 1\.1;"/,
  });
  version = '1.1';
  t.match(of(await run({ BOT_HTTP_PUBLIC_URL }), 'public address'), { state: 'ok', detail: /leads to the service/ });
  const away = await run({ BOT_HTTP_PUBLIC_URL: 'http://127.0.0.1:9' });
  t.match(of(away, 'public address'), { state: 'warn', detail: /does not answer now .*does the service run\?/ });
});

t.test('what does not answer is named with what was said', async t => {
  const { run } = await world(t);
  t.match(of(await run({ BOT_SPICEDB_ENDPOINT: '127.0.0.1:9', BOT_SPICEDB_TLS: 'false' }), 'graph store'), {
    state: 'failed',
  });
  const away = await run({ BOT_DATABASE_URL: 'postgresql://u:hunter2@127.0.0.1:9/d' });
  t.match(of(away, 'database'), { state: 'failed', detail: /ECONNREFUSED/ });
  t.same(
    away.filter(c => /ECONNREFUSED/.test(c.detail)).map(c => c.name),
    ['database'],
    'what needs the database repeats nothing',
  );
  t.notMatch(shownChecks(away), /hunter2/);
  t.match(of(await run({ BOT_DATA_DIR: import.meta.filename }), 'data directory'), {
    state: 'failed',
    detail: /ENOTDIR|EEXIST/,
  });
});

t.test('the source of university data is asked for a list, with its credential', async t => {
  const { run } = await world(t);
  const source = await startUniversitySource(makeUniversity({ seed: 1, groups: 1, students: 1, teachers: 1 }));
  t.teardown(() => source.close());
  const ask = async (token: string) =>
    of(await run({ BOT_UNIVERSITY_SYNC_BASE_URL: source.url, BOT_UNIVERSITY_SYNC_TOKEN: token }), 'university source');
  t.match(await ask(SOURCE_TOKEN), { state: 'ok' });
  t.match(await ask('another'), { state: 'failed', detail: /answers 401: university_sync.token is not accepted/ });
  source.faults.set('faculties', { kind: 'status', status: 404 });
  t.match(await ask(SOURCE_TOKEN), { state: 'warn', detail: /is university_sync.base_url right\?/ });
});

t.test('mail, messengers and the identity provider are asked as the service would ask them', async t => {
  const { run } = await world(t);
  const [mail, provider, telegram, vk] = await Promise.all([
    startMailServer(),
    startIdentityProvider(),
    startTelegram(t),
    startVk(t),
  ]);
  t.teardown(() => Promise.all([mail.close(), provider.close()]));
  provider.open('http://127.0.0.1:9/api/auth/idp/callback');
  const env = {
    BOT_SMTP_HOST: '127.0.0.1',
    BOT_SMTP_PORT: String(mail.port),
    BOT_IDP_ISSUER: provider.issuer,
    BOT_IDP_CLIENT_ID: CLIENT.id,
    BOT_IDP_CLIENT_SECRET: CLIENT.secret,
    BOT_MESSENGERS_TELEGRAM_TOKEN: TELEGRAM_TOKEN,
    BOT_MESSENGERS_TELEGRAM_API_URL: telegram.base,
    BOT_MESSENGERS_VK_TOKEN: VK_TOKEN,
    BOT_MESSENGERS_VK_GROUP_ID: VK_GROUP,
    BOT_MESSENGERS_VK_API_URL: vk.base,
  };
  const names = ['mail', 'identity provider', 'telegram', 'vk'];
  const fine = await run(env);
  for (const name of names) t.match(of(fine, name), { state: 'ok' }, name);
  provider.shut();
  const bad = await run({
    ...env,
    BOT_SMTP_USERNAME: 'host',
    BOT_SMTP_PASSWORD: 'hunter2',
    BOT_MESSENGERS_TELEGRAM_TOKEN: TELEGRAM_TOKEN.replace('123456', '654321'),
    BOT_MESSENGERS_VK_TOKEN: 'another',
  });
  for (const name of names) t.match(of(bad, name), { state: 'failed' }, name);
  t.match(of(bad, 'mail')?.detail, /login|auth/i);
  t.match(of(bad, 'identity provider')?.detail, /does not answer/);
  t.notMatch(shownChecks(bad), /hunter2|654321:/);
  const unset = await run({});
  for (const name of names) t.equal(of(unset, name), undefined, `${name} is not set up`);
});

t.test('an S3 store is written to, and asked whether pages of every origin may upload', async t => {
  const { database, directory, run } = await world(t);
  const db = openDatabase(database.url, 1, () => {});
  await db.query("INSERT INTO plugins (id, frontend_origins) VALUES ('p', '{https://shop.uni.example}')");
  await db.close();
  const env = { BOT_HTTP_PUBLIC_URL: 'https://plugins.uni.example' };
  const open = await startS3Server(path.join(directory, 'open'));
  t.teardown(() => open.stop());
  const good = await run({ ...env, ...open.env });
  t.match(of(good, 'files'), { state: 'ok' });
  t.match(of(good, 'files in browsers'), {
    state: 'ok',
    detail: 'pages of https://plugins.uni.example, https://shop.uni.example may upload',
  });
  const narrow = await startS3Server(path.join(directory, 'narrow'), 'https://plugins.uni.example');
  t.teardown(() => narrow.stop());
  t.match(of(await run({ ...env, ...narrow.env }), 'files in browsers'), {
    state: 'failed',
    detail: /pages of https:\/\/shop\.uni\.example upload; give it this rule: \[\{"AllowedOrigins"/,
  });
  const none = await startS3Server(path.join(directory, 'none'), null);
  t.teardown(() => none.stop());
  t.match(of(await run({ ...env, ...none.env }), 'files in browsers'), { state: 'failed' });
  t.match(of(await run({ ...env, ...open.env, BOT_S3_SECRET_ACCESS_KEY: 'wrong' }), 'files'), {
    state: 'failed',
    detail: /SignatureDoesNotMatch/,
  });
  t.match(of(await run({ ...env, ...open.env, BOT_S3_BUCKET: 'other' }), 'files'), {
    state: 'failed',
    detail: /no bucket "other"/,
  });
});

t.test('nothing is made, started or left behind, and a server that never answers is named', async t => {
  const directory = t.testdir();
  const data = path.join(directory, 'data');
  const embedded = await doctor(loadConfig(null, { BOT_DATA_DIR: data }));
  t.match(of(embedded, 'database'), { state: 'ok', detail: 'embedded: made at the first start' });
  t.match(of(embedded, 'data directory'), { detail: /can be made/ });
  t.same(fs.readdirSync(directory), [], 'no directory and no file');
  const database = await makeDatabase();
  t.teardown(() => database.drop());
  const db = openDatabase(database.url, 1, () => {});
  t.teardown(() => db.close());
  await db.query('DELETE FROM schema_migrations');
  const env = { BOT_DATA_DIR: data, BOT_DATABASE_URL: database.url };
  const checks = await doctor(loadConfig(null, env));
  t.match(of(checks, 'database'), { state: 'ok', detail: /the next start applies \d+ migrations/ });
  t.match(of(checks, 'database role'), { state: 'warn', detail: /is a superuser: set database\.owner_url/ });
  t.equal((await db.query('SELECT 1 FROM schema_migrations')).rowCount, 0, 'none is applied');
  // Takes connections and says nothing.
  const silent = net.createServer().listen(0, '127.0.0.1');
  await new Promise(resolve => silent.once('listening', resolve));
  t.teardown(() => silent.close());
  const address = silent.address();
  const port = typeof address === 'object' && address !== null ? address.port : 0;
  const late = await doctor(
    loadConfig(null, { BOT_DATA_DIR: data, BOT_DATABASE_URL: `postgresql://u:p@127.0.0.1:${port}/d` }),
  );
  t.match(of(late, 'database'), { state: 'failed' });
});

t.test('a certificate that has expired, or soon will, is named with its day', async t => {
  const { run } = await world(t);
  const day = 24 * 3_600_000;
  for (const [days, want] of [
    [90, { state: 'ok', detail: /is valid until \d{4}-\d\d-\d\d$/ }],
    [5, { state: 'warn', detail: /expires on \d{4}-\d\d-\d\d, in 4 days: renew it/ }],
    [-2, { state: 'failed', detail: /expired on \d{4}-\d\d-\d\d: browsers refuse it/ }],
  ] as const) {
    const { cert, private: key } = await generate([{ name: 'commonName', value: 'localhost' }], {
      notBeforeDate: new Date(Date.now() - 10 * day),
      notAfterDate: new Date(Date.now() + days * day - 3_600_000),
    });
    const url = await listenFor(
      t,
      https.createServer({ cert, key }, (_, r) => r.end('{"status":"alive"}')),
    );
    const checks = await run({ BOT_HTTP_PUBLIC_URL: url.replace('http:', 'https:') });
    t.match(of(checks, 'certificate'), want);
  }
  const gone = await run({ BOT_HTTP_PUBLIC_URL: 'https://127.0.0.1:1' });
  t.match(of(gone, 'certificate'), { state: 'warn', detail: /ECONNREFUSED.*looked at when it does/ });
});

t.test('a clock that is apart from the database, and a lack of connections, are named with what helps', async t => {
  const { database, run } = await world(t);
  const db = openDatabase(database.url, 1, () => {});
  t.teardown(() => db.close());
  await db.query(`CREATE SCHEMA apart; GRANT USAGE ON SCHEMA apart TO PUBLIC;
    CREATE FUNCTION apart.clock_timestamp() RETURNS timestamptz LANGUAGE sql AS
      $$ SELECT pg_catalog.clock_timestamp() - interval '1 minute' $$`);
  const url = new URL(database.serviceUrl);
  url.searchParams.set('options', '-c search_path=apart,pg_catalog,public');
  t.match(of(await run({ BOT_DATABASE_URL: url.href }), 'clock'), {
    state: 'warn',
    detail: /this machine's clock is (59|60)\.\d s ahead of the database's: .*NTP/,
  });
  await db.query(`ALTER DATABASE ${new URL(database.url).pathname.slice(1)} CONNECTION LIMIT 30`);
  t.match(of(await run({ BOT_DATABASE_POOL_SIZE: '50' }), 'connections'), {
    state: 'warn',
    detail:
      /of 30 connections .* opens up to 50 and a few more: raise max_connections of PostgreSQL .* or lower database\.pool_size/,
  });
});

t.test('the role that migrates is looked at before a start needs it', async t => {
  const { database, run } = await world(t);
  const look = async (url: string) => of(await run({ BOT_DATABASE_OWNER_URL: url }), 'database owner');
  t.match(await look(database.url), { state: 'ok' });
  t.match(await look(database.serviceUrl), { state: 'failed', detail: /the tables belong to ".+"; name that role/ });
  const wrong = new URL(database.url);
  wrong.pathname = '/nothing_here';
  t.match(await look(wrong.href), { state: 'failed', detail: /database "nothing_here" does not exist/ });
  const empty = await makeEmptyDatabase();
  t.teardown(() => empty.drop());
  t.match(await look(asService(empty.url)), { state: 'failed', detail: /GRANT CREATE ON SCHEMA public TO / });
});

t.test('the files for TLS are looked at before a start', async t => {
  const { directory, run } = await world(t);
  const files = { cert: path.join(directory, 'cert.pem'), key: path.join(directory, 'key.pem') };
  const look = async (hours: number) => {
    const notAfterDate = new Date(Date.now() + hours * 3_600_000);
    const pair = await generate([{ name: 'commonName', value: 'a' }], { notAfterDate });
    fs.writeFileSync(files.cert, pair.cert);
    fs.writeFileSync(files.key, pair.private);
    return of(await run({ BOT_HTTP_TLS_CERT: files.cert, BOT_HTTP_TLS_KEY: files.key }), 'tls files');
  };
  t.match(await look(24 * 100), { state: 'ok', detail: /cert\.pem is valid until \d{4}-/ });
  t.match(await look(24 * 3), { state: 'warn', detail: /expires on .*: renew it/ });
  t.match(await look(-1), { state: 'failed', detail: /expired on .* and reload/ });
  fs.writeFileSync(files.key, 'x');
  const env = { BOT_HTTP_TLS_CERT: files.cert, BOT_HTTP_TLS_KEY: files.key };
  t.match(of(await run(env), 'tls files'), { state: 'failed', detail: /^http\.tls\.key: .* is not the private key/ });
  t.throws(() => configCheck(loadConfig(null, env), false), /^http\.tls\.key: .* is not the private key/);
});

t.test('a key of stored secrets that is missing or another one is found before the start', async t => {
  const { database, directory, run } = await world(t);
  const db = openDatabase(database.url, 1, () => {});
  t.teardown(() => db.close());
  const [key, other] = [randomBytes(32), randomBytes(32)];
  await db.query('UPDATE installation SET secrets_fingerprint = $1', [fingerprintOf(key)]);
  const look = async (env: Record<string, string> = {}) => of(await run(env), 'stored secrets');
  t.match(await look(), { state: 'failed', detail: /secrets\.key is missing: copy it from another host/ });
  const file = path.join(directory, 'data/secrets.key');
  fs.mkdirSync(path.dirname(file), { recursive: true });
  fs.writeFileSync(`${file}.new`, key.toString('base64'));
  fs.writeFileSync(file, other.toString('base64'));
  t.match(await look(), { state: 'ok', detail: /rotation of the key was interrupted/ });
  t.ok(fs.existsSync(`${file}.new`), 'nothing is moved');
  fs.rmSync(`${file}.new`);
  t.match(await look(), { state: 'failed', detail: /is not the key the stored secrets are under/ });
  t.match(await look({ BOT_SECRETS_KEY: key.toString('base64') }), { state: 'ok' });
});
