import type { ExecutionState } from './execution-state.ts';
import type { GuestMemory } from './guest-memory.ts';
import { clockNs, isClock } from './wasi-clocks.ts';
import { ABSTIME, ERRNO, EVENT, EVENTTYPE, STDIN, SUBSCRIPTION } from './wasi-layout.ts';

const SUBSCRIPTIONS_MAX = 128;
/** A sleep ends a little after the deadline, so that the deadline ends the execution. */
const AFTER_DEADLINE_MS = 1000;

/** The functions of the lane that sleeps use. */
export type SleepingLane = {
  /** Milliseconds left until the deadline of the running execution. */
  remainingMs(): number;
  sleeping(on: boolean): void;
};

type Subscription = {
  userdata: bigint;
  tag: number;
  error: number;
  /** Whether its event is there. */
  fires: boolean;
  /** How long until its clock fires; null for a descriptor. */
  waitNs: bigint | null;
};

/** Waiting for clocks; descriptors are ready at once. */
export class WasiPoll {
  readonly #state: ExecutionState;
  readonly #guest: GuestMemory;
  readonly #isOpen: (fd: number) => boolean;
  readonly #lane: SleepingLane;
  readonly #sleepCell = new Int32Array(new SharedArrayBuffer(4));

  constructor(state: ExecutionState, guest: GuestMemory, isOpen: (fd: number) => boolean, lane: SleepingLane) {
    this.#state = state;
    this.#guest = guest;
    this.#isOpen = isOpen;
    this.#lane = lane;
  }

  functions() {
    return {
      /** https://github.com/WebAssembly/WASI/blob/main/legacy/preview1/docs.md#poll_oneoff */
      poll_oneoff: (inAt: number, outAt: number, count: number, stored: number) =>
        this.#poll(inAt, outAt, count >>> 0, stored),
    };
  }

  #poll(inAt: number, outAt: number, count: number, stored: number): number {
    const guest = this.#guest;
    if (count === 0 || count > SUBSCRIPTIONS_MAX) return ERRNO.inval;
    if (!guest.holds(inAt, count * SUBSCRIPTION.size) || !guest.holds(outAt, count * EVENT.size)) return ERRNO.fault;
    if (!guest.holds(stored, 4)) return ERRNO.fault;
    const all: Subscription[] = [];
    for (let i = 0; i < count; i++) {
      const s = this.#readSubscription((inAt >>> 0) + i * SUBSCRIPTION.size);
      if (s === null) return ERRNO.inval;
      all.push(s);
    }
    this.#awaitFirst(all);
    const fired = all.filter(s => s.fires);
    for (const [i, s] of fired.entries()) this.#writeEvent((outAt >>> 0) + i * EVENT.size, s);
    guest.view.setUint32(stored >>> 0, fired.length, true);
    return ERRNO.success;
  }

  /** Null for a type that the specification does not have. */
  #readSubscription(at: number): Subscription | null {
    const { view } = this.#guest;
    const tag = view.getUint8(at + SUBSCRIPTION.tag);
    const userdata = view.getBigUint64(at + SUBSCRIPTION.userdata, true);
    if (tag === EVENTTYPE.clock) return { userdata, tag, ...this.#readClock(at, view) };
    if (tag !== EVENTTYPE.fdRead && tag !== EVENTTYPE.fdWrite) return null;
    const fd = view.getUint32(at + SUBSCRIPTION.descriptor, true);
    const isUnreadable = tag === EVENTTYPE.fdRead && fd !== STDIN;
    const error = !this.#isOpen(fd) ? ERRNO.badf : isUnreadable ? ERRNO.notcapable : ERRNO.success;
    return { userdata, tag, error, fires: true, waitNs: null };
  }

  #readClock(at: number, view: DataView): Pick<Subscription, 'error' | 'fires' | 'waitNs'> {
    const clock = view.getUint32(at + SUBSCRIPTION.clock, true);
    if (!isClock(clock)) return { error: ERRNO.inval, fires: true, waitNs: null };
    const timeout = view.getBigUint64(at + SUBSCRIPTION.timeout, true);
    const isAbsolute = (view.getUint16(at + SUBSCRIPTION.flags, true) & ABSTIME) !== 0;
    const { replayed } = this.#state;
    const now = isAbsolute ? (replayed?.present(clock, clockNs(clock)) ?? clockNs(clock)) : 0n;
    // The recorded clock has moved on when it is read again. What was stopped while it waited has not read it again.
    const isOver = replayed?.hasClock() === true;
    const waitNs = timeout > now && !isOver ? timeout - now : 0n;
    return { error: ERRNO.success, fires: false, waitNs };
  }

  /** Sleeps until the first clock fires, unless an event is there already. */
  #awaitFirst(all: readonly Subscription[]): void {
    if (all.some(s => s.fires)) return;
    let shortest: bigint | null = null;
    for (const { waitNs } of all) if (waitNs !== null && (shortest === null || waitNs < shortest)) shortest = waitNs;
    if (shortest === null) return;
    this.#sleep(shortest);
    for (const s of all) s.fires = s.waitNs !== null && s.waitNs <= shortest;
  }

  #sleep(ns: bigint): void {
    const ms = Math.min(Number(ns) / 1e6, Math.max(0, this.#lane.remainingMs()) + AFTER_DEADLINE_MS);
    if (ms <= 0) return;
    this.#lane.sleeping(true);
    Atomics.wait(this.#sleepCell, 0, 0, ms);
    this.#lane.sleeping(false);
  }

  #writeEvent(at: number, { error, tag, userdata }: Subscription): void {
    const { bytes, view } = this.#guest;
    bytes.fill(0, at, at + EVENT.size);
    view.setBigUint64(at + EVENT.userdata, userdata, true);
    view.setUint16(at + EVENT.error, error, true);
    view.setUint8(at + EVENT.type, tag);
  }
}
