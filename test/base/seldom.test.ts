import t from 'tap';
import { Seldom } from '../../src/base/seldom.ts';

t.test('of equal lines the first of a minute is written, and the next says how many were left out', async t => {
  const seldom = new Seldom(60_000);
  const written: unknown[] = [];
  const line = (kind: string, now: number): void => seldom.line(kind, more => written.push([kind, now, more]), now);
  for (const now of [0, 10, 20, 59_999, 60_000, 60_001, 200_000, 300_000]) line('away', now);
  line('other', 60_002);
  t.same(written, [
    ['away', 0, {}],
    ['away', 60_000, { left_out: 3 }],
    ['away', 200_000, { left_out: 1 }],
    ['away', 300_000, {}],
    ['other', 60_002, {}],
  ]);
});
