import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import fs from 'node:fs';
import path from 'node:path';
import { Secret, TOTP } from 'otpauth';
import t from 'tap';
import { keyPlaceOf, listSealed, openSecretKey } from '../../src/app/secrets.ts';
import { loadConfig } from '../../src/config/load.ts';
import { openDatabase } from '../../src/db/database.ts';
import { makeSecretBox } from '../../src/secrets/secret-box.ts';
import { fingerprintOf, pendingKeyFile } from '../../src/secrets/secret-key.ts';
import { BARE_ENV } from '../support/bare-env.ts';
import { random } from '../support/graph.ts';
import { CookieJar } from '../support/identity-provider.ts';
import { type Json, request, startTestService, type TestService } from '../support/service.ts';
import { respondText, watPlugin } from '../support/wat.ts';

const MAIN = path.resolve(import.meta.dirname, '../../src/main.ts');
const SUBSCRIPTIONS = 20;
/** Of two plugins, the subscriptions, and the app of an administrator. */
const SECRETS = SUBSCRIPTIONS + 3;
const EMAIL = 'root@uni.example';
const PASSWORD = 'correct horse battery';

/** A service with a plugin that has a secret, some subscriptions, and an administrator with an authenticator app. */
async function world(t: { teardown(fn: () => unknown): void }) {
  const s = await startTestService();
  t.teardown(() => s.stop());
  await s.install(
    watPlugin({
      id: 'keeper',
      imports: ['respond'],
      body: '(data (i32.const 64) "ok")',
      handle: `${respondText(64, 2)} (i32.const 0)`,
      requirements: [
        {
          kind: 'kv',
          config: [{ type: 'string', name: 'api_key', description: 'Key', required: true, sensitive: true }],
        },
      ],
    }),
    { api_key: 'hunter2' },
  );
  await s.install(
    watPlugin({
      id: 'plain',
      imports: ['respond'],
      body: '(data (i32.const 64) "ok")',
      handle: `${respondText(64, 2)} (i32.const 0)`,
    }),
  );
  for (let n = 0; n < SUBSCRIPTIONS; n++)
    await s.admin('POST', '/events/subscriptions', { name: `s${n}`, url: `https://hooks.example/${n}` });
  const made = await s.admin('POST', '/auth/setup', { email: EMAIL, password: PASSWORD });
  const jar = new CookieJar();
  jar.take(made.headers);
  const ask = (at: TestService, headers: Record<string, string>, method: string, where: string, body: Json = {}) =>
    request(`${at.base}/api/admin/auth${where}`, {
      method,
      headers: { 'content-type': 'application/json', ...headers },
      body: JSON.stringify(body),
    });
  const begun = (await ask(s, jar.header, 'POST', '/totp/begin')).json;
  const app = new TOTP({ secret: Secret.fromBase32(String(begun.secret)) });
  const proof = { continuation: begun.continuation ?? '', code: app.generate() };
  const set = await ask(s, jar.header, 'PUT', '/totp', proof);
  if (set.status !== 200) throw new Error(set.text);
  const logIn = (at: TestService) => ask(at, {}, 'POST', '/login', { email: EMAIL, password: PASSWORD });
  /** A login with the app of the administrator, whose secret is sealed too. */
  const logInWithApp = async (at: TestService) => {
    const { continuation } = (await logIn(at)).json;
    const code = app.generate({ timestamp: Date.now() + 30_000 });
    return await ask(at, {}, 'POST', '/login/second-factor', { continuation: continuation ?? '', code });
  };
  const file = path.join(s.directory, 'secrets.key');
  const command = (
    ...args: string[]
  ): { child: ChildProcess; done: Promise<{ code: number | null; text: string }> } => {
    const child = spawn(process.execPath, [MAIN, 'secrets', ...args], {
      env: { ...BARE_ENV, BOT_DATABASE_URL: s.databaseUrl, BOT_DATA_DIR: s.directory },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    let text = '';
    for (const stream of [child.stdout, child.stderr]) stream.on('data', (c: Buffer) => (text += c.toString()));
    return { child, done: once(child, 'close').then(([code]) => ({ code: code as number | null, text })) };
  };
  return { s, file, command, jar, logIn, logInWithApp };
}

/** Opens every stored secret with the key a start would use. */
async function opened(s: TestService): Promise<string[]> {
  const db = openDatabase(s.databaseUrl, 1, () => {});
  try {
    const config = loadConfig(null, { BOT_DATABASE_URL: s.databaseUrl, BOT_DATA_DIR: s.directory });
    const box = makeSecretBox(await openSecretKey(db, keyPlaceOf(config)));
    return (await listSealed(db)).map(({ owner, sealed }) => box.open(sealed, owner));
  } finally {
    await db.close();
  }
}

const keyIn = (file: string): Buffer => Buffer.from(fs.readFileSync(file, 'utf8').trim(), 'base64');

t.test('secrets are put under a new key, wherever the command is killed, and never while a service runs', async t => {
  const seed = Number(process.env.SECRETS_SEED ?? Math.floor(Math.random() * 2 ** 31));
  t.comment(`# seed ${seed}, SECRETS_SEED=${seed} repeats it`);
  const rnd = random(seed);
  const { command, file, logInWithApp, s } = await world(t);
  const first = fs.readFileSync(file, 'utf8');
  const refused = await command('rotate').done;
  t.match(refused, { code: 1, text: /a service uses this database; stop them all first/ });
  t.equal(fs.readFileSync(file, 'utf8'), first);
  await s.service.stop(5000);

  const before = await opened(s);
  t.equal(before.length, SECRETS);
  const done = await command('rotate', '--json').done;
  t.match(JSON.parse(done.text), { replaced: SECRETS, fingerprint: fingerprintOf(keyIn(file)) });
  t.not(fs.readFileSync(file, 'utf8'), first);
  t.same(await opened(s), before);

  for (let round = 0; round < 5; round++) {
    const { child, done: ended } = command('rotate');
    const timer = setTimeout(() => child.kill('SIGKILL'), 150 + rnd() * 450);
    await ended;
    clearTimeout(timer);
    t.same(await opened(s), before, 'nothing is lost');
  }
  // Cut off between the commit and the new key taking its place.
  const old = fs.readFileSync(file, 'utf8');
  t.equal((await command('rotate').done).code, 0);
  fs.renameSync(file, pendingKeyFile(file));
  fs.writeFileSync(file, old);
  t.same(await opened(s), before, 'the next start finishes it');
  t.notOk(fs.existsSync(pendingKeyFile(file)));
  const again = await startTestService({}, s);
  t.equal(again.service.registry.find('keeper')?.config.api_key, 'hunter2');
  t.match((await logInWithApp(again)).json, { admin: { email: EMAIL } }, 'codes of the app go on');
  await again.service.stop(5000);
});

t.test('another key is refused and none is made; a lost one is replaced, with what must be entered again', async t => {
  const { command, file, jar, logIn, s } = await world(t);
  await s.service.stop(5000);
  const right = fs.readFileSync(file, 'utf8');
  t.match(await command('reset').done, {
    code: 1,
    text: /nothing is lost; to replace it run: plugin-host secrets rotate/,
  });
  fs.rmSync(file);
  await t.rejects(startTestService({}, s), /secrets\.key is missing, and the database has secrets.*secrets reset/);
  t.notOk(fs.existsSync(file), 'no key is made where secrets exist');
  const other = Buffer.alloc(32, 7);
  fs.writeFileSync(file, other.toString('base64'));
  await t.rejects(startTestService({}, s), new RegExp(`has the fingerprint ${fingerprintOf(other)}, and the database`));
  t.match(await command('rotate').done, { code: 1, text: /plugin-host: .*put the right key back/ });
  // A database of the release before has no fingerprint: the secrets themselves tell.
  const db = openDatabase(s.databaseUrl, 1, () => {});
  t.teardown(() => db.close());
  await db.query('UPDATE installation SET secrets_fingerprint = NULL');
  await t.rejects(startTestService({}, s), /holds secrets of another key than .*secrets\.key/);
  fs.writeFileSync(file, right);
  t.equal((await opened(s)).length, SECRETS, 'the right key is taken and noted');

  fs.rmSync(file);
  const reset = await command('reset').done;
  t.equal(reset.code, 0);
  t.match(reset.text, /must be entered again:\n {2}plugin keeper .*: config api_key;/);
  t.match(reset.text, /event subscription \d+ "s0": ask for a new secret with new_secret/);
  t.match(
    reset.text,
    /administrator root@uni\.example: the authenticator app no longer counts, add it again; the password alone logs in/,
  );
  t.notMatch(reset.text, /plain/);
  const again = await startTestService({}, s);
  const admin = (method: string, where: string, body?: Json) =>
    request(`${again.base}/api/admin${where}`, {
      method,
      headers: { ...jar.header, ...(body === undefined ? {} : { 'content-type': 'application/json' }) },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
  t.match((await admin('GET', '/auth/second-factor')).json, { totp_since: null, recovery_codes: 0 });
  t.equal((await logIn(again)).status, 200, 'the password alone logs in');
  t.match((await admin('GET', '/plugins/keeper')).json, { state: 'disabled' });
  t.match((await admin('GET', '/plugins/plain')).json, { state: 'enabled' });
  t.match((await admin('GET', '/events/subscriptions')).json, {
    items: [{ enabled: false, disabled_why: /lost with secrets\.key/ }],
  });
  t.match(await admin('POST', '/plugins/keeper/install', { wasm_key: 'x', config: {} }), { status: 422 });
  await again.service.stop(5000);
});
