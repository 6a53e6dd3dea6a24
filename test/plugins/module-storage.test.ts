import fs from 'node:fs';
import t from 'tap';
import { openModuleStorage, sha256Of } from '../../src/plugins/module-storage.ts';

t.test('a module that is not the one that passed the gate is not read for compilation', async t => {
  const storage = openModuleStorage(t.testdir({}));
  const file = storage.runnablePath('key');
  const passed = Buffer.from('\0asm\x01\0\0\0');
  const { length } = passed;
  fs.writeFileSync(file, passed);
  t.equal((await storage.readRunnable('key', sha256Of(passed))).length, length);
  for (const other of [Buffer.from(passed).fill(2, 4, 5), Buffer.concat([passed, Buffer.alloc(1)]), Buffer.alloc(0)]) {
    fs.writeFileSync(file, other);
    await t.rejects(storage.readRunnable('key', sha256Of(passed)), /key is not the one that was checked at upload/);
  }
  fs.rmSync(file);
  await t.rejects(storage.readRunnable('key', sha256Of(passed)), /key is not the one that was checked at upload/);
});
