import t from 'tap';
import { type HeldLock, holdLockOfHost, tryLock } from '../../src/db/held-lock.ts';
import { makeDatabase } from '../support/database.ts';
import { databaseWay } from '../support/store-way.ts';
import { until } from '../support/until.ts';

const KEY = 4242;

t.test('a lock is held once, and free again when its holder lets go', async t => {
  const { drop, url } = await makeDatabase();
  t.teardown(drop);
  const first = await tryLock(url, KEY, () => t.fail('it was not lost'));
  t.equal(await tryLock(url, KEY, () => {}), null);
  await first?.close();
  const second = await tryLock(url, KEY, () => t.fail('it was not lost'));
  t.ok(second !== null);
  await second?.close();
});

t.test('an attempt to take a lock ends when the network fails', async t => {
  const { drop, url } = await makeDatabase();
  t.teardown(drop);
  const network = await databaseWay(url);
  t.teardown(() => network.close());
  network.onSent = bytes => {
    if (bytes.includes('pg_try_advisory_lock')) network.freeze();
    return true;
  };
  await t.rejects(tryLock(network.url, KEY, () => {}));
});

t.test('the processes of one host have its lock together, and another host when the last of them lets go', async t => {
  const { drop, url } = await makeDatabase();
  t.teardown(drop);
  const steps: string[] = [];
  const hold = (name: string, host: number) =>
    new Promise<HeldLock>(resolve => {
      const lock: HeldLock = holdLockOfHost(url, KEY, host, {
        held: () => {
          steps.push(`${name} has it`);
          resolve(lock);
        },
        lost: () => steps.push(`${name} lost it`),
        refused: () => {
          steps.push(`${name} waits`);
          resolve(lock);
        },
      });
    });
  const first = await hold('one', 1);
  const second = await hold('two of the same host', 1);
  const other = await hold('another host', 2);
  t.same(steps, ['one has it', 'two of the same host has it', 'another host waits']);
  await first.close();
  const third = await hold('three of the same host', 1);
  await second.close();
  t.equal(steps.at(-1), 'three of the same host has it', 'one of them still has it');
  await third.close();
  await until(() => steps.at(-1) === 'another host has it');
  await other.close();
});

for (const way of ['freeze', 'cut'] as const)
  t.test(`a holder whose network is gone (${way}) gives the lock up before another host gets it`, async t => {
    const { drop, url } = await makeDatabase();
    t.teardown(drop);
    const network = await databaseWay(url);
    t.teardown(() => network.close());
    const steps: string[] = [];
    const held = Promise.withResolvers<void>();
    const first = holdLockOfHost(network.url, KEY, 1, {
      held: () => {
        steps.push('held');
        held.resolve();
      },
      lost: () => steps.push('lost'),
      refused: () => steps.push('refused'),
    });
    await held.promise;
    const once = await tryLock(network.url, KEY + 1, () => steps.push('lost once'));
    network[way]();
    const taken = Promise.withResolvers<void>();
    const second = holdLockOfHost(url, KEY, 2, {
      held: () => {
        steps.push('taken over');
        taken.resolve();
      },
      lost: () => steps.push('lost again'),
      refused: () => {},
    });
    await taken.promise;
    t.equal(steps.at(-1), 'taken over');
    t.same(steps.slice(0, -1).sort(), ['held', 'lost', 'lost once']);
    network.mend();
    await until(() => steps.at(-1) === 'refused');
    await second.close();
    await once?.close();
    await first.close();
    t.notOk(steps.includes('lost again'), 'who lets go has lost nothing');
  });
