import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import fs from 'node:fs';
import t, { type Test } from 'tap';
import { mayRaisePriority } from '../../src/execution/linux-thread.ts';
import { lowerStartPriority, raiseStartPriority } from '../../src/supervisor/children/start-priority.ts';

/** A process that starts while another one serves (docs/RATIONALE.md "Taking over from another process"). */

/** Policies of sched(7). */
const [OTHER, IDLE] = ['0', '5'];

/** Niceness and policy of each thread. */
const threads = (pid: number): string[] =>
  fs.readdirSync(`/proc/${pid}/task`).map(thread => {
    const stat = fs.readFileSync(`/proc/${pid}/task/${thread}/stat`, 'latin1');
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    return `${fields[16]} ${fields[38]}`;
  });

/** Node, which has started all its threads and one of the program's own when it says so. */
async function started(t: Test): Promise<ChildProcess & { pid: number }> {
  const program = `new (require('node:worker_threads').Worker)('setInterval(() => {}, 1000); console.log("up")', { eval: true })`;
  const child = spawn(process.execPath, ['-e', program], { stdio: ['ignore', 'pipe', 'inherit'] });
  lowerStartPriority(child);
  t.teardown(async () => {
    child.kill('SIGKILL');
    await once(child, 'close');
  });
  await once(child.stdout, 'data');
  if (child.pid === undefined) throw new Error('the process was not made');
  return Object.assign(child, { pid: child.pid });
}

t.test('all threads of a process that starts run only while no other wants the processor', async t => {
  const { pid } = await started(t);
  const before = threads(pid);
  t.ok(before.length > 4, `${before.length} threads`);
  const expected = process.platform === 'linux' && mayRaisePriority() ? `19 ${IDLE}` : `0 ${OTHER}`;
  t.same(new Set(before), new Set([expected]));
  raiseStartPriority(pid);
  t.same(new Set(threads(pid)), new Set([`0 ${OTHER}`]), 'then they run like those of others');
});
