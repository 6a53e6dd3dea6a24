import type { ExecutionState } from './execution-state.ts';
import type { GuestMemory } from './guest-memory.ts';
import { CLOCK, type Clock, ERRNO } from './wasi-layout.ts';

/** Coarse, so that a plugin learns little of what its neighbours do from the time that something takes. */
const MONOTONIC_GRAIN_NS = 100_000n;
const NS_PER_MS = 1_000_000n;

/** Whether it is a clock that is offered. */
export const isClock = (id: number): id is Clock => id === CLOCK.realtime || id === CLOCK.monotonic;

/** The time of a clock in nanoseconds. */
export function clockNs(clock: Clock): bigint {
  if (clock === CLOCK.realtime) return BigInt(Date.now()) * NS_PER_MS;
  return (BigInt(Math.floor(performance.now() * 1e6)) / MONOTONIC_GRAIN_NS) * MONOTONIC_GRAIN_NS;
}

/** The functions of clocks. A reading is recorded, or comes from a recording; what a start reads is not, because a start may be remembered. */
export function makeClocks(state: ExecutionState, guest: GuestMemory) {
  const drawnTime = (clock: Clock): bigint => {
    const now = clockNs(clock);
    if (state.initializing) {
      // Another run would have another start.
      state.first.end();
      return now;
    }
    if (state.replayed !== null) return state.replayed.clock(clock, now);
    const then = state.first.time();
    if (then !== undefined) return then;
    state.drawing?.clock(clock, now);
    state.first.noteTime(now);
    return now;
  };

  /** Writes a time for the guest; other clocks than these two are not offered. */
  const answer = (id: number, at: number, ns: (clock: Clock) => bigint): number => {
    if (!isClock(id)) return ERRNO.inval;
    if (!guest.holds(at, 8)) return ERRNO.fault;
    guest.view.setBigUint64(at >>> 0, ns(id), true);
    return ERRNO.success;
  };

  return {
    /** https://github.com/WebAssembly/WASI/blob/main/legacy/preview1/docs.md#clock_res_get */
    clock_res_get: (id: number, at: number) =>
      answer(id, at, clock => (clock === CLOCK.realtime ? NS_PER_MS : MONOTONIC_GRAIN_NS)),

    /** https://github.com/WebAssembly/WASI/blob/main/legacy/preview1/docs.md#clock_time_get */
    clock_time_get: (id: number, _precision: bigint, at: number) => answer(id, at, drawnTime),
  };
}
