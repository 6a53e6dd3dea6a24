import t from 'tap';
import { UnderWay } from '../../src/http/under-way.ts';

t.test('the end of what is under way is waited for, and not of what begins later', async t => {
  const underWay = new UnderWay();
  const ends = [underWay.begin(), underWay.begin()];
  const seen: string[] = [];
  const first = underWay.ended().then(() => seen.push('first'));
  const later = underWay.begin();
  const second = underWay.ended().then(() => seen.push('second'));
  later();
  await new Promise(setImmediate);
  t.same(seen, [], 'two of the first are open, and who asks later waits for them too');
  ends[0]!();
  await new Promise(setImmediate);
  t.same(seen, []);
  underWay.begin();
  ends[1]!();
  await Promise.all([first, second]);
  t.same(seen, ['first', 'second']);
});

t.test('with nothing under way there is nothing to wait for', async () => {
  const underWay = new UnderWay();
  await underWay.ended();
  underWay.begin()();
  await underWay.ended();
});
