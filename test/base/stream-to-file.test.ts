import fs from 'node:fs';
import fsp from 'node:fs/promises';
import path from 'node:path';
import { Readable } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import t from 'tap';
import { streamToFile } from '../../src/base/stream-to-file.ts';

const pass = (): void => {};

function linkOf(at: string): string {
  try {
    return fs.readlinkSync(at);
  } catch {
    return '';
  }
}

t.test('a stream is written whole, to a new file of its owner', async t => {
  const file = path.join(t.testdir(), 'f');
  const chunks = Array.from({ length: 50 }, (_, k) => Buffer.alloc(k * 1000, k));
  const seen: number[] = [];
  await streamToFile(Readable.from(chunks), file, chunk => seen.push(chunk.length));
  t.ok(fs.readFileSync(file).equals(Buffer.concat(chunks)));
  t.same(
    seen,
    chunks.map(c => c.length),
  );
  t.equal(fs.statSync(file).mode & 0o777, 0o600);
  await t.rejects(streamToFile(Readable.from([Buffer.from('x')]), file, pass), { code: 'EEXIST' });
  t.equal(fs.statSync(file).size, Buffer.concat(chunks).length);
});

t.test('a stream that fails stops writing: a file removed after it stays removed', async t => {
  const directory = t.testdir();
  const broken = (): Readable => {
    const source = new Readable({ read() {} });
    process.nextTick(() => source.destroy(new Error('broken')));
    return source;
  };
  const refuse = (): never => {
    throw new Error('refused');
  };
  const ways: Record<string, (file: string) => Promise<void>> = {
    broken: file => streamToFile(broken(), file, pass),
    refused: file => streamToFile(Readable.from([Buffer.alloc(9)]), file, refuse),
  };
  for (const [message, way] of Object.entries(ways)) {
    for (let k = 0; k < 20; k++) {
      const file = path.join(directory, `${message}-${k}`);
      await t.rejects(way(file), { message });
      const open = fs.readdirSync('/proc/self/fd').map(fd => linkOf(`/proc/self/fd/${fd}`));
      t.notOk(open.includes(file), `${message}: no descriptor is open on it`);
      await fsp.rm(file, { force: true });
    }
  }
  await sleep(100);
  t.same(fs.readdirSync(directory), []);
});
