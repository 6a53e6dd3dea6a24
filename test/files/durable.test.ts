import fs from 'node:fs';
import fsp, { type FileHandle } from 'node:fs/promises';
import path from 'node:path';
import t from 'tap';
import { LIMITS } from '../../src/base/limits.ts';
import { moveIntoPlace } from '../../src/base/move-into-place.ts';
import { DiskWriter } from '../../src/files/disk-writer.ts';
import { type FilesWorld, filesWorld, pattern, sha256, type Upload, type Uploader } from '../support/files.ts';
import { Wire } from '../support/wire.ts';

t.test(
  'a stored file: its bytes are synced before it gets its name, and its name is synced before the answer',
  async t => {
    const directory = t.testdir({ part: 'bytes' });
    const steps: string[] = [];
    const [open, rename] = [fsp.open, fsp.rename];
    t.teardown(() => Object.assign(fsp, { open, rename }));
    Object.assign(fsp, {
      async open(at: string, flags: string): Promise<FileHandle> {
        const handle = await open(at, flags);
        const sync = handle.sync.bind(handle);
        handle.sync = async () => {
          await sync();
          steps.push(`sync ${path.relative(directory, at) || '.'}`);
        };
        return handle;
      },
      async rename(from: string, to: string): Promise<void> {
        await rename(from, to);
        steps.push(`rename ${path.basename(from)} ${path.basename(to)}`);
      },
    });
    await moveIntoPlace(path.join(directory, 'part'), path.join(directory, 'whole'));
    t.same(steps, ['sync part', 'rename part whole', 'sync .']);
  },
);

t.test('a disk that does not keep up makes the client wait', async t => {
  const file = path.join(t.testdir(), 'slow');
  const handle = await fsp.open(file, 'wx');
  t.teardown(() => handle.close());
  const { promise: free, resolve: letWrite } = Promise.withResolvers<void>();
  const write = handle.write.bind(handle);
  let writes = 0;
  const slow = new Proxy(handle, {
    get: (target, name) =>
      name === 'write'
        ? async (...args: Parameters<typeof write>) => {
            writes++;
            await free;
            return await write(...args);
          }
        : Reflect.get(target, name, target),
  });
  const bytes = pattern(8 * 1024 * 1024);
  const writer = new DiskWriter(slow, bytes.length);
  const chunk = 64 * 1024;
  let taken = 0;
  let wait: Promise<void> | null = null;
  for (; wait === null && taken < bytes.length; taken += chunk)
    wait = writer.take(bytes.subarray(taken, taken + chunk));
  t.ok(taken <= 1024 * 1024, `${taken} bytes were taken before the client waits`);
  t.ok(taken >= 512 * 1024, 'a disk that keeps up is not waited for');
  let waited = false;
  const over = wait?.then(() => {
    waited = true;
  });
  await new Promise(resolve => setImmediate(resolve));
  t.equal(waited, false);
  letWrite();
  await over;
  for (; taken < bytes.length; taken += chunk) await writer.take(bytes.subarray(taken, taken + chunk));
  t.equal(await writer.end(), sha256(bytes));
  t.ok(writes > 0);
  t.ok(fs.readFileSync(file).equals(Buffer.from(bytes)));
});

const announceFor = (user: Uploader) =>
  user.post('/api/files/init', {
    plugin_id: 'filebox',
    name: 'a.txt',
    mime_type: 'text/plain',
    size: 1000,
    file_type: 'document',
  });

/** An upload of which half the bytes have been sent. */
async function halfSent(
  t: { teardown(fn: () => unknown): void },
  w: FilesWorld,
  { upload_url }: Upload,
): Promise<Wire> {
  const wire = new Wire(w.s.base);
  t.teardown(() => wire.close());
  const { pathname, search } = new URL(upload_url);
  await wire.write(
    `PUT ${pathname}${search} HTTP/1.1\r\nHost: a\r\nContent-Type: text/plain\r\nContent-Length: 1000\r\n\r\n${'x'.repeat(500)}`,
  );
  return wire;
}

const partialFiles = (w: FilesWorld): number =>
  fs
    .readdirSync(path.join(w.s.directory, 'files'), { recursive: true, encoding: 'utf8' })
    .filter(f => f.endsWith('.part')).length;

t.test('uploads of one user are bounded: those announced, and those that come in at once', async t => {
  const w = await filesWorld(t);
  const ada = await w.user('Ada');
  const announce = () => announceFor(ada);
  const uploads: Upload[] = [];
  for (let k = 0; k < LIMITS.pendingUploadsMax; k++) {
    const answer = await announce();
    t.equal(answer.status, 201);
    uploads.push(answer.json as unknown as Upload);
  }
  t.match(await announce(), { status: 413, json: { limit: 'pendingUploadsMax', limit_value: 100, used: 100 } });
  t.equal((await announceFor(await w.user('Bob'))).status, 201);

  const half = (upload: Upload): Promise<Wire> => halfSent(t, w, upload);
  const partial = () => partialFiles(w);
  const open = await Promise.all(uploads.slice(0, LIMITS.uploadsAtOncePerUserMax).map(half));
  while (partial() < open.length) await new Promise(resolve => setImmediate(resolve));
  const [more, again] = uploads.slice(-2) as [Upload, Upload];
  t.match(await (await half(more)).until(/too many uploads/), /HTTP\/1.1 503 .*Retry-After: 5/s);
  open[0]?.close();
  while (partial() === open.length) await new Promise(resolve => setImmediate(resolve));
  const late = await half(again);
  await late.write('x'.repeat(500));
  t.match(await late.until(/HTTP\/1.1 \d+/), /HTTP\/1.1 200/);
});

t.test('uploads that come in at the same time are bounded for the whole host, not for each client', async t => {
  // What is half sent must not be given up as too slow before the last one has begun.
  const patient = { BOT_HTTP_BODY_TIMEOUT: '1h', BOT_HTTP_MIN_BODY_RATE: '0' };
  const w = await filesWorld(t, { BOT_HTTP_MAX_CONNECTIONS_PER_ADDRESS: '1000', ...patient });
  const userCount = LIMITS.uploadsAtOnceMax / LIMITS.uploadsAtOncePerUserMax;
  const open: Wire[] = [];
  for (let k = 0; k < userCount; k++) {
    const user = await w.user(`user ${k}`);
    for (let n = 0; n < LIMITS.uploadsAtOncePerUserMax; n++)
      open.push(await halfSent(t, w, (await announceFor(user)).json as unknown as Upload));
  }
  while (partialFiles(w) < LIMITS.uploadsAtOnceMax) await new Promise(resolve => setImmediate(resolve));
  const ada = await w.user('Ada');
  const upload = async (): Promise<Upload> => (await announceFor(ada)).json as unknown as Upload;
  const refused = await halfSent(t, w, await upload());
  t.match(await refused.until(/too many uploads/), /HTTP\/1.1 503 .*Retry-After: 5/s);
  open[0]?.close();
  while (partialFiles(w) === LIMITS.uploadsAtOnceMax) await new Promise(resolve => setImmediate(resolve));
  const taken = await halfSent(t, w, await upload());
  await taken.write('x'.repeat(500));
  t.match(await taken.until(/HTTP\/1.1 \d+/), /HTTP\/1.1 200/);
});
