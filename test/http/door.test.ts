import t from 'tap';
import { Door, takeOverShare } from '../../src/http/door.ts';
import { WaitingAnswers } from '../../src/http/waiting-answers.ts';

const NOTHING_WAITS = new WaitingAnswers(0, () => {});

/** How many of 1,000 answers that are sent at a moment are the last of their connection. */
const closedAt = (door: Door, now: number): number =>
  Array.from({ length: 1000 }, () => door.closesNext(now)).filter(Boolean).length;

t.test('no connection is closed before another process takes over', async t => {
  t.equal(closedAt(new Door('', NOTHING_WAITS, null), 1000), 0);
});

t.test('connections are closed evenly over the time, and all at the end', async t => {
  const door = new Door('', NOTHING_WAITS, null);
  door.close(2000, 100, 5000);
  t.equal(closedAt(door, 5000), 0, 'none at once');
  t.equal(closedAt(door, 5200), 42, 'in each tenth of the time the same number');
  t.equal(closedAt(door, 5400), 42);
  t.equal(closedAt(door, 6800), 291, 'each of 100 about four times, because many are made to this process again');
  t.equal(closedAt(door, 7000), 1000, 'then every one');
});

t.test(
  'a process that takes over has few clients at first, and the share of its clients doubles again and again',
  async t => {
    t.same(
      [0, 1 / 6, 0.5, 5 / 6, 1, 2].map(p => Math.round(takeOverShare(p) * 64)),
      [1, 2, 8, 32, 64, 64],
    );
    // Each client comes back at once, to the new process as often as its share says.
    const clients = 6400;
    const door = new Door('', NOTHING_WAITS, null);
    door.close(1000, clients, 0);
    let moved = 0;
    for (let now = 1; now < 1000; now++) {
      const closed = Array.from({ length: 1000 }, () => door.closesNext(now)).filter(Boolean).length;
      moved += closed * takeOverShare(now / 1000);
      if (now % 100 === 0) t.ok(Math.abs(moved / clients - takeOverShare(now / 1000)) < 0.05, `after ${now} of 1000`);
    }
  },
);

t.test('clients that are led away a second time are not kept longer', async t => {
  const door = new Door('', NOTHING_WAITS, null);
  door.close(2000, 100, 5000);
  door.close(2000, 100, 6900);
  t.equal(closedAt(door, 7000), 1000);
});
