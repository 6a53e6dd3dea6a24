import http from 'node:http';
import t from 'tap';
import { openDatabase } from '../../src/db/database.ts';
import { PASSWORD_COST, setPasswordCost } from '../../src/identity/password.ts';
import { request, startTestService, TEST_PASSWORD_COST, TOKEN } from '../support/service.ts';
import { until } from '../support/until.ts';
import { watPlugin } from '../support/wat.ts';

const PASSWORD = 'correct horse battery';
const EMAIL = 'root@uni.example';

async function world(t: { teardown(fn: () => unknown): void }) {
  const s = await startTestService();
  t.teardown(() => s.stop());
  const db = openDatabase(s.databaseUrl, 2, () => {});
  t.teardown(() => db.close());
  const call = (method: string, path: string, body?: unknown, headers: Record<string, string> = {}) =>
    request(`${s.base}${path}`, {
      method,
      headers: { ...(body === undefined ? {} : { 'content-type': 'application/json' }), ...headers },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
  const setup = (body: unknown = { email: EMAIL, password: PASSWORD, name: 'Root' }) =>
    call('POST', '/api/admin/auth/setup', body, { authorization: `Bearer ${TOKEN}` });
  const login = (email = EMAIL, password = PASSWORD) => call('POST', '/api/admin/auth/login', { email, password });
  return { s, db, call, setup, login };
}

/** Cookies of an answer, as a browser would send them back. */
const cookiesOf = (headers: Headers): Record<string, string> => ({
  cookie: headers
    .getSetCookie()
    .map(c => c.split(';')[0] ?? '')
    .filter(c => !c.endsWith('='))
    .join('; '),
});

t.test('of fifty parallel attempts to become the first administrator one wins, and setup mode closes', async t => {
  const { call, db, s, setup } = await world(t);
  t.match((await call('GET', '/api/admin/auth/check')).json, { authenticated: true, setup_mode: true });
  t.equal(
    (await call('POST', '/api/admin/auth/setup', { email: EMAIL, password: PASSWORD })).status,
    401,
    'without the setup token',
  );
  const all = await Promise.all(
    Array.from({ length: 50 }, (_, k) => setup({ email: `a${k}@uni.example`, password: PASSWORD, locale: 'en' })),
  );
  t.equal(all.filter(a => a.status === 200).length, 1);
  t.equal(all.filter(a => a.status === 409).length, 49);
  const { rows } = await db.query('SELECT 1 FROM admin_credentials');
  t.equal(rows.length, 1);
  const { rows: users } = await db.query('SELECT locale FROM global_users');
  t.same(users, [{ locale: 'en' }], 'the others leave nothing behind');
  t.match((await call('GET', '/api/admin/auth/check')).json, { authenticated: false, setup_mode: false });
  t.equal((await s.admin('GET', '/plugins')).status, 401, 'the setup token opens nothing any more');
  t.equal((await setup()).status, 409);
});

t.test('an administrator logs in, works, and logs out', async t => {
  const { call, db, setup, login } = await world(t);
  await setup();
  const a = await login();
  t.equal(a.status, 200);
  t.match(a.json, { admin: { email: EMAIL, must_change_password: false } });
  const [admin, user] = a.headers.getSetCookie();
  t.match(admin, /^admin_session=[\w-]{43}; Path=\/; Max-Age=43200; HttpOnly; SameSite=Lax$/);
  t.match(user, /^user_session=[\w-]{43}; Path=\/; Max-Age=34560000; HttpOnly; SameSite=Lax$/);
  const me = cookiesOf(a.headers);
  t.equal((await call('GET', '/api/admin/plugins', undefined, me)).status, 200);
  t.match((await call('GET', '/api/admin/auth/check', undefined, me)).json, {
    authenticated: true,
    admin: { email: EMAIL },
  });
  const userOnly = { cookie: me.cookie?.split('; ').find(c => c.startsWith('user_')) ?? '' };
  t.equal(
    (await call('GET', '/api/admin/plugins', undefined, userOnly)).status,
    401,
    'user_session does not open /api/admin',
  );
  t.equal((await call('GET', '/api/auth/sessions', undefined, userOnly)).status, 200);
  const { rows } = await db.query<{ row: string }>('SELECT s::text AS row FROM sessions s');
  for (const { row } of rows)
    t.notMatch(row, me.cookie?.split('=')[1]?.slice(0, 43) ?? 'x', 'secrets are stored as hashes');

  t.equal(
    (await call('POST', '/api/admin/auth/logout', undefined, { ...me, origin: 'https://evil.example' })).status,
    403,
  );
  const out = await call('POST', '/api/admin/auth/logout', undefined, me);
  t.equal(out.status, 204);
  t.match(out.headers.getSetCookie(), [/^admin_session=; .*Max-Age=0/, /^user_session=; .*Max-Age=0/]);
  t.equal((await call('GET', '/api/admin/plugins', undefined, me)).status, 401);
  t.equal((await call('GET', '/api/auth/sessions', undefined, me)).status, 401);
});

t.test('an admin session ends after twelve hours, or after two without use', async t => {
  const { call, db, setup } = await world(t);
  const me = cookiesOf((await setup()).headers);
  t.equal((await call('GET', '/api/admin/plugins', undefined, me)).status, 200);
  await db.query("UPDATE sessions SET last_used_at = now() - interval '2 hours 1 second' WHERE kind = 'admin'");
  t.equal((await call('GET', '/api/admin/plugins', undefined, me)).status, 401);
  await db.query(
    "UPDATE sessions SET last_used_at = now(), expires_at = now() - interval '1 second' WHERE kind = 'admin'",
  );
  t.equal((await call('GET', '/api/admin/plugins', undefined, me)).status, 401);
});

t.test('a live list that stays open is no use of the session that opened it', async t => {
  const { call, db, s, setup } = await world(t);
  const me = cookiesOf((await setup()).headers);
  const leaving = new AbortController();
  t.teardown(() => leaving.abort());
  const opened = Date.now();
  const stream = await fetch(`${s.base}/api/admin/executions/stream`, { headers: me, signal: leaving.signal });
  t.equal(stream.status, 200);
  const chunks = stream.body?.getReader();
  const used = async (): Promise<number> =>
    (
      await db.query<{ at: Date }>("SELECT last_used_at AS at FROM sessions WHERE kind = 'admin'")
    ).rows[0]?.at.getTime() ?? 0;
  // That it was opened is a use, which is written some seconds later.
  await until(async () => (await used()) >= opened);
  const hour = "UPDATE sessions SET last_used_at = now() - interval '1 hour' WHERE kind = 'admin'";
  await db.query(hour);
  const old = await used();
  // Each asks whether the reader may go on; what one of them noted would be written before the third.
  for (let beats = 0; beats < 3; ) {
    const { value } = (await chunks?.read()) ?? {};
    if (value === undefined) throw new Error('the stream ended');
    if (/^:/m.test(new TextDecoder().decode(value))) beats++;
  }
  t.equal(await used(), old);
  t.equal((await call('GET', '/api/admin/plugins', undefined, me)).status, 200);
});

t.test('a wrong password and an unknown email get one answer', async t => {
  const { call, db, login, setup } = await world(t);
  await setup();
  for (const [email, password] of [
    [EMAIL, 'not the password'],
    ['unknown@uni.example', 'not the password'],
    // A password beyond 72 bytes is not cut to a right one.
    [EMAIL, `${PASSWORD}${'x'.repeat(80)}`],
  ]) {
    await db.query('DELETE FROM login_failures');
    const a = await login(email, password);
    t.same([a.status, a.json.detail], [401, 'email or password is wrong']);
  }
  t.equal((await call('POST', '/api/admin/auth/login', { email: EMAIL })).status, 422);
});

t.test('a new password follows the rules, ends every session and opens a new one', async t => {
  const { call, db, login, setup } = await world(t);
  const first = cookiesOf((await setup()).headers);
  const second = cookiesOf((await login()).headers);
  const put = (body: unknown, headers: Record<string, string>) =>
    call('PUT', '/api/admin/auth/password', body, headers);
  t.equal((await put({ current_password: PASSWORD, new_password: 'new password 1' }, {})).status, 401);
  const rows: Array<[string, RegExp, string]> = [
    ['short', /at least 10 bytes/, 'too_few_bytes'],
    ['ы'.repeat(37), /has 74 bytes; at most 72/, 'too_many_bytes'],
    [PASSWORD, /must differ/, 'unchanged'],
  ];
  for (const [text, message, code] of rows) {
    const a = await put({ current_password: PASSWORD, new_password: text }, first);
    t.equal(a.status, 422, text);
    t.match(a.json, { errors: [{ pointer: '/new_password', message, code }] });
  }
  t.match((await put({ current_password: 'wrong password', new_password: 'new password 1' }, first)).json, {
    status: 422,
    errors: [{ pointer: '/current_password' }],
  });
  await db.query('DELETE FROM login_failures');
  const changed = await put({ current_password: PASSWORD, new_password: 'ы'.repeat(36) }, first);
  t.equal(changed.status, 200);
  for (const old of [first, second]) t.equal((await call('GET', '/api/admin/plugins', undefined, old)).status, 401);
  t.equal((await call('GET', '/api/admin/plugins', undefined, cookiesOf(changed.headers))).status, 200);
  t.equal((await login()).status, 401);
  await db.query('DELETE FROM login_failures');
  t.equal((await login(EMAIL, 'ы'.repeat(36))).status, 200);

  await db.query(
    "UPDATE admin_credentials SET must_change_password = true, temporary_until = now() + interval '1 hour'",
  );
  const temporary = cookiesOf((await login(EMAIL, 'ы'.repeat(36))).headers);
  t.match((await call('GET', '/api/admin/plugins', undefined, temporary)).json, {
    status: 403,
    code: 'password_change_required',
  });
  await db.query("UPDATE admin_credentials SET temporary_until = now() - interval '1 second'");
  t.equal((await login(EMAIL, 'ы'.repeat(36))).status, 401, 'a temporary password lapses');
});

t.test('dangerous actions need a password given in the last ten minutes', async t => {
  const { call, db, s, setup } = await world(t);
  await s.install(watPlugin({ id: 'here', imports: ['respond'], handle: '(i32.const 0)' }));
  const me = cookiesOf((await setup()).headers);
  const settings = '/api/admin/plugins/here/triggers/run/settings';
  t.equal((await call('PUT', settings, { enabled: true }, me)).status, 200);
  await db.query("UPDATE sessions SET password_at = now() - interval '11 minutes'");
  const dangerous: Array<[string, string, unknown]> = [
    ['PUT', settings, { enabled: true }],
    ['PUT', '/api/admin/plugins/here/origins', { origins: [] }],
    ['POST', '/api/admin/plugins/here/install', { wasm_key: 'x' }],
    ['POST', '/api/admin/plugins/here/rollback', { wasm_key: 'x' }],
    ['DELETE', '/api/admin/plugins/here', undefined],
    ['POST', '/api/admin/service-keys', { name: 'x', scopes: [{ plugin_id: 'here' }] }],
  ];
  for (const [method, path, body] of dangerous)
    t.match(
      (await call(method, path, body, me)).json,
      { status: 403, code: 'password_confirmation_required' },
      `${method} ${path}`,
    );
  t.equal((await call('GET', settings, undefined, me)).status, 200, 'reading goes on');
  t.match((await call('POST', '/api/admin/auth/confirm', { password: 'wrong password' }, me)).json, {
    status: 422,
    errors: [{ pointer: '/password' }],
  });
  await db.query('DELETE FROM login_failures');
  t.equal((await call('POST', '/api/admin/auth/confirm', { password: PASSWORD }, me)).status, 200);
  t.equal((await call('PUT', settings, { enabled: true }, me)).status, 200);
  t.equal(
    (await call('PUT', settings, { enabled: true }, { ...me, 'sec-fetch-site': 'cross-site' })).status,
    403,
    'from elsewhere nothing',
  );
});

t.test('a login that is under way while the password is changed does not get in with the old one', async t => {
  // They meet only while passwords take their time.
  setPasswordCost(PASSWORD_COST);
  t.teardown(() => setPasswordCost(TEST_PASSWORD_COST));
  const { call, login, setup, db } = await world(t);
  const me = cookiesOf((await setup()).headers);
  for (let round = 0; round < 3; round++) {
    const [from, to] = round % 2 === 0 ? [PASSWORD, 'another password'] : ['another password', PASSWORD];
    const change = call('PUT', '/api/admin/auth/password', { current_password: from, new_password: to }, me);
    const late = Promise.all([login(EMAIL, from), login(EMAIL, from)]);
    const changed = await change;
    t.equal(changed.status, 200);
    Object.assign(me, cookiesOf(changed.headers));
    for (const a of await late) {
      const status = (await call('GET', '/api/admin/plugins', undefined, cookiesOf(a.headers))).status;
      t.ok(a.status === 401 || status === 401, `login ${a.status}, its session ${status}`);
    }
    const { rows } = await db.query("SELECT 1 FROM sessions WHERE kind = 'admin'");
    t.equal(rows.length, 1, 'the session of the change is the only one');
    await db.query('DELETE FROM login_failures');
  }
});

t.test('a stranger who guesses at the login does not keep an administrator from acting', async t => {
  const { call, db, login, setup } = await world(t);
  const me = cookiesOf((await setup()).headers);
  await login(EMAIL, 'a guess');
  // As if there had been many more.
  const repeat = () =>
    db.query(
      'INSERT INTO login_failures (account, caller, pending) SELECT account, caller, false FROM login_failures, generate_series(1, 9)',
    );
  await repeat();
  t.equal((await login()).status, 429);
  const confirm = (password: string) => call('POST', '/api/admin/auth/confirm', { password }, me);
  t.equal((await confirm(PASSWORD)).status, 200);
  t.equal((await confirm('a guess')).status, 422);
  await repeat();
  t.equal((await confirm(PASSWORD)).status, 429, 'a thief of a session');
  await db.query("UPDATE login_failures SET failed_at = failed_at - interval '60 seconds'");
  t.equal((await confirm(PASSWORD)).status, 200);
});

t.test('setup mode appoints no administrator except through POST /api/admin/auth/setup', async t => {
  const { db, s } = await world(t);
  const user = await s.admin('POST', '/users', { display_name: 'Ada' });
  const all = await Promise.all(
    Array.from({ length: 4 }, (_, k) =>
      s.admin('POST', '/admins', { global_user_id: user.json.id, email: `a${k}@uni.example` }),
    ),
  );
  for (const a of all) t.match(a.json, { status: 409, detail: /\/api\/admin\/auth\/setup/ });
  t.equal((await db.query('SELECT 1 FROM admin_credentials')).rows.length, 0);
});

t.test('setup mode for loopback cannot be used by pages and proxies', async t => {
  const s = await startTestService({ BOT_ADMIN_SETUP: 'loopback' });
  t.teardown(() => s.stop());
  const status = (headers: Record<string, string>, method = 'GET'): Promise<number> =>
    new Promise((resolve, reject) => {
      const ask = http.request(
        `${s.base}/api/admin/plugins${method === 'GET' ? '' : '/upload'}`,
        { method, headers },
        res => {
          res.resume();
          resolve(res.statusCode ?? 0);
        },
      );
      ask.once('error', reject);
      ask.end();
    });
  t.equal(await status({}), 200);
  t.equal(await status({ host: 'localhost:8080' }), 200);
  t.equal(await status({ 'x-forwarded-for': '203.0.113.5' }), 401, 'through a proxy on this machine');
  t.equal(await status({ host: 'rebound.evil.example' }), 401, 'a name that was pointed here');
  t.equal(await status({ 'sec-fetch-site': 'cross-site' }, 'POST'), 403, 'a page from elsewhere');
  t.equal(await status({ origin: 'https://evil.example' }, 'POST'), 403);
});
