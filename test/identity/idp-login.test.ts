import t from 'tap';
import { LIMITS } from '../../src/base/limits.ts';
import { openDatabase } from '../../src/db/database.ts';
import { IdpLogin } from '../../src/identity/idp-login.ts';
import { safeReturnTo } from '../../src/identity/return-to.ts';
import { makeSecretBox } from '../../src/secrets/secret-box.ts';
import { startBrowser } from '../support/browser.ts';
import { CLIENT, CookieJar, logInAt, startIdentityProvider, visit } from '../support/identity-provider.ts';
import { pageProof, request, startTestService, TOKEN } from '../support/service.ts';
import { watPlugin } from '../support/wat.ts';

const PAGE = '<!doctype html><title>Inside</title><h1>For members</h1>';

/** A service whose users log in at a provider of the test; the provider is shut until `open`. */
async function world(t: { teardown(fn: () => unknown): void }) {
  const provider = await startIdentityProvider();
  t.teardown(() => provider.close());
  const s = await startTestService({
    BOT_IDP_ISSUER: provider.issuer,
    BOT_IDP_CLIENT_ID: CLIENT.id,
    BOT_IDP_CLIENT_SECRET: CLIENT.secret,
  });
  t.teardown(() => s.stop());
  const db = openDatabase(s.databaseUrl, 2, () => {});
  t.teardown(() => db.close());
  const callback = `${s.base}/api/auth/idp/callback`;
  const start = (returnTo?: string) =>
    `${s.base}/api/auth/idp/start${returnTo === undefined ? '' : `?return_to=${encodeURIComponent(returnTo)}`}`;
  /** Installs a page that users alone may see. */
  const installPage = async () => {
    const text = PAGE.replaceAll('"', '\\"');
    const headers = '{"Content-Type":"text/html"}';
    await s.install(
      watPlugin({
        id: 'members',
        imports: ['respond'],
        triggers: [{ name: 'page', type: 'http', path: '/page', methods: ['GET'] }],
        body: `(data (i32.const 64) "${headers.replaceAll('"', '\\22')}") (data (i32.const 256) "${text}")`,
        handle: `(drop (call $respond (i32.const 200) (i32.const 64) (i32.const ${headers.length}) (i32.const 256) (i32.const ${PAGE.length}))) (i32.const 0)`,
      }),
    );
    await s.admin('PUT', '/plugins/members/triggers/page/settings', { allow_user_session: true });
  };
  return { provider, s, db, callback, start, open: () => provider.open(callback), installPage };
}

t.test('an unknown account becomes an ordinary user; the same account is the same user', async t => {
  const w = await world(t);
  w.open();
  const users: unknown[] = [];
  for (let k = 0; k < 2; k++) {
    const jar = new CookieJar();
    const back = await logInAt(w.start('/plugins/x/app/?a=1#top'), 'ada-en', jar, w.callback);
    const done = await visit(back, jar);
    t.same([done.status, done.location], [302, `${w.s.base}/plugins/x/app/?a=1#top`]);
    t.ok(jar.get('user_session'), 'user_session is set');
    t.notOk(jar.get('admin_session'), 'without a record in admin_credentials there is no admin session');
    t.notOk(
      jar.names.some(n => n.startsWith('idp_login_')),
      'the cookie of the login is taken away',
    );
    const proof = await pageProof(w.s.base, '/account/', jar.header);
    const sessions = await request(`${w.s.base}/api/auth/sessions`, {
      headers: { ...jar.header, 'x-page-proof': proof },
    });
    t.equal(sessions.status, 200);
    const { rows } = await w.db.query('SELECT * FROM global_users');
    t.match(rows, [{ idp_accounts_id: 'ada-en', display_name: 'Name of ada-en', locale: 'en' }]);
    users.push(rows[0]?.id);
    await request(`${w.s.base}/api/auth/logout`, { method: 'POST', headers: jar.header });
    t.equal((await request(`${w.s.base}/api/auth/sessions`, { headers: jar.header })).status, 401);
  }
  t.equal(users[0], users[1]);
});

t.test('an administrator who logs in with the provider gets admin_session too', async t => {
  const w = await world(t);
  w.open();
  const jar = new CookieJar();
  await visit(await logInAt(w.start(), 'boss', jar, w.callback), jar);
  const { rows } = await w.db.query<{ id: string }>('SELECT id FROM global_users');
  const first = await fetch(`${w.s.base}/api/admin/auth/setup`, {
    method: 'POST',
    headers: { authorization: `Bearer ${TOKEN}`, 'content-type': 'application/json' },
    body: JSON.stringify({ email: 'root@uni.example', password: 'correct horse battery' }),
  });
  const root = new CookieJar();
  root.take(first.headers);
  const appointed = await request(`${w.s.base}/api/admin/admins`, {
    method: 'POST',
    headers: { ...root.header, 'content-type': 'application/json' },
    body: JSON.stringify({ global_user_id: Number(rows[0]?.id), email: 'boss@uni.example' }),
  });
  t.equal(appointed.status, 201);
  const again = new CookieJar();
  const done = await visit(await logInAt(w.start(), 'boss', again, w.callback), again);
  t.equal(done.location, `${w.s.base}/`);
  const check = async (headers: Record<string, string>) =>
    (await request(`${w.s.base}/api/admin/auth/check`, { headers: { ...again.header, ...headers } })).json;
  t.match(await check({}), { authenticated: true, page_proof_required: true, admin: undefined });
  const proof = await pageProof(w.s.base, '/admin/', again.header);
  t.match(await check({ 'x-page-proof': proof }), {
    authenticated: true,
    idp: true,
    page_proof_required: false,
    admin: { email: 'boss@uni.example' },
  });
  const log = await request(`${w.s.base}/api/admin/audit?action=admin.login`, { headers: root.header });
  t.match(log.json.items, [{ actor: { name: 'boss@uni.example' }, after: { with: 'identity provider' } }]);

  // Another user logs in with the administrator's browser: the session belongs to that user alone.
  const before = root.header;
  await visit(await logInAt(w.start(), 'student', root, w.callback), root);
  t.notOk(root.get('admin_session'));
  t.equal((await request(`${w.s.base}/api/admin/plugins`, { headers: before })).status, 401);
  t.equal((await request(`${w.s.base}/api/auth/sessions`, { headers: before })).status, 401);
});

t.test(
  'the service starts while the provider is down; login then answers 503 with the reason, and works once it is up',
  async t => {
    const w = await world(t);
    const down = await request(w.start());
    t.equal(down.status, 503);
    t.match(down.json, {
      code: 'unavailable',
      detail: new RegExp(`the identity provider ${w.provider.issuer} does not answer`),
    });
    const page = await visit(w.start(), new CookieJar());
    t.same([page.status, /<h1>Login failed<\/h1>/.test(page.text)], [503, true], 'a browser gets a page');
    t.equal((await request(`${w.s.base}/readyz`)).status, 200, 'the service itself is ready');
    w.open();
    const jar = new CookieJar();
    t.equal((await visit(await logInAt(w.start(), 'late', jar, w.callback), jar)).status, 302);
  },
);

t.test('a provider that cannot issue tokens right now is 503, not a refusal of the user', async t => {
  const w = await world(t);
  w.open();
  const jar = new CookieJar();
  const back = await logInAt(w.start('/here'), 'ada', jar, w.callback);
  w.provider.refuseTokens(true);
  const keep = new CookieJar();
  for (const name of jar.names) keep.set(name, jar.get(name) ?? '');
  const refused = await visit(back, keep);
  t.match([refused.status, refused.text], [503, /does not answer/]);
  w.provider.refuseTokens(false);
  t.same([(await visit(back, jar)).status, (await w.db.query('SELECT 1 FROM sessions')).rows.length], [302, 1]);
});

t.test('without a provider the login says what to configure, in a page that does not lead back to itself', async t => {
  const s = await startTestService();
  t.teardown(() => s.stop());
  const a = await request(`${s.base}/api/auth/idp/start`);
  t.match([a.status, a.json.detail], [404, /set idp\.issuer, idp\.client_id and idp\.client_secret/]);
  for (const path of ['start', 'callback']) {
    const page = await visit(`${s.base}/api/auth/idp/${path}`, new CookieJar());
    t.match([page.status, page.text], [404, /<h1>No login is set up here<\/h1>/]);
    t.notMatch(page.text, /auth\/idp/);
  }
});

t.test(
  'an administrator who logs in with the provider needs no password of the service; a fresh login there counts as one',
  async t => {
    const w = await world(t);
    w.open();
    const jar = new CookieJar();
    await visit(await logInAt(w.start(), 'boss', jar, w.callback), jar);
    const root = new CookieJar();
    const post = async (jar: CookieJar, path: string, body: unknown, headers = {}) => {
      const a = await request(`${w.s.base}${path}`, {
        method: 'POST',
        headers: { ...jar.header, ...headers, 'content-type': 'application/json' },
        body: JSON.stringify(body),
      });
      return a;
    };
    const setup = { email: 'root@uni.example', password: 'correct horse battery' };
    root.take((await post(root, '/api/admin/auth/setup', setup, { authorization: `Bearer ${TOKEN}` })).headers);
    const { rows } = await w.db.query<{ id: string }>("SELECT id FROM global_users WHERE idp_accounts_id = 'boss'");
    const boss = { global_user_id: Number(rows[0]?.id), email: 'boss@uni.example' };
    t.equal((await post(root, '/api/admin/admins', boss)).status, 201);

    await visit(await logInAt(w.start(), 'boss', jar, w.callback), jar);
    const proven = async (page = '/admin/') => ({ 'x-page-proof': await pageProof(w.s.base, page, jar.header) });
    const get = async (path: string) =>
      await request(`${w.s.base}${path}`, { headers: { ...jar.header, ...(await proven()) } });
    t.equal((await get('/api/admin/plugins')).status, 200, 'the temporary password need not be changed');
    t.match((await get('/api/admin/auth/check')).json, { admin: { must_change_password: false } });
    t.equal((await post(jar, '/api/auth/tokens', { name: 'x' }, await proven('/account/'))).status, 201);
    const makeKey = async () => await post(jar, '/api/admin/keys', { name: 'x', scopes: ['read'] }, await proven());
    t.match((await makeKey()).json, {
      code: 'password_confirmation_required',
      detail: /\/api\/auth\/idp\/start\?fresh=1/,
      confirm: { method: 'GET', path: '/api/auth/idp/start?fresh=1' },
    });

    const fresh = `${w.s.base}/api/auth/idp/start?fresh=1&return_to=/admin/`;
    const sent = new URL((await visit(fresh, jar)).location ?? '');
    t.same([sent.searchParams.get('prompt'), sent.searchParams.get('max_age')], ['login', '600']);
    // What the browser takes out of the address on the way changes nothing: no time, no recent login.
    sent.searchParams.delete('prompt');
    sent.searchParams.delete('max_age');
    const cut = await visit(await logInAt(sent.href, 'boss', jar, w.callback), jar);
    t.match([cut.status, cut.text], [403, /auth_time/]);

    const done = await visit(await logInAt(fresh, 'boss', jar, w.callback), jar);
    t.equal(done.location, `${w.s.base}/admin/`);
    t.equal((await makeKey()).status, 201);
    await w.db.query("UPDATE sessions SET password_at = now() - interval '10 minutes 1 second' WHERE via = 'idp'");
    t.equal((await makeKey()).status, 403, 'for ten minutes');
    const { rows: log } = await w.db.query(
      "SELECT actor_kind, action FROM audit_log WHERE action IN ('user.login', 'admin.login') ORDER BY id",
    );
    t.match(log, [
      { actor_kind: 'user', action: 'user.login' },
      { actor_kind: 'admin', action: 'admin.login' },
      { actor_kind: 'admin', action: 'admin.login' },
    ]);
  },
);

t.test('a login in progress expires after ten minutes, and is valid only for its own state', async t => {
  const provider = await startIdentityProvider();
  t.teardown(() => provider.close());
  const redirectUri = 'http://127.0.0.1:1/api/auth/idp/callback';
  provider.open(redirectUri);
  const options = { issuer: provider.issuer, clientId: CLIENT.id, clientSecret: CLIENT.secret, scopes: ['openid'] };
  const idp = new IdpLogin({ ...options, redirectUri: () => redirectUri }, makeSecretBox(Buffer.alloc(32, 7)));
  const begun = Date.now();
  const { cookie, location, value } = await idp.begin('/here', false, begun);
  const state = new URL(location).searchParams.get('state') ?? '';
  const finish = (at: number, ofState = state) =>
    idp.finish(`state=${ofState}&error=access_denied`, name => (name === cookie ? value : ''), at);
  await t.rejects(finish(begun + LIMITS.idpLoginMs - 1), { code: 'forbidden' }, 'in time the provider is believed');
  await t.rejects(finish(begun + LIMITS.idpLoginMs), { code: 'malformed_request' });
  await t.rejects(finish(begun, `${state.slice(0, -1)}x`), { code: 'malformed_request' });
  const others = new IdpLogin({ ...options, redirectUri: () => redirectUri }, makeSecretBox(Buffer.alloc(32, 8)));
  await t.rejects(
    others.finish(`state=${state}&error=access_denied`, () => value, begun),
    { code: 'malformed_request' },
  );
});

t.test('a callback counts only in the browser that began the login, once, unchanged and in time', async t => {
  const w = await world(t);
  w.open();
  const jar = new CookieJar();
  const back = await logInAt(w.start('/here'), 'eve', jar, w.callback);
  const name = jar.names.find(n => n.startsWith('idp_login_')) ?? '';
  const sealed = jar.get(name) ?? '';

  const stranger = await visit(back, new CookieJar());
  t.match([stranger.status, stranger.text], [400, /not begun in this browser/]);
  for (const changed of [`${sealed.slice(0, -2)}AA`, 'x', sealed.slice(4)]) {
    const other = new CookieJar();
    other.set(name, changed);
    t.equal((await visit(back, other)).status, 400, 'a changed cookie');
  }
  const swapped = new URL(back);
  swapped.searchParams.set('state', `${swapped.searchParams.get('state')?.slice(0, 16)}another`);
  t.equal((await visit(swapped.href, jar)).status, 400, 'the state of another login');

  const tampered = new URL(back);
  tampered.searchParams.set('code', 'made-up');
  const keep = new CookieJar();
  keep.set(name, sealed);
  const refused = await visit(tampered.href, keep);
  t.match([refused.status, refused.text], [403, /did not accept the login/]);
  t.same(keep.names, [], 'no session comes of it, and the login is over');

  const denied = new URL(w.callback);
  denied.searchParams.set('state', new URL(back).searchParams.get('state') ?? '');
  denied.searchParams.set('error', 'access_denied');
  denied.searchParams.set('error_description', '<b>no</b>');
  denied.searchParams.set('iss', w.provider.issuer);
  const no = await visit(denied.href, jar);
  t.match([no.status, no.text], [403, /refused the login: &lt;b&gt;no&lt;\/b&gt;/]);

  jar.set(name, sealed);
  t.equal((await visit(back, jar)).status, 302, 'the login itself still works');
  jar.set(name, sealed);
  t.equal((await visit(back, jar)).status, 403, 'and its code only once');
  t.equal((await w.db.query('SELECT 1 FROM sessions')).rows.length, 1);
});

t.test('many logins may be begun in one browser', async t => {
  const w = await world(t);
  w.open();
  const jar = new CookieJar();
  for (let k = 0; k < 30; k++) t.equal((await visit(w.start(`/${'x'.repeat(900)}`), jar)).status, 302);
  const done = await visit(await logInAt(w.start('/last'), 'tabs', jar, w.callback), jar);
  t.equal(done.location, `${w.s.base}/last`);
});

t.test("return_to accepts only paths of the service's own origin", async t => {
  const rows: Array<[string | undefined, string]> = [
    [undefined, '/'],
    ['', '/'],
    ['/', '/'],
    ['/plugins/x/app/?a=b&c=%2F#d', '/plugins/x/app/?a=b&c=%2F#d'],
    ['/%09/evil', '/%09/evil'],
    ['/%2f%2fevil', '/%2f%2fevil'],
    ['//evil', '/'],
    ['///evil', '/'],
    ['/\\evil', '/'],
    ['\\/evil', '/'],
    ['/\t/evil', '/'],
    ['/\n/evil', '/'],
    ['/a\r\nLocation: //evil', '/'],
    ['/.//evil', '/'],
    ['/a/..//evil', '/'],
    ['/./\\evil', '/'],
    ['/%2e//evil', '/'],
    ['https://evil', '/'],
    ['https:evil', '/'],
    ['javascript:alert(1)', '/'],
    ['evil', '/'],
    ['@evil', '/'],
    ['/\u0000', '/'],
    ['/x\u007f', '/'],
    [`/${'x'.repeat(999)}`, `/${'x'.repeat(999)}`],
    [`/${'x'.repeat(1000)}`, '/'],
    // Six characters each on the way: more than a browser keeps in a cookie.
    [`/${'ж'.repeat(900)}`, '/'],
    [`/page?q=${'ж'.repeat(300)}`, '/page'],
  ];
  for (const [given, want] of rows) t.equal(safeReturnTo(given), want, JSON.stringify(given));
});

t.test('in a browser: a protected page sends to the login, and the login back to the page', async t => {
  const w = await world(t);
  w.open();
  await w.installPage();
  const browser = await startBrowser();
  t.teardown(() => browser.close());
  const context = await browser.newContext();
  const page = await context.newPage();
  const protectedPage = `${w.s.base}/api/triggers/http/members/page?a=1&b=%2F`;
  const logIn = async (): Promise<void> => {
    await page.fill('input[name=login]', 'grace');
    await page.fill('input[name=password]', 'any');
    await page.click('button[type=submit]');
    await page.click('button[type=submit]');
  };
  await page.goto(protectedPage);
  t.ok(page.url().startsWith(w.provider.issuer), 'the browser stands at the provider');
  await logIn();
  await page.waitForSelector('h1:has-text("For members")');
  t.equal(page.url(), protectedPage);
  const fetched = () => page.evaluate(() => fetch('/api/triggers/http/members/page').then(r => r.status, String));
  t.match(await fetched(), /Failed to fetch/, 'a page of a trigger is sandboxed: its requests carry no session');
  const trust = await w.s.admin('PUT', '/plugins/members/html', { trust: 'trusted' });
  t.equal(trust.status, 200);
  await page.reload();
  t.equal(await fetched(), 200, 'the requests of a trusted page do');
  t.equal(await page.evaluate('document.cookie'), '', 'scripts do not see the cookies');

  for (const attack of [
    '//evil.example',
    '/\\evil.example',
    '/\t/evil.example',
    '/.//evil.example',
    'https://evil.example',
  ]) {
    await page.goto(w.start(attack));
    t.equal(new URL(page.url()).origin, w.s.base, `${JSON.stringify(attack)} stays at home`);
  }
  await page.goto(w.start('/%09/evil.example'));
  t.equal(page.url(), `${w.s.base}/%09/evil.example`);

  await context.clearCookies();
  t.equal((await context.request.get(protectedPage)).status(), 401, 'a request that is no navigation gets 401');
});
