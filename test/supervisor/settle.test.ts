import t from 'tap';
import { settle } from '../../src/app/settle.ts';

/** A process that replaces another one takes clients when it rests. */

t.test('a process has settled when its threads have started and its event loop rests', async t => {
  let hasStarted = false;
  let isBusy = true;
  const settled: string[] = [];
  const waits = settle(() => hasStarted).then(() => settled.push('settled'));
  const moment = (): Promise<void> => new Promise(resolve => setTimeout(resolve, 700));
  const burn = setInterval(() => {
    const until = performance.now() + 8;
    while (isBusy && performance.now() < until);
  }, 10);
  t.teardown(() => clearInterval(burn));
  await moment();
  hasStarted = true;
  await moment();
  t.same(settled, [], 'it is busy');
  isBusy = false;
  hasStarted = false;
  await moment();
  t.same(settled, [], 'a thread is missing');
  hasStarted = true;
  await waits;
  t.same(settled, ['settled']);
});
