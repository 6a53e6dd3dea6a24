import t from 'tap';
import { InTurn } from '../../src/base/semaphore.ts';

t.test('never more than allowed run together, in the order they came, whatever becomes of them', async t => {
  const turns = new InTurn(2);
  let running = 0;
  let most = 0;
  const order: number[] = [];
  const one = (k: number): Promise<void> =>
    turns.run(async () => {
      order.push(k);
      most = Math.max(most, ++running);
      await new Promise(resolve => setImmediate(resolve));
      running--;
      if (k % 3 === 0) throw new Error(`work ${k}`);
    });
  const all: Array<Promise<PromiseSettledResult<void>[]>> = [];
  for (let k = 0; k < 20; k++) {
    all.push(Promise.allSettled([one(k)]));
    // Some come just as a place becomes free.
    if (k % 4 === 0) await new Promise(resolve => setImmediate(resolve));
  }
  const results = (await Promise.all(all)).flat();
  t.equal(most, 2);
  t.same(
    order,
    Array.from({ length: 20 }, (_, k) => k),
  );
  t.equal(results.filter(r => r.status === 'rejected').length, 7);
});
