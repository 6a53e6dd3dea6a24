import t from 'tap';
import { CookieJar } from '../support/identity-provider.ts';
import { ROOT_EMAIL, ROOT_PASSWORD, startWithRoot } from '../support/root-admin.ts';
import { appointSecondAdmin } from '../support/second-admin.ts';
import { pageProof, rawRequest, SAME_ORIGIN, startTestService, TOKEN } from '../support/service.ts';

/** Who is let in at the API, and from where (docs/identity.md "Requests of browsers"). */
const w = await startWithRoot(t);
const users = { display_name: 'Ada' };

t.test('a session counts in no request that comes from a page of another site', async t => {
  const cases: Array<[string, Record<string, string>, number]> = [
    ['another site', { 'sec-fetch-site': 'cross-site' }, 403],
    ['a sister domain', { 'sec-fetch-site': 'same-site' }, 403],
    ['an origin, from an old browser', { origin: 'https://evil.example' }, 403],
    ['the origin null', { origin: 'null' }, 403],
    ['no page', {}, 201],
  ];
  for (const [what, headers, status] of cases) {
    const admin = await w.call({ ...w.root, ...headers }, 'POST', '/users', users);
    t.equal(admin.status, status, `the administration: ${what}`);
    const user = await rawRequest(
      `${w.s.base}/api/auth/tokens`,
      { ...w.root, ...headers, 'content-type': 'application/json' },
      'POST',
      '{"name":"t"}',
    );
    t.equal(user.status, status, `what a user does: ${what}: ${user.text}`);
  }
});

t.test('a password is recent for ten minutes, to the second', async t => {
  const dangerous = (): Promise<number> =>
    w.call(w.root, 'PUT', '/plugins/none/origins', { origins: [] }).then(a => a.status);
  for (const [ago, status] of [
    ['9 minutes 50 seconds', 404],
    ['10 minutes 1 second', 403],
  ] as const) {
    await w.db.query(`UPDATE sessions SET password_at = now() - interval '${ago}'`);
    t.equal(await dangerous(), status, ago);
  }
  await w.db.query('UPDATE sessions SET password_at = now()');
});

t.test(
  'a session begun in a browser needs the proof of our pages, also when the headers of browsers are hidden',
  async t => {
    const jar = new CookieJar();
    const login = await w.call(SAME_ORIGIN, 'POST', '/auth/login', { email: ROOT_EMAIL, password: ROOT_PASSWORD });
    jar.take(login.headers);
    const hidden = await w.call(jar.header, 'POST', '/users', users);
    t.match(hidden.json, { status: 403, code: 'page_proof_required' });
    const proof = await pageProof(w.s.base, '/admin/', jar.header);
    t.equal((await w.call({ ...jar.header, 'x-page-proof': proof }, 'POST', '/users', users)).status, 201);
    const ofUser = await pageProof(w.s.base, '/account/', jar.header);
    t.not(ofUser, proof);
    const borrowed = await w.call({ ...jar.header, 'x-page-proof': ofUser }, 'POST', '/users', users);
    t.equal(borrowed.status, 403, 'the proof of a user session is none of an administrator');
  },
);

t.test('in a setup without a token a page needs the proof, and no other site may ask', async t => {
  const s = await startTestService({ BOT_ADMIN_SETUP: 'open' });
  t.teardown(() => s.stop());
  const ask = (headers: Record<string, string>) => rawRequest(`${s.base}/api/admin/plugins`, headers);
  t.equal((await ask({})).status, 200, 'a program');
  t.match((await ask(SAME_ORIGIN)).json, { status: 403, code: 'page_proof_required' });
  t.equal((await ask({ ...SAME_ORIGIN, 'x-page-proof': await pageProof(s.base, '/admin/', {}) })).status, 200);
  t.equal((await ask({ ...SAME_ORIGIN, 'sec-fetch-site': 'cross-site' })).status, 403);
});

t.test(
  'where users come by https the cookies of sessions are theirs alone: Secure, HttpOnly, of this host',
  async t => {
    for (const [url, host, pattern] of [
      [
        'https://uni.example',
        'uni.example',
        /^__Host-(admin|user)_session=h\.[\w-]{43}; Path=\/; Max-Age=\d+; HttpOnly; SameSite=Lax; Secure$/,
      ],
      ['', '127.0.0.1', /^(admin|user)_session=[\w-]{43}; Path=\/; Max-Age=\d+; HttpOnly; SameSite=Lax$/],
    ] as const) {
      const s = await startTestService(url === '' ? {} : { BOT_HTTP_PUBLIC_URL: url });
      t.teardown(() => s.stop());
      const headers = { host, authorization: `Bearer ${TOKEN}`, 'content-type': 'application/json' };
      const body = JSON.stringify({ email: ROOT_EMAIL, password: ROOT_PASSWORD });
      const made = await rawRequest(`${s.base}/api/admin/auth/setup`, headers, 'POST', body);
      const set = made.headers.getSetCookie().filter(c => c.includes('_session='));
      t.equal(set.length, 2);
      for (const cookie of set) t.match(cookie, pattern);
      const jar = new CookieJar();
      jar.take(made.headers);
      const check = (cookie: string) => rawRequest(`${s.base}/api/admin/auth/check`, { host, cookie });
      t.equal((await check(jar.header.cookie ?? '')).json.authenticated, true);
      // The same secret under the other name, as a page of another host of the domain could set it.
      const tossed = (jar.header.cookie ?? '').replaceAll('__Host-', url === '' ? '__Host-' : '');
      const renamed = url === '' ? tossed.replace(/(\w+_session=)/g, '__Host-$1') : tossed;
      t.equal((await check(renamed)).json.authenticated, false, 'in the other cookie it does not count');
      const out = await rawRequest(
        `${s.base}/api/admin/auth/logout`,
        { host, cookie: jar.header.cookie ?? '' },
        'POST',
      );
      t.equal(out.headers.get('clear-site-data'), '"cache", "storage"');
      t.equal((await check(jar.header.cookie ?? '')).json.authenticated, false);
    }
  },
);

t.test('what one caller was shown no cache keeps, and nothing is framed or run', async t => {
  const read = await w.call(w.root, 'GET', '/plugins');
  t.equal(read.headers.get('cache-control'), 'no-store');
  t.match(read.headers.get('content-security-policy'), /default-src 'none'.*frame-ancestors 'none'/);
  const lost = await w.call(w.root, 'GET', '/plugins/none');
  t.equal(lost.headers.get('cache-control'), 'no-store');
  t.match(lost.headers.get('content-security-policy'), /frame-ancestors 'none'/);
});

t.test('a request that scopes or roles do not allow stands in the audit log, once in a while', async t => {
  const made = await w.call(w.root, 'POST', '/keys', { name: 'reader', scopes: ['read'] });
  const reader = { authorization: `Bearer ${made.json.key}` };
  for (let k = 0; k < 3; k++) t.equal((await w.call(reader, 'POST', '/users', users)).status, 403);
  const { items } = (await w.call(w.root, 'GET', '/audit?action=api.refused')).json as { items: unknown[] };
  t.match(items, [
    { object_type: 'endpoint', object_id: 'POST /api/admin/users', actor: { kind: 'admin_key', name: 'reader' } },
  ]);
  t.equal(items.length, 1);
});

t.test('a user ends sessions of their own, and none of another', async t => {
  const second = await appointSecondAdmin(w.s, w.db, w.root, ROOT_PASSWORD, { roles: ['auditor'] });
  const theirs = await w.db.query<{ id: string }>('SELECT id FROM sessions WHERE global_user_id = $1', [second.id]);
  const end = (id: string) => rawRequest(`${w.s.base}/api/auth/sessions/${id}`, w.root, 'DELETE');
  t.ok(theirs.rows.length > 0);
  for (const { id } of theirs.rows) t.equal((await end(id)).status, 404);
  const { rowCount } = await w.db.query('SELECT FROM sessions WHERE global_user_id = $1', [second.id]);
  t.equal(rowCount, theirs.rows.length, 'they go on');
});
