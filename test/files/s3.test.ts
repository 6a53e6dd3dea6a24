import path from 'node:path';
import t from 'tap';
import { loadConfig } from '../../src/config/load.ts';
import { cleanFiles, removeOrphans } from '../../src/files/cleaning.ts';
import type { S3Storage } from '../../src/files/storage-s3.ts';
import { type FilesWorld, filesWorld, pattern, sha256, type Upload, type Uploader } from '../support/files.ts';
import { BUCKET, openBucket, type S3Server, startS3Server } from '../support/s3-server.ts';
import { type Answer, request } from '../support/service.ts';
import { until } from '../support/until.ts';

type World = FilesWorld & { s3: S3Server; store: S3Storage; prefix: string };

async function world(t: Parameters<typeof filesWorld>[0] & { testdir(): string }, env: Record<string, string> = {}) {
  const s3 = await startS3Server(path.join(t.testdir(), 's3'));
  t.teardown(() => s3.stop());
  const w = await filesWorld(t, { ...s3.env, BOT_S3_PREFIX: 'plugins/', ...env });
  const { rows } = await w.db.query<{ id: string }>('SELECT id FROM installation');
  const prefix = `plugins/${rows[0]?.id}/`;
  const store = s3.open(prefix);
  t.teardown(() => store.close());
  return { ...w, s3, store, prefix };
}

const codeOf = (a: Answer): [number, unknown] => [a.status, a.json.code];

async function keys(store: S3Storage): Promise<string[]> {
  const all: string[] = [];
  for await (const page of store.list()) all.push(...page.map(o => `${o.uploaded ? 'uploads' : 'ready'} ${o.id}`));
  return all.sort();
}

const link = async (user: Uploader, id: string): Promise<string> => {
  await user.post('/api/triggers/http/filebox/files', { file_id: id });
  return String((await user.ask('GET', `/api/triggers/http/filebox/files/${id}/link`)).json.url);
};

const bytesOf = async (url: string): Promise<[number, Uint8Array, Headers]> => {
  const r = await fetch(url);
  return [r.status, new Uint8Array(await r.arrayBuffer()), r.headers];
};

t.test('a file goes from the browser to the store and from the store to the plugin', async t => {
  const w: World = await world(t);
  const ada = await w.user('Ada');
  const bytes = pattern(3_500_000);
  const upload = await ada.init(bytes.length, { name: "it's *Отчёт*.txt" });
  t.ok(upload.upload_url.startsWith(`${w.s3.origin}/${BUCKET}/${w.prefix}uploads/${upload.file_id}?`));
  t.same(upload.upload_headers, { 'Content-Type': 'text/plain' }, 'nothing a browser may not send');
  t.same(codeOf(await ada.complete(upload.file_id)), [409, 'not_uploaded']);
  t.equal((await ada.put(upload, bytes)).status, 200);
  t.same(await keys(w.store), [`uploads ${upload.file_id}`]);
  t.match(await ada.complete(upload.file_id), { status: 200, json: { id: upload.file_id, size: bytes.length } });
  t.equal((await ada.complete(upload.file_id)).status, 200, 'completing again answers the same');
  t.same(await keys(w.store), [`ready ${upload.file_id}`]);

  const url = await link(ada, upload.file_id);
  const [status, got, headers] = await bytesOf(url);
  t.same([status, sha256(got)], [200, sha256(bytes)]);
  t.equal(
    headers.get('content-disposition'),
    `inline; filename="it's *_____*.txt"; filename*=UTF-8''it%27s%20%2A%D0%9E%D1%82%D1%87%D1%91%D1%82%2A.txt`,
  );
  const whole = await fetch(`${w.s.base}/api/triggers/http/filebox/files/${upload.file_id}`, { headers: ada.headers });
  t.equal(sha256(new Uint8Array(await whole.arrayBuffer())), sha256(bytes));

  const note = (await ada.post('/api/triggers/http/filebox/notes', { name: 'n.txt', text: 'a note' })).json;
  t.same(Buffer.from((await bytesOf(await link(ada, String(note.id))))[1]).toString(), 'a note');

  t.equal((await ada.ask('DELETE', `/api/files/${upload.file_id}`)).status, 204);
  t.same(await keys(w.store), [`ready ${note.id}`]);
  t.equal((await bytesOf(url))[0], 404);
});

t.test('the store takes what was announced and nothing else, and what is complete stays as it is', async t => {
  const w: World = await world(t);
  const ada = await w.user('Ada');
  const upload = await ada.init(10);
  const changed = (change: (u: URL) => void): Upload => {
    const u = new URL(upload.upload_url);
    change(u);
    return { ...upload, upload_url: u.href };
  };
  const attempts: Array<[string, Upload, string, RequestInit]> = [
    ['a byte too few', upload, '012345678', {}],
    ['a byte too many', upload, '01234567890', {}],
    ['another type', upload, '0123456789', { headers: { 'Content-Type': 'text/html' } }],
    ['another key', changed(u => (u.pathname = u.pathname.replace('/uploads/', '/ready/'))), '0123456789', {}],
    ['a later end', changed(u => u.searchParams.set('X-Amz-Expires', '999999')), '0123456789', {}],
    ['another method', upload, '0123456789', { method: 'POST' }],
  ];
  for (const [what, to, body, init] of attempts) t.ok((await ada.put(to, Buffer.from(body), init)).status >= 400, what);
  t.same(await keys(w.store), []);
  await ada.put(upload, 'abcdefghij');
  t.equal((await ada.complete(upload.file_id)).status, 200);
  t.equal((await ada.put(upload, 'ABCDEFGHIJ')).status, 200, 'the store takes it at the address it once was for');
  t.equal((await ada.complete(upload.file_id)).status, 200);
  t.equal(
    Buffer.from((await bytesOf(await link(ada, upload.file_id)))[1]).toString(),
    'abcdefghij',
    'and a reader still gets the first bytes',
  );

  const parts = { db: w.db, storages: [w.store], onError: (error: unknown) => t.fail(String(error)) };
  t.equal(await removeOrphans(parts, Date.now() + 7_300_000), 1, 'cleaning takes it away');
  t.same(await keys(w.store), [`ready ${upload.file_id}`]);
});

t.test('whatever step of a completion is the last before a kill, the next attempt completes it', async t => {
  const w: World = await world(t);
  const ada = await w.user('Ada');
  const upload = await ada.init(10);
  await ada.put(upload, '0123456789');
  // The bytes are copied, but the database row is not updated yet.
  t.match(await w.store.finish(await record(w, upload.file_id)), { kind: 'ready' });
  t.same(codeOf(await ada.complete(upload.file_id)), [200, undefined]);
  t.equal(Buffer.from((await bytesOf(await link(ada, upload.file_id)))[1]).toString(), '0123456789');
  t.equal((await keys(w.store)).length, 2, 'the first copy is left');
  const other = await ada.init(10);
  await w.store.write(await record(w, other.file_id), Buffer.from('123'));
  t.same(codeOf(await ada.complete(other.file_id)), [409, 'not_uploaded'], 'something else in its place is not it');

  const parts = { db: w.db, storages: [w.store], onError: (error: unknown) => t.fail(String(error)) };
  await w.db.query('UPDATE files SET expires_at = now() WHERE id = $1', [other.file_id]);
  t.match(await cleanFiles(parts), { deleted: 1, removed: 1 });
  t.equal(await removeOrphans(parts, Date.now() + 7_300_000), 2, 'copies no record names');
  t.same(await keys(w.store), [`ready ${upload.file_id}`]);
});

async function record(w: World, id: string) {
  const { findFile } = await import('../../src/files/file-records.ts');
  const file = await findFile(w.db, id);
  if (file === undefined) throw new Error('no file');
  return file;
}

t.test('of completions that run at once one counts, for good', async t => {
  const w: World = await world(t);
  const ada = await w.user('Ada');
  const upload = await ada.init(10);
  await ada.put(upload, 'abcdefghij');
  const slow = await record(w, upload.file_id);
  t.equal((await ada.complete(upload.file_id)).status, 200);
  await ada.put(upload, 'ABCDEFGHIJ');
  t.match(await w.store.finish(slow), { kind: 'ready' });
  t.equal(Buffer.from((await bytesOf(await link(ada, upload.file_id)))[1]).toString(), 'abcdefghij');
});

t.test('an announcement that is taken back counts until its address has expired, and so do its bytes', async t => {
  const w: World = await world(t, { BOT_FILES_USER_QUOTA: '1000' });
  const ada = await w.user('Ada');
  const upload = await ada.init(900);
  t.equal((await ada.ask('DELETE', `/api/files/${upload.file_id}`)).status, 204);
  t.same(codeOf(await ada.complete(upload.file_id)), [410, 'expired']);
  t.equal((await ada.put(upload, pattern(900))).status, 200, 'the store knows nothing of it');
  await t.rejects(ada.init(900), /quota_exceeded/);
  const parts = { db: w.db, storages: [w.store], onError: (error: unknown) => t.fail(String(error)) };
  t.match(await cleanFiles(parts), { deleted: 0 });
  await w.db.query('UPDATE files SET expires_at = now()');
  t.match(await cleanFiles(parts), { deleted: 1, removed: 1 });
  t.same(await keys(w.store), []);
  t.ok(await ada.init(900));
});

t.test('a store that takes a call and never answers is given up', async t => {
  const { createServer } = await import('node:net');
  const silent = createServer(() => {});
  await new Promise<void>(resolve => silent.listen(0, '127.0.0.1', resolve));
  t.teardown(() => silent.close());
  const { port } = silent.address() as { port: number };
  const store = openBucket(`http://127.0.0.1:${port}`, 'x/', 200);
  t.teardown(() => store.close());
  await t.rejects(store.probe(), /file store does not answer/);
});

t.test('reading a file from its start to its end takes few requests, reading here and there one each', async t => {
  const w: World = await world(t);
  const ada = await w.user('Ada');
  const bytes = pattern(20 * 1024 * 1024 + 7);
  const id = await ada.give(bytes, { mime_type: 'application/octet-stream' });
  await ada.post('/api/triggers/http/filebox/files', { file_id: id });
  await w.s3.requests();
  const sum = await ada.ask('GET', `/api/triggers/http/filebox/files/${id}/checksum`);
  t.match(sum.json, { offset: bytes.length, eof: true });
  const gets = (await w.s3.requests()).filter(l => l.startsWith('GET'));
  t.equal(gets.length, 3, '21 chunks: 1, 4 and 16 MiB at a time');
  const reader = w.store.openReader(await record(w, id));
  for (const [offset, length] of [
    [0, 100],
    [5_000_000, 1_048_576],
    [100, 100],
    [20_971_526, 1],
    [1_000_000, 1_048_576],
    [2_048_576, 1_048_576],
    [3_097_152, 5],
  ] as const)
    t.equal(sha256(await reader.read(offset, length)), sha256(bytes.subarray(offset, offset + length)), `${offset}`);
  await reader.close();
  await t.rejects(reader.read(0, 1), /closed/);
});

t.test('while the store is away, its files are, and nothing else', async t => {
  const w: World = await world(t);
  const ada = await w.user('Ada');
  const id = await ada.give(pattern(100));
  await ada.post('/api/triggers/http/filebox/files', { file_id: id });
  const upload = await ada.init(10);
  await ada.put(upload, '0123456789');
  await w.s3.stop();
  t.match(await ada.complete(upload.file_id), {
    status: 503,
    json: { code: 'unavailable', detail: /file store does not answer/ },
  });
  t.match((await ada.ask('GET', `/api/triggers/http/filebox/files/${id}`)).json.error, /file store does not answer/);
  t.match(
    (await ada.ask('GET', '/api/triggers/http/filebox/files')).json.files,
    [{ id }],
    'what is known of them is known',
  );
  t.match(
    (await ada.post('/api/triggers/http/filebox/notes', { name: 'n', text: 't' })).json.error,
    /file store does not answer/,
  );
  t.equal((await ada.ask('DELETE', `/api/files/${id}`)).status, 204, 'a file is deleted, its bytes later');
  t.equal((await request(`${w.s.base}/healthz`)).status, 200);
  const health = async () => (await request(`${w.s.base}/readyz`)).json;
  await until(async () => (await health()).status === 'degraded');
  const checks = (await health()).checks as Array<{ name: string }>;
  t.match(
    checks.find(c => c.name === 'files'),
    { state: 'degraded', detail: /^the file store does not answer/ },
  );
  const { rows } = await w.db.query<{ state: string; removed_at: Date | null }>(
    'SELECT state, removed_at FROM files ORDER BY number',
  );
  t.same(
    rows.map(r => [r.state, r.removed_at]),
    [
      ['deleted', null],
      ['pending', null],
      ['deleted', null],
    ],
    'cleaning knows what is left to remove',
  );
});

t.test('a store without credentials is a mistake in the configuration', t => {
  t.throws(
    () => loadConfig(null, { BOT_S3_BUCKET: 'files' }),
    /s3\.access_key_id \(BOT_S3_ACCESS_KEY_ID\) is missing; s3\.bucket needs it/,
  );
  t.throws(
    () => loadConfig(null, { BOT_S3_BUCKET: 'files', BOT_S3_ACCESS_KEY_ID: 'a' }),
    /s3\.secret_access_key \(BOT_S3_SECRET_ACCESS_KEY\) is missing; s3\.bucket needs it/,
  );
  t.end();
});
