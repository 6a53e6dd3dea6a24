import t from 'tap';
import { Door } from '../../src/http/door.ts';

/** How many of 1,000 answers that are sent at a moment are the last of their connection. */
const closedAt = (door: Door, now: number): number =>
  Array.from({ length: 1000 }, () => door.closesNext(now)).filter(Boolean).length;

t.test('no connection is closed before another process takes over', async t => {
  t.equal(closedAt(new Door('', null), 1000), 0);
});

t.test('few connections are closed at first, more and more of them later, and all at the end', async t => {
  const door = new Door('', null);
  door.close(2000, 100, 5000);
  t.equal(closedAt(door, 5000), 0, 'none at once');
  t.equal(closedAt(door, 5200), 1, 'one after a tenth of the time');
  t.equal(closedAt(door, 6000), 24, 'a quarter of all by half of the time');
  t.equal(closedAt(door, 6900), 66, 'nearly all shortly before the end');
  t.equal(closedAt(door, 7000), 1000, 'then every one');
});

t.test('clients that are led away a second time are not kept longer', async t => {
  const door = new Door('', null);
  door.close(2000, 100, 5000);
  door.close(2000, 100, 6900);
  t.equal(closedAt(door, 7000), 1000);
});
