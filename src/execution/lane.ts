import type { MessagePort } from 'node:worker_threads';
import { CallArea } from '../abi/call-area.ts';
import { LaneWords } from '../abi/lane-words.ts';
import type { SharedViews } from '../abi/shared-layout.ts';
import { cpuMs, mayRaisePriority, setThreadPriority } from './linux-thread.ts';

/** A lane whose execution uses more processor time than this gets a lower priority (docs/RATIONALE.md). */
const DEMOTE_MS = 8;
/**
 * The same where a priority cannot be raised again: lowering then costs a new thread, about 25 ms of processor time.
 */
const DEMOTE_FOR_GOOD_MS = 200;
const NICE_LOWEST = 19;
const canRaise = mayRaisePriority();

/** The main thread's state of one lane. */
export type Lane = {
  index: number;
  /** Its part of the memory it shares with the main thread. */
  words: LaneWords;
  callArea: CallArea;
  /** Grows with every thread of this lane; an answer for an older thread is dropped. */
  generation: number;
  abort: AbortController | null;
  bell: MessagePort | null;
  data: MessagePort | null;
  /** Its thread was started and has not yet reported that it is ready. */
  starting: boolean;
  sequence: number;
  runningSince: number;
  stuck: boolean;
  demoted: boolean;
  /** When the processor time of the running execution was last read, and its value; 0 = not read yet. */
  cpuAt: number;
  cpuMs: number;
  /** Memory the thread had touched when its running execution first counted as long, in KiB; -1 = not read yet. */
  touchedKib: number;
  /** Cell of the execution that was killed with this thread, or -1. */
  killedCell: number;
  /** Resolves when the ended thread has exited; set by a kill. */
  gone: Promise<void> | null;
};

export type LaneEvents = {
  /** A lane finished the execution in a cell; it has already lowered the running count of the queue. */
  completed(cell: number, lane: number): void;
  /** The thread has exited; `cell` is the cell it held, or -1. */
  ended(cell: number, queue: number, lane: number): void;
  /** The lane has made a host call and waits for the answer. */
  asked(lane: number): void;
};

export type LanePoolOptions = {
  memory: SharedArrayBuffer;
  views: SharedViews;
  /** Threads started at the beginning; more are started when all of them are blocked and work waits. */
  lanes: number;
  recycle: boolean;
  warmBytesMax: number;
  laneFile: string;
  noteFile: string | null;
  events: LaneEvents;
  /** Called, for the log, when a thread ends because of an error. */
  onThreadError(error: unknown): void;
};

export function makeLane(views: SharedViews, index: number): Lane {
  return {
    index,
    words: new LaneWords(views.words, index),
    callArea: new CallArea(views, index),
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
    killedCell: -1,
    gone: null,
  };
}

/**
 * Lowers the priority of a lane whose execution uses much processor time. Measures processor time, not elapsed time,
 * because a lane that only waited must not get a lower priority.
 */
export function demoteIfBurning(lane: Lane, now: number): void {
  const thread = lane.words.linuxThreadId;
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

/** Restores the priority of a lane; false when this process may not raise priorities. */
export function restorePriority(lane: Lane): boolean {
  lane.demoted = false;
  return setThreadPriority(lane.words.linuxThreadId, 0);
}
