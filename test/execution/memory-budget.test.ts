import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import t from 'tap';
import { residentBytes } from '../../src/base/resident-bytes.ts';
import { MemoryBudget } from '../../src/execution/memory-budget.ts';

const MIB = 1024 ** 2;

/** A process that holds so much memory. */
async function holder(t: { teardown(fn: () => unknown): void }, mib: number): Promise<ChildProcess> {
  const child = spawn(process.execPath, [
    '-e',
    `globalThis.b = Buffer.alloc(${mib} * 1048576, 1); console.log('held'); setInterval(() => {}, 1000)`,
  ]);
  t.teardown(() => child.kill('SIGKILL'));
  await once(child.stdout, 'data');
  return child;
}

t.test('a process above its share gives memory up only while all processes together are above the budget', async t => {
  const own = process.memoryUsage.rss();
  const small = await holder(t, 10);
  const smallBytes = residentBytes(small.pid);
  t.ok(smallBytes > 10 * MIB);
  // So much that this process has more than its share, a third.
  const ballast = Buffer.alloc(smallBytes + 120 * MIB, 1);
  const budget = new MemoryBudget(own + smallBytes + ballast.length + 100 * MIB, 3);
  t.ok(process.memoryUsage.rss() > budget.share);
  budget.useOthers([small.pid ?? 0]);
  t.notOk(budget.isExceeded, 'it uses what the others leave');
  const large = await holder(t, 300);
  budget.useOthers([small.pid ?? 0, large.pid ?? 0]);
  t.ok(budget.isExceeded, 'now one of the others needs it');
  const roomy = new MemoryBudget(process.memoryUsage.rss() * 6, 3);
  roomy.useOthers([small.pid ?? 0, large.pid ?? 0]);
  t.notOk(roomy.isExceeded, 'within its share it never has to');
  large.kill('SIGKILL');
  await once(large, 'exit');
  t.notOk(budget.isExceeded, 'what has ended uses nothing');
  t.ok(ballast.length > 0);
});

t.test('without a budget none is exceeded', t => {
  const budget = new MemoryBudget(0, 2);
  budget.useOthers([process.pid]);
  t.notOk(budget.isExceeded);
  t.end();
});
