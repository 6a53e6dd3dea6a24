import fs from 'node:fs';
import http from 'node:http';
import path from 'node:path';
import { brotliDecompressSync, gunzipSync } from 'node:zlib';
import t from 'tap';
import { ServiceError } from '../../src/base/errors.ts';
import { openDatabase } from '../../src/db/database.ts';
import { FrontendBundle } from '../../src/frontends/frontend-bundle.ts';
import { isHashed } from '../../src/frontends/frontends.ts';
import { addSession } from '../../src/identity/sessions.ts';
import { openModuleStorage } from '../../src/plugins/module-storage.ts';
import { removeUninstalled } from '../../src/plugins/uninstalled.ts';
import { filesWorld } from '../support/files.ts';
import { type Answer, request, startTestService, type TestService, TOKEN } from '../support/service.ts';
import { watPlugin } from '../support/wat.ts';
import { rawZip, type ZipEntry } from '../support/zip.ts';

const INDEX = Buffer.from('<!doctype html><title>one</title>');
const index: ZipEntry = { name: 'index.html', data: INDEX };
const codeOf = (a: Answer): [number, unknown] => [a.status, a.json.code];

/** A form with a module and perhaps a frontend. */
function upload(s: TestService, module: Uint8Array, frontend: Uint8Array | null): Promise<Answer> {
  const form = new FormData();
  form.append('file', new Blob([new Uint8Array(module)]), 'p.wasm');
  if (frontend !== null) form.append('frontend', new Blob([new Uint8Array(frontend)]), 'f.zip');
  return request(`${s.base}/api/admin/plugins/upload`, {
    method: 'POST',
    headers: { authorization: `Bearer ${TOKEN}` },
    body: form,
  });
}

async function deliver(s: TestService, id: string, frontend: Uint8Array): Promise<string> {
  const uploaded = await upload(s, watPlugin({ id, handle: '(i32.const 0)' }), frontend);
  if (uploaded.status !== 201) throw new Error(uploaded.text);
  const wasmKey = String(uploaded.json.wasm_key);
  const installed = await s.admin('POST', `/plugins/${id}/install`, { wasm_key: wasmKey });
  if (installed.status !== 200) throw new Error(installed.text);
  return wasmKey;
}

/** As a browser opens a page: fetch says of itself that it is none. */
const navigate = (url: string): Promise<{ status: number; location: string | undefined }> =>
  new Promise(resolve =>
    http.get(url, { headers: { 'sec-fetch-mode': 'navigate' } }, r => {
      r.resume();
      resolve({ status: r.statusCode ?? 0, location: r.headers.location });
    }),
  );

const stored = (s: TestService): string[] => fs.readdirSync(path.join(s.directory, 'modules')).sort();

t.test('a ZIP that is no honest frontend is refused, and nothing of it stays', async t => {
  const s = await startTestService();
  t.teardown(() => s.stop());
  const big = Buffer.alloc(30 * 1024 * 1024);
  const attacks: Array<[string, Buffer, RegExp]> = [
    ['no ZIP', Buffer.from('hello'), /no ZIP file that can be read/],
    ['cut off', rawZip([index]).subarray(0, 60), /no ZIP file that can be read/],
    ['empty', rawZip([]), /no index\.html at its top/],
    [
      'packed with its folder',
      rawZip([{ name: 'dist/index.html', data: INDEX }]),
      /there is "dist\/index\.html": pack what that folder holds/,
    ],
    ['a way up', rawZip([index, { name: '../evil.js' }]), /evil|relative path|lead down/],
    ['a way up in the middle', rawZip([index, { name: 'a/../../evil.js' }]), /evil|relative path|lead down/],
    ['absolute', rawZip([index, { name: '/etc/passwd' }]), /absolute|lead down/],
    ['a drive', rawZip([index, { name: 'C:/x' }]), /absolute|character/],
    ['a way up by backslashes', rawZip([index, { name: 'a\\..\\b' }]), /relative path|lead down/],
    ['the same, not said to be UTF-8', rawZip([index, { name: 'ä\\..\\..\\b', flags: 0 }]), /relative path|lead down/],
    ['a server of Windows', rawZip([index, { name: '\\\\host\\b' }]), /absolute|lead down/],
    ['NUL', rawZip([index, { name: 'a\0.js' }]), /character that no address should/],
    ['a line end', rawZip([index, { name: 'a\r\nb' }]), /character that no address should/],
    ['a part without a name', rawZip([index, { name: 'a//b' }]), /part by part/],
    ['a dot', rawZip([index, { name: 'a/./b' }]), /part by part/],
    ['the same by another spelling', rawZip([index, { name: 'a' }, { name: './a' }]), /"a": stands in it twice/],
    [
      'the same letter, composed and not',
      rawZip([index, { name: 'й.js' }, { name: 'й.js'.normalize('NFD') }]),
      /"й\.js": stands in it twice/,
    ],
    [
      'a code page of some machine',
      rawZip([index, { name: Buffer.from([0x8f, 0xa0, 0xa9]), flags: 0 }]),
      /not text in UTF-8; pack the files again with names in UTF-8 \(7-Zip: -mcu=on\)/,
    ],
    ['no UTF-8', rawZip([index, { name: Buffer.from([0x61, 0xff, 0xfe]) }]), /not text in UTF-8/],
    ['a long path', rawZip([index, { name: 'a'.repeat(501) }]), /more than 500 bytes/],
    [
      'a symbolic link',
      rawZip([index, { name: 'link', data: Buffer.from('/etc/passwd'), mode: 0o120_777 }]),
      /"link": is a symbolic link/,
    ],
    ['a device', rawZip([index, { name: 'dev', mode: 0o020_666 }]), /is a device/],
    ['twice the same', rawZip([index, { name: 'a.js' }, { name: 'a.js', data: INDEX }]), /"a\.js": stands in it twice/],
    ['a file and a folder', rawZip([index, { name: 'a' }, { name: 'a/b' }]), /"a": is a file and a folder/],
    ['encrypted', rawZip([index, { name: 'a', flags: 0x801 }]), /is encrypted/],
    ['another method', rawZip([index, { name: 'a', method: 12 }]), /packed with method 12/],
    ['a wrong checksum', rawZip([index, { name: 'a', data: INDEX, crc: 1 }]), /"a": has another checksum/],
    [
      'more than it says',
      rawZip([index, { name: 'a', data: Buffer.alloc(5000, 'x'), size: 10 }]),
      /more bytes than the 10 /,
    ],
    [
      'less than it says',
      rawZip([index, { name: 'a', data: Buffer.alloc(10, 'x'), size: 5000 }]),
      /fewer bytes than the 5000 /,
    ],
    ['bytes behind what is packed', rawZip([index, { name: 'a', data: INDEX, behind: INDEX }]), /bytes behind what/],
    [
      'bytes behind what is stored',
      rawZip([index, { name: 'a', stored: true, behind: INDEX }]),
      /size mismatch for stored/,
    ],
    ['a bomb', rawZip([index, { name: 'a', data: big }]), /more than 200 times its size/],
    [
      'many bombs',
      rawZip([
        index,
        ...Array.from({ length: 10 }, (_, k) => ({ name: `b${k}`, data: Buffer.alloc(10), size: 30_000_000 })),
      ]),
      /200 times|unpacks to more than/,
    ],
    [
      '100,000 entries',
      rawZip([index, ...Array.from({ length: 99_999 }, (_, k) => ({ name: `f${k}`, stored: true }))]),
      /has \d+ entries; at most 10000|no ZIP file/,
    ],
    [
      '10,001 entries',
      rawZip([index, ...Array.from({ length: 10_000 }, (_, k) => ({ name: `f${k}`, stored: true }))]),
      /has 10001 entries; at most 10000/,
    ],
  ];
  const before = stored(s);
  const module = watPlugin({ id: 'attacked', handle: '(i32.const 0)' });
  for (const [what, zip, message] of attacks) {
    const answer = await upload(s, module, zip);
    t.same(codeOf(answer), [422, 'frontend_refused'], what);
    t.match(answer.json.detail, message, what);
    t.match(answer.json.errors, [{ pointer: '/frontend' }], what);
    t.same(stored(s), before, `${what}: nothing stays`);
  }
  t.equal((await s.admin('GET', '/plugins/attacked')).status, 404);
  const large = await startTestService({ BOT_HTTP_MAX_FRONTEND: '1000' });
  t.teardown(() => large.stop());
  const over = await upload(large, module, rawZip([index, { name: 'a', data: Buffer.alloc(2000, 1), stored: true }]));
  t.same(codeOf(over), [413, 'body_too_large']);
  t.match(over.json.detail, /http\.max_frontend \(1000 bytes\)/);
  t.same(stored(large), []);
});

t.test('names are read as different archivers write them', async t => {
  const file = path.join(t.testdir(), 'a.zip');
  const written: ZipEntry[] = [
    { name: './', stored: true },
    { name: './index.html', data: INDEX },
    { name: 'assets\\main.js' },
    { name: 'Приём.js'.normalize('NFD'), flags: 0 },
    { name: './a/Точка.png' },
  ];
  fs.writeFileSync(file, rawZip(written));
  const bundle = await FrontendBundle.open(file);
  t.teardown(() => bundle.close());
  t.same([...bundle.files.keys()], ['index.html', 'assets/main.js', 'Приём.js', 'a/Точка.png']);
  t.same(await bundle.check(), { files: 4, bytes: INDEX.length });
});

t.test('a bundle that an earlier release took is served without the names that are refused now', async t => {
  const file = path.join(t.testdir(), 'a.zip');
  const codePage = { name: Buffer.from([0x8f, 0xa0, 0xa9]), flags: 0 };
  const twice = ['й.js', 'й.js'.normalize('NFD')].map(name => ({ name, data: INDEX }));
  fs.writeFileSync(file, rawZip([index, codePage, ...twice]));
  await t.rejects(FrontendBundle.open(file), { code: 'frontend_refused' });
  const bundle = await FrontendBundle.open(file, true);
  t.teardown(() => bundle.close());
  t.same([...bundle.files.keys()], ['index.html', 'й.js']);
});

t.test('what Apple adds is left out, folders have no entry of their own, and the sum of sizes is bounded', async t => {
  const file = path.join(t.testdir(), 'a.zip');
  fs.writeFileSync(
    file,
    rawZip([index, { name: 'assets/', stored: true }, { name: '__MACOSX/._index.html' }, { name: 'a/.DS_Store' }]),
  );
  const bundle = await FrontendBundle.open(file);
  t.same([...bundle.files.keys()], ['index.html']);
  t.same(await bundle.check(), { files: 1, bytes: INDEX.length });
  bundle.close();
  fs.writeFileSync(
    file,
    rawZip([
      index,
      ...Array.from({ length: 9 }, (_, k) => ({
        name: `b${k}`,
        data: Buffer.from(`${k}`),
        size: 32 * 1024 * 1024,
        stored: true,
        mode: 0,
      })),
    ]),
  );
  await t.rejects(FrontendBundle.open(file), ServiceError);
});

t.test('a frontend is served with its plugin, each file as the browser takes it best', async t => {
  const s = await startTestService();
  t.teardown(() => s.stop());
  const script = Buffer.from(`console.log(${JSON.stringify('x'.repeat(5000))});`);
  const picture = Buffer.from([0x89, 0x50, 0x4e, 0x47, ...Buffer.alloc(1000, 7)]);
  const video = Buffer.alloc(5 * 1024 * 1024, 'v');
  for (let k = 0; k < video.length; k += 97) video[k] = k % 251;
  await deliver(
    s,
    'shop',
    rawZip([
      index,
      { name: 'assets/index-BhK3x9Qa.js', data: script },
      { name: 'logo.png', data: picture, stored: true },
      { name: 'docs/index.html', data: Buffer.from('docs') },
      { name: 'übersicht.txt', data: Buffer.from('grün') },
      { name: 'film.mp4', data: video, stored: true },
      { name: 'large.json', data: video },
    ]),
  );
  const get = async (where: string, headers: Record<string, string> = {}) => {
    const r = await fetch(`${s.base}/plugins/shop/app/${where}`, {
      headers: { 'accept-encoding': 'identity', ...headers },
      redirect: 'manual',
    });
    return { status: r.status, headers: r.headers, body: Buffer.from(await r.arrayBuffer()) };
  };
  const moved = await request(`${s.base}/plugins/shop/app?x=1`);
  t.same([moved.status, moved.headers.get('location')], [308, '/plugins/shop/app/?x=1']);

  const page = await get('');
  t.equal(page.body.toString(), INDEX.toString());
  t.match(Object.fromEntries(page.headers), {
    'content-type': 'text/html; charset=utf-8',
    'cache-control': 'public, no-cache',
    'x-content-type-options': 'nosniff',
    vary: 'Accept-Encoding',
    'content-security-policy':
      /default-src 'self'; script-src 'self' 'wasm-unsafe-eval';.*object-src 'none'.*frame-ancestors 'self'/,
  });
  const etag = page.headers.get('etag') ?? '';
  t.equal((await get('', { 'if-none-match': `"x", W/${etag}` })).status, 304);
  t.equal((await get('index.html', { 'if-none-match': '"other"' })).status, 200);

  const asset = await get('assets/index-BhK3x9Qa.js');
  t.equal(asset.headers.get('cache-control'), 'public, max-age=31536000, immutable');
  t.equal(asset.headers.get('content-type'), 'text/javascript; charset=utf-8');
  t.same(asset.body, script);
  // fetch would unpack it by itself.
  const raw = (
    coding: string,
    file = 'assets/index-BhK3x9Qa.js',
  ): Promise<{ coding: string | undefined; body: Buffer; etag: string | undefined }> =>
    import('node:http').then(
      ({ get }) =>
        new Promise(resolve =>
          get(`${s.base}/plugins/shop/app/${file}`, { headers: { 'accept-encoding': coding } }, r => {
            const chunks: Buffer[] = [];
            r.on('data', (c: Buffer) => chunks.push(c));
            r.on('end', () =>
              resolve({ coding: r.headers['content-encoding'], body: Buffer.concat(chunks), etag: r.headers.etag }),
            );
          }),
        ),
    );
  const gzip = await raw('gzip, deflate');
  t.equal(gzip.coding, 'gzip');
  t.same(gunzipSync(gzip.body), script);
  // It is made behind the first answer.
  let br = await raw('gzip, deflate, br');
  while (br.coding !== 'br') br = await raw('gzip, deflate, br');
  t.same(brotliDecompressSync(br.body), script);
  t.equal((await raw('br;q=0, gzip')).coding, 'gzip');
  t.equal(new Set([gzip.etag, br.etag, asset.headers.get('etag')]).size, 3, 'each form has a tag of its own');

  const large = await raw('gzip', 'large.json');
  t.equal(large.coding, 'gzip', 'a large file travels as it is packed');
  t.same(gunzipSync(large.body), video);
  t.same((await get('large.json')).body, video);

  const image = await get('logo.png', { 'accept-encoding': 'br, gzip' });
  t.same([image.headers.get('content-type'), image.headers.get('content-encoding')], ['image/png', null]);
  t.same(image.body, picture);
  t.same((await get('film.mp4')).body, video, 'a large file is read as it is sent');
  t.equal((await get('%C3%BCbersicht.txt')).body.toString(), 'grün');
  t.equal((await get('docs/')).body.toString(), 'docs');
  const html = { accept: 'text/html,*/*' };
  t.equal((await get('orders/17', html)).body.toString(), INDEX.toString(), 'a route of the page');
  t.equal((await get('orders/17')).status, 200);
  t.equal((await get('missing.js')).status, 404);
  t.equal((await navigate(`${s.base}/plugins/shop/app/missing.js`)).status, 200);
  for (const path of ['..%2f..%2fsecrets.key', '%2e%2e/%2e%2e/secrets.key', '..%5c..%5cx.js', '%00.js'])
    t.ok([200, 404].includes((await get(path)).status) && !(await get(path)).body.toString().includes('='), path);
  t.equal((await get('%E0%A4%A')).status, 400);
  const head = await fetch(`${s.base}/plugins/shop/app/film.mp4`, { method: 'HEAD' });
  t.same([head.status, head.headers.get('content-length')], [200, String(video.length)]);
  t.equal((await request(`${s.base}/plugins/missing/app/`)).status, 404);
  await s.admin('POST', '/plugins/shop/disable');
  t.equal((await get('')).status, 404, 'a disabled plugin has no frontend');
});

t.test('the frontend changes with the version of the plugin, there and back', async t => {
  const s = await startTestService();
  t.teardown(() => s.stop());
  const page = async () => (await request(`${s.base}/plugins/shop/app/`)).text;
  const first = await deliver(s, 'shop', rawZip([{ name: 'index.html', data: Buffer.from('first') }]));
  t.equal(await page(), 'first');
  const second = await upload(s, watPlugin({ id: 'shop', version: '2.0.0', handle: '(i32.const 0)' }), null);
  const key = String(second.json.wasm_key);
  const put = async (wasmKey: string, zip: Buffer) => {
    const form = new FormData();
    form.append('file', new Blob([new Uint8Array(zip)]), 'f.zip');
    return await request(`${s.base}/api/admin/plugins/shop/versions/${wasmKey}/frontend`, {
      method: 'PUT',
      headers: { authorization: `Bearer ${TOKEN}` },
      body: form,
    });
  };
  t.match(await put(key, rawZip([{ name: 'index.html', data: Buffer.from('draft') }])), {
    status: 200,
    json: { frontend: { files: 1, bytes: 5 } },
  });
  t.equal(
    (await put(key, rawZip([{ name: 'index.html', data: Buffer.from('second') }]))).status,
    200,
    'until it is installed it may be another',
  );
  t.same(codeOf(await put(key, rawZip([]))), [422, 'frontend_refused']);
  t.equal(await page(), 'first', 'nothing changes before the installation');
  await s.admin('POST', '/plugins/shop/install', { wasm_key: key });
  t.equal(await page(), 'second');
  t.same(codeOf(await put(key, rawZip([index]))), [409, 'conflict']);
  t.same(codeOf(await put('nokey', rawZip([index]))), [404, 'not_found']);
  await s.admin('POST', '/plugins/shop/rollback', { wasm_key: first });
  t.equal(await page(), 'first');
  const bare = await upload(s, watPlugin({ id: 'shop', version: '3.0.0', handle: '(i32.const 0)' }), null);
  await s.admin('POST', '/plugins/shop/install', { wasm_key: String(bare.json.wasm_key) });
  t.equal((await request(`${s.base}/plugins/shop/app/`)).status, 404, 'a version without a frontend has none');
  fs.writeFileSync(
    path.join(s.directory, 'modules', stored(s).find(f => f.startsWith(first) && f.endsWith('.frontend.zip')) ?? ''),
    rawZip([index]),
  );
  const again = await startTestService({}, s);
  t.teardown(() => again.stop());
  await s.admin('POST', '/plugins/shop/rollback', { wasm_key: first });
  await again.service.registry.reload('shop');
  t.equal(
    (await request(`${again.base}/plugins/shop/app/`)).status,
    500,
    'bytes that were not checked at upload are not served',
  );
  await s.admin('DELETE', '/plugins/shop');
  t.equal((await request(`${s.base}/plugins/shop/app/`)).status, 404, 'it goes with its plugin');
  const db = openDatabase(s.databaseUrl, 1, () => {});
  t.teardown(() => db.close());
  await removeUninstalled(db, openModuleStorage(path.join(s.directory, 'modules')), 0);
  t.same(stored(s), [], 'its files go when plugins.keep_uninstalled is over');
});

t.test('a frontend may be for users and administrators alone', async t => {
  const w = await filesWorld(t);
  const { db, s } = w;
  await deliver(s, 'inner', rawZip([index, { name: 'app.js', data: Buffer.from('1') }]));
  t.match(await s.admin('PUT', '/plugins/inner/frontend', { access: 'session' }), {
    status: 200,
    json: { frontend_access: 'session', frontend_url: '/plugins/inner/app/' },
  });
  t.equal((await s.admin('PUT', '/plugins/inner/frontend', { access: 'all' })).status, 422);
  const ada = await w.user('Ada');
  const session = async (kind: 'user' | 'admin') =>
    (
      await addSession(db, {
        kind,
        userId: ada.userId,
        withPassword: false,
        address: '',
        userAgent: '',
        browser: false,
      })
    ).secret;
  const get = (headers: Record<string, string>, where = '') =>
    request(`${s.base}/plugins/inner/app/${where}`, { headers });
  const bare = await navigate(`${s.base}/plugins/inner/app/a?b=1`);
  t.equal(bare.status, 503, 'without an identity provider there is no login to redirect to');
  const withLogin = await startTestService({ BOT_IDP_ISSUER: 'https://login.example' }, s);
  t.teardown(() => withLogin.stop());
  const page = await navigate(`${withLogin.base}/plugins/inner/app/a?b=1`);
  t.same(
    [page.status, page.location],
    [302, `/api/auth/idp/start?return_to=${encodeURIComponent('/plugins/inner/app/a?b=1')}`],
  );
  t.equal((await get({}, 'app.js')).status, 401);
  t.equal((await get({ cookie: 'user_session=nonsense' })).status, 401);
  const user = await get({ cookie: `user_session=${await session('user')}` });
  t.same([user.status, user.headers.get('cache-control')], [200, 'private, no-cache']);
  t.equal(
    (await get({ cookie: `admin_session=${await session('admin')}` })).status,
    401,
    'who is no administrator any more',
  );
  await s.admin('POST', '/auth/setup', { email: 'a@uni.example', password: 'a long password' });
  const login = await request(`${s.base}/api/admin/auth/login`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ email: 'a@uni.example', password: 'a long password' }),
  });
  const admin = login.headers
    .getSetCookie()
    .map(c => c.split(';')[0] ?? '')
    .filter(c => c.startsWith('admin_session='));
  t.equal((await get({ cookie: admin.join('; ') })).status, 200, 'an administrator');
});

t.test('names that change with their content are distinguished from names that do not', async t => {
  for (const name of [
    'assets/index-BhK3x9Qa.js',
    'main.3f4b5c6d.js',
    'assets/vendor-1a2B3c4D.css',
    'chunk.5f2c8d1e9a0b7c6d.js',
    'logo.8a7b6c5d.svg',
    'assets/index-BhK3x9Qa.js.map',
  ])
    t.equal(isHashed(name), true, name);
  for (const name of [
    'index.html',
    'report.3f4b5c6d.html',
    'app.js',
    'my-component.js',
    'main.3f4b5c6d.chunk.js',
    'assets/chart-BarChart.js',
    'assets/intro-Chapter1.js',
    'assets/logo-1024x768.png',
    'assets/hero-1920x1080.jpg',
    'assets/data-2024plan.json',
    'backup-20240101.js',
    'jquery-3.7.1.js',
    'inter-v13-latin-regular.woff2',
    'main-es2015-dev.js',
    'index-BhK3x9Qa.js',
    'a-BhK3x9Qa/index.js',
  ])
    t.equal(isHashed(name), false, name);
});
