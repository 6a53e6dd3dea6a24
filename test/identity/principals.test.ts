import { fork } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import t from 'tap';
import type { Actor } from '../../src/audit/audit-log.ts';
import { LIMITS } from '../../src/base/limits.ts';
import { loadConfig, originOf } from '../../src/config/load.ts';
import { openDatabase } from '../../src/db/database.ts';
import { addServiceKey } from '../../src/identity/service-keys.ts';
import { addSession } from '../../src/identity/sessions.ts';
import { addUserToken } from '../../src/identity/user-tokens.ts';
import { addUser } from '../../src/identity/users.ts';
import type { GoMessage, ServingMessage } from '../../src/supervisor/serving/serving-messages.ts';
import { BARE_ENV } from '../support/bare-env.ts';
import { type Answer, startTestService, type TestService } from '../support/service.ts';
import { watPlugin } from '../support/wat.ts';

/** Answers with the event it got. */
const echo = (id: string): Uint8Array =>
  watPlugin({
    id,
    imports: ['respond', 'input_len', 'input_read'],
    triggers: [
      { name: 'run', type: 'http', path: '/run', methods: ['GET', 'POST'] },
      { name: 'other', type: 'http', path: '/other', methods: ['GET'] },
    ],
    handle: `(drop (call $input_read (i32.const 0) (i32.const 1024) (i32.const 60000)))
      (drop (call $respond (i32.const 200) (i32.const 0) (i32.const 0) (i32.const 1024) (call $input_len (i32.const 0)))) (i32.const 0)`,
  });

const authOf = (a: Answer): unknown => (a.json as { http?: { auth: unknown } }).http?.auth;

const BY: Actor = { kind: 'setup', userId: null, name: 'test', requestId: 'r', address: '127.0.0.1' };

async function world(t: { teardown(fn: () => unknown): void }) {
  const s = await startTestService();
  t.teardown(() => s.stop());
  const db = openDatabase(s.databaseUrl, 2, () => {});
  t.teardown(() => db.close());
  await s.install(echo('mine'));
  await s.install(echo('theirs'));
  const user = await addUser(db, { displayName: 'Ada' });
  const session = (kind: 'user' | 'admin') =>
    addSession(db, {
      kind,
      userId: user.id,
      withPassword: false,
      address: '127.0.0.1',
      userAgent: 'test',
      browser: false,
    });
  const token = (expiresAt: Date | null = null) => addUserToken(db, 'pht_', { userId: user.id, name: 'n', expiresAt });
  const key = (pluginId: string, trigger: string) =>
    addServiceKey(db, 'phk_', { name: 'k', scopes: [{ pluginId, trigger }], expiresAt: null }, BY);
  const set = (body: Record<string, boolean>) => s.admin('PUT', '/plugins/mine/triggers/run/settings', body);
  return { s, db, user, session, token, key, set };
}

const bearer = (text: string): Record<string, string> => ({ authorization: `Bearer ${text}` });
const cookie = (name: string, text: string): Record<string, string> => ({ cookie: `other=1; ${name}=${text}` });

t.test('every credential meets every state of the two flags with its status and its ctx.HTTP.Auth', async t => {
  const { db, key, s, session, set, token, user } = await world(t);
  const live = await session('user');
  const ended = await session('user');
  await db.query("UPDATE sessions SET expires_at = now() - interval '1 second' WHERE id = $1", [ended.session.id]);
  const admin = await session('admin');
  const good = await token();
  const lapsed = await token(new Date(Date.now() + 3_600_000));
  await db.query("UPDATE user_tokens SET expires_at = now() - interval '1 second' WHERE id = $1", [lapsed.token.id]);
  const revoked = await token();
  await db.query('DELETE FROM user_tokens WHERE id = $1', [revoked.token.id]);
  const inScope = await key('mine', 'run');
  const wholePlugin = await key('mine', '*');
  const otherTrigger = await key('mine', 'other');
  const otherPlugin = await key('theirs', 'run');
  const asUser = { kind: 'user', user_id: user.id };
  const asKey = (id: number) => ({ kind: 'service', service_key_id: id });
  const wrong = (text: string): string => `${text.slice(0, -1)}${text.endsWith('A') ? 'B' : 'A'}`;

  // Status with [no flag, user alone, service alone, both]; the first is a public trigger.
  const rows: Array<[string, Record<string, string>, [number, number, number, number], unknown]> = [
    ['no credential', {}, [200, 401, 401, 401], null],
    ['a session', cookie('user_session', live.secret), [200, 200, 403, 200], asUser],
    ['an expired session', cookie('user_session', ended.secret), [200, 401, 401, 401], null],
    ['an admin session alone', cookie('admin_session', admin.secret), [200, 401, 401, 401], null],
    ['an admin session as user session', cookie('user_session', admin.secret), [200, 401, 401, 401], null],
    ['a user token', bearer(good.text), [200, 200, 403, 200], asUser],
    ['a user token with a wrong secret', bearer(wrong(good.text)), [200, 401, 401, 401], null],
    ['an expired token', bearer(lapsed.text), [200, 401, 401, 401], null],
    ['a revoked token', bearer(revoked.text), [200, 401, 401, 401], null],
    ['a key in scope', bearer(inScope.text), [200, 403, 200, 200], asKey(inScope.key.id)],
    ['a key for the whole plugin', bearer(wholePlugin.text), [200, 403, 200, 200], asKey(wholePlugin.key.id)],
    ['a key with a wrong secret', bearer(wrong(inScope.text)), [200, 401, 401, 401], null],
    ['a key of another trigger', bearer(otherTrigger.text), [200, 403, 403, 403], null],
    ['a key of another plugin', bearer(otherPlugin.text), [200, 403, 403, 403], null],
    ['a key where a token is meant', bearer(inScope.text.replace('phk_', 'pht_')), [200, 401, 401, 401], null],
    ['a text that is no credential', bearer('x'), [200, 401, 401, 401], null],
    [
      'a bad header next to a good cookie',
      { ...bearer('x'), ...cookie('user_session', live.secret) },
      [200, 401, 401, 401],
      null,
    ],
  ];
  await set({ allow_user_session: true });
  t.equal((await s.trigger('mine/run', { headers: bearer(good.text) })).status, 200);
  const { json } = await s.admin('GET', '/plugins/mine/executions');
  t.match(json, { items: [{ principal: `user:${user.id}` }] }, 'the record names the principal');

  const flags = [
    [false, false],
    [true, false],
    [false, true],
    [true, true],
  ];
  for (const [k, [userFlag, serviceFlag]] of flags.entries()) {
    await set({
      allow_user_session: userFlag === true,
      allow_service_key: serviceFlag === true,
      accept_public: true,
    });
    // Twice: the second time the answer comes from memory.
    for (const [name, headers, statuses, auth] of rows)
      for (const turn of ['asked', 'remembered']) {
        const a = await s.trigger('mine/run', { headers });
        const at = `${name}, flags ${userFlag} ${serviceFlag}, ${turn}`;
        t.equal(a.status, statuses[k], at);
        if (a.status === 200) t.same(authOf(a), k === 0 ? null : auth, at);
        if (a.status === 401) t.match(a.headers.get('www-authenticate'), /^Bearer realm=/, at);
      }
  }
});

t.test('bodies arrive complete while the database is asked for the caller', async t => {
  const { s, set, token } = await world(t);
  await set({ allow_user_session: true });
  const lengths = [0, 1, 5000, 300_000, 3_000_000];
  for (const length of lengths) {
    const { text } = await token();
    const a = await s.trigger('mine/run', { method: 'POST', headers: bearer(text), body: 'x'.repeat(length) });
    t.equal(a.status, 200, `${length} bytes`);
    t.match((a.json as { http: { headers: unknown } }).http.headers, { 'content-length': String(length) });
  }
  const refused = await s.trigger('mine/run', {
    method: 'POST',
    headers: bearer('pht_x'),
    body: 'x'.repeat(3_000_000),
  });
  t.equal(refused.status, 401);
  const { text } = await token();
  const large = await s.trigger('mine/run', {
    method: 'POST',
    headers: bearer(text),
    body: 'x'.repeat(11 * 1024 * 1024),
  });
  t.equal(large.status, 413);
});

t.test('a session cookie counts only from pages of the service or from an origin of the plugin', async t => {
  const { s, session, set, token } = await world(t);
  await set({ allow_user_session: true });
  await s.admin('PUT', '/plugins/mine/origins', { origins: ['https://app.example'] });
  const { secret } = await session('user');
  const { text } = await token();
  const host = new URL(s.base).host;
  const rows: Array<[Record<string, string>, number]> = [
    [{}, 200],
    [{ 'sec-fetch-site': 'same-origin' }, 200],
    [{ 'sec-fetch-site': 'none' }, 200],
    [{ 'sec-fetch-site': 'cross-site' }, 403],
    [{ 'sec-fetch-site': 'same-site' }, 403],
    [{ origin: `http://${host}` }, 200],
    [{ origin: 'https://evil.example' }, 403],
    [{ origin: 'null' }, 403],
    [{ 'sec-fetch-site': 'cross-site', origin: 'https://app.example' }, 200],
    [{ origin: 'https://app.example.evil.example' }, 403],
  ];
  for (const [headers, status] of rows) {
    const at = JSON.stringify(headers);
    t.equal(
      (await s.trigger('mine/run', { method: 'POST', headers: { ...headers, ...cookie('user_session', secret) } }))
        .status,
      status,
      at,
    );
    t.equal(
      (await s.trigger('mine/run', { headers: { ...headers, ...cookie('user_session', secret) } })).status,
      200,
      `GET ${at}`,
    );
    t.equal(
      (await s.trigger('mine/run', { method: 'POST', headers: { ...headers, ...bearer(text) } })).status,
      200,
      `token ${at}`,
    );
  }
});

/** A second host process on the database and the modules of a first one; the port it listens on. */
async function startOtherHost(t: { teardown(fn: () => unknown): void }, s: TestService): Promise<number> {
  const main = path.resolve(import.meta.dirname, '../../src/main.ts');
  const child = fork(main, ['serving'], {
    execArgv: ['--disable-warning=ExperimentalWarning'],
    env: { ...BARE_ENV },
  });
  const gone = new Promise(resolve => child.once('exit', resolve));
  t.teardown(async () => {
    child.kill('SIGTERM');
    await gone;
  });
  const env = {
    BOT_HTTP_PORT: '0',
    BOT_DATA_DIR: s.directory,
    BOT_DATABASE_URL: s.databaseUrl,
    BOT_EXECUTION_LANES: '4',
    BOT_LOG_LEVEL: 'silent',
  };
  const go: GoMessage = {
    kind: 'go',
    env,
    origin: originOf(loadConfig(null, env)),
    hostId: 1,
    processes: 1,
    slots: { own: 255, except: {} },
    noteFile: path.join(s.directory, 'other.lanes'),
    suspects: [],
    sampleModule: null,
    pages: null,
  };
  fs.writeFileSync(go.noteFile, new Uint8Array((LIMITS.lanesMax + 1) * 4));
  const listening = new Promise<ServingMessage>(resolve => child.once('message', resolve));
  child.send(go);
  const message = await listening;
  if (message.kind !== 'listening') throw new Error(JSON.stringify(message));
  return message.port;
}

t.test('two host processes on one database: what is revoked on one is refused on the other at once', async t => {
  const { key, s, session, set, token, user } = await world(t);
  await set({ allow_user_session: true, allow_service_key: true });
  const port = await startOtherHost(t, s);
  const status = async (headers: Record<string, string>): Promise<number> =>
    (await fetch(`http://127.0.0.1:${port}/api/triggers/http/mine/run`, { headers })).status;

  const live = await session('user');
  const { text, token: one } = await token();
  const { key: k, text: keyText } = await key('mine', 'run');
  const mine = cookie('user_session', live.secret);
  const rows: Array<[string, Record<string, string>, () => Promise<{ status: number }>]> = [
    ['a token', bearer(text), () => fetch(`${s.base}/api/auth/tokens/${one.id}`, { method: 'DELETE', headers: mine })],
    ['a service key', bearer(keyText), () => s.admin('DELETE', `/service-keys/${k.id}`)],
    ['a session', mine, () => s.admin('DELETE', `/users/${user.id}/sessions/${live.session.id}`)],
  ];
  for (const [, headers] of rows) t.equal(await status(headers), 200);
  for (const [what, headers, revoke] of rows) {
    t.equal((await revoke()).status, 204);
    const revoked = performance.now();
    // What was remembered there is good for ten seconds: only the notice can have it refused within a few requests.
    let asked = 1;
    while ((await status(headers)) !== 401 && asked < 100) asked++;
    t.ok(asked < 100, `${what} is refused`);
    t.comment(`${what}: refused by the other process after ${(performance.now() - revoked).toFixed(1)} ms`);
  }
});

t.test('a rotated key keeps its old secret only for the overlap, and last-used times are written', async t => {
  const { db, s, set } = await world(t);
  await set({ allow_service_key: true });
  const made = await s.admin('POST', '/service-keys', {
    name: 'grades',
    scopes: [{ plugin_id: 'mine', trigger: 'run' }],
  });
  t.equal(made.status, 201);
  const first = String(made.json.key);
  t.match(first, /^phk_[\w-]{16}\.[\w-]{43}$/);
  const use = async (text: string): Promise<number> => (await s.trigger('mine/run', { headers: bearer(text) })).status;
  t.equal(await use(first), 200);
  const rotated = await s.admin('POST', `/service-keys/${made.json.id}/rotate`, { overlap_seconds: 600 });
  const second = String(rotated.json.key);
  t.not(second, first);
  t.same([await use(first), await use(second)], [200, 200]);
  t.match((await s.admin('GET', '/audit?action=service_key.rotate')).json, {
    items: [{ before: { name: 'grades', old_secret_until: null }, after: { old_secret_until: /^20/ } }],
  });
  await db.query("UPDATE service_keys SET old_until = now() - interval '1 second'");
  const third = String((await s.admin('POST', `/service-keys/${made.json.id}/rotate`, {})).json.key);
  t.same([await use(first), await use(second), await use(third)], [401, 401, 200]);
  const rotate = (body: unknown) => s.admin('POST', `/service-keys/${made.json.id}/rotate`, body);
  await db.query("UPDATE service_keys SET expires_at = now() + interval '1 minute'");
  const last = (await rotate({ overlap_seconds: 600 })).json;
  t.equal(last.old_secret_until, last.expires_at, 'no secret outlives its key');
  await db.query("UPDATE service_keys SET expires_at = now() - interval '1 second'");
  t.match((await rotate({})).json, { status: 409, detail: /the key has expired; make a new one/ });
  await s.service.stop(1000);
  const { rows } = await db.query<{ last_used_at: Date | null }>('SELECT last_used_at FROM service_keys');
  t.ok(rows[0]?.last_used_at);
  const { rows: kept } = await db.query<{ text: string }>('SELECT k::text AS text FROM service_keys k');
  t.notMatch(kept[0]?.text, third.split('.')[1] ?? 'x', 'the secret is stored nowhere');
});

t.test('wrong input of the key and token endpoints is named', async t => {
  const { s, session } = await world(t);
  const rows: Array<[unknown, string]> = [
    [{ scopes: [{ plugin_id: 'a', trigger: 'x' }] }, '/name'],
    [{ name: 'x', scopes: [] }, '/scopes'],
    [{ name: 'x', scopes: [{ plugin_id: 'a', trigger: 'x', triggers: 'x' }] }, '/scopes/0/triggers'],
    [{ name: 'x', scopes: [{ plugin_id: 'a', trigger: 'x' }], expires_at: 'soon' }, '/expires_at'],
    [{ name: 'x', scopes: [{ plugin_id: 'a', trigger: 'x' }], expires_at: '2001-01-01T00:00:00Z' }, '/expires_at'],
  ];
  for (const [body, pointer] of rows) {
    const a = await s.admin('POST', '/service-keys', body);
    t.equal(a.status, 422, JSON.stringify(body));
    t.match(a.json, { errors: [{ pointer }] });
  }
  t.equal((await s.admin('GET', '/service-keys/99')).status, 404);
  t.equal((await s.admin('DELETE', '/service-keys/x')).status, 404);
  t.equal((await s.admin('POST', '/service-keys/99/rotate', {})).status, 404);
  const { secret } = await session('user');
  const post = (headers: Record<string, string>, body: unknown): Promise<Response> =>
    fetch(`${s.base}/api/auth/tokens`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...headers },
      body: JSON.stringify(body),
    });
  t.equal((await post({}, { name: 'x' })).status, 401, 'without a session');
  t.equal((await post(cookie('user_session', secret), {})).status, 422);
  t.equal(
    (await post({ ...cookie('user_session', secret), origin: 'https://evil.example' }, { name: 'x' })).status,
    403,
  );
  const made = await post(cookie('user_session', secret), { name: 'laptop' });
  t.equal(made.status, 201);
  t.match(((await made.json()) as { token: string }).token, /^pht_[\w-]{16}\.[\w-]{43}$/);
  const listed = await fetch(`${s.base}/api/auth/tokens`, { headers: cookie('user_session', secret) });
  const { items } = (await listed.json()) as { items: Array<Record<string, unknown>> };
  t.match(items, [{ name: 'laptop' }]);
  t.notOk('token' in (items[0] ?? {}), 'shown once');
});

t.test('a secret is valid only for its kind, also when it is cached', async t => {
  const { s, session, set, token } = await world(t);
  await set({ allow_user_session: true });
  const { text } = await token();
  const { secret } = await session('user');
  for (let round = 0; round < 2; round++) {
    t.equal((await s.trigger('mine/run', { headers: bearer(text) })).status, 200);
    t.equal((await s.trigger('mine/run', { headers: cookie('user_session', secret) })).status, 200);
    t.equal(
      (await s.trigger('mine/run', { headers: cookie('user_session', text) })).status,
      401,
      'a token as a cookie',
    );
    t.equal((await s.trigger('mine/run', { headers: bearer(secret) })).status, 401, 'a session as a token');
  }
});

t.test(
  "an administrator sees and revokes a user's tokens; revoking a token that does not exist changes no other",
  async t => {
    const { db, s, set, token, user } = await world(t);
    await set({ allow_user_session: true });
    const { text, token: one } = await token();
    t.equal((await s.trigger('mine/run', { headers: bearer(text) })).status, 200);
    const listed = await s.admin('GET', `/users/${user.id}/tokens`);
    t.match(listed.json, { items: [{ id: one.id, name: 'n' }] });
    t.notOk(listed.text.includes(text.split('.')[1] ?? text));
    t.equal((await s.admin('DELETE', `/users/${user.id + 1}/tokens/${one.id}`)).status, 404, "another user's");
    t.equal((await s.admin('DELETE', `/users/${user.id}/tokens/${one.id}`)).status, 204);
    t.equal((await s.trigger('mine/run', { headers: bearer(text) })).status, 401);
    const { rows } = await db.query("SELECT object_id FROM audit_log WHERE action = 'token.revoke'");
    t.same(rows, [{ object_id: String(user.id) }]);
  },
);

t.test('the headers of a request may have 16 KiB', async t => {
  const { s } = await world(t);
  t.equal((await s.trigger('mine/run', { headers: { 'x-large': 'x'.repeat(15_000) } })).status, 200);
  t.equal((await s.trigger('mine/run', { headers: { 'x-large': 'x'.repeat(17_000) } })).status, 431);
});
