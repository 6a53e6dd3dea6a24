import { LIMITS } from '../base/limits.ts';
import {
  ALL_SLOTS,
  type BrokerMessage,
  CALLERS_NAMED_MAX,
  countSlots,
  forOne,
  type LeaseMessage,
  type SlotCount,
} from './slot-messages.ts';

/** How long slots stay unused before they are given to a process that waits for some. */
const UNUSED_MS = 50;

/** What the run queues of this process say and take. */
export type SlotUser = {
  /** Sets the slots of a plugin, and whether `note` is called for it. @returns whether no more run than may run now */
  useSlots(pluginId: string, slots: SlotCount, isWatched: boolean): boolean;
  /** The callers with executions of a plugin in flight. */
  callersOf(pluginId: string): string[];
  /** The plugins with executions in flight, and how many. */
  active(): Iterable<readonly [pluginId: string, inFlight: number]>;
};

/** The slots of this process as its run queues see them. */
export type Slots = {
  countOf(pluginId: string): SlotCount;
  isWatched(pluginId: string): boolean;
  /** All slots here are used, and `more` further executions could run. */
  lack(pluginId: string, more: number): void;
  /** How many executions of a watched plugin are in flight. */
  note(pluginId: string, inFlight: number): void;
};

const EVERY: SlotCount = { all: LIMITS.slotsPerPlugin, ofOne: LIMITS.slotsPerCaller };

/** For a host with one serving process and no supervisor. */
export const EVERY_SLOT: Slots = { countOf: () => EVERY, isWatched: () => false, lack() {}, note() {} };

const isSame = (a: readonly string[], b: readonly string[]): boolean =>
  a.length === b.length && a.every(caller => b.includes(caller));

/** Slots of one plugin that are not as usual. */
type Lease = {
  mask: number;
  /** Slots asked back by the broker, on which executions may still run; not part of `mask` any more. */
  owed: number;
  /** Slots that were asked for and not granted yet. */
  wanted: number;
  /** Whether the broker may still have a wish of this process, which is withdrawn when nothing lacks slots any more. */
  asked: boolean;
  /** The callers that were named last. */
  callers: readonly string[];
  /** Whether other processes wait for slots. */
  scarce: boolean;
  /** Whether executions lacked a slot since the last look. */
  lacked: boolean;
  /** Most executions in flight since the last look. */
  peak: number;
  /** The look after which the broker was last told who waits. */
  toldAt: number;
};

/**
 * The slots this serving process may use. It has its own part of every plugin's eight and needs no message for those.
 * When they do not suffice it asks the broker in the supervisor, which takes slots from processes that do not use them,
 * and keeps what it gets until another process wants it
 * (docs/RATIONALE.md "Why are slots leased between serving processes?").
 */
export class SlotLeases implements Slots {
  /** The slots of every plugin of which nothing else is known. */
  #own = 0;
  readonly #send: (message: LeaseMessage) => void;
  readonly #leases = new Map<string, Lease>();
  #user: SlotUser = { useSlots: () => true, callersOf: () => [], active: () => [] };
  #keepsOne: (pluginId: string) => boolean = () => false;
  #looks = 0;
  #timer: NodeJS.Timeout | null = null;

  /** Begins without any; `slots_owned` says which it has. */
  constructor(send: (message: LeaseMessage) => void) {
    this.#send = send;
  }

  /**
   * @param keepsOne whether this process keeps a slot of a plugin that it does not use: plugins that call each other wait for
   *   each other for ever if each has all of its slots in another process
   */
  attach(user: SlotUser, keepsOne: (pluginId: string) => boolean): void {
    this.#user = user;
    this.#keepsOne = keepsOne;
  }

  maskOf(pluginId: string): number {
    return this.#leases.get(pluginId)?.mask ?? this.#own;
  }

  countOf(pluginId: string): SlotCount {
    const mask = this.maskOf(pluginId);
    if (mask === ALL_SLOTS) return EVERY;
    return { all: countSlots(mask), ofOne: countSlots(forOne(mask)) };
  }

  isWatched(pluginId: string): boolean {
    const lease = this.#leases.get(pluginId);
    return lease !== undefined && (lease.owed !== 0 || lease.scarce || lease.asked);
  }

  #leaseOf(pluginId: string): Lease {
    let lease = this.#leases.get(pluginId);
    if (lease === undefined) {
      lease = {
        mask: this.#own,
        owed: 0,
        wanted: 0,
        asked: false,
        callers: [],
        scarce: false,
        lacked: false,
        peak: 0,
        toldAt: -1,
      };
      this.#leases.set(pluginId, lease);
    }
    return lease;
  }

  #apply(pluginId: string): boolean {
    return this.#user.useSlots(pluginId, this.countOf(pluginId), this.isWatched(pluginId));
  }

  lack(pluginId: string, more: number): void {
    const lease = this.#leaseOf(pluginId);
    lease.lacked = true;
    if (lease.asked && more <= lease.wanted && lease.toldAt === this.#looks) return;
    lease.toldAt = this.#looks;
    const named = this.#named(pluginId);
    if (!lease.asked || more > lease.wanted || !isSame(named, lease.callers)) this.#want(pluginId, lease, more, named);
  }

  #named(pluginId: string): string[] {
    return this.#user.callersOf(pluginId).slice(0, CALLERS_NAMED_MAX);
  }

  #nameCallers(plugin: string, lease: Lease): void {
    lease.callers = this.#named(plugin);
    this.#send({ kind: 'slots_callers', plugin, callers: [...lease.callers] });
  }

  #want(plugin: string, lease: Lease, more: number, callers: readonly string[]): void {
    lease.wanted = Math.min(more, LIMITS.slotsPerPlugin);
    lease.asked = more > 0;
    lease.callers = callers;
    this.#send({ kind: 'slots_wanted', plugin, more: lease.wanted, callers: [...callers] });
    this.#apply(plugin);
    this.#lookLater();
  }

  note(pluginId: string, inFlight: number): void {
    const lease = this.#leases.get(pluginId);
    if (lease === undefined) return;
    lease.peak = Math.max(lease.peak, inFlight);
    if (lease.owed !== 0) this.#giveOwed(pluginId, lease);
  }

  hear(message: BrokerMessage): void {
    if (message.kind === 'slots_retire') return this.#retire();
    if (message.kind === 'slots_owned') return this.#takeOver(message.own, message.except);
    const { plugin } = message;
    const lease = this.#leaseOf(plugin);
    if (message.kind === 'slots_scarce') {
      lease.scarce = message.scarce;
      if (message.scarce) this.#nameCallers(plugin, lease);
      lease.peak = LIMITS.slotsPerPlugin;
      this.#apply(plugin);
    } else if (message.kind === 'slots_granted') {
      lease.mask |= message.mask;
      lease.wanted = Math.max(0, lease.wanted - countSlots(message.mask));
      this.#apply(plugin);
    } else {
      const recalled = lease.mask & message.mask;
      lease.owed |= recalled;
      lease.mask &= ~recalled;
      this.#giveOwed(plugin, lease);
    }
    this.#lookLater();
  }

  #giveOwed(plugin: string, lease: Lease): void {
    if (!this.#apply(plugin) || lease.owed === 0) return;
    const mask = lease.owed;
    lease.owed = 0;
    this.#send({ kind: 'slots_given', plugin, mask });
    this.#apply(plugin);
  }

  /** Keeps what executions may be using; the process that takes this place has the rest from now on. */
  #retire(): void {
    const kept: Record<string, number> = {};
    const active = new Set([...this.#user.active()].map(([plugin]) => plugin));
    for (const plugin of active) kept[plugin] = this.maskOf(plugin) | (this.#leases.get(plugin)?.owed ?? 0);
    const before = this.#own;
    this.#own = 0;
    for (const plugin of active) if (!this.#leases.has(plugin)) this.#leaseOf(plugin).mask = before;
    for (const [plugin, lease] of this.#leases) {
      if (active.has(plugin)) continue;
      Object.assign(lease, { mask: 0, owed: 0 });
      this.#apply(plugin);
    }
    this.#send({ kind: 'slots_kept', kept });
    // Asked for before, and perhaps granted to the process before its answer came.
    for (const [plugin, lease] of this.#leases)
      if (lease.wanted > 0) this.#want(plugin, lease, lease.wanted, lease.callers);
  }

  /** The slots come in addition to those that were granted before; the broker names every plugin of which there are any. */
  #takeOver(own: number, except: Record<string, number>): void {
    this.#own = own;
    for (const [plugin, lease] of this.#leases) {
      lease.mask |= except[plugin] ?? own;
      this.#apply(plugin);
    }
    for (const [plugin, mask] of Object.entries(except))
      if (!this.#leases.has(plugin)) this.#leaseOf(plugin).mask = mask;
    for (const [plugin] of this.#user.active()) this.#apply(plugin);
  }

  #lookLater(): void {
    this.#timer ??= setInterval(() => this.look(), UNUSED_MS).unref();
  }

  /** Called every `UNUSED_MS`: gives what nothing used since the last look and others want, and withdraws old wishes. */
  look(): void {
    this.#looks++;
    let isBusy = false;
    for (const [plugin, lease] of this.#leases) {
      if (lease.owed !== 0) this.#giveOwed(plugin, lease);
      if (lease.asked && !lease.lacked) this.#want(plugin, lease, 0, []);
      if (lease.scarce && !lease.asked) this.#giveUnused(plugin, lease);
      if (lease.scarce && !isSame(lease.callers, this.#named(plugin))) this.#nameCallers(plugin, lease);
      lease.lacked = false;
      lease.peak = 0;
      if (lease.owed !== 0 || lease.asked || lease.scarce) isBusy = true;
    }
    for (const [plugin, inFlight] of this.#user.active()) this.note(plugin, inFlight);
    if (isBusy || this.#timer === null) return;
    clearInterval(this.#timer);
    this.#timer = null;
  }

  #giveUnused(plugin: string, lease: Lease): void {
    const usable = forOne(lease.mask);
    let unused = countSlots(usable) - Math.max(lease.peak, this.#keepsOne(plugin) ? 1 : 0);
    // The reserved slot is of use only when the others do not suffice.
    let mask = unused > 0 || lease.peak === 0 ? lease.mask & ~usable : 0;
    for (let slot = 0; unused > 0; slot++)
      if ((usable & (1 << slot)) !== 0) {
        mask |= 1 << slot;
        unused--;
      }
    if (mask === 0) return;
    lease.mask &= ~mask;
    lease.owed |= mask;
    this.#giveOwed(plugin, lease);
  }

  close(): void {
    if (this.#timer !== null) clearInterval(this.#timer);
    this.#timer = null;
  }
}
