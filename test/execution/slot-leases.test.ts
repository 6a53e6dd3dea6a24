import t from 'tap';
import { LIMITS } from '../../src/base/limits.ts';
import { SlotBroker } from '../../src/execution/slot-broker.ts';
import { SlotLeases, type SlotUser } from '../../src/execution/slot-leases.ts';
import {
  ALL_SLOTS,
  type BrokerMessage,
  countSlots,
  forOne,
  type LeaseMessage,
  ownSlots,
} from '../../src/execution/slot-messages.ts';

/** A generator of numbers from 0 to 1, the same for the same seed (mulberry32). */
function makeRandom(seed: number): () => number {
  let a = seed;
  return () => {
    a = (a + 0x6d2b79f5) | 0;
    let x = Math.imul(a ^ (a >>> 15), 1 | a);
    x = (x + Math.imul(x ^ (x >>> 7), 61 | x)) ^ x;
    return ((x ^ (x >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** A plugin that takes part in calls between plugins. */
const KEPT = 'kept';

/** A serving process as the leases see it: its executions run as soon as it has a slot for them. */
class Process implements SlotUser {
  readonly leases: SlotLeases;
  readonly id: number;
  readonly place: number;
  /** Messages to the broker and from it, on their way. */
  readonly toBroker: LeaseMessage[] = [];
  readonly fromBroker: BrokerMessage[] = [];
  readonly running = new Map<string, number>();
  readonly waiting = new Map<string, number>();
  /** Plugins whose executions here are of several callers. */
  readonly shared = new Set<string>();

  constructor(id: number, place: number) {
    this.id = id;
    this.place = place;
    this.leases = new SlotLeases(message => void this.toBroker.push(message));
    this.leases.attach(this, plugin => plugin === KEPT);
  }

  runs = (plugin: string): number => this.running.get(plugin) ?? 0;
  waits = (plugin: string): number => this.waiting.get(plugin) ?? 0;

  /** Callers are of one process each, unless a test says otherwise. */
  callers: (plugin: string) => string[] = plugin =>
    this.shared.has(plugin) ? [`a${this.id}`, `b${this.id}`] : [`a${this.id}`];

  callersOf(plugin: string): string[] {
    return this.runs(plugin) + this.waits(plugin) > 0 ? this.callers(plugin) : [];
  }

  limit(plugin: string): number {
    const { all, ofOne } = this.leases.countOf(plugin);
    return this.shared.has(plugin) ? all : ofOne;
  }

  useSlots(plugin: string): boolean {
    return this.runs(plugin) <= this.limit(plugin);
  }

  *active(): Generator<readonly [string, number]> {
    for (const plugin of new Set([...this.running.keys(), ...this.waiting.keys()])) {
      const inFlight = this.runs(plugin) + this.waits(plugin);
      if (inFlight > 0) yield [plugin, inFlight];
    }
  }

  /** Lets run what may, and says what lacks slots. */
  work(plugin: string): void {
    while (this.waits(plugin) > 0 && this.runs(plugin) < this.limit(plugin)) {
      this.waiting.set(plugin, this.waits(plugin) - 1);
      this.running.set(plugin, this.runs(plugin) + 1);
    }
    this.leases.note(plugin, this.runs(plugin) + this.waits(plugin));
    if (this.waits(plugin) > 0) this.leases.lack(plugin, this.waits(plugin));
  }

  admit(plugin: string): void {
    this.waiting.set(plugin, this.waits(plugin) + 1);
    this.work(plugin);
  }

  end(plugin: string): void {
    if (this.runs(plugin) === 0) return;
    this.running.set(plugin, this.runs(plugin) - 1);
    this.work(plugin);
  }
}

/** Serving processes and their broker; messages arrive in the order in which they were sent, some time later. */
class Host {
  readonly broker: SlotBroker;
  readonly processes: Process[] = [];
  #ids = 0;

  constructor(places: number) {
    this.broker = new SlotBroker(places);
    for (let place = 0; place < places; place++) this.start(place);
  }

  start(place: number): Process {
    const process = new Process(++this.#ids, place);
    this.processes.push(process);
    const slots = this.broker.join(process.id, place, message => void process.fromBroker.push(message));
    process.leases.hear({ kind: 'slots_owned', ...slots });
    return process;
  }

  kill(process: Process): void {
    this.processes.splice(this.processes.indexOf(process), 1);
    process.leases.close();
    this.broker.leave(process.id);
  }

  /** The next message of a process arrives, or of the broker at it. */
  deliver(process: Process, isToBroker: boolean): void {
    const message = isToBroker ? process.toBroker.shift() : undefined;
    if (message !== undefined) return this.broker.hear(process.id, message);
    const told = isToBroker ? undefined : process.fromBroker.shift();
    if (told === undefined) return;
    process.leases.hear(told);
    for (const [plugin] of process.active()) process.work(plugin);
  }

  /** All messages arrive, and processes look at their leases several times. */
  settle(): void {
    for (let round = 0; round < 12; round++) {
      for (let k = 0; k < 200; k++)
        for (const p of this.processes) {
          this.deliver(p, true);
          this.deliver(p, false);
        }
      for (const p of this.processes) {
        for (const [plugin] of p.active()) p.work(plugin);
        p.leases.look();
      }
    }
  }

  running(plugin: string): number {
    return this.processes.reduce((n, p) => n + p.runs(plugin), 0);
  }

  close(): void {
    for (const p of this.processes) p.leases.close();
  }
}

t.test('the own slots of all processes are the eight of the host, and each process has one for a single caller', t => {
  for (let places = 1; places <= LIMITS.servingProcessesMax; places++) {
    const own = Array.from({ length: places }, (_, place) => ownSlots(place, places));
    t.equal(
      own.reduce((all, mask) => all | mask, 0),
      ALL_SLOTS,
    );
    t.equal(
      own.reduce((n, mask) => n + countSlots(mask), 0),
      LIMITS.slotsPerPlugin,
      'none twice',
    );
    t.ok(own.every(mask => forOne(mask) !== 0));
  }
  t.end();
});

t.test('a process that has all the work gets all the slots, and gives them back when another has work', t => {
  const host = new Host(2);
  t.teardown(() => host.close());
  const [a, b] = host.processes;
  if (a === undefined || b === undefined) throw new Error('no processes');
  for (let k = 0; k < 200; k++) a.admit('p');
  t.equal(a.runs('p'), 4, 'its own at once');
  host.settle();
  t.equal(a.runs('p'), 7, 'one caller leaves a slot to the next');
  a.shared.add('p');
  a.work('p');
  host.settle();
  t.equal(a.runs('p'), 8, 'several callers use all');
  for (let k = 0; k < 200; k++) b.admit('p');
  host.settle();
  t.equal(b.runs('p'), 0, 'nothing has ended yet');
  for (let k = 0; k < 8; k++) a.end('p');
  host.settle();
  t.equal(host.running('p'), 8);
  t.equal(b.runs('p'), 2, 'one of three callers');
  b.shared.add('p');
  b.work('p');
  for (let round = 0; round < 5; round++) {
    host.settle();
    for (let k = 0; k < 8; k++) a.end('p');
  }
  t.ok(a.runs('p') >= 3 && b.runs('p') >= 3, `two of four: ${a.runs('p')} and ${b.runs('p')}`);
  t.end();
});

t.test('what a killed process had is the others’ at once, and its successor gets its own back', t => {
  const host = new Host(3);
  t.teardown(() => host.close());
  const [a, b, c] = host.processes;
  if (a === undefined || b === undefined || c === undefined) throw new Error('no processes');
  for (const p of [a, b, c]) {
    p.shared.add('p');
    for (let k = 0; k < 20; k++) p.admit('p');
  }
  host.settle();
  t.equal(host.running('p'), 8);
  host.kill(b);
  host.settle();
  t.equal(host.running('p'), 8, 'the others use its slots');
  const successor = host.start(1);
  t.equal(countSlots(successor.leases.maskOf('q')), countSlots(ownSlots(1, 3)), 'of other plugins it has its own');
  for (let k = 0; k < 20; k++) successor.admit('p');
  host.settle();
  for (let k = 0; k < 8; k++) for (const p of [a, c]) p.end('p');
  host.settle();
  t.ok(successor.runs('p') > 0);
  t.equal(host.running('p'), 8);
  t.end();
});

t.test('a process that takes the place of another gets its slots, without those that are still used', t => {
  const host = new Host(2);
  t.teardown(() => host.close());
  const [old] = host.processes;
  if (old === undefined) throw new Error('no process');
  for (let k = 0; k < 3; k++) old.admit('p');
  const next = host.start(0);
  for (const p of host.processes) p.callers = () => ['user:1'];
  t.equal(next.leases.maskOf('p'), 0, 'none before it takes over');
  host.broker.replace(next.id);
  host.settle();
  t.equal(next.leases.maskOf('q'), ownSlots(0, 2), 'of a plugin that does not run it has all at once');
  t.equal(old.leases.maskOf('q'), 0);
  t.equal(old.runs('p'), 3, 'what runs goes on');
  for (let k = 0; k < 20; k++) next.admit('p');
  host.settle();
  t.equal(host.running('p'), 7);
  for (let k = 0; k < 3; k++) old.end('p');
  host.kill(old);
  host.settle();
  t.equal(next.runs('p'), 7);
  t.end();
});

t.test('one caller has seven slots, however many processes it uses', t => {
  const host = new Host(3);
  t.teardown(() => host.close());
  for (const p of host.processes) {
    p.callers = () => ['user:1'];
    for (let k = 0; k < 200; k++) p.admit('p');
  }
  host.settle();
  t.equal(host.running('p'), 7);
  for (let k = 0; k < 20; k++) {
    for (const p of host.processes) p.end('p');
    host.settle();
    t.equal(host.running('p'), 7);
  }
  t.end();
});

t.test('callers have equal parts, not processes', t => {
  const host = new Host(3);
  t.teardown(() => host.close());
  const [b] = host.processes;
  if (b === undefined) throw new Error('no process');
  // One caller has connections to all processes, the other one to one.
  for (const p of host.processes) p.callers = () => (p === b ? ['user:1', 'user:2'] : ['user:1']);
  b.shared.add('p');
  for (const p of host.processes) for (let k = 0; k < 200; k++) p.admit('p');
  host.settle();
  for (let k = 0; k < 20; k++) {
    for (const p of host.processes) p.end('p');
    host.settle();
  }
  t.ok(b.runs('p') >= 5, `two callers share the slots of one process: ${b.runs('p')}`);
  t.equal(host.running('p'), 8);
  t.end();
});

t.test('a process keeps a slot of a plugin that takes part in calls between plugins', t => {
  const host = new Host(2);
  t.teardown(() => host.close());
  const [a, b] = host.processes;
  if (a === undefined || b === undefined) throw new Error('no processes');
  a.shared.add(KEPT);
  for (let k = 0; k < 10; k++) a.admit(KEPT);
  host.settle();
  t.equal(countSlots(b.leases.maskOf(KEPT)), 1);
  b.admit(KEPT);
  t.equal(b.runs(KEPT), 1, 'at once');
  t.end();
});

/** A broker of two places whose members are the test: what it grants each of them for `p`, as one set. */
function bareBroker() {
  const broker = new SlotBroker(2);
  const granted = new Map<number, number>();
  const join = (id: number, place: number): void => {
    granted.set(id, 0);
    broker.join(id, place, message => {
      if (message.kind === 'slots_granted') granted.set(id, (granted.get(id) ?? 0) | message.mask);
    });
  };
  join(1, 0);
  join(2, 1);
  const wants = (id: number, ...callers: string[]): void =>
    broker.hear(id, { kind: 'slots_wanted', plugin: 'p', more: LIMITS.slotsPerPlugin, callers });
  const gives = (id: number, mask: number): void => broker.hear(id, { kind: 'slots_given', plugin: 'p', mask });
  return { broker, join, wants, gives, granted: (id: number): number => granted.get(id) ?? 0 };
}

t.test('a process gives only slots that it has, whatever it says', t => {
  const { gives, granted, wants } = bareBroker();
  wants(2, 'a', 'b');
  gives(2, ownSlots(0, 2));
  t.equal(granted(2), 0, 'those of the other process stay with it');
  gives(1, 1);
  t.equal(granted(2), 1);
  gives(1, 1);
  wants(1, 'c');
  t.equal(granted(1), 0, 'a slot that it gave is no longer its own');
  t.end();
});

t.test('slots that a process keeps are no other process’s, also when its successor has ended', t => {
  const { broker, granted, join, wants } = bareBroker();
  wants(2, 'a', 'b');
  join(3, 0);
  broker.replace(3);
  broker.leave(3);
  broker.hear(1, { kind: 'slots_kept', kept: { p: 0b101 } });
  t.equal(granted(2), ownSlots(0, 2) & ~0b101, 'those it does not keep are free');
  broker.leave(1);
  t.equal(granted(2), ownSlots(0, 2), 'and the others when it has ended');
  t.end();
});

t.test('the slot that is kept for a second caller is granted to no single one', t => {
  const { gives, granted, wants } = bareBroker();
  wants(1, 'a');
  gives(2, ownSlots(1, 2));
  t.equal(granted(1), forOne(ownSlots(1, 2)));
  wants(1, 'a', 'b');
  t.equal(granted(1), ownSlots(1, 2), 'for two callers it is');
  t.end();
});

const SEED = Number(process.env.TEST_SEED ?? Date.now() % 1_000_000);

t.test(`never more than eight run, whatever comes when, and none waits for ever (TEST_SEED=${SEED})`, t => {
  const random = makeRandom(SEED);
  const pick = <T>(of: readonly T[]): T => {
    const found = of[Math.floor(random() * of.length)];
    if (found === undefined) throw new Error('nothing to pick from');
    return found;
  };
  const plugins = ['p', 'q', 'r'];
  for (let world = 0; world < 60; world++) {
    const places = 1 + Math.floor(random() * LIMITS.servingProcessesMax);
    const host = new Host(places);
    const replaced = new Map<number, Process>();
    for (let step = 0; step < 1500; step++) {
      const p = pick(host.processes);
      const plugin = pick(plugins);
      const what = random();
      if (what < 0.25) p.admit(plugin);
      else if (what < 0.45) p.end(plugin);
      else if (what < 0.65) host.deliver(p, true);
      else if (what < 0.85) host.deliver(p, false);
      else if (what < 0.9) p.leases.look();
      else if (what < 0.92) p.shared.add(plugin);
      else if (what < 0.94 && p.runs(plugin) <= p.leases.countOf(plugin).ofOne) p.shared.delete(plugin);
      else if (what < 0.945 && !replaced.has(p.place)) {
        // Another process takes its place, or it is killed, perhaps while another is taking it.
        replaced.set(p.place, p);
        host.broker.replace(host.start(p.place).id);
      } else if (what < 0.95) {
        host.kill(p);
        if (replaced.get(p.place) === p) replaced.delete(p.place);
        else host.broker.replace(host.start(p.place).id);
      }
      for (const each of plugins)
        if (host.running(each) > LIMITS.slotsPerPlugin) {
          t.fail(`world ${world}, step ${step}: ${host.running(each)} of ${each} run`);
          return t.end();
        }
    }
    // Each execution that waits gets its turn when others end.
    for (const p of host.processes) for (const plugin of plugins) p.admit(plugin);
    const waited = new Set(host.processes.filter(p => p.waits('p') > 0));
    for (let round = 0; round < 400 && host.processes.some(p => plugins.some(q => p.waits(q) > 0)); round++) {
      host.settle();
      for (const p of host.processes) for (const plugin of plugins) p.end(plugin);
    }
    for (const p of host.processes)
      for (const plugin of plugins)
        if (p.waits(plugin) > 0) {
          t.fail(`world ${world}: ${p.waits(plugin)} of ${plugin} wait for ever, ${waited.size} waited`);
          return t.end();
        }
    for (const p of host.processes) for (const plugin of plugins) while (p.runs(plugin) > 0) p.end(plugin);
    host.settle();
    // When all is quiet, one process gets everything again.
    const one = pick(host.processes);
    one.shared.add('p');
    for (let k = 0; k < LIMITS.slotsPerPlugin; k++) one.admit('p');
    host.settle();
    if (one.runs('p') !== LIMITS.slotsPerPlugin) {
      t.fail(`world ${world}: only ${one.runs('p')} of ${places} processes' slots are had`);
      return t.end();
    }
    host.close();
  }
  t.pass();
  t.end();
});
