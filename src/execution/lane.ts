import type { MessagePort } from 'node:worker_threads';
import type { SharedViews } from '../abi/shared-layout.ts';
import { cpuMs, mayRaisePriority, setThreadPriority } from './lane-thread.ts';

/** A lane whose execution burns for longer yields the processor to the others (docs/RATIONALE.md). */
const DEMOTE_MS = 8;
/** Where a priority cannot be raised again, lowering costs the thread, about 25 ms of processor time: only a long burner is worth it. */
const DEMOTE_FOR_GOOD_MS = 200;
const NICE_LOWEST = 19;
const canRaise = mayRaisePriority();

/** What main knows of one lane. */
export type Lane = {
  index: number;
  /** Grows with every thread of this lane; an answer for an older one is dropped. */
  generation: number;
  abort: AbortController | null;
  bell: MessagePort | null;
  data: MessagePort | null;
  /** Its thread was started and has not yet said that it is up. */
  starting: boolean;
  sequence: number;
  runningSince: number;
  stuck: boolean;
  demoted: boolean;
  /** When the processor time of the running execution was last read, and what it was; 0 = not yet. */
  cpuAt: number;
  cpuMs: number;
  /** Memory the thread had touched when its running execution was first seen as long, in KiB; -1 = not yet. */
  touchedKib: number;
  /** Slot that was given up with this thread, or -1. */
  killedSlot: number;
  /** Resolves when the ended thread has exited; set by a kill. */
  gone: Promise<void> | null;
};

export type LaneEvents = {
  /** A lane finished the execution in a slot. Its queue's running count is already lowered. */
  completed(slot: number, lane: number): void;
  /** The thread is gone; `slot` is what it held, or -1. */
  ended(slot: number, queue: number, lane: number): void;
  /** The lane waits for an answer. */
  asked(lane: number): void;
};

export type LanePoolOptions = {
  memory: SharedArrayBuffer;
  views: SharedViews;
  /** Threads that are started at once; more come when all of them are blocked and work waits. */
  lanes: number;
  recycle: boolean;
  laneFile: string;
  noteFile: string | null;
  addedHeaders: readonly string[];
  events: LaneEvents;
  /** Told of threads that end by an error of their own, for the log. */
  onThreadError(error: unknown): void;
};

export function makeLane(index: number): Lane {
  return {
    index,
    generation: 0,
    abort: null,
    bell: null,
    data: null,
    starting: false,
    sequence: -1,
    runningSince: 0,
    stuck: false,
    demoted: false,
    cpuAt: 0,
    cpuMs: 0,
    touchedKib: -1,
    killedSlot: -1,
    gone: null,
  };
}

/**
 * Lowers the priority of a lane whose execution burns. Processor time counts, not the clock: a lane that was only kept
 * waiting must not be put behind the others.
 */
export function demoteIfBurning(lane: Lane, thread: number, now: number): void {
  const patience = canRaise ? DEMOTE_MS : DEMOTE_FOR_GOOD_MS;
  if (lane.cpuAt !== 0 && now - lane.cpuAt < patience) return;
  const cpuNowMs = cpuMs(thread);
  if (lane.cpuAt === 0) {
    lane.cpuAt = now;
    lane.cpuMs = cpuNowMs;
    return;
  }
  const burnt = cpuNowMs - lane.cpuMs;
  lane.cpuAt = now;
  lane.cpuMs = cpuNowMs;
  if (burnt < patience / 4) return;
  lane.demoted = true;
  setThreadPriority(thread, NICE_LOWEST);
}

/** Gives a lane its priority back after a burning execution; false when this process may not. */
export function restorePriority(lane: Lane, thread: number): boolean {
  lane.demoted = false;
  return setThreadPriority(thread, 0);
}
