import t from 'tap';
import { rawRequest, request, startTestService } from '../support/service.ts';

/** The files of the administration pages, as they are served. */

/** What a first view may load, packed with gzip. */
const FIRST_VIEW_BYTES_MAX = 250 * 1024;
const FIRST_VIEW_FILES_MAX = 8;

t.test('the setup link leads to a page that loads nothing from elsewhere', async t => {
  const s = await startTestService();
  t.teardown(() => s.stop());
  const page = await request(`${s.base}/admin/`);
  t.equal(page.status, 200);
  t.match(page.headers.get('content-type'), 'text/html');
  t.equal(page.headers.get('cache-control'), 'no-store', 'the proof in it belongs to one session');
  const policy = page.headers.get('content-security-policy') ?? '';
  t.match(policy, /default-src 'self'; style-src 'self' 'nonce-[\w-]{22}'.*frame-ancestors 'none'/);
  t.notMatch(policy, /unsafe-(inline|eval)/);
  const nonce = /'nonce-([\w-]+)'/.exec(policy)?.[1] ?? '';
  t.match(page.text, `<meta name="style-nonce" content="${nonce}">`);
  const other = await request(`${s.base}/admin/`);
  t.notMatch(other.headers.get('content-security-policy'), nonce, 'each page has a value of its own');
  const parts = [...page.text.matchAll(/<(?:script|link)[^>]+(?:src|href)="([^"]+)"/g)].map(m => m[1] ?? '');
  t.ok(parts.length > 2);
  t.ok(parts.length <= FIRST_VIEW_FILES_MAX, `${parts.length} files: a browser asks for six at a time`);
  let bytes = 0;
  for (const part of parts) {
    t.match(part, /^\/admin\/assets\//);
    const answer = await rawRequest(`${s.base}${part}`, { 'accept-encoding': 'gzip' });
    t.equal(answer.status, 200, part);
    bytes += Number(answer.headers.get('content-length'));
  }
  t.ok(bytes < FIRST_VIEW_BYTES_MAX, `the login loads ${bytes} bytes`);
  const account = await request(`${s.base}/account/`);
  const own = [...account.text.matchAll(/<script[^>]+src="([^"]+)"/g)].map(m => m[1] ?? '');
  t.equal(own.filter(part => !parts.includes(part)).length, 1, 'the pages of users load one script more');
  for (const path of ['/', '/admin']) t.equal((await request(`${s.base}${path}`)).headers.get('location'), '/admin/');
});

t.test('every screen is the same page; a file that is not there is refused', async t => {
  const s = await startTestService();
  t.teardown(() => s.stop());
  for (const path of ['plugins', 'plugins/hello/triggers/greet', 'people/7'])
    t.match((await request(`${s.base}/admin/${path}`)).text, '<div id="root">', path);
  for (const path of [
    'assets/missing.js',
    'assets/..%2findex.html',
    'assets/%2e%2e%2f%2e%2e%2fpackage.json',
    'assets/x',
  ])
    t.equal((await request(`${s.base}/admin/${path}`)).status, 404, path);
  t.equal((await request(`${s.base}/admin/../package.json`)).status, 404);
  t.equal((await request(`${s.base}/admin/`, { method: 'POST' })).status, 405);
});

t.test('files are packed before, and kept for ever where their name says what they hold', async t => {
  const s = await startTestService();
  t.teardown(() => s.stop());
  const page = await request(`${s.base}/admin/`);
  const script = /"(\/admin\/assets\/first-[^"]+\.js)"/.exec(page.text)?.[1] ?? '';
  const plain = await rawRequest(`${s.base}${script}`, {});
  t.equal(plain.headers.get('content-encoding'), null);
  t.equal(plain.headers.get('cache-control'), 'public, max-age=31536000, immutable');
  t.equal(plain.headers.get('vary'), 'Accept-Encoding');
  for (const [accepted, coding] of [
    ['gzip', 'gzip'],
    ['gzip, br', 'br'],
    ['deflate', null],
  ] as const) {
    const packed = await fetch(`${s.base}${script}`, { headers: { 'accept-encoding': accepted } });
    t.equal(packed.headers.get('content-encoding'), coding, accepted);
    t.equal(await packed.text(), plain.text, `${accepted}: the same file`);
  }
  t.equal((await request(`${s.base}/admin/assets/icon.svg`)).headers.get('cache-control'), 'no-cache');
});

t.test('a mistyped address is answered by a page for people, and by a problem for programs', async t => {
  const s = await startTestService();
  t.teardown(() => s.stop());
  const page = await rawRequest(`${s.base}/login`, { 'sec-fetch-mode': 'navigate' });
  t.equal(page.status, 404);
  t.match(page.headers.get('content-type'), /^text\/html/);
  t.match(page.text, 'There is no such page');
  const program = await request(`${s.base}/login`);
  t.equal(program.status, 404);
  t.match(program.json, { code: 'not_found', detail: 'there is nothing at /login' });
  const api = await rawRequest(`${s.base}/api/nothing`, { 'sec-fetch-mode': 'navigate' });
  t.match(api.json, { code: 'not_found' });
});

t.test('without the built pages the API works, and /admin/ says what to run', async t => {
  const { TEST_PAGES } = process.env;
  delete process.env.TEST_PAGES;
  const s = await startTestService();
  process.env.TEST_PAGES = TEST_PAGES;
  t.teardown(() => s.stop());
  const page = await request(`${s.base}/admin/`);
  t.equal(page.status, 503);
  t.match(page.text, /^The pages are not built\. Run "npm ci".*\n$/);
  t.equal((await s.admin('GET', '/plugins')).status, 200);
});
