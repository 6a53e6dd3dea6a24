import t from 'tap';
import { Backoff } from '../../src/supervisor/children/backoff.ts';

/** Waits before each start of a child that is ready after `startMs` (null: never) and ends `liveMs` later. */
function waits(startMs: number | null, liveMs: number, count: number): number[] {
  const b = new Backoff();
  let now = 0;
  return Array.from({ length: count }, () => {
    now += startMs ?? 0;
    if (startMs !== null) b.ready(now);
    now += liveMs;
    const wait = b.next(now);
    now += wait;
    return wait;
  });
}

const LADDER = [0, 0, 0, 100, 200, 400, 800, 1600, 3200, 6400, 10_000, 10_000, 10_000];

t.test('a child that keeps ending before it is ready waits longer each time, up to ten seconds', t => {
  t.same(waits(null, 50, 13), LADDER);
  t.same(waits(null, 60_000, 13), LADDER, 'also when it takes a minute to fail');
  t.same(waits(300, 2000, 13), LADDER);
  t.end();
});

t.test('a child that was ready for three seconds starts again at once', t => {
  t.same(waits(300, 3000, 5), [0, 0, 0, 0, 0]);
  const b = new Backoff();
  for (let k = 0; k < 6; k++) b.next(k);
  b.ready(10);
  t.equal(b.next(5000), 0);
  t.end();
});
