import { generateKeyPairSync, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import fs from 'node:fs';
import type http from 'node:http';
import https from 'node:https';
import net from 'node:net';
import path from 'node:path';
import tls from 'node:tls';
import { generate } from 'selfsigned';
import t from 'tap';
import { loadConfig } from '../../src/config/load.ts';
import { checkTlsFiles } from '../../src/http/tls-files.ts';
import { takePort } from '../support/ports.ts';
import { ROOT, start } from '../support/started-service.ts';

type Pair = { cert: string; key: string };

/** A certificate for plugins.uni.example, which signs itself. */
async function makePair(days = 30): Promise<Pair> {
  // A name of its own: among authorities of one name, only the first is looked at.
  const name = [{ name: 'commonName', value: randomBytes(8).toString('hex') }];
  const { cert, private: key } = await generate(name, {
    notAfterDate: new Date(Date.now() + days * 24 * 3_600_000),
    extensions: [
      { name: 'basicConstraints', cA: true, critical: true },
      { name: 'subjectAltName', altNames: [{ type: 2, value: 'plugins.uni.example' }] },
    ],
  });
  return { cert, key };
}

function write(directory: string, { cert, key }: Pair): { cert: string; key: string } {
  const files = { cert: path.join(directory, 'cert.pem'), key: path.join(directory, 'key.pem') };
  fs.writeFileSync(files.cert, cert);
  fs.writeFileSync(files.key, key);
  return files;
}

type Answer = { status: number; headers: http.IncomingMessage['headers'] };

async function get(port: number, ca: string, where: string, method = 'GET', agent?: https.Agent): Promise<Answer> {
  const request = https.request({
    port,
    host: '127.0.0.1',
    path: where,
    method,
    ca,
    servername: 'plugins.uni.example',
    ...(agent ? { agent } : {}),
  });
  request.end();
  const [answer] = (await once(request, 'response')) as [http.IncomingMessage];
  answer.resume();
  await once(answer, 'end');
  return { status: answer.statusCode ?? 0, headers: answer.headers };
}

t.test('cookies of a service that speaks TLS are for TLS alone, also without a public address', async t => {
  const directory = fs.mkdtempSync(path.join(ROOT, 'tls-'));
  const pair = await makePair();
  const files = write(directory, pair);
  const port = await takePort();
  const env = {
    BOT_HTTP_PORT: String(port),
    BOT_HTTP_TLS_CERT: files.cert,
    BOT_HTTP_TLS_KEY: files.key,
    BOT_ADMIN_SETUP_TOKEN: 'tls-setup-token',
  };
  const run = start(path.join(directory, 'data'), env, ['serve']);
  t.teardown(async () => {
    run.child.kill('SIGTERM');
    await run.exited;
  });
  await run.until(/plugin host is ready/);
  const request = https.request({
    port,
    host: '127.0.0.1',
    path: '/api/admin/auth/setup',
    method: 'POST',
    ca: pair.cert,
    servername: 'plugins.uni.example',
    headers: { 'content-type': 'application/json', authorization: 'Bearer tls-setup-token' },
  });
  request.end('{"email":"root@uni.example","password":"correct horse battery"}');
  const [answer] = (await once(request, 'response')) as [http.IncomingMessage];
  answer.resume();
  const cookies = answer.headers['set-cookie'] ?? [];
  t.ok(cookies.length >= 2);
  for (const cookie of cookies) t.match(cookie, /^__(Host|Secure)-.*; Secure/);
});

t.test('the service speaks TLS by itself, and takes a new certificate at a reload', async t => {
  const directory = fs.mkdtempSync(path.join(ROOT, 'tls-'));
  const first = await makePair();
  const files = write(directory, first);
  const port = await takePort();
  const data = path.join(directory, 'data');
  const env = {
    BOT_HTTP_PORT: String(port),
    BOT_HTTP_PUBLIC_URL: 'https://plugins.uni.example',
    BOT_HTTP_TLS_CERT: files.cert,
    BOT_HTTP_TLS_KEY: files.key,
  };
  const run = start(data, env, ['serve', '--sample']);
  t.teardown(async () => {
    run.child.kill('SIGTERM');
    await run.exited;
  });
  await run.until(/plugin host is ready/);
  const hsts = 'max-age=31536000';
  const where = '/api/triggers/http/hello/greet';
  for (const [path, method, status] of [
    [where, 'GET', 200],
    ['/healthz', 'HEAD', 200],
    [where, 'DELETE', 405],
    ['/healthz', 'GET', 200],
    ['/admin/', 'GET', 200],
    ['/nothing', 'GET', 404],
  ] as const) {
    const { headers, status: answered } = await get(port, first.cert, path, method);
    t.same([answered, headers['strict-transport-security']], [status, hsts], `${method} ${path}`);
    t.match(headers['x-request-id'], /^[\w-]{8,64}$/);
  }
  const plain = net.connect(port, '127.0.0.1');
  plain.write('GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n');
  let text = '';
  plain.on('data', c => (text += c.toString('latin1')));
  plain.on('error', () => undefined);
  await once(plain, 'close');
  t.notMatch(text, /HTTP\/1\.1/, 'nothing is answered without TLS');
  const old = tls.connect({
    port,
    host: '127.0.0.1',
    ca: first.cert,
    servername: 'plugins.uni.example',
    maxVersion: 'TLSv1.1',
    minVersion: 'TLSv1',
    ciphers: 'DEFAULT@SECLEVEL=0',
  });
  await t.rejects(once(old, 'secureConnect'), 'TLS 1.1 is refused');

  const second = await makePair();
  fs.writeFileSync(files.cert, second.cert);
  const wrong = start(data, env, ['reload']);
  t.equal(await wrong.exited, 1);
  t.match(wrong.output(), /http\.tls\.key: .*key\.pem is not the private key of .*cert\.pem/);
  t.equal((await get(port, first.cert, where)).status, 200, 'the old certificate is served on');

  write(directory, second);
  const agent = new https.Agent({ keepAlive: true, maxSockets: 1 });
  t.teardown(() => agent.destroy());
  let over = false;
  const statuses = new Set<number>();
  const client = (async () => {
    while (!over) statuses.add((await get(port, `${first.cert}\n${second.cert}`, where, 'GET', agent)).status);
  })();
  const good = start(data, env, ['reload']);
  t.equal(await good.exited, 0, good.output());
  over = true;
  await client;
  t.same([...statuses], [200], 'a client that keeps its connection fails no request');
  t.equal((await get(port, second.cert, where)).status, 200);
  await t.rejects(get(port, first.cert, where), 'the old certificate is gone');
});

t.test('files that cannot be used end the start and are named', async t => {
  const [one, other] = await Promise.all([makePair(), makePair()]);
  const good = write(t.testdir({ nothing: 'no certificate' }), one);
  t.ok(checkTlsFiles(good).getTime() > Date.now() + 29 * 24 * 3_600_000, 'it tells when the certificate expires');
  const nothing = path.join(path.dirname(good.cert), 'nothing');
  t.throws(() => checkTlsFiles({ ...good, cert: '/nowhere/c.pem' }), /http\.tls\.cert: cannot read \/nowhere\/c\.pem/);
  t.throws(() => checkTlsFiles({ ...good, cert: nothing }), /http\.tls\.cert: .*nothing is not a certificate in PEM/);
  t.throws(() => checkTlsFiles({ ...good, key: nothing }), /http\.tls\.key: .*nothing is not the private key/);
  const ec = generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey.export({ type: 'pkcs8', format: 'pem' });
  fs.writeFileSync(good.key, ec);
  t.throws(
    () => checkTlsFiles(good),
    /http\.tls\.key: .*is not the private key of .*it belongs to another certificate/,
  );
  fs.writeFileSync(good.key, other.key);
  t.throws(() => checkTlsFiles(good), /http\.tls\.key: .*is not the private key of/);
  t.throws(() => loadConfig(null, { BOT_HTTP_TLS_CERT: 'x' }), /http\.tls\.key \(BOT_HTTP_TLS_KEY\) is missing/);
  t.throws(() => loadConfig(null, { BOT_HTTP_TLS_KEY: 'x' }), /http\.tls\.cert \(BOT_HTTP_TLS_CERT\) is missing/);
  const yaml = (text: string): string => path.join(t.testdir({ 'c.yaml': text }), 'c.yaml');
  t.match(loadConfig(yaml('http:\n  tls:\n    cert: a\n    key: b\n'), {}).values, {
    'http.tls.cert': 'a',
    'http.tls.key': 'b',
  });
  t.throws(
    () => loadConfig(yaml('http:\n  tls:\n    crt: a\n'), {}),
    /unknown key "http\.tls\.crt"; did you mean "http\.tls\.cert"/,
  );
  t.throws(() => loadConfig(yaml('http:\n  tls: a\n'), {}), /"http\.tls" must be a mapping/);
});

t.test('a certificate that is about to expire is a warning', async t => {
  const directory = fs.mkdtempSync(path.join(ROOT, 'tls-'));
  const files = write(directory, await makePair(3));
  const run = start(path.join(directory, 'data'), {
    BOT_HTTP_PORT: String(await takePort()),
    BOT_HTTP_TLS_CERT: files.cert,
    BOT_HTTP_TLS_KEY: files.key,
  });
  t.teardown(() => run.child.kill('SIGKILL'));
  await run.until(/plugin host is ready: https:\/\/127\.0\.0\.1/);
  t.match(run.output(), /the certificate has expired or expires within 14 days/);
  run.child.kill('SIGTERM');
  t.equal(await run.exited, 0);
});
