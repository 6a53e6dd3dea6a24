import { setTimeout as sleep } from 'node:timers/promises';
import t from 'tap';
import { networksOf } from '../../src/base/ip-address.ts';
import { LIMITS } from '../../src/base/limits.ts';
import { PasswordQueue, type PasswordTurn, paceMs } from '../../src/identity/password-queue.ts';

/** Who has a password compared next (docs/identity.md "Guessing"). */
const stranger = (address: string, account = 'a', accountFailures = 0): PasswordTurn => ({
  known: false,
  address,
  account,
  accountFailures,
});
const known = (address: string): PasswordTurn => ({ known: true, address, account: 'a', accountFailures: 1000 });

/** A queue whose first place is taken, and the order in which the others come. */
async function held() {
  const queue = new PasswordQueue();
  const order: string[] = [];
  let release = (): void => {};
  const first = queue.run(stranger('198.51.100.1', 'other'), () => new Promise<void>(resolve => (release = resolve)));
  await new Promise(setImmediate);
  const add = (name: string, turn: PasswordTurn): Promise<string> =>
    queue.run(turn, async () => {
      order.push(name);
      return name;
    });
  return { queue, order, add, first, release: () => release() };
}

t.test('a known browser comes before everything that strangers have waiting', async t => {
  const q = await held();
  const strangers = Array.from({ length: 200 }, (_, k) => q.add('stranger', stranger(`203.0.${k}.1`)));
  const own = q.add('known', known('203.0.0.1'));
  q.release();
  await Promise.all([own, ...strangers]);
  t.equal(q.order[0], 'known');
});

t.test(
  'networks take turns: who has a whole /48, a /24 or one address gets one place, not one for each address',
  async t => {
    const crowds: Array<[string, (k: number) => string]> = [
      ['addresses of a /64', k => `2001:db8:1:1::${k + 1}`],
      ['/64 of a /56', k => `2001:db8:1:1${(k % 256).toString(16).padStart(2, '0')}::1`],
      ['/56 of a /48', k => `2001:db8:1:${(k * 256).toString(16)}::1`],
      ['addresses of a /24', k => `192.0.2.${k + 1}`],
      ['one mapped address', () => '::ffff:192.0.2.7'],
    ];
    for (const [what, address] of crowds) {
      const q = await held();
      const crowd = Array.from({ length: 50 }, (_, k) => q.add('crowd', stranger(address(k))));
      const one = q.add('one', stranger('2001:db8:2::1'));
      q.release();
      await Promise.all([one, ...crowd]);
      t.ok(q.order.indexOf('one') <= 1, `${what}: place ${q.order.indexOf('one')}`);
    }
  },
);

t.test('a network that had its turns comes behind one that had none', async t => {
  const queue = new PasswordQueue();
  for (let k = 0; k < 3; k++) await queue.run(stranger('192.0.2.1'), async () => {});
  const order: string[] = [];
  const all = [
    queue.run(stranger('198.51.100.1'), () => sleep(20)),
    queue.run(stranger('192.0.2.1'), async () => void order.push('served')),
    queue.run(stranger('203.0.113.1'), async () => void order.push('new')),
  ];
  await Promise.all(all);
  t.same(order, ['new', 'served']);
});

t.test('guesses at an account from many addresses are as slow together as its failures say', async t => {
  t.equal(paceMs(LIMITS.accountFailuresFree - 1), 0);
  t.equal(paceMs(LIMITS.accountFailuresFree), LIMITS.accountPaceMsMin);
  t.equal(paceMs(LIMITS.accountFailuresFree + 1), 2 * LIMITS.accountPaceMsMin);
  t.equal(paceMs(1_000_000), LIMITS.accountPaceMsMax);
  const queue = new PasswordQueue();
  const guesses = Array.from({ length: 3 }, (_, k) =>
    queue.run(stranger(`203.0.${k}.1`, 'guessed', LIMITS.accountFailuresFree), async () => {}),
  );
  const order: string[] = [];
  await Promise.all([
    queue.run(known('203.0.113.9'), async () => void order.push('known')),
    queue.run(stranger('203.0.113.9', 'elsewhere'), async () => void order.push('another account')),
    guesses[2]?.then(() => order.push('guesses')),
  ]);
  t.same(order, ['known', 'another account', 'guesses']);
});

t.test('when too many wait, the most crowded network loses its newest, never one that comes alone', async t => {
  const q = await held();
  const crowd = Array.from({ length: LIMITS.passwordsWaitingMax }, (_, k) =>
    q.add('crowd', stranger(`192.0.2.${k % 200}`)),
  );
  const settled = Promise.allSettled(crowd);
  const one = q.add('one', stranger('203.0.113.1'));
  const more = q.add('more', stranger('192.0.2.1'));
  await t.rejects(more, { code: 'unavailable', headers: [['Retry-After', '5']] });
  q.release();
  t.equal(await one, 'one');
  const outcomes = await settled;
  t.equal(outcomes.filter(o => o.status === 'rejected').length, 1);
  t.equal(q.order.indexOf('one') <= 1, true);
});

t.test('work that fails frees the place', async t => {
  const queue = new PasswordQueue();
  await t.rejects(
    queue.run(stranger('192.0.2.1'), () => Promise.reject(new Error('broken'))),
    /broken/,
  );
  t.equal(await queue.run(stranger('192.0.2.1'), async () => 1), 1);
});

t.test('networks of addresses, from the widest to the narrowest', t => {
  t.same(networksOf('2001:db8:aaaa:bbcc::1'), [
    '2001:db8:aaaa::/48',
    '2001:db8:aaaa:bb00::/56',
    '2001:db8:aaaa:bbcc::/64',
  ]);
  t.same(networksOf('192.0.2.7'), ['192.0.2.0/24', '192.0.2.7']);
  t.same(networksOf('::ffff:192.0.2.7'), ['192.0.2.0/24', '192.0.2.7']);
  t.same(networksOf('fe80::1%eth0').length, 3);
  t.same(networksOf('nonsense'), ['nonsense']);
  t.end();
});
