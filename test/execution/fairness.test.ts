import t from 'tap';
import { LaneWords } from '../../src/abi/lane-words.ts';
import { SHARED_BYTES, type SharedViews, viewsOf } from '../../src/abi/shared-layout.ts';
import { callerKey } from '../../src/base/caller-key.ts';
import { LIMITS } from '../../src/base/limits.ts';
import { RunQueues, waitingLimits } from '../../src/execution/run-queues.ts';
import { EVERY_SLOT } from '../../src/execution/slot-leases.ts';
import { mayTake, takeWork } from '../../workers/take-work.ts';

t.test('callers are users, service keys, and addresses where there is no credential; a /64 of IPv6 is one', async t => {
  t.equal(callerKey({ kind: 'user', userId: 5 }, '203.0.113.1'), 'user:5');
  t.equal(callerKey({ kind: 'service', keyId: 5 }, '203.0.113.1'), 'service:5');
  t.equal(callerKey(null, '203.0.113.1'), '203.0.113.1');
  for (const [address, key] of [
    ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2::/64'],
    ['2001:db8:1:2:ffff::', '2001:db8:1:2::/64'],
    ['2001:DB8:1:2::1', '2001:db8:1:2::/64'],
    ['2001:db8:1:3::1', '2001:db8:1:3::/64'],
    ['2001:db8::1', '2001:db8:0:0::/64'],
    ['::1', '0:0:0:0::/64'],
    ['1::', '1:0:0:0::/64'],
    ['64:ff9b::203.0.113.7', '64:ff9b:0:0::/64'],
    ['fe80::1%eth0', 'fe80:0:0:0::/64'],
    ['::ffff:203.0.113.7', '203.0.113.7'],
    ['telegram/5', 'telegram/5'],
    ['x:y', 'x:y'],
    ['', ''],
  ] as const)
    t.equal(callerKey(null, address), key, address);
});

/** The run queues with lanes of the test's own, which take and end work on request. */
class Bench {
  readonly views: SharedViews = viewsOf(new SharedArrayBuffer(SHARED_BYTES));
  readonly queues = new RunQueues(this.views, EVERY_SLOT, waitingLimits(1));
  readonly lanes = Array.from({ length: LIMITS.lanesMax }, (_, lane) => new LaneWords(this.views.words, lane));
  /** What runs, by lane. */
  readonly running = new Map<number, { cell: number; queue: number; caller: string; plugin: string }>();
  readonly of = new Map<number, { caller: string; plugin: string }>();
  now = 0;

  /** Whether there was room. */
  push(plugin: string, caller: string, isAwaited = false): boolean {
    const cell = this.queues.acquire(plugin, caller, isAwaited, this.now);
    if (typeof cell !== 'number') return false;
    this.of.set(cell, { plugin, caller });
    this.queues.push(cell);
    return true;
  }

  /** A free lane takes the next execution; whose it is, or null when there is none. */
  take(): string | null {
    for (const words of this.lanes) {
      if (this.running.has(words.lane)) continue;
      const taken = takeWork(this.views.words, words, 0);
      if (taken === null) return null;
      const whose = this.of.get(taken.cell);
      if (whose === undefined) throw new Error('the cell was not in use');
      this.running.set(words.lane, { ...taken, ...whose });
      return whose.caller;
    }
    return null;
  }

  takeAll(): string[] {
    const all: string[] = [];
    for (let caller = this.take(); caller !== null; caller = this.take()) all.push(caller);
    return all;
  }

  /** A running execution ends, of a caller if one is given. */
  end(caller?: string, ranMs = 1): void {
    for (const [lane, r] of this.running)
      if (caller === undefined || r.caller === caller) {
        this.running.delete(lane);
        this.lanes[lane]?.complete(r.queue, r.cell);
        this.of.delete(r.cell);
        this.queues.release(r.cell, ranMs);
        return;
      }
    throw new Error(`nothing of ${caller} runs`);
  }

  count(caller: string, plugin = 'p'): number {
    return [...this.running.values()].filter(r => r.caller === caller && r.plugin === plugin).length;
  }

  pushMany(plugin: string, caller: string, n: number): void {
    for (let k = 0; k < n; k++) this.push(plugin, caller);
  }
}

t.test(
  'one caller holds at most seven of a plugin’s eight slots, and the next caller gets the eighth at once',
  async t => {
    const b = new Bench();
    b.pushMany('p', 'a', 20);
    t.equal(b.takeAll().length, 7);
    t.equal(mayTake(b.views.words), false, 'no lane wakes for the eighth');
    b.pushMany('p', 'b', 1);
    t.same(b.takeAll(), ['b'], 'before the thirteen of the first caller that came earlier');
    b.end('b');
    t.same(b.takeAll(), [], 'the eighth stays free');
    b.end('a');
    t.same(b.takeAll(), ['a']);
    b.pushMany('q', 'a', 9);
    t.equal(b.takeAll().length, 7, 'another plugin has slots of its own');
  },
);

t.test('a caller with more than its share of slots waits behind callers with less', async t => {
  const b = new Bench();
  b.pushMany('p', 'a', 20);
  b.takeAll();
  b.pushMany('p', 'b', 20);
  t.same(b.takeAll(), ['b']);
  for (const [a, mine] of [
    [6, 2],
    [5, 3],
    [4, 4],
  ] as const) {
    b.end('a');
    t.same(b.takeAll(), ['b']);
    t.same([b.count('a'), b.count('b')], [a, mine]);
  }
  b.end('a');
  t.same(b.takeAll(), ['a'], 'from now on each has its half');
  b.end('b');
  t.same(b.takeAll(), ['b']);
  b.pushMany('p', 'c', 20);
  t.same(b.takeAll(), [], 'all slots are held');
  b.end('a');
  t.same(b.takeAll(), ['c']);
  b.end('b');
  t.same(b.takeAll(), ['c']);
  t.same([b.count('a'), b.count('b'), b.count('c')], [3, 3, 2]);
});

t.test('of many callers each one gets a turn before any of them gets a second', async t => {
  const b = new Bench();
  const callers = Array.from({ length: 30 }, (_, k) => `user:${k}`);
  for (const caller of callers) b.push('p', caller);
  for (const caller of callers) b.pushMany('p', caller, 2);
  const order = b.takeAll();
  while (b.running.size > 0) {
    b.end();
    order.push(...b.takeAll());
  }
  t.equal(order.length, 90);
  for (const round of [0, 1, 2]) t.equal(new Set(order.slice(round * 30, round * 30 + 30)).size, 30, `round ${round}`);
});

t.test('callers whose executions reached their deadline come behind those whose did not', t => {
  const b = new Bench();
  for (let k = 0; k < 40; k++) b.push('p', `late:${k}`);
  t.equal(b.takeAll().length, 8);
  for (const { cell } of [...b.running.values()]) b.queues.noteLate(cell, b.now);
  b.end();
  b.takeAll();
  // The others of the first wave have not been late so far, and are in the ring already; they are over soon.
  while (b.running.size > 0) {
    for (const { cell } of [...b.running.values()]) b.queues.noteLate(cell, b.now);
    b.end();
    b.takeAll();
  }
  for (let k = 0; k < 40; k++) b.push('p', `late:${k}`);
  t.equal(b.takeAll().length, 8, 'slots that no other caller wants are theirs');
  b.push('p', 'good');
  b.push('q', 'late:1');
  b.end();
  t.same(b.takeAll().sort(), ['good', 'late:1'], 'the next slot, and that of another plugin');
  t.end();
});

t.test('a late caller with fewer executions comes behind one that was not late and has its share', t => {
  const b = new Bench();
  const cells = (caller: string): number[] =>
    [...b.running.values()].flatMap(r => (r.caller === caller ? [r.cell] : []));
  b.push('p', 'late');
  b.takeAll();
  for (const cell of cells('late')) b.queues.noteLate(cell, b.now);
  b.end('late');
  b.pushMany('p', 'other', 4);
  b.takeAll();
  b.pushMany('p', 'good', 20);
  b.takeAll();
  b.push('p', 'late');
  t.same([b.count('other'), b.count('good'), b.takeAll().length], [4, 4, 0], 'all slots are held');
  for (const good of [5, 6, 7]) {
    b.end('other');
    t.same([...b.takeAll(), b.count('good')], ['good', good]);
  }
  b.end('other');
  t.same(b.takeAll(), ['late'], 'the slot that no other caller may have');
  t.end();
});

t.test('a caller yields until one of its executions ends in time, or a minute is over', t => {
  const b = new Bench();
  const cellOf = (caller: string): number => [...b.running.values()].find(r => r.caller === caller)?.cell ?? -1;
  /** Who comes first of `a`, who asks first, and `b`, when the next slot is free. */
  const first = (isAwaited = false): string | null => {
    for (let k = 0; k < 8; k++) b.push('p', `x${k}`);
    b.takeAll();
    b.push('p', 'a', isAwaited);
    b.push('p', 'b');
    b.end('x0');
    const taken = b.take();
    while (b.running.size > 0) {
      b.end();
      b.takeAll();
    }
    return taken;
  };
  const isLate = (): void => {
    b.push('p', 'a');
    b.takeAll();
    b.queues.noteLate(cellOf('a'), b.now);
    b.end('a');
  };
  t.equal(first(), 'a');
  isLate();
  t.equal(first(), 'b');
  t.equal(first(true), 'a', 'an execution that another one waits for does not wait itself');
  b.push('p', 'a');
  b.takeAll();
  b.queues.noteInTime(cellOf('a'));
  b.end('a');
  t.equal(first(), 'a', 'it ended in time');
  isLate();
  b.now += LIMITS.quarantineWindowMs;
  t.equal(first(), 'a', 'a minute is over');
  t.end();
});

t.test(
  'queued executions of the first caller run after those of a second caller, however many lanes there are',
  async t => {
    const b = new Bench();
    b.pushMany('p', 'a', 100);
    t.equal(b.take(), 'a', 'one lane has begun');
    b.push('p', 'b');
    const [first, second] = [b.take(), b.take()];
    t.same([first, second], ['b', 'a']);
  },
);

t.test('nothing is lost and no cell is held twice, whatever comes and ends in which order', async t => {
  const seed = Number(process.env.SEED ?? Date.now() % 1e9);
  t.comment(`SEED=${seed}`);
  let state = seed;
  const below = (n: number): number => {
    state = (Math.imul(state, 1_103_515_245) + 12_345) & 0x7fffffff;
    return Math.floor((state / 0x80000000) * n);
  };
  const b = new Bench();
  let pushed = 0;
  let ended = 0;
  const late = new Set<number>();
  for (let step = 0; step < 60_000; step++) {
    b.now = step;
    const burst = below(200) === 0 ? 70 : 1;
    const plugin = `p${below(3)}`;
    const caller = `c${below(below(2) === 0 ? 2 : 40)}`;
    if (below(5) < 2) for (let k = 0; k < burst; k++) pushed += b.push(plugin, caller, below(9) === 0) ? 1 : 0;
    if (below(3) > 0) b.take();
    if (below(5) < 2 && b.running.size > 0) {
      b.end([...b.running.values()][below(b.running.size)]?.caller, below(3));
      ended++;
    }
    if (below(500) === 0) {
      // Some of those that wait are late.
      late.clear();
      for (const cell of b.of.keys()) if (below(4) === 0) late.add(cell);
      const held = new Set([...b.running.values()].map(r => r.cell));
      for (const cell of b.queues.takeLate(s => late.has(s))) {
        if (held.has(cell)) t.fail('a running execution was taken for one that waits');
        b.of.delete(cell);
        b.queues.release(cell, 0);
        ended++;
      }
    }
    const counts = new Map<string, number>();
    for (const r of b.running.values())
      for (const key of [r.plugin, `${r.plugin} ${r.caller}`]) counts.set(key, (counts.get(key) ?? 0) + 1);
    for (const [key, n] of counts)
      if (n > (key.includes(' ') ? LIMITS.slotsPerCaller : LIMITS.slotsPerPlugin)) t.fail(`${n} of ${key} run`);
    if (b.queues.inFlight !== pushed - ended) t.fail('an execution was lost');
  }
  t.ok(pushed > 10_000);
  for (let rounds = 0; b.queues.inFlight > 0 && rounds < 100_000; rounds++) {
    b.takeAll();
    if (b.running.size === 0) break;
    b.end();
  }
  t.equal(b.queues.inFlight, 0, 'everything gets its turn');
});
