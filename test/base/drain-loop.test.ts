import { setTimeout as sleep } from 'node:timers/promises';
import t from 'tap';
import { DrainLoop, type DrainSteps } from '../../src/base/drain-loop.ts';
import { until } from '../support/until.ts';

/** A loop over `waiting`, whose lock another host may have, and what it did. */
function loopOver(own: Partial<DrainSteps<string>> = {}) {
  const world = { waiting: 0, held: 0, did: [] as string[], lose: () => {}, errors: [] as unknown[] };
  const steps: DrainSteps<string> = {
    async begin(lost) {
      world.did.push('begin');
      world.held++;
      world.lose = lost;
      return 'lock';
    },
    async pass() {
      world.did.push('pass');
      if (world.waiting === 0) return null;
      world.waiting--;
      return 0;
    },
    async end() {
      world.did.push('end');
      world.held--;
    },
    isLeft: async () => world.waiting > 0,
    onError: error => world.errors.push(error),
    ...own,
  };
  const loop = new DrainLoop(steps);
  return { loop, world };
}

t.test('it drains until nothing is left, and lets the lock go', async t => {
  const { loop, world } = loopOver();
  world.waiting = 2;
  loop.wake();
  await until(() => world.did.includes('end'));
  t.same(world.did, ['begin', 'pass', 'pass', 'pass', 'end']);
  world.waiting = 1;
  loop.wake();
  await until(() => world.did.length === 9);
  t.same([world.waiting, world.held], [0, 0]);
  await loop.close();
});

t.test('a wake-up during a pass, and one while it sleeps, is followed by another pass at once', async t => {
  let passes = 0;
  const { loop, world } = loopOver({
    async pass() {
      if (++passes === 1) loop.wake();
      return passes === 4 ? null : 60_000;
    },
  });
  loop.wake();
  await until(() => passes === 2);
  await sleep(20);
  t.equal(passes, 2, 'then it sleeps');
  loop.wake();
  await until(() => passes === 3);
  loop.wake();
  await until(() => world.held === 0);
  t.equal(passes, 4);
  await loop.close();
});

t.test('what comes at the last moment is seen, also by the host that found the lock taken', async t => {
  const { loop, world } = loopOver({
    async end() {
      world.did.push('end');
      // Another host finds the lock taken, and leaves this to us.
      if (world.did.length === 3) world.waiting = 1;
    },
  });
  loop.wake();
  await until(() => world.did.length === 7);
  t.same(world.did, ['begin', 'pass', 'end', 'begin', 'pass', 'pass', 'end']);
  const { loop: other, world: its } = loopOver({
    async begin() {
      its.did.push('refused');
      other.wake();
      return null;
    },
  });
  its.waiting = 1;
  other.wake();
  await sleep(50);
  t.same(its.did, ['refused'], 'it asks no more: the other host looks when it lets go');
  await Promise.all([loop.close(), other.close()]);
});

t.test('it ends when the lock is lost or the service stops, and an error waits for the next wake-up', async t => {
  const { loop, world } = loopOver({ pass: async () => 60_000 });
  loop.wake();
  await until(() => world.held === 1);
  await sleep(10);
  world.lose();
  await until(() => world.held === 0);
  loop.wake();
  await until(() => world.held === 1);
  await loop.close();
  t.equal(world.held, 0);
  loop.wake();
  await sleep(10);
  t.equal(world.held, 0, 'it stays closed');

  let fails = true;
  const { loop: failing, world: its } = loopOver({
    async pass() {
      if (fails) throw new Error('no');
      return null;
    },
  });
  failing.wake();
  await until(() => its.errors.length === 1);
  await sleep(20);
  t.same([its.errors.length, its.held], [1, 0]);
  fails = false;
  failing.wake();
  await until(() => its.did.length === 4);
  t.same(its.did, ['begin', 'end', 'begin', 'end']);
  await failing.close();
});
