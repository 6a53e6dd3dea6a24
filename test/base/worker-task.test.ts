import { execFile } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import t, { type Test } from 'tap';
import { ThreadEnded, WorkerTask, type WorkerTaskOptions } from '../../src/base/worker-task.ts';
import type { OddAnswer, OddTask } from '../support/odd-worker.ts';
import { until } from '../support/until.ts';

const file = new URL('../support/odd-worker.ts', import.meta.url);

function start(t: Test, options: Partial<WorkerTaskOptions> = {}): WorkerTask<OddTask, OddAnswer> {
  const task = new WorkerTask<OddTask, OddAnswer>({ file, does: 'does odd things', threads: 1, ...options });
  t.teardown(() => task.end());
  return task;
}

const threads = (): number => fs.readdirSync('/proc/self/task').length;

t.test('tasks are done in one thread that is kept, without the environment of the process', async t => {
  const task = start(t);
  const first = await task.run({ how: 'answer' });
  t.not(first.thread, 0);
  t.same(await task.run({ how: 'answer' }), { thread: first.thread, environment: 0 });
});

t.test('what a task throws is thrown, and its thread goes on', async t => {
  const task = start(t);
  const { thread } = await task.run({ how: 'answer' });
  await t.rejects(task.run({ how: 'throw' }), new RangeError('what the task says'));
  t.equal((await task.run({ how: 'answer' })).thread, thread);
});

t.test('a task that loops is ended at its deadline, with its thread; those that wait are done by another', async t => {
  const task = start(t, { deadlineMs: 1500 });
  const { thread } = await task.run({ how: 'answer' });
  const looping = task.run({ how: 'loop' });
  const behind = task.run({ how: 'answer' });
  await t.rejects(looping, { name: 'ThreadEnded', why: 'deadline', message: /ended after 1500 ms/ });
  t.not((await behind).thread, thread);
});

t.test('a task that fills its heap is ended with its thread, and says so', async t => {
  const task = start(t, { heapMb: 16 });
  const eating = task.run({ how: 'eat' });
  const behind = task.run({ how: 'answer' });
  await t.rejects(eating, { name: 'ThreadEnded', why: 'memory', message: /memory of 16 MB/ });
  t.ok((await behind).thread > 0);
});

t.test('a thread that ends by itself rejects its task alone', async t => {
  const task = start(t);
  const exiting = task.run({ how: 'exit' });
  const behind = task.run({ how: 'answer' });
  await t.rejects(exiting, { name: 'ThreadEnded', why: 'other', message: 'the thread that does odd things ended' });
  t.ok((await behind).thread > 0);
  await t.rejects(task.run({ how: 'throw late' }), { message: 'an error of no task' });
  t.ok((await task.run({ how: 'answer' })).thread > 0);
});

t.test('a thread that cannot be started rejects its task', async t => {
  const dir = t.testdir({ 'exits.js': 'process.exit(1)', 'throws.js': 'throw new Error("no such thing")' });
  const at = (name: string): URL => pathToFileURL(path.join(dir, name));
  await t.rejects(start(t, { file: at('missing.js') }).run({ how: 'answer' }), /missing\.js/);
  await t.rejects(start(t, { file: at('throws.js') }).run({ how: 'answer' }), { message: 'no such thing' });
  const exits = start(t, { file: at('exits.js'), threads: 2 });
  for (const outcome of await Promise.allSettled([exits.run({ how: 'answer' }), exits.run({ how: 'answer' })]))
    t.match(outcome, { status: 'rejected', reason: { name: 'ThreadEnded', why: 'other' } });
  await t.rejects(exits.run({ how: 'answer' }), ThreadEnded, 'the next one too');
});

t.test(
  'tasks are done in the order they came, also those with a deadline, and no more wait than are allowed',
  async t => {
    for (const deadlineMs of [undefined, 20_000]) {
      const task = start(t, {
        waiting: { max: 5, retryAfterSeconds: 7 },
        ...(deadlineMs === undefined ? {} : { deadlineMs }),
      });
      const order: number[] = [];
      const all = [0, 1, 2, 3, 4].map(async k => {
        await task.run({ how: 'answer', ms: 5 });
        order.push(k);
      });
      t.throws(() => task.run({ how: 'answer' }), {
        code: 'unavailable',
        message: '5 tasks wait for the thread that does odd things; try again in 7 s',
        headers: [['Retry-After', '7']],
      });
      await Promise.all(all);
      t.same(order, [0, 1, 2, 3, 4]);
      t.ok((await task.run({ how: 'answer' })).thread > 0, 'there is room again');
    }
  },
);

t.test('a thread that cannot be started rejects its own task, and none of the other threads', async t => {
  const dir = t.testdir({
    // The first thread to load this runs; the second ends before it can take its task.
    'one.cjs': `
      const { appendFileSync, readFileSync } = require('node:fs');
      const starts = __dirname + '/starts';
      appendFileSync(starts, 'x');
      if (readFileSync(starts).length > 1) process.exit(1);
      module.exports = ({ ms }) => new Promise(resolve => setTimeout(resolve, ms, 'done'));`,
  });
  const task = start(t, { file: pathToFileURL(path.join(dir, 'one.cjs')), threads: 2 });
  await task.run({ how: 'answer', ms: 0 });
  const long = task.run({ how: 'answer', ms: 2000 });
  await t.rejects(task.run({ how: 'answer', ms: 0 }), ThreadEnded);
  t.equal(await long, 'done');
});

t.test('as many tasks are done at a time as there are threads for', async t => {
  const task = start(t, { threads: 2 });
  const done = await Promise.all([0, 1, 2, 3].map(() => task.run({ how: 'answer', ms: 300 })));
  t.equal(new Set(done.map(d => d.thread)).size, 2);
});

t.test('idle threads end after a while, and all of them at the end', async t => {
  const before = threads();
  const task = start(t, { idleMs: 100 });
  await task.run({ how: 'answer' });
  await until(() => threads() <= before);
  t.ok(threads() <= before, 'after a while');
  const kept = start(t);
  await kept.run({ how: 'answer' });
  t.ok(threads() > before);
  const running = kept.run({ how: 'answer', ms: 300 });
  const waiting = Promise.allSettled([1, 2, 3].map(() => kept.run({ how: 'answer' })));
  await new Promise(resolve => setImmediate(resolve));
  await kept.end();
  t.ok((await running).thread > 0, 'what ran has ended well');
  for (const outcome of await waiting)
    t.match(outcome, { status: 'rejected', reason: ThreadEnded }, 'the waiting task is rejected');
  await until(() => threads() <= before);
  t.ok(threads() <= before, 'at the end');
});

t.test('what has not begun at the end starts no thread', async t => {
  let started = 0;
  const count = (): void => void started++;
  process.on('worker', count);
  t.teardown(() => process.off('worker', count));
  const task = start(t);
  const refused = t.rejects(task.run({ how: 'answer' }), ThreadEnded);
  await task.end();
  await refused;
  t.equal(started, 0);
  t.ok((await task.run({ how: 'answer' })).thread > 0, 'what comes later does');
  t.equal(started, 1);
});

t.test('an idle thread keeps no process alive', async t => {
  const script = `
    const { WorkerTask } = await import(${JSON.stringify(new URL('../../src/base/worker-task.ts', import.meta.url).href)});
    const task = new WorkerTask({ file: new URL(${JSON.stringify(file.href)}), does: 'x', threads: 1 });
    console.log((await task.run({ how: 'answer' })).environment);`;
  const args = ['--disable-warning=ExperimentalWarning', '--input-type=module', '-e', script];
  const { stderr, stdout } = await promisify(execFile)(process.execPath, args, { timeout: 30_000 });
  t.same([stdout, stderr], ['0\n', '']);
});
