import t from 'tap';
import { z } from 'zod';
import { loadConfig } from '../../src/config/load.ts';
import { PluginOrigins } from '../../src/config/plugin-origins.ts';
import { logIn, logOut } from '../support/admin-browser.ts';
import { startBrowser } from '../support/browser.ts';
import { takePort } from '../support/ports.ts';
import { publicAccess, rawRequest, request, startTestService, TOKEN } from '../support/service.ts';
import { watPlugin } from '../support/wat.ts';
import { rawZip } from '../support/zip.ts';

const EMAIL = 'root@uni.example';
const PASSWORD = 'correct horse battery';

t.test('every plugin has a DNS label of its own, and no two share one', async t => {
  const ids = ['hello', 'a-b', 'a_b', 'a--b', 'xn--a', 'p--a', 'a'.repeat(64), '0', 'a-', `${'b'.repeat(60)}_`];
  const origins = new PluginOrigins('https://*.plugins.example.org', () => ids);
  const labels = ids.map(id => new URL(origins.originOf(id)).hostname.split('.')[0] ?? '');
  t.equal(new Set(labels).size, ids.length);
  for (const [k, label] of labels.entries()) {
    t.match(label, /^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/, label);
    t.equal(origins.pluginAt(`${label}.plugins.example.org`), ids[k]);
    t.equal(origins.pluginAt(`${label.toUpperCase()}.PLUGINS.example.org`), ids[k]);
  }
  t.equal(labels[0], 'hello', 'an id that is a label stays readable');
  t.equal(origins.pluginAt('hello.plugins.example.org.'), 'hello', 'a final dot changes nothing');
  const plain = new PluginOrigins('https://*.plugins.example.org:443', () => ids);
  t.equal(plain.originOf('hello'), 'https://hello.plugins.example.org', 'browsers leave out a default port');
  t.equal(plain.pluginAt('hello.plugins.example.org'), 'hello');
  for (const own of ['example.org', 'plugins.example.org', 'hello.plugins.example.org.evil.example', undefined])
    t.equal(origins.pluginAt(own), null, String(own));
  t.equal(origins.pluginAt('p--0000.plugins.example.org'), '', 'a label no plugin has');
  const host = 'hello.plugins.example.org';
  for (const path of ['/plugins/hello/app', '/plugins/hello/app/a.js', '/api/files/init', '/healthz', '/readyz'])
    t.equal(origins.checkPath(host, path), undefined, path);
  for (const path of ['/plugins/a-b/app/', '/plugins/hello', '/healthz2', '/api/auth/tokens', '/admin/', '/'])
    t.throws(() => origins.checkPath(host, path), { code: 'not_found' }, `${path} is not served there`);
  t.equal(origins.checkPath('example.org', '/admin/'), undefined, 'the service’s own origin serves all');
  const bad = [
    'https://plugins.example.org',
    'https://a.*.example.org',
    'ftp://*.example.org',
    'https://*.example.org/x',
  ];
  for (const value of bad) t.throws(() => loadConfig(null, { BOT_PLUGINS_ORIGIN: value }), /plugins\.origin/, value);
  const covered = { BOT_PLUGINS_ORIGIN: 'https://*.example.org', BOT_HTTP_PUBLIC_URL: 'https://host.example.org' };
  t.throws(() => loadConfig(null, covered), /covers http\.public_url/);
});

t.test('in a browser: a plugin on its own origin has its user, and nothing of the service', async t => {
  const port = await takePort();
  const s = await startTestService({
    BOT_HTTP_PORT: String(port),
    BOT_HTTP_PUBLIC_URL: `http://localhost:${port}`,
    BOT_PLUGINS_ORIGIN: `http://*.plugins.localhost:${port}`,
  });
  t.teardown(() => s.stop());
  const deliver = async (id: string): Promise<void> => {
    const headers = '{\\22Content-Type\\22:\\22text/html\\22}';
    const page = '<!doctype html><title>trigger</title>';
    const module = watPlugin({
      id,
      imports: ['respond'],
      body: `(data (i32.const 1024) "${headers}") (data (i32.const 64) "${page}")`,
      handle: `(drop (call $respond (i32.const 200) (i32.const 1024) (i32.const 28) (i32.const 64) (i32.const ${page.length}))) (i32.const 0)`,
    });
    const form = new FormData();
    form.append('file', new Blob([new Uint8Array(module)]), 'p.wasm');
    const zip = rawZip([{ name: 'index.html', data: Buffer.from('<!doctype html><title>frontend</title>') }]);
    form.append('frontend', new Blob([new Uint8Array(zip)]), 'f.zip');
    const authorization = `Bearer ${TOKEN}`;
    const uploaded = await request(`${s.base}/api/admin/plugins/upload`, {
      method: 'POST',
      headers: { authorization },
      body: form,
    });
    const body = { wasm_key: uploaded.json.wasm_key, ...(id === 'open' ? publicAccess(uploaded.json) : {}) };
    const installed = await s.admin('POST', `/plugins/${id}/install`, body);
    if (installed.status !== 200) throw new Error(installed.text);
    await s.admin('PUT', `/plugins/${id}/frontend`, { access: 'session' });
  };
  await deliver('one');
  await deliver('two_');
  const one = `http://one.plugins.localhost:${port}`;
  const setup = await s.admin('POST', '/auth/setup', { email: EMAIL, password: PASSWORD });
  t.equal(setup.status, 200);

  const browser = await startBrowser();
  t.teardown(() => browser.close());
  const context = await browser.newContext();
  const admin = await context.newPage();
  await admin.goto(`http://localhost:${port}/admin/`);
  await logIn(admin, EMAIL, PASSWORD);

  const page = await context.newPage();
  await page.goto(`http://localhost:${port}/plugins/one/app/?a=1`);
  t.equal(page.url(), `${one}/plugins/one/app/?a=1`, 'the frontend lives on the origin of its plugin');
  t.equal(await page.title(), 'frontend', 'for a user who is logged in, without another login');
  const status = z.number();
  const fetched = async (path: string): Promise<number> =>
    status.parse(await page.evaluate(`fetch(${JSON.stringify(path)}).then(r => r.status)`));
  t.equal(await fetched('/api/triggers/http/one/run'), 200, 'its requests carry a session for it');
  t.equal(await fetched('/api/triggers/http/two_/run'), 404, 'another plugin is not there');
  for (const path of ['/admin/', '/account/', '/api/admin/plugins', '/api/auth/tokens', '/api/auth/sessions', '/'])
    t.equal(await fetched(path), 404, path);
  const elsewhere = `fetch('http://localhost:${port}/api/auth/sessions', { credentials: 'include' }).then(r => r.status, e => e.name)`;
  t.equal(await page.evaluate(elsewhere), 'TypeError', "the service's own origin lets it read nothing");
  await page.evaluate('history.pushState(null, "", "/admin/")');
  t.equal(new URL(page.url()).origin, one, 'what it imitates stands under its own name');

  await page.goto(`http://localhost:${port}/api/triggers/http/one/run`);
  t.equal(page.url(), `${one}/api/triggers/http/one/run`, 'so do the pages of its triggers');
  t.equal(await page.evaluate('self.origin'), one, 'which need no sandbox there');
  await page.goto(`http://localhost:${port}/plugins/two_/app/`);
  t.match(new URL(page.url()).hostname, /^p--[0-9a-f]{40}\.plugins\.localhost$/);
  t.equal(await page.title(), 'frontend');

  // The session counts for its plugin, on its origin, alone.
  const cookies = await context.cookies(one);
  const session = cookies.find(c => c.name === 'user_session')?.value ?? '';
  const cookie = `user_session=${session}`;
  const at = (host: string, path: string) => rawRequest(`${s.base}${path}`, { host, cookie });
  const hostOfOne = new URL(one).host;
  t.equal((await at(hostOfOne, '/api/triggers/http/one/run')).status, 200);
  t.equal((await at(`localhost:${port}`, '/api/triggers/http/one/run')).status, 401, "not on the service's origin");
  t.equal((await at(`localhost:${port}`, '/api/auth/sessions')).status, 401);
  const other = new URL(page.url()).host;
  t.equal((await at(other, '/api/triggers/http/two_/run')).status, 401, 'not on that of another plugin');
  t.notOk(
    cookies.some(c => c.name === 'admin_session'),
    'the administrator stays at home',
  );
  const own = (await context.cookies(`http://localhost:${port}`)).find(c => c.name === 'user_session')?.value ?? '';
  const foreign = await rawRequest(`${s.base}/api/triggers/http/one/run`, {
    host: hostOfOne,
    cookie: `user_session=${own}`,
  });
  t.equal(foreign.status, 401, 'and a session of the service does not count there');

  // A code is used once, by the browser that asked for it.
  const start = await rawRequest(`${s.base}/api/auth/plugin-session/start?return_to=/plugins/one/app/`, {
    host: hostOfOne,
  });
  const kept = start.headers.getSetCookie()[0]?.split(';')[0] ?? '';
  const path = new URL(start.headers.get('location') ?? '');
  const mine = { host: `localhost:${port}`, cookie: `user_session=${own}` };
  const made = await rawRequest(`${s.base}${path.pathname}${path.search}`, mine);
  const finish = new URL(made.headers.get('location') ?? '');
  t.equal(finish.origin, one);
  const use = (host: string, cookie: string) =>
    rawRequest(`${s.base}${finish.pathname}${finish.search}`, { host, cookie });
  t.equal((await use(hostOfOne, 'plugin_login=another')).status, 400, 'another browser');
  t.equal((await use(other, kept)).status, 400, 'another plugin');
  t.equal((await use(hostOfOne, kept)).status, 302);
  t.equal((await use(hostOfOne, kept)).status, 400, 'a second time');

  // Logging out at the service ends the sessions on all origins.
  await logOut(admin);
  t.equal((await at(hostOfOne, '/api/triggers/http/one/run')).status, 401);
});
