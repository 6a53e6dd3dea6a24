import fs from 'node:fs';
import http from 'node:http';
import path from 'node:path';
import t from 'tap';
import { cleanFiles, removeOrphans } from '../../src/files/cleaning.ts';
import { findFile } from '../../src/files/file-records.ts';
import type { FileStorage } from '../../src/files/file-storage.ts';
import { AddressSigner } from '../../src/files/signed-address.ts';
import { openDiskStorage } from '../../src/files/storage-disk.ts';
import { addSession } from '../../src/identity/sessions.ts';
import { type FilesWorld, filesWorld, pattern, sha256, type Upload, type Uploader } from '../support/files.ts';
import { type Answer, type Json, request } from '../support/service.ts';
import { until } from '../support/until.ts';
import { watPlugin } from '../support/wat.ts';

/** One service for the tests that need no setting of their own. */
let shared: Promise<FilesWorld> | null = null;
function world(): Promise<FilesWorld> {
  shared ??= filesWorld(t);
  return shared;
}

const codeOf = (a: Answer): [number, unknown] => [a.status, a.json.code];

/** Every file below the store of a service, by path, with its bytes. */
function stored(w: FilesWorld): Map<string, Buffer> {
  const root = path.join(w.s.directory, 'files');
  return new Map(
    fs
      .readdirSync(root, { recursive: true, withFileTypes: true })
      .filter(e => e.isFile())
      .map(e => [
        path.relative(root, path.join(e.parentPath, e.name)),
        fs.readFileSync(path.join(e.parentPath, e.name)),
      ]),
  );
}

const link = async (user: Uploader, id: string): Promise<string> => {
  await user.post('/api/triggers/http/filebox/files', { file_id: id });
  return String((await user.ask('GET', `/api/triggers/http/filebox/files/${id}/link`)).json.url);
};

t.test('a file goes from its announcement to the plugin: init, upload, complete, use, delete', async t => {
  const w = await filesWorld(t);
  const ada = await w.user('Ada');
  const bytes = pattern(3_000_000);

  const announced = await ada.post('/api/files/init', {
    plugin_id: 'filebox',
    name: 'Отчёт 1.png',
    mime_type: 'Image/PNG',
    size: bytes.length,
    file_type: 'photo',
  });
  t.equal(announced.status, 201);
  const upload = announced.json as unknown as Upload & { expires_at: string };
  t.match(upload, { file_id: /^[0-9a-f]{32}$/, upload_method: 'PUT', upload_headers: { 'Content-Type': 'image/png' } });
  t.ok(upload.upload_url.startsWith(`${w.s.base}/api/files/${upload.file_id}/content?`));
  const left = Date.parse(upload.expires_at) - Date.now();
  t.ok(left > 3_500_000 && left <= 3_600_000, 'an hour to upload it');

  t.same(codeOf(await ada.complete(upload.file_id)), [409, 'not_uploaded']);
  t.match(
    (await ada.post('/api/triggers/http/filebox/files', { file_id: upload.file_id })).json.error,
    /not found/,
    'no plugin sees a file that is not complete',
  );
  const put = await ada.put(upload, bytes);
  t.same([put.status, put.text], [200, '']);
  t.equal(put.headers.get('etag'), `"${sha256(bytes)}"`);
  const ref = {
    id: upload.file_id,
    name: 'Отчёт 1.png',
    mime_type: 'image/png',
    size: bytes.length,
    file_type: 'photo',
  };
  const done = await ada.complete(upload.file_id);
  t.equal(done.status, 200);
  t.strictSame(done.json, ref);
  t.strictSame((await ada.complete(upload.file_id)).json, ref, 'completing again answers the same');

  t.strictSame((await ada.post('/api/triggers/http/filebox/files', { file_ids: [ref.id] })).json, { files: [ref] });
  t.strictSame((await ada.ask('GET', '/api/triggers/http/filebox/files')).json, { files: [ref] });
  const content = await fetch(`${w.s.base}/api/triggers/http/filebox/files/${ref.id}`, { headers: ada.headers });
  t.equal(sha256(new Uint8Array(await content.arrayBuffer())), sha256(bytes));

  const url = await link(ada, ref.id);
  const got = await fetch(url);
  t.equal(sha256(new Uint8Array(await got.arrayBuffer())), sha256(bytes));
  t.match(Object.fromEntries(got.headers), {
    'content-type': 'image/png',
    'content-length': String(bytes.length),
    'content-disposition': `inline; filename="_____ 1.png"; filename*=UTF-8''%D0%9E%D1%82%D1%87%D1%91%D1%82%201.png`,
    'x-content-type-options': 'nosniff',
    'content-security-policy': /sandbox/,
    etag: `"${sha256(bytes)}"`,
  });

  t.same([...stored(w).values()].map(sha256), [sha256(bytes)], 'nothing else lies in the store');
  t.equal((await ada.ask('DELETE', `/api/files/${ref.id}`)).status, 204);
  t.equal((await ada.ask('DELETE', `/api/files/${ref.id}`)).status, 204, 'it is deleted already');
  t.equal(stored(w).size, 0);
  t.same(codeOf(await ada.complete(ref.id)), [410, 'expired']);
  t.equal((await request(url)).status, 404);
  t.same((await ada.ask('GET', '/api/triggers/http/filebox/files')).json, { files: [] });
});

t.test('a file may be deleted before its upload, after it, and while it comes in', async t => {
  const w = await filesWorld(t);
  const ada = await w.user('Ada');
  const first = await ada.init(10);
  t.equal((await ada.ask('DELETE', `/api/files/${first.file_id}`)).status, 204);
  t.same(codeOf(await ada.put(first, '0123456789')), [404, 'not_found']);

  const second = await ada.init(10);
  await ada.put(second, '0123456789');
  t.equal(stored(w).size, 1);
  t.equal((await ada.ask('DELETE', `/api/files/${second.file_id}`)).status, 204);
  t.equal(stored(w).size, 0);

  const third = await ada.init(10);
  const slow = http.request(third.upload_url, {
    method: 'PUT',
    headers: { ...third.upload_headers, 'content-length': 10 },
  });
  const answered = new Promise<number>(resolve => slow.on('response', r => resolve(r.resume().statusCode ?? 0)));
  slow.write('01234');
  await until(() => [...stored(w).keys()].some(k => k.endsWith('.part')));
  t.equal((await ada.ask('DELETE', `/api/files/${third.file_id}`)).status, 204);
  slow.end('56789');
  t.equal(await answered, 409);
  t.equal(stored(w).size, 0, 'nothing of it stays');
});

t.test('what is sent must be what was announced; stored bytes never change afterwards', async t => {
  const w = await filesWorld(t);
  const ada = await w.user('Ada');
  const upload = await ada.init(10);
  const address = new URL(upload.upload_url);
  const to = (change: (u: URL) => void): Upload => {
    const u = new URL(address);
    change(u);
    return { ...upload, upload_url: u.href };
  };
  const ten = '0123456789';

  t.same(codeOf(await ada.put(upload, '012345678')), [400, 'malformed_request'], 'one byte too few');
  const more = await ada.put(upload, '01234567890');
  t.same(
    [...codeOf(more), more.json.detail],
    [413, 'body_too_large', 'the body is larger than the size this address was made for (10 bytes)'],
  );
  t.same(
    codeOf(await chunked(upload, ['0123', '45678'])),
    [400, 'malformed_request'],
    'too few without a stated length',
  );
  t.same(
    codeOf(await chunked(upload, ['0123', '4567890'])),
    [413, 'body_too_large'],
    'too many without a stated length',
  );
  for (const headers of [{ 'Content-Type': 'text/html' }, { 'Content-Type': 'text/plain;charset=utf-8' }, {}])
    t.same(codeOf(await ada.put(upload, Buffer.from(ten), { headers: headers as Record<string, string> })), [
      415,
      'unsupported_media_type',
    ]);
  for (const method of ['POST', 'PATCH', 'DELETE'])
    t.ok([401, 405].includes((await ada.put(upload, ten, { method })).status), `${method} is not what it was made for`);
  t.same(codeOf(await request(upload.upload_url)), [422, 'validation_failed'], 'an upload address reads nothing');
  const bare = to(u => {
    u.searchParams.delete('size');
    u.searchParams.delete('type');
  });
  t.same(codeOf(await request(bare.upload_url)), [403, 'forbidden'], 'not without its parts either');
  const other = await ada.init(10);
  const another = (signature: string): string => `${signature.startsWith('A') ? 'B' : 'A'}${signature.slice(1)}`;
  const attacks: Array<[string, Upload]> = [
    ['a larger size', to(u => u.searchParams.set('size', '11'))],
    ['another type', to(u => u.searchParams.set('type', 'text/html'))],
    ['a later end', to(u => u.searchParams.set('expires', String(Number(u.searchParams.get('expires')) + 60)))],
    ['another signature', to(u => u.searchParams.set('signature', another(u.searchParams.get('signature') ?? '')))],
    ['no signature', to(u => u.searchParams.delete('signature'))],
    ["another file's address", to(u => (u.pathname = new URL(other.upload_url).pathname))],
    ['a way out of the directory', to(u => (u.pathname = `/api/files/${encodeURIComponent('../../x')}/content`))],
  ];
  for (const [what, attack] of attacks) t.same(codeOf(await ada.put(attack, ten)), [403, 'forbidden'], what);
  t.equal(stored(w).size, 0, 'nothing was stored by any of it');

  t.equal((await ada.put(upload, 'abcdefghij')).status, 200);
  t.equal((await ada.put(upload, ten)).status, 200, 'uploaded again before completion: the last counts');
  t.equal((await ada.complete(upload.file_id)).status, 200);
  const before = [...stored(w)].filter(([k]) => k.includes('ready/'));
  t.same(
    before.map(([, b]) => b.toString()),
    [ten],
  );
  t.same(codeOf(await ada.put(upload, 'ABCDEFGHIJ')), [409, 'conflict'], 'replayed after completion');
  t.strictSame(
    [...stored(w)].filter(([k]) => k.includes('ready/')),
    before,
  );

  await w.db.query('UPDATE files SET expires_at = now() WHERE id = $1', [other.file_id]);
  await ada.put(other, ten);
  t.same(codeOf(await ada.complete(other.file_id)), [410, 'expired']);
});

/** A body whose length is not stated. */
function chunked(upload: Upload, parts: string[]): Promise<Answer> {
  const body = new ReadableStream({
    start(c) {
      for (const p of parts) c.enqueue(Buffer.from(p));
      c.close();
    },
  });
  return request(upload.upload_url, {
    method: 'PUT',
    headers: upload.upload_headers,
    body,
    duplex: 'half',
  } as RequestInit);
}

t.test('an address expires', async t => {
  const w = await filesWorld(t, { BOT_SECRETS_KEY: Buffer.alloc(32, 7).toString('base64') });
  const ada = await w.user('Ada');
  const upload = await ada.init(4);
  const signer = new AddressSigner(Buffer.alloc(32, 7));
  const past = Math.floor(Date.now() / 1000) - 1;
  const old = signer.uploadPath({ id: upload.file_id, expires: past, size: 4, type: 'text/plain' });
  t.same(codeOf(await ada.put({ ...upload, upload_url: w.s.base + old }, 'abcd')), [410, 'expired']);
  const id = await ada.give(pattern(5));
  t.equal((await request(w.s.base + signer.downloadPath({ id, expires: past + 100 }))).status, 200);
  t.same(codeOf(await request(w.s.base + signer.downloadPath({ id, expires: past }))), [410, 'expired']);
  const other = new AddressSigner(Buffer.alloc(32, 8));
  t.same(codeOf(await request(w.s.base + other.downloadPath({ id, expires: past + 100 }))), [403, 'forbidden']);
});

t.test('a description that is wrong is refused with every place that is', async t => {
  const w = await filesWorld(t, { BOT_HTTP_MAX_UPLOAD: '1000' });
  const ada = await w.user('Ada');
  await w.s.install(watPlugin({ id: 'nofiles', handle: '(i32.const 0)' }));
  const good = { plugin_id: 'filebox', name: 'a.txt', mime_type: 'text/plain', file_type: 'document', size: 1 };
  const cases: Array<[Record<string, unknown>, string, RegExp]> = [
    [{ name: '' }, '/name', /must not be empty/],
    [{ name: '..' }, '/name', /not a directory/],
    [{ name: '../../etc/passwd' }, '/name', /plain file name/],
    [{ name: 'a\\b' }, '/name', /plain file name/],
    [{ name: 'a\r\nSet-Cookie: x' }, '/name', /plain file name/],
    [{ name: 'a\u202Etxt.exe' }, '/name', /plain file name/],
    [{ name: 'я'.repeat(128) }, '/name', /at most 255 bytes/],
    [{ mime_type: 'text' }, '/mime_type', /MIME type like/],
    [{ mime_type: 'text/plain\r\nX: y' }, '/mime_type', /MIME type like/],
    [{ mime_type: `text/${'x'.repeat(300)}` }, '/mime_type', /MIME type like/],
    [{ file_type: 'movie' }, '/file_type', /one of photo, document/],
    [{ file_type: 'photo' }, '/file_type', /"photo" does not go with MIME type text\/plain/],
    [{ file_type: 'voice', mime_type: 'video/mp4' }, '/file_type', /does not go with/],
    [{ size: -1 }, '/size', /at least 0/],
    [{ size: 1.5 }, '/size', /whole number/],
    [{ size: '1' }, '/size', /number/],
    [{ size: undefined }, '/size', /missing/],
    [{ plugin_id: 'missing' }, '/plugin_id', /names no plugin/],
    [{ plugin_id: 'nofiles' }, '/plugin_id', /takes no files/],
    [{ more: 1 }, '/more', /not a field/],
  ];
  for (const [change, pointer, message] of cases) {
    const answer = await ada.post('/api/files/init', { ...good, ...change });
    t.equal(answer.status, 422, JSON.stringify(change));
    t.match(answer.json.errors, [{ pointer, message }], JSON.stringify(change));
  }
  const large = await ada.post('/api/files/init', { ...good, size: 1001 });
  t.same(codeOf(large), [413, 'body_too_large']);
  t.match(large.json.detail, /1001 bytes; http\.max_upload allows 1000/);
  t.equal((await w.db.query('SELECT 1 FROM files')).rowCount, 0, 'nothing is kept of them');
  const empty = await ada.give(new Uint8Array(0));
  t.equal((await request(await link(ada, empty))).text, '', 'an empty file is a file');
});

t.test('only users have files, and only their own', async t => {
  const w = await world();
  const [ada, bob] = [await w.user('Ada'), await w.user('Bob')];
  const upload = await ada.init(4);
  await ada.put(upload, 'abcd');
  const unknown = 'f'.repeat(32);
  for (const id of [upload.file_id, unknown, 'x', '..%2f..'])
    for (const ask of [() => bob.complete(id), () => bob.ask('DELETE', `/api/files/${id}`)]) {
      const answer = await ask();
      t.same([...codeOf(answer), answer.json.detail], [404, 'not_found', 'there is no such file'], id);
    }
  t.equal((await ada.complete(upload.file_id)).status, 200);
  const key = await w.s.admin('POST', '/service-keys', {
    name: 'k',
    scopes: [{ plugin_id: 'filebox', trigger: 'files' }],
  });
  t.equal(key.status, 201);
  for (const headers of [{}, { authorization: 'Bearer pht_no.no' }, { cookie: 'user_session=no' }])
    for (const where of ['init', `${upload.file_id}/complete`])
      t.equal(
        (
          await request(`${w.s.base}/api/files/${where}`, {
            method: 'POST',
            headers: headers as Record<string, string>,
          })
        ).status,
        401,
      );
  const asKey = await request(`${w.s.base}/api/files/init`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key.json.key}` },
  });
  t.same(codeOf(asKey), [403, 'forbidden']);
});

t.test('a session cookie counts from pages of this site and of the plugin alone', async t => {
  const w = await world();
  const ada = await w.user('Ada');
  const { secret } = await addSession(w.db, {
    kind: 'user',
    userId: ada.userId,
    withPassword: false,
    address: '',
    userAgent: '',
    browser: false,
  });
  await w.s.install(
    watPlugin({ id: 'other', requirements: [{ kind: 'file', description: 'f' }], handle: '(i32.const 0)' }),
  );
  const [ours, theirs] = ['https://app.example.org', 'https://other.example.org'];
  await w.s.admin('PUT', '/plugins/filebox/origins', { origins: [ours] });
  await w.s.admin('PUT', '/plugins/other/origins', { origins: [theirs] });
  const init = (headers: Record<string, string>) =>
    request(`${w.s.base}/api/files/init`, {
      method: 'POST',
      headers: { cookie: `user_session=${secret}`, 'content-type': 'application/json', ...headers },
      body: JSON.stringify({
        plugin_id: 'filebox',
        name: 'a',
        mime_type: 'text/plain',
        file_type: 'document',
        size: 4,
      }),
    });
  t.equal((await init({ 'sec-fetch-site': 'same-origin' })).status, 201);
  t.equal((await init({ 'sec-fetch-site': 'cross-site', origin: 'https://evil.example' })).status, 403);
  const foreign = await init({ 'sec-fetch-site': 'same-site', origin: theirs });
  t.equal(foreign.status, 403, 'an origin of another plugin');
  t.equal(foreign.headers.get('access-control-allow-origin'), theirs, 'which may read why');
  const allowed = await init({ 'sec-fetch-site': 'same-site', origin: ours });
  t.equal(allowed.status, 201);
  t.match(Object.fromEntries(allowed.headers), {
    'access-control-allow-origin': ours,
    'access-control-allow-credentials': 'true',
    vary: 'Origin',
  });
  const id = String(allowed.json.file_id);
  const remove = (origin: string) =>
    request(`${w.s.base}/api/files/${id}`, {
      method: 'DELETE',
      headers: { cookie: `user_session=${secret}`, 'sec-fetch-site': 'same-site', origin },
    });
  t.equal((await remove(theirs)).status, 403);
  t.equal((await remove(ours)).status, 204);
  const preflight = (origin: string) =>
    request(`${w.s.base}/api/files/init`, {
      method: 'OPTIONS',
      headers: { origin, 'access-control-request-method': 'POST' },
    });
  t.equal((await preflight(ours)).headers.get('access-control-allow-origin'), ours);
  t.equal((await preflight('https://evil.example')).headers.get('access-control-allow-origin'), null);
});

t.test('downloads may be asked for in ranges', async t => {
  const w = await world();
  const ada = await w.user('Ada');
  const bytes = pattern(100_000);
  const url = await link(ada, await ada.give(bytes, { name: 'x.html', mime_type: 'text/html' }));
  const get = async (headers: Record<string, string>, method = 'GET') => {
    const r = await fetch(url, { headers, method });
    return {
      status: r.status,
      range: r.headers.get('content-range'),
      body: new Uint8Array(await r.arrayBuffer()),
      headers: r.headers,
    };
  };
  const whole = await get({});
  t.match(whole.headers.get('content-disposition'), /^attachment; /, 'a page is never shown from here');
  const etag = whole.headers.get('etag') ?? '';
  for (const [range, from, to] of [
    ['bytes=0-0', 0, 0],
    ['bytes=10-19', 10, 19],
    ['bytes=99990-', 99_990, 99_999],
    ['bytes=-5', 99_995, 99_999],
    ['bytes=99999-200000', 99_999, 99_999],
    ['bytes=-200000', 0, 99_999],
  ] as const) {
    const part = await get({ range });
    t.same([part.status, part.range], [206, `bytes ${from}-${to}/100000`], range);
    t.equal(sha256(part.body), sha256(bytes.subarray(from, to + 1)), range);
  }
  for (const range of ['bytes=100000-', 'bytes=-0']) {
    const none = await get({ range });
    t.same([none.status, none.range], [416, 'bytes */100000'], range);
  }
  for (const range of ['bytes=5-1', 'bytes=0-1,4-5', 'items=0-1', 'bytes=a-b', 'bytes=-'])
    t.equal((await get({ range })).body.length, 100_000, `${range} is answered with the whole`);
  t.equal((await get({ range: 'bytes=0-9', 'if-range': etag })).status, 206);
  t.equal((await get({ range: 'bytes=0-9', 'if-range': '"old"' })).status, 200);
  for (const known of [etag, `W/${etag}`, `"other", ${etag}`, '*'])
    t.equal((await get({ 'if-none-match': known })).status, 304, known);
  t.equal((await get({ 'if-none-match': etag, range: 'bytes=0-9' })).status, 304);
  t.equal((await get({ 'if-none-match': etag, range: 'bytes=100000-' })).status, 304, 'there is nothing to send');
  for (const range of ['bytes=0-9', 'bytes=100000-']) {
    const head = await get({ range }, 'HEAD');
    t.same([head.status, head.headers.get('content-length')], [200, '100000'], 'ranges are of GET alone');
  }
  t.equal((await get({ 'if-none-match': '"other"' })).status, 200);
  const head = await get({}, 'HEAD');
  t.same([head.status, head.headers.get('content-length'), head.body.length], [200, '100000', 0]);
});

t.test('quotas hold exactly, however many come at once, and are given back', async t => {
  const w = await filesWorld(t, {
    BOT_FILES_USER_QUOTA: '1000',
    BOT_FILES_USER_FILES: '8',
    BOT_FILES_PLUGIN_QUOTA: '1500',
  });
  const [ada, bob] = [await w.user('Ada'), await w.user('Bob')];
  const init = (who: Uploader, size: number) =>
    who.post('/api/files/init', {
      plugin_id: 'filebox',
      name: 'a',
      mime_type: 'text/plain',
      file_type: 'document',
      size,
    });
  const answers = await Promise.all(Array.from({ length: 12 }, () => init(ada, 200)));
  t.equal(answers.filter(a => a.status === 201).length, 5);
  const refused = answers.find(a => a.status !== 201);
  t.match(refused, {
    status: 413,
    json: { code: 'quota_exceeded', limit: 'files.user_quota', limit_value: 1000, used: 1000 },
  });
  t.match(
    refused?.json.detail,
    /you keep 1000 bytes with plugin "filebox" already, and this file has 200; files\.user_quota allows 1000/,
  );
  const full = (await init(bob, 600)).json;
  t.match(full, { limit: 'files.plugin_quota', limit_value: 1500 });
  t.equal(full.used, undefined, 'what others keep is not told');
  const mine = answers.filter(a => a.status === 201).map(a => String(a.json.file_id));
  for (const id of mine) await ada.ask('DELETE', `/api/files/${id}`);
  const small = await Promise.all(Array.from({ length: 12 }, () => init(ada, 1)));
  t.equal(small.filter(a => a.status === 201).length, 8);
  t.match(small.find(a => a.status !== 201)?.json, { limit: 'files.user_files', used: 8 });
  t.equal((await init(bob, 600)).status, 201, 'each user has a quota of their own');
  const usage = await w.db.query<{ user_id: string; files: string; pending: string; bytes: string }>(
    'SELECT user_id, files, pending, bytes FROM file_usage ORDER BY user_id',
  );
  t.strictSame(
    usage.rows.map(r => [Number(r.user_id), Number(r.files), Number(r.pending), Number(r.bytes)]),
    [
      [-1, 9, 9, 608],
      [ada.userId, 8, 8, 8],
      [bob.userId, 1, 1, 600],
    ],
  );
});

t.test('cleaning removes what has expired, was deleted or belongs to nothing, and never what is alive', async t => {
  const w = await filesWorld(t);
  const ada = await w.user('Ada');
  const { rows } = await w.db.query<{ id: string }>('SELECT id FROM installation');
  const directory = path.join(w.s.directory, 'files', rows[0]?.id ?? '');
  const disk: FileStorage = openDiskStorage(directory, new AddressSigner(Buffer.alloc(32)));
  const parts = { db: w.db, storages: [disk], onError: (error: unknown) => t.fail(String(error)) };

  const alive = await ada.give(pattern(10));
  const pending = await ada.init(10);
  await ada.put(pending, '0123456789');
  const late = await ada.init(10);
  await ada.put(late, '0123456789');
  const note = (await ada.post('/api/triggers/http/filebox/notes', { name: 'n.txt', text: 'short', ttl_ms: 3_600_000 }))
    .json;
  await w.db.query("UPDATE files SET expires_at = now() - interval '1 second' WHERE id = ANY ($1)", [
    [late.file_id, note.id],
  ]);
  t.notOk(
    JSON.stringify((await ada.ask('GET', '/api/triggers/http/filebox/files')).json).includes(String(note.id)),
    'gone when its time came',
  );
  // A host that was killed has left bytes of all kinds.
  const ghost = '0'.repeat(32);
  fs.writeFileSync(path.join(directory, 'uploads', `${ghost}.0011223344556677.part`), 'x');
  fs.writeFileSync(path.join(directory, 'uploads', `${alive}-${sha256(pattern(3))}`), 'replayed');
  fs.mkdirSync(path.join(directory, 'ready', '00'), { recursive: true });
  fs.writeFileSync(path.join(directory, 'ready', '00', ghost), 'x');
  fs.writeFileSync(
    path.join(directory, 'ready', alive.slice(0, 2), `${alive}-${sha256(pattern(4))}`),
    'of a completion that came second',
  );

  t.match(await cleanFiles(parts), { deleted: 2, removed: 2 });
  t.match(await cleanFiles(parts), { deleted: 0, removed: 0 });
  t.equal(await removeOrphans(parts, Date.now()), 0, 'what is young may belong to an upload under way');
  t.equal(await removeOrphans(parts, Date.now() + 7_300_000), 4);
  t.same([...stored(w).keys()].map(k => path.basename(k).slice(0, 32)).sort(), [alive, pending.file_id].sort());
  t.equal((await ada.complete(pending.file_id)).status, 200);
  t.equal(await removeOrphans(parts, Date.now() + 7_300_000), 0);
  t.equal((await request(await link(ada, alive))).status, 200);

  await w.s.admin('DELETE', '/plugins/filebox');
  t.match(await cleanFiles(parts), { removed: 2 }, 'files of an uninstalled plugin go');
  t.equal(stored(w).size, 0);
  await w.db.query("UPDATE files SET removed_at = now() - interval '8 days'");
  await cleanFiles(parts);
  t.equal((await w.db.query('SELECT 1 FROM files')).rowCount, 0);
});

t.test('whatever step of a completion is the last before a kill, the next attempt completes it', async t => {
  const w = await filesWorld(t);
  const ada = await w.user('Ada');
  const { rows } = await w.db.query<{ id: string }>('SELECT id FROM installation');
  const directory = path.join(w.s.directory, 'files', rows[0]?.id ?? '');
  const bytes = pattern(1000);
  const digest = sha256(bytes);
  const states: Array<[string, (id: string) => void, number]> = [
    [
      'half of the bytes came',
      id => fs.writeFileSync(path.join(directory, 'uploads', `${id}.aa.part`), bytes.subarray(0, 500)),
      409,
    ],
    [
      'the bytes have their name, but no row knows',
      id => fs.writeFileSync(path.join(directory, 'uploads', `${id}-${digest}`), bytes),
      409,
    ],
  ];
  for (const [what, left, status] of states) {
    const upload = await ada.init(1000);
    left(upload.file_id);
    t.equal((await ada.complete(upload.file_id)).status, status, what);
    t.equal((await ada.put(upload, bytes)).status, 200);
    t.equal((await ada.complete(upload.file_id)).status, 200, what);
    t.equal(sha256(new Uint8Array(await (await fetch(await link(ada, upload.file_id))).arrayBuffer())), digest);
  }
  const moved = await ada.init(1000);
  await ada.put(moved, bytes);
  const id = moved.file_id;
  fs.mkdirSync(path.join(directory, 'ready', id.slice(0, 2)), { recursive: true });
  fs.renameSync(
    path.join(directory, 'uploads', `${id}-${digest}`),
    path.join(directory, 'ready', id.slice(0, 2), `${id}-${digest}`),
  );
  t.equal((await ada.complete(id)).status, 200, 'the bytes were moved, but no row knows');
  const cut = await ada.init(1000);
  await ada.put(cut, bytes);
  fs.truncateSync(path.join(directory, 'uploads', `${cut.file_id}-${digest}`), 999);
  t.same(codeOf(await ada.complete(cut.file_id)), [409, 'upload_mismatch']);
});

t.test(
  'a client that disconnects in the middle leaves nothing, and a second upload to the address is refused meanwhile',
  async t => {
    const w = await filesWorld(t);
    const ada = await w.user('Ada');
    const upload = await ada.init(1_000_000);
    const half = http.request(upload.upload_url, {
      method: 'PUT',
      headers: { ...upload.upload_headers, 'content-length': 1_000_000 },
    });
    half.on('error', () => {});
    half.write(Buffer.alloc(400_000));
    await until(() => stored(w).size !== 0);
    t.match(await ada.put(upload, pattern(1_000_000)), { status: 409, json: { detail: /another upload/ } });
    half.destroy();
    await until(() => stored(w).size <= 0);
    let again = await ada.put(upload, pattern(1_000_000));
    while (again.status === 409) again = await ada.put(upload, pattern(1_000_000));
    t.equal(again.status, 200);
    t.equal((await ada.complete(upload.file_id)).status, 200);
  },
);

t.test('however often an address is used, one upload of it is kept', async t => {
  const w = await filesWorld(t);
  const ada = await w.user('Ada');
  const upload = await ada.init(1000);
  for (let k = 1; k <= 5; k++) {
    t.equal((await ada.put(upload, pattern(1000, k))).status, 200);
    t.equal(stored(w).size, 1);
  }
  t.equal((await ada.complete(upload.file_id)).status, 200);
  t.equal(stored(w).size, 1);
  const got = await fetch(await link(ada, upload.file_id));
  t.equal(sha256(new Uint8Array(await got.arrayBuffer())), sha256(pattern(1000, 5)));
});

t.test('of completions that run at once and found different bytes one counts, for good', async t => {
  const w = await filesWorld(t);
  const ada = await w.user('Ada');
  const { rows } = await w.db.query<{ id: string }>('SELECT id FROM installation');
  const directory = path.join(w.s.directory, 'files', rows[0]?.id ?? '');
  const disk = openDiskStorage(directory, new AddressSigner(Buffer.alloc(32)));
  const upload = await ada.init(1000);
  await ada.put(upload, pattern(1000, 1));
  const slow = await findFile(w.db, upload.file_id);
  await ada.put(upload, pattern(1000, 2));
  t.equal((await ada.complete(upload.file_id)).status, 200);
  // The other one has read the record before, and goes on now.
  if (slow === undefined) throw new Error('no file');
  fs.writeFileSync(path.join(directory, 'uploads', `${slow.id}-${slow.digest}`), pattern(1000, 1));
  t.match(await disk.finish(slow), { kind: 'ready' });
  const got = await fetch(await link(ada, upload.file_id));
  t.equal(sha256(new Uint8Array(await got.arrayBuffer())), sha256(pattern(1000, 2)));
});

t.test('an upload that ends badly takes nothing along while its client sends on', async t => {
  const w = await filesWorld(t, { BOT_FILES_UPLOAD_SECONDS: '3' });
  const ada = await w.user('Ada');
  const size = 2_000_000_000;
  const upload = await ada.init(size);
  const sender = http.request(upload.upload_url, {
    method: 'PUT',
    headers: { ...upload.upload_headers, 'content-length': size },
  });
  sender.on('error', () => {});
  const answered = new Promise<number>(resolve => sender.on('response', r => resolve(r.resume().statusCode ?? 0)));
  const block = Buffer.alloc(64 * 1024);
  let [going, sent] = [true, 0];
  // A little at a time: it is to be under way when its time is over, not done.
  const go = (): void => {
    if (!going) return;
    sent += block.length;
    sender.write(block, () => setTimeout(go, 2));
  };
  go();
  t.equal(await answered, 410);
  // It hears nothing of it and sends on: what it sends is dropped.
  const before = sent;
  await until(() => sent >= before + 10_000_000);
  t.equal((await request(`${w.s.base}/healthz`)).status, 200);
  going = false;
  sender.destroy();
  await until(() => stored(w).size <= 0);
});

t.test('an administrator sees what a plugin keeps, and takes it away', async t => {
  const w = await world();
  const ada = await w.user('Ada of the list');
  const id = await ada.give(pattern(10), { name: 'seen.txt' });
  const list = await w.s.admin('GET', `/plugins/filebox/files?user=${ada.userId}`);
  t.match(list.json, {
    items: [{ id, name: 'seen.txt', state: 'ready', user_id: ada.userId, user_name: 'Ada of the list', store: 'disk' }],
    next_cursor: null,
  });
  t.ok(JSON.stringify(list.json.owners).includes(`{"user_id":${ada.userId},"files":1,"pending":0,"bytes":10}`));
  const all = await w.s.admin('GET', `/files?user=${ada.userId}`);
  t.match(all.json, { items: [{ id, plugin_id: 'filebox', user_id: ada.userId }], next_cursor: null });
  const [first] = all.json.plugins as Json[];
  t.match(first, { plugin_id: 'filebox', files: Number, bytes: Number });
  t.same(
    all.json.usage,
    { files: first?.files, pending: first?.pending, bytes: first?.bytes },
    'it is the only plugin',
  );
  t.same((await w.s.admin('GET', `/files?user=${ada.userId}&plugin=other`)).json.items, []);
  t.same((await w.s.admin('GET', `/files?user=${ada.userId}&state=pending`)).json.items, []);
  t.same(
    ((await w.s.admin('GET', `/files?file=${id}`)).json.items as { id: string }[]).map(f => f.id),
    [id],
    'one file by its id',
  );
  t.same((await w.s.admin('GET', `/files?file=${id}0`)).json.items, [], 'and no other');
  const newest = (await w.s.admin('GET', '/files?limit=1')).json;
  t.match(newest, { items: [{ id }], next_cursor: String });
  const before = (await w.s.admin('GET', `/files?limit=1&cursor=${String(newest.next_cursor)}`)).json;
  t.match(before, { items: [{ plugin_id: 'filebox' }] }, 'the page before has one');
  t.notMatch(before, { items: [{ id }] }, 'and another');
  t.equal((await w.s.admin('GET', '/plugins/filebox/files?state=gone')).status, 422);
  t.equal((await w.s.admin('DELETE', `/plugins/other/files/${id}`)).status, 404);
  t.equal((await w.s.admin('DELETE', `/plugins/filebox/files/${id}`)).status, 204);
  t.equal((await w.s.admin('DELETE', `/plugins/filebox/files/${id}`)).status, 404);
  t.match((await w.s.admin('GET', '/audit?action=file.delete')).json.items, [{ object_id: id }]);
  t.same(codeOf(await ada.complete(id)), [410, 'expired']);
});
