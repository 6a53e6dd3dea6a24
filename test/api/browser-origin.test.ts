import fs from 'node:fs';
import type { BrowserContext, Page } from 'playwright-core';
import t from 'tap';
import { z } from 'zod';
import { openDatabase } from '../../src/db/database.ts';
import { logIn } from '../support/admin-browser.ts';
import { startBrowser } from '../support/browser.ts';
import { CookieJar } from '../support/identity-provider.ts';
import {
  type Answer,
  NAVIGATION,
  pageProof,
  publicAccess,
  rawRequest,
  request,
  SAME_ORIGIN,
  startTestService,
  type TestService,
  TOKEN,
} from '../support/service.ts';
import { watPlugin } from '../support/wat.ts';
import { rawZip } from '../support/zip.ts';

const EMAIL = 'root@uni.example';
const PASSWORD = 'correct horse battery';
type Teardown = { teardown(fn: () => unknown): void };
type Headers = Record<string, string>;

/** A plugin whose trigger answers with a page, and sets cookies while it does. */
function pagePlugin(id: string): Uint8Array {
  const headers = JSON.stringify({
    'Content-Type': 'text/html',
    'Set-Cookie': Array.from({ length: 30 }, (_, k) => `flood${k}=${'x'.repeat(180)}; Path=/`),
    'Service-Worker-Allowed': '/',
    Refresh: '0; url=/admin/',
  });
  const page = '<!doctype html><title>trigger</title>';
  return watPlugin({
    id,
    imports: ['respond'],
    body: `(data (i32.const 1024) "${headers.replaceAll('"', '\\22')}") (data (i32.const 64) "${page}")`,
    handle: `(drop (call $respond (i32.const 200) (i32.const 1024) (i32.const ${headers.length}) (i32.const 64) (i32.const ${page.length}))) (i32.const 0)`,
  });
}

async function installEvil(s: TestService): Promise<void> {
  const form = new FormData();
  form.append('file', new Blob([new Uint8Array(pagePlugin('evil'))]), 'p.wasm');
  const zip = rawZip([
    { name: 'index.html', data: Buffer.from('<!doctype html><title>plugin</title><h1>plugin</h1>') },
    { name: 'sw.js', data: Buffer.from('self.addEventListener("fetch", () => {})') },
  ]);
  form.append('frontend', new Blob([new Uint8Array(zip)]), 'f.zip');
  const uploaded = await request(`${s.base}/api/admin/plugins/upload`, {
    method: 'POST',
    headers: { authorization: `Bearer ${TOKEN}` },
    body: form,
  });
  t.match(uploaded.json.notices, [{ code: 'html_sandboxed' }, { code: 'frontend_trusted' }], 'the review says so');
  const installed = await s.admin('POST', '/plugins/evil/install', {
    wasm_key: uploaded.json.wasm_key,
    ...publicAccess(uploaded.json),
  });
  if (installed.status !== 200) throw new Error(installed.text);
}

/** A service with an administrator and a plugin that is out for the administration. */
async function world(t: Teardown, env: Record<string, string> = {}) {
  const s = await startTestService(env);
  t.teardown(() => s.stop());
  await installEvil(s);
  const db = openDatabase(s.databaseUrl, 1, () => {});
  t.teardown(() => db.close());
  const call = (method: string, where: string, headers: Headers, body?: unknown): Promise<Answer> =>
    request(`${s.base}${where}`, {
      method,
      headers: { ...(body === undefined ? {} : { 'content-type': 'application/json' }), ...headers },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
  const first = await call(
    'POST',
    '/api/admin/auth/setup',
    { authorization: `Bearer ${TOKEN}` },
    { email: EMAIL, password: PASSWORD },
  );
  if (first.status !== 200) throw new Error(first.text);
  const logIn = async (headers: Headers): Promise<{ answer: Answer; jar: CookieJar }> => {
    const answer = await call('POST', '/api/admin/auth/login', headers, { email: EMAIL, password: PASSWORD });
    const jar = new CookieJar();
    jar.take(answer.headers);
    return { answer, jar };
  };
  /** What an attack would leave behind. */
  const credentials = async (): Promise<unknown> =>
    (
      await db.query(
        'SELECT (SELECT count(*) FROM global_users) AS users, (SELECT count(*) FROM user_tokens) AS tokens, (SELECT count(*) FROM admin_credentials) AS admins',
      )
    ).rows[0];
  return { s, db, call, logIn, credentials };
}

t.test(
  "a browser's session opens the admin API only with the proof of our page; a program's goes on without",
  async t => {
    const w = await world(t);
    const program = await w.logIn({ 'sec-fetch-mode': 'cors' });
    t.equal((await w.call('GET', '/api/admin/plugins', program.jar.header)).status, 200, 'a program');
    const asPage = await w.call('GET', '/api/admin/plugins', { ...program.jar.header, ...SAME_ORIGIN });
    t.same([asPage.status, asPage.json.code], [403, 'page_proof_required'], "its cookie in a browser's request");

    const { answer, jar } = await w.logIn(SAME_ORIGIN);
    const given = String(answer.json.page_proof);
    t.equal(await pageProof(w.s.base, '/admin/', jar.header), given, 'the page and the login give the same');
    const status = async (headers: Headers, path = '/api/admin/plugins'): Promise<[number, unknown]> => {
      const a = await w.call('GET', path, { ...jar.header, ...headers });
      return [a.status, a.json.code];
    };
    t.same(await status({ 'x-page-proof': given, ...SAME_ORIGIN }), [200, undefined]);
    t.same(await status({ 'x-page-proof': given }), [200, undefined]);
    const wrong: Headers[] = [
      {},
      SAME_ORIGIN,
      { 'x-page-proof': '' },
      { 'x-page-proof': `${given}x` },
      { 'x-page-proof': 'x'.repeat(43) },
    ];
    for (const headers of wrong) t.same(await status(headers), [403, 'page_proof_required'], JSON.stringify(headers));
    const other = await w.logIn(SAME_ORIGIN);
    const theirs = { 'x-page-proof': String(other.answer.json.page_proof) };
    t.same(await status(theirs), [403, 'page_proof_required'], 'the proof of another session');
    t.same(
      await status({ 'x-page-proof': await pageProof(w.s.base, '/account/', jar.header) }),
      [403, 'page_proof_required'],
      "a user page's proof",
    );

    // What makes lasting credentials believes a cookie no more than the admin API does.
    for (const path of ['/api/auth/tokens', '/api/auth/sessions', '/api/messengers/accounts'])
      t.same(await status(SAME_ORIGIN, path), [403, 'page_proof_required'], path);
    const user = { 'x-page-proof': await pageProof(w.s.base, '/account/', jar.header) };
    for (const path of ['/api/auth/tokens', '/api/auth/sessions'])
      t.same(await status(user, path), [200, undefined], path);
    t.equal((await w.call('POST', '/api/auth/tokens', { ...jar.header, ...SAME_ORIGIN }, { name: 'x' })).status, 403);
    t.equal((await w.call('POST', '/api/auth/tokens', { ...jar.header, ...user }, { name: 'x' })).status, 201);

    // A request with the password gets the proof.
    const confirm = (password: string) =>
      w.call('POST', '/api/admin/auth/confirm', { ...jar.header, ...SAME_ORIGIN }, { password });
    t.match((await confirm(PASSWORD)).json, { page_proof: given, admin: { email: EMAIL } });
    t.equal((await confirm('not the password')).status, 422);
    const proven = { ...jar.header, ...SAME_ORIGIN, 'x-page-proof': given };
    const own = await w.call('POST', '/api/admin/auth/confirm', proven, { password: PASSWORD });
    t.equal(own.status, 200, 'who guesses from a page of a plugin does not make the administrator wait');
    t.match((await w.call('GET', '/api/admin/auth/check', { ...jar.header, ...SAME_ORIGIN })).json, {
      authenticated: true,
      page_proof_required: true,
      admin: undefined,
    });
  },
);

t.test('our pages are opened in windows of their own; the admin API is not opened as a page', async t => {
  const w = await world(t);
  const { jar } = await w.logIn(SAME_ORIGIN);
  for (const path of ['/admin/', '/account/', '/messengers/']) {
    const page = await rawRequest(`${w.s.base}${path}`, { ...jar.header, ...NAVIGATION });
    t.match(page.text, /<meta name="page-proof" content="[\w-]{43}">/, path);
    t.equal(page.headers.get('cross-origin-opener-policy'), 'same-origin');
    t.equal(page.headers.get('cache-control'), 'no-store');
    t.match(page.headers.get('content-security-policy'), /frame-ancestors 'none'/);
    for (const dest of ['empty', 'iframe', 'object', 'embed', 'script', 'frame'])
      t.equal(
        (await rawRequest(`${w.s.base}${path}`, { ...jar.header, ...NAVIGATION, 'sec-fetch-dest': dest })).status,
        403,
        dest,
      );
    const curl = await w.call('GET', path, jar.header);
    t.equal(curl.status, 200);
    t.match(curl.text, '<meta name="page-proof" content="">', 'what is no navigation gets no proof');
  }
  for (const path of ['/api/admin/auth/check', '/api/admin/plugins', '/api/admin/auth/login'])
    t.match(
      (await rawRequest(`${w.s.base}${path}`, { ...jar.header, ...NAVIGATION })).status,
      path.endsWith('login') ? 405 : 403,
      path,
    );

  // On an origin that browsers do not trust they send Origin alone.
  const { answer } = await w.logIn({ origin: w.s.base });
  t.match([answer.status, answer.json.detail], [403, /https or at http:\/\/localhost.*http\.public_url/]);
});

t.test('two cookies with the name of a session are refused, wherever they count', async t => {
  const w = await world(t);
  const { jar } = await w.logIn({});
  await w.s.service.registry.reload('evil');
  for (const [name, paths] of [
    ['admin_session', ['/api/admin/plugins', '/api/admin/auth/check']],
    ['user_session', ['/api/auth/sessions', '/api/files/init']],
  ] as const)
    for (const path of paths) {
      const cookie = `${jar.header.cookie}; ${name}=another`;
      const a = await w.call(
        path.endsWith('init') ? 'POST' : 'GET',
        path,
        { cookie },
        path.endsWith('init') ? {} : undefined,
      );
      t.match([a.status, a.json.detail], [400, new RegExp(`two cookies named ${name}`)], path);
    }
});

/** Opens the page of an administrator who has just logged in. */
async function openAdmin(s: TestService, context: BrowserContext): Promise<Page> {
  const admin = await context.newPage();
  await admin.goto(`${s.base}/admin/`);
  await logIn(admin, EMAIL, PASSWORD);
  return admin;
}

const REFUSED: Record<string, unknown> = {
  'fetch of the page': 403,
  'XHR of the page': [403, null],
  'read of the API': 'page_proof_required',
  'read of the user accounts': 'page_proof_required',
  'a new user': 'page_proof_required',
  'a new token': 'page_proof_required',
  'a service worker for the origin': 'SecurityError',
  'a service worker out of a trigger': 'TypeError',
};

const TAKEOVER = fs.readFileSync(new URL('takeover.js', import.meta.url), 'utf8').trim();
const windows = z.array(z.tuple([z.string(), z.string()])).length(9);
/** Runs one of the attacks inside a page. */
const attempt = (page: Page, kind: string, name: string): Promise<unknown> =>
  page.evaluate(`(async () => { const t = ${TAKEOVER}; return await t.${kind}(${JSON.stringify(name)}); })()`);

t.test('in a browser: a frontend written to take over the administration gets nothing', async t => {
  const w = await world(t);
  const browser = await startBrowser();
  t.teardown(() => browser.close());
  const context = await browser.newContext();
  const admin = await openAdmin(w.s, context);
  await admin.evaluate('void (window.name = "adminwindow")');
  const before = await w.credentials();
  const page = await context.newPage();
  await page.goto(`${w.s.base}/plugins/evil/app/`);
  for (const [name, refused] of Object.entries(REFUSED)) t.same(await attempt(page, 'attack', name), refused, name);
  for (const [name, read] of windows.parse(await attempt(page, 'readThrough', ''))) {
    t.notMatch(read, /[\w-]{43}|Plugin host|wasm|hello|root@/, `${name}: ${read.slice(0, 80)}`);
  }
  t.same(
    await admin.evaluate('[Object.keys(localStorage), Object.keys(sessionStorage)]'),
    [[], []],
    'nothing is kept where plugins read',
  );

  // The administrator's page opens the plugin's: neither sees the other.
  const [opened] = await Promise.all([
    context.waitForEvent('page'),
    admin.evaluate('void window.open("/plugins/evil/app/")'),
  ]);
  await opened.waitForLoadState();
  t.equal(await opened.evaluate('window.opener'), null, 'no way back to the page that opened it');

  // A cookie for a longer path comes first: it is noticed, not believed.
  await page.evaluate('document.cookie = "admin_session=of-the-attacker; path=/api/admin"');
  await admin.reload();
  await admin.getByText('two cookies named admin_session').waitFor();
  t.same(await w.credentials(), before, 'nothing was made');
});

t.test('in a browser: a page of a trigger is alone with itself', async t => {
  const w = await world(t);
  const browser = await startBrowser();
  t.teardown(() => browser.close());
  const context = await browser.newContext();
  const admin = await openAdmin(w.s, context);
  const before = await w.credentials();
  const page = await context.newPage();
  await page.goto(`${w.s.base}/api/triggers/http/evil/run`);
  t.equal(await page.evaluate('self.origin'), 'null');
  const tried = (name: string): Promise<unknown> => attempt(page, 'tryAlone', name);
  t.equal(await tried('cookie'), 'SecurityError');
  t.equal(await tried('storage'), 'SecurityError');
  t.equal(await tried('check'), 'TypeError', 'no answer may be read');
  t.equal(await tried('page'), 'TypeError');
  t.match(await tried('service worker'), /SecurityError|TypeError/);
  t.equal(await tried('its own trigger'), 200, 'its own public trigger answers it');
  for (const [name, read] of windows.parse(await attempt(page, 'readThrough', ''))) {
    t.notMatch(read, /[\w-]{43}|Plugin host|root@/, `${name}: ${read.slice(0, 80)}`);
  }
  const cookies = await context.cookies();
  t.same(
    [...new Set(cookies.filter(c => c.name.startsWith('flood')).map(c => c.path))],
    ['/api/triggers/http/evil'],
    'its cookies stay with its triggers',
  );
  await admin.reload();
  await admin.getByRole('heading', { level: 1, name: 'Overview' }).waitFor();
  t.same(await w.credentials(), before, 'nothing was made');
});

t.test('in a browser: a user makes a token on the account page, and it works', async t => {
  const w = await world(t);
  const browser = await startBrowser();
  t.teardown(() => browser.close());
  const context = await browser.newContext({ locale: 'en-GB' });
  await openAdmin(w.s, context);
  const page = await context.newPage();
  const errors: string[] = [];
  page.on('pageerror', error => errors.push(error.message));
  await page.goto(`${w.s.base}/account/`);
  await page.getByLabel('Name').fill('my script');
  await page.getByRole('button', { name: 'Make a token' }).click();
  const dialog = page.getByRole('dialog');
  const token = (await dialog.locator('code').textContent()) ?? '';
  await dialog.getByRole('button').last().click();
  const files = await w.call('POST', '/api/files/init', { authorization: `Bearer ${token}` }, {});
  t.equal(files.status, 422, 'the token is believed; the body is not right');
  await page.getByRole('button', { name: 'Revoke my script' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Revoke' }).click();
  await page.getByText('No token yet').waitFor();
  t.equal((await w.call('POST', '/api/files/init', { authorization: `Bearer ${token}` }, {})).status, 401);
  await page.getByText('this session').waitFor();
  await page.getByRole('button', { name: 'Log out' }).click();
  await page.getByText('No login for users is set up').waitFor();
  t.same(errors, []);
});
