import fs from 'node:fs';
import path from 'node:path';
import t from 'tap';
import { inspectModule } from '../../src/plugins/inspect.ts';
import { endInspectThreads, inspectFile } from '../../src/plugins/inspect-thread.ts';
import { sha256Of } from '../../src/plugins/module-storage.ts';

const file = path.resolve(import.meta.dirname, 'sources/echo-rust.wasm');

t.test('the thread says of a module what the gate says, and hands the rewritten one over', async t => {
  t.teardown(endInspectThreads);
  const bytes = fs.readFileSync(file);
  const direct = inspectModule(bytes);
  const order = { file, sha256: sha256Of(bytes), manifest: null, start: 'repeated' as const };
  for (const { rewritten, rewrittenSha256, ...told } of await Promise.all([inspectFile(order), inspectFile(order)])) {
    const { rewritten: wanted, ...rest } = direct;
    t.same(told, rest);
    t.ok(rewritten !== null && wanted !== null && Buffer.from(wanted.bytes).equals(rewritten.bytes));
    t.equal(rewrittenSha256, sha256Of(rewritten?.bytes ?? new Uint8Array(0)));
    t.equal(rewritten?.bytes.buffer.byteLength, rewritten?.bytes.byteLength, 'nothing else comes with it');
  }
});

t.test('a file that is not what was uploaded, or cannot be read, is an error', async t => {
  t.teardown(endInspectThreads);
  const order = { file, sha256: '0'.repeat(64), manifest: null, start: 'repeated' as const };
  await t.rejects(inspectFile(order), { message: 'the stored module differs from the upload' });
  await t.rejects(inspectFile({ ...order, file: `${file}.gone` }), /ENOENT/);
});
