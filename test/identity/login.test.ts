import t from 'tap';
import { networkOf } from '../../src/base/ip-address.ts';
import { LIMITS } from '../../src/base/limits.ts';
import { openDatabase } from '../../src/db/database.ts';
import { logIn as logInAs } from '../../src/identity/admin-login.ts';
import { isCommonPassword } from '../../src/identity/frequent-passwords.ts';
import { type Counts, delayAfter, removeOldFailures, waitOf } from '../../src/identity/login-throttle.ts';
import { PASSWORD_COST, setPasswordCost } from '../../src/identity/password.ts';
import { addSession } from '../../src/identity/sessions.ts';
import { CookieJar } from '../support/identity-provider.ts';
import { type Answer, request, startTestService, TOKEN } from '../support/service.ts';

const PASSWORD = 'correct horse battery';
const EMAIL = 'root@uni.example';

type Headers_ = Record<string, string>;

// Attempts meet only while passwords take their time.
setPasswordCost(PASSWORD_COST);

/** One service for the whole file, behind a proxy of the test's that says where a request comes from. */
const s = await startTestService({ BOT_HTTP_TRUSTED_PROXIES: '127.0.0.1' });
t.teardown(() => s.stop());
const db = openDatabase(s.databaseUrl, 2, () => {});
t.teardown(() => db.close());

const call = (method: string, path: string, headers: Headers_ = {}, body?: unknown): Promise<Answer> =>
  request(`${s.base}${path}`, {
    method,
    headers: { ...(body === undefined ? {} : { 'content-type': 'application/json' }), ...headers },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
const from = (address: string): Headers_ => ({ 'x-forwarded-for': address });
const logIn = (headers: Headers_, password = PASSWORD, email = EMAIL) =>
  call('POST', '/api/admin/auth/login', headers, { email, password });
const retryAfter = (a: Answer): number => Number(a.headers.get('retry-after'));
/** Lets the time pass that callers wait for. */
const pass = (seconds: number) =>
  db.query('UPDATE login_failures SET failed_at = failed_at - make_interval(secs => $1)', [seconds]);
const clear = () => db.query('DELETE FROM login_failures');
const audited = async (action: string): Promise<Array<Record<string, unknown>>> =>
  (await db.query<Record<string, unknown>>('SELECT * FROM audit_log WHERE action = $1 ORDER BY id DESC', [action]))
    .rows;

const failed = (caller: string, count: number, account = `user ${root}`) =>
  db.query('INSERT INTO login_failures (account, caller, pending) SELECT $1, $2, false FROM generate_series(1, $3)', [
    account,
    caller,
    count,
  ]);

const first = await call(
  'POST',
  '/api/admin/auth/setup',
  { authorization: `Bearer ${TOKEN}` },
  { email: EMAIL, password: PASSWORD },
);
const rootBrowser = new CookieJar();
rootBrowser.take(first.headers);
const root = Number((first.json as { admin: { global_user_id: number } }).admin.global_user_id);

t.test('the wait grows with the failures of the caller: 1 s, 2 s, 4 s and so on to a minute', async t => {
  t.same([0, 1, 2, 3, 4, 5, 6, 7, 8, 100].map(delayAfter), [0, 1, 2, 4, 8, 16, 32, 60, 60, 60]);
  const rows: Array<[Partial<Counts>, number, string]> = [
    [{}, 0, 'no failures'],
    [{ failed: 1, since_last: 0 }, 1, 'one failure'],
    [{ failed: 3, since_last: 0.5 }, 4, 'seconds are rounded up'],
    [{ failed: 3, since_last: 4 }, 0, 'when the time is over'],
    [{ account_failed: 1000 }, 0, 'failures of others at the account alone'],
    [{ failed: 1, account_failed: 6, since_last: 2 }, 30, 'failures of other callers and one of its own'],
    [{ running: 2 }, 0, 'attempts in parallel without a failure'],
    [{ running: LIMITS.loginsAtOnceMax }, 1, 'too many of them'],
    [{ failed: 1, running: 1, since_last: 5 }, 1, 'one at a time after a failure'],
  ];
  for (const [counts, wait, why] of rows)
    t.equal(waitOf({ failed: 0, running: 0, account_failed: 0, since_last: null, ...counts }), wait, why);
});

t.test(
  'a caller with a failed login gets 429 with Retry-After, even with the right password, until its wait is over',
  async t => {
    await clear();
    const here = from('203.0.113.1');
    t.match((await logIn(here, 'a wrong password')).json, { status: 401, detail: 'email or password is wrong' });
    const { rows } = await db.query('SELECT account, caller, pending FROM login_failures');
    t.same(rows, [{ account: `user ${root}`, caller: 'address 203.0.113.1', pending: false }]);
    await failed('address 203.0.113.1', 6);
    const refused = await logIn(here);
    t.match(refused.json, { status: 429, code: 'too_many_attempts' });
    t.ok(retryAfter(refused) > 20 && retryAfter(refused) <= 60);
    await pass(60);
    t.equal((await logIn(here)).status, 200);
    t.equal((await db.query('SELECT 1 FROM login_failures')).rows.length, 0, 'then its failures are forgotten');

    await failed('address 203.0.113.1', 7, 'email of another user');
    t.equal((await logIn(here)).status, 429, 'whatever account it failed at');
    await pass(60);
    t.equal((await logIn(here)).status, 200);
    t.equal(
      (await db.query('SELECT 1 FROM login_failures')).rows.length,
      7,
      'a login at one account leaves those at another',
    );
    await db.query('UPDATE login_failures SET failed_at = now() - make_interval(secs => $1)', [
      LIMITS.loginFailureWindowSeconds - 1,
    ]);
    t.equal(await removeOldFailures(db), 0);
    await pass(2);
    t.equal(await removeOldFailures(db), 7, 'failures count for fifteen minutes');
  },
);

t.test('a caller without failures of its own never waits, whatever others do to the account', async t => {
  await clear();
  for (const caller of ['address 198.51.100.1', 'address 2001:db8:1:2::/64']) await failed(caller, 20);
  const status = async (headers: Headers_) => (await logIn(headers)).status;
  t.equal(await status(from('198.51.100.1')), 429, 'who guesses waits');
  t.equal(await status(from('203.0.113.9')), 200, 'another address does not');
  t.equal(await status(from('2001:db8:1:2:ffff::9')), 429, 'the same network of 64 bits does');
  t.equal(await status(from('2001:db8:1:3::1')), 200, 'the next one does not');
  t.equal(await status(from('::ffff:198.51.100.1')), 429, 'an IPv4-mapped address is the IPv4 one');
  t.equal(await status({ ...from('198.51.100.1'), ...rootBrowser.header }), 200, 'a known browser there does not');
});

t.test(
  'the first failure of a caller waits by the failure count of the account, and does not reveal which accounts exist',
  async t => {
    for (const email of [EMAIL, 'unknown@uni.example']) {
      await clear();
      const here = from('203.0.113.2');
      t.equal((await logIn(here, 'a guess', email)).status, 401);
      const { rows } = await db.query<{ account: string }>('SELECT account FROM login_failures');
      await failed('address 198.51.100.1', 6, rows[0]?.account);
      const refused = await logIn(here, PASSWORD, email);
      t.equal(refused.status, 429);
      t.ok(retryAfter(refused) > 20, email);
    }
    await clear();
  },
);

t.test('every spelling of an email is counted at the account the database finds', async t => {
  const email = 'İda@uni.example';
  await db.query('UPDATE admin_credentials SET email = $1', [email]);
  t.teardown(() => db.query('UPDATE admin_credentials SET email = $1', [EMAIL]));
  const spellings = [
    email,
    email.toLowerCase(),
    email.toUpperCase(),
    ` ${email}`,
    'İDA@UNI.EXAMPLE',
    'ida@uni.example',
  ];
  let found = 0;
  for (const [k, spelling] of spellings.entries()) {
    await clear();
    const { rows: known } = await db.query('SELECT 1 FROM admin_credentials WHERE lower(email) = lower($1)', [
      spelling.trim(),
    ]);
    await logIn(from(`203.0.113.${100 + k}`), 'a guess', spelling);
    const { rows } = await db.query<{ account: string }>('SELECT account FROM login_failures');
    t.match(rows, [{ account: known.length === 1 ? /^user \d+$/ : /^email [0-9a-f]{64}$/ }], JSON.stringify(spelling));
    found += known.length;
  }
  t.ok(found >= 3);
  await clear();
});

t.test('attempts of one caller in parallel count each other: three passwords are compared, not thirty', async t => {
  await clear();
  const here = from('203.0.113.3');
  const all = await Promise.all(Array.from({ length: 30 }, (_, k) => logIn(here, `guess number ${k}`)));
  t.equal(all.filter(a => a.status === 401).length, LIMITS.loginsAtOnceMax);
  t.equal(all.filter(a => a.status === 429).length, 30 - LIMITS.loginsAtOnceMax);
  t.equal(
    (await db.query('SELECT 1 FROM login_failures')).rows.length,
    LIMITS.loginsAtOnceMax,
    'what was refused does not count',
  );
  // One that was never answered: its host ended meanwhile.
  await db.query("UPDATE login_failures SET pending = true, failed_at = now() - interval '31 seconds'");
  await db.query('DELETE FROM login_failures WHERE id > (SELECT min(id) FROM login_failures)');
  t.equal((await logIn(here)).status, 200, 'it counts as failed when its time is over');
  await clear();
});

t.test('a cookie makes a browser known for one account, unchanged, for 180 days', async t => {
  await clear();
  const known = rootBrowser.get('known_browser') ?? '';
  const attacker = from('198.51.100.7');
  await failed('address 198.51.100.7', 20);
  const cookie = (value: string): Headers_ => ({ ...attacker, cookie: `known_browser=${value}` });
  t.equal((await logIn(cookie(known))).status, 200);
  // Not its last character, of which not every bit counts.
  const changed = `${known.slice(0, -4)}${known.at(-4) === 'A' ? 'B' : 'A'}${known.slice(-3)}`;
  for (const wrong of ['', 'x', changed, known.slice(4), 'x'.repeat(600)])
    t.equal((await logIn(cookie(wrong))).status, 429, JSON.stringify(wrong.slice(0, 20)));
  const line = first.headers.getSetCookie().find(c => c.startsWith('known_browser=')) ?? '';
  t.match(line, /; Path=\/api\/admin\/auth; Max-Age=15552000; HttpOnly; SameSite=Lax$/);

  // The browser of one administrator guesses at another: it counts with its address.
  const { rows } = await db.query<{ id: string }>(
    "INSERT INTO global_users (display_name) VALUES ('Ada') RETURNING id",
  );
  await db.query(
    "INSERT INTO admin_credentials (global_user_id, email, password_hash) VALUES ($1, 'ada@uni.example', '!')",
    [rows[0]?.id],
  );
  t.equal((await logIn(cookie(known), 'a guess', 'ada@uni.example')).status, 429);
  await clear();
  const guess = await logIn({ ...from('203.0.113.30'), cookie: `known_browser=${known}` }, 'a guess');
  t.equal(guess.status, 401);
  await db.query(
    'INSERT INTO login_failures (account, caller, pending) SELECT account, caller, false FROM login_failures, generate_series(1, 10)',
  );
  t.equal((await logIn(cookie(known))).status, 429, 'its own failures slow a known browser down');
  t.equal((await logIn(attacker)).status, 200, 'and it alone');
  await db.query('DELETE FROM admin_credentials WHERE global_user_id = $1', [rows[0]?.id]);
  await clear();
});

t.test('the audit log has failed and successful logins, logouts, created and revoked tokens', async t => {
  await clear();
  await logIn(from('203.0.113.4'), 'a wrong password', 'ROOT@uni.example');
  const [failed] = await audited('admin.login_failed');
  t.match(failed, { actor_kind: 'anonymous', actor_user_id: null, address: '203.0.113.4', after: { email: EMAIL } });
  await logIn(from('203.0.113.5'), 'a wrong password', 'my secret password');
  const [unknown] = await audited('admin.login_failed');
  t.match(unknown, { object_id: 'unknown', address: '203.0.113.5', after: { email: null } });
  t.notMatch(JSON.stringify(unknown), /my secret/, 'what was typed into the field for the email is not kept');

  const jar = new CookieJar();
  jar.take((await logIn(from('203.0.113.6'))).headers);
  const [login] = await audited('admin.login');
  t.match(login, { actor_kind: 'admin', actor_name: EMAIL, address: '203.0.113.6' });
  const wrong = await call('POST', '/api/admin/auth/confirm', jar.header, { password: 'a wrong password' });
  t.equal(wrong.status, 422);
  t.match((await audited('admin.confirm_failed'))[0], { actor_kind: 'admin' });

  const token = await call('POST', '/api/auth/tokens', jar.header, { name: 'mine' });
  const [made] = await audited('token.create');
  t.match(made, { actor_kind: 'user', after: { token: token.json.id, name: 'mine' } });
  t.notMatch(JSON.stringify(made), String(token.json.token).split('.')[1] ?? 'x');
  t.equal((await call('DELETE', `/api/auth/tokens/${token.json.id}`, jar.header)).status, 204);
  t.match((await audited('token.revoke'))[0], { actor_kind: 'user', before: { token: token.json.id } });

  const other = new CookieJar();
  other.take((await logIn(from('203.0.113.6'))).headers);
  const { items } = (await call('GET', '/api/auth/sessions', jar.header)).json as {
    items: Array<{ id: number; current: boolean }>;
  };
  const older = items.find(i => !i.current)?.id;
  t.equal((await call('DELETE', `/api/auth/sessions/${older}`, jar.header)).status, 204);
  t.match((await audited('session.revoke'))[0], { actor_kind: 'user', before: { session: older } });

  const before = (await audited('admin.logout')).length;
  t.equal((await call('POST', '/api/admin/auth/logout', jar.header)).status, 204);
  t.equal((await call('POST', '/api/admin/auth/logout', jar.header)).status, 204);
  t.equal((await audited('admin.logout')).length, before + 1, 'a logout without a session is none');
  t.equal((await audited('user.logout')).length, 0, 'the user session that came with it is no second logout');

  // A browser in which an administrator and another user have logged in: two people log out.
  const both = new CookieJar();
  both.take((await logIn(from('203.0.113.6'))).headers);
  const { rows } = await db.query<{ id: string }>(
    "INSERT INTO global_users (display_name) VALUES ('Grace') RETURNING id",
  );
  const of = { userId: Number(rows[0]?.id), withPassword: false, address: '', userAgent: '', browser: false };
  both.set('user_session', (await addSession(db, { kind: 'user', ...of })).secret);
  t.equal((await call('POST', '/api/admin/auth/logout', both.header)).status, 204);
  t.equal((await audited('admin.logout')).length, before + 2);
  t.equal((await audited('user.logout')).length, 1);
});

t.test('a new password of one’s own ends all other sessions and tokens, and leaves administration keys', async t => {
  await clear();
  const [mine, other] = [new CookieJar(), new CookieJar()];
  for (const jar of [mine, other]) jar.take((await logIn(from('203.0.113.7'))).headers);
  const { rows } = await db.query<{ allowed: boolean }>('SELECT true AS allowed');
  t.ok(rows[0]?.allowed);
  const token = await call('POST', '/api/auth/tokens', mine.header, { name: 'mine' });
  const key = await call('POST', '/api/admin/keys', mine.header, { name: 'ci', scopes: ['read'] });
  const over = await call('POST', '/api/admin/keys', mine.header, { name: 'over', scopes: ['read'] });
  await db.query("UPDATE admin_keys SET expires_at = now() - interval '1 second' WHERE id = $1", [over.json.id]);
  for (const common of ['Password123', 'qwertyuiop', '1Q2W3E4R5T']) {
    const refused = await call('PUT', '/api/admin/auth/password', mine.header, {
      current_password: PASSWORD,
      new_password: common,
    });
    t.match(refused.json, { status: 422, errors: [{ pointer: '/new_password', message: /most common/ }] }, common);
  }
  const changed = await call('PUT', '/api/admin/auth/password', mine.header, {
    current_password: PASSWORD,
    new_password: 'a different one 1',
  });
  t.equal(changed.status, 200);
  t.equal(changed.json.admin_keys, 1, 'without the one that is over');
  for (const jar of [mine, other]) {
    t.equal((await call('GET', '/api/admin/plugins', jar.header)).status, 401);
    t.equal((await call('GET', '/api/auth/sessions', jar.header)).status, 401);
  }
  t.equal((await db.query('SELECT 1 FROM user_tokens')).rows.length, 0);
  t.ok(token.json.token);
  t.equal((await call('GET', '/api/admin/plugins', { authorization: `Bearer ${key.json.key}` })).status, 200);
  const now = new CookieJar();
  now.take(changed.headers);
  t.equal((await call('GET', '/api/admin/plugins', now.header)).status, 200, 'the session of the change goes on');
  const back = await call('PUT', '/api/admin/auth/password', now.header, {
    current_password: 'a different one 1',
    new_password: PASSWORD,
  });
  t.equal(back.status, 200);
});

t.test('a login whose password is changed before it is let in gets nothing', async t => {
  await clear();
  const { rows } = await db.query<{ hash: string }>('SELECT password_hash AS hash FROM admin_credentials');
  let isAnswered = false;
  let answer: Promise<Answer> | undefined;
  await db.withTransaction(async client => {
    await client.query('SELECT FROM admin_credentials FOR UPDATE');
    answer = logIn(from('203.0.113.9')).finally(() => (isAnswered = true));
    const waits = "SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'";
    // Outside of the transaction, which keeps the list of connections it has seen.
    while (!isAnswered && (await db.query(waits)).rowCount === 0);
    t.notOk(isAnswered, 'it waits for the row');
    await client.query("UPDATE admin_credentials SET password_hash = 'changed'");
  });
  t.equal((await answer)?.status, 401);
  await db.query('UPDATE admin_credentials SET password_hash = $1', [rows[0]?.hash]);
});

t.test('a login that the service could not decide is no failure of its caller', async t => {
  await clear();
  const attempt = {
    email: EMAIL,
    password: PASSWORD,
    address: '203.0.113.20',
    browserOf: () => null,
    stranger: { kind: 'setup' as const, userId: null, name: 'test', requestId: 'r', address: '203.0.113.20' },
  };
  const away = (): Promise<never> => Promise.reject(new RangeError('the store of sessions is away'));
  await t.rejects(logInAs(db, attempt, away, away), { message: 'the store of sessions is away' });
  t.equal((await db.query('SELECT FROM login_failures')).rowCount, 0);
});

t.test('the most common passwords are refused at the setup too, whatever their capitals', async t => {
  t.same(
    await Promise.all(['PASSWORD123', 'qwertyuiop', '1234567890', PASSWORD, 'Hauptstraße 12'].map(isCommonPassword)),
    [true, true, true, false, false],
  );
});

t.test('an IPv6 address counts with its network, in whatever way it is written', async t => {
  const rows: Array<[string, string]> = [
    ['127.0.0.1', '127.0.0.1'],
    ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2::/64'],
    ['2001:0DB8:0001:2::9', '2001:db8:1:2::/64'],
    ['2001:db8::9', '2001:db8:0:0::/64'],
    ['::1', '0:0:0:0::/64'],
    ['fe80::1%eth0', 'fe80:0:0:0::/64'],
    ['::ffff:192.0.2.1', '192.0.2.1'],
    ['::FFFF:192.0.2.1', '192.0.2.1'],
  ];
  for (const [address, network] of rows) t.equal(networkOf(address), network);
});
