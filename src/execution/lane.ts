import { type MessagePort, receiveMessageOnPort, type Worker } from 'node:worker_threads';
import { CallArea } from '../abi/call-area.ts';
import { LaneWords } from '../abi/lane-words.ts';
import { CALL_STATE, type SharedViews } from '../abi/shared-layout.ts';
import { cpuMs, mayRaisePriority, setThreadPriority, touchedKib } from './linux-thread.ts';

/** A lane that has run one execution for longer does not count as awake. */
const STUCK_MS = 2;
/** The memory of an execution is watched after this time, even if it is seen in host calls alone. */
const WAITING_MS = 20;

/** A lane whose execution uses more processor time than this gets a lower priority (docs/RATIONALE.md). */
const DEMOTE_MS = 8;
/** The same bound where a priority cannot be raised again: lowering then costs a new thread, about 25 ms of processor time. */
const DEMOTE_FOR_GOOD_MS = 200;
const NICE_LOWEST = 19;
const canRaise = mayRaisePriority();

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
  dropWithinMs: number;
  laneFile: string;
  noteFile: string | null;
  events: LaneEvents;
  /** Called, for the log, when a thread ends because of an error. */
  onThreadError(error: unknown): void;
};

/** What the main thread holds of a thread. */
export type LaneThread = { abort: AbortController; bell: MessagePort; data: MessagePort };

/**
 * The thread of a lane: there is none, it loads, it takes executions, or it is being ended together with the execution it
 * runs.
 */
export type LaneState = 'off' | 'starting' | 'up' | 'killed';

/** What was seen of the execution that a lane runs, or of none. */
const unseen = (now: number) => ({
  since: now,
  /** Whether it runs for so long that the lane does not count as awake. */
  isStuck: false,
  /** When its processor time was last read, and its value; 0: not read yet. */
  cpuAt: 0,
  cpuMs: 0,
  /** Memory the thread had touched when the execution first counted as long, in KiB; -1: not read yet. */
  touchedKib: -1,
});

/** One lane, as the main thread sees it. */
export class Lane {
  readonly index: number;
  /** Its part of the memory it shares with the main thread. */
  readonly words: LaneWords;
  readonly callArea: CallArea;
  /** Grows with every thread of this lane; an answer for an older thread is dropped. */
  generation = 0;
  #state: LaneState = 'off';
  #thread: LaneThread | null = null;
  /** Resolves when the thread that was killed has exited. */
  #gone: Promise<void> = Promise.resolve();
  /** Number of the execution that was seen last, or -1. */
  #sequence = -1;
  #seen = unseen(0);
  #isDemoted = false;

  constructor(views: SharedViews, index: number) {
    this.index = index;
    this.words = new LaneWords(views.words, index);
    this.callArea = new CallArea(views, index);
    this.words.turnOff();
  }

  get state(): LaneState {
    return this.#state;
  }

  /** @returns the generation of the thread that begins */
  begin(thread: LaneThread): number {
    this.words.reset();
    this.#thread = thread;
    this.#state = 'starting';
    this.#gone = Promise.resolve();
    this.#sequence = -1;
    this.#seen = unseen(0);
    this.#isDemoted = false;
    return ++this.generation;
  }

  /** Notes that the thread has reported. @returns whether it was starting until now */
  noteReport(): boolean {
    if (this.#state !== 'starting' || this.words.isOff) return false;
    this.#state = 'up';
    return true;
  }

  /** The thread has exited. @returns the cell it held, or -1, and whether it was killed */
  end(): { cell: number; wasKilled: boolean } {
    const wasKilled = this.#state === 'killed';
    const cell = this.words.takeCell();
    this.words.turnOff();
    this.closePorts();
    this.#state = 'off';
    this.#thread = null;
    this.generation++;
    return { cell, wasKilled };
  }

  /** Resolves when the memory of a thread that was killed is free. */
  get gone(): Promise<void> {
    return this.#gone;
  }

  /** Whether the thread is loading its modules: Node aborts the process if such a thread is ended. */
  get isLoading(): boolean {
    return (this.#state === 'starting' || this.#state === 'up') && this.words.threadId === 0;
  }

  /** Whether it takes work now: awake, not blocked in a host call, not running a long execution. */
  get isReady(): boolean {
    return this.words.isAwake && !this.#seen.isStuck && this.callArea.state === CALL_STATE.idle;
  }

  /** Memory that the running execution has touched, in KiB; 0 for a short execution. */
  get touchedKib(): number {
    const before = this.#seen.touchedKib;
    return before < 0 ? 0 : Math.max(0, touchedKib(this.words.linuxThreadId) - before);
  }

  post(message: unknown, transfer: ArrayBuffer[]): void {
    this.#thread?.data.postMessage(message, transfer);
  }

  /** Takes the message that the lane posted before it set the word the main thread has just read. */
  receive(): unknown {
    return this.#thread === null ? undefined : receiveMessageOnPort(this.#thread.data)?.message;
  }

  closePorts(): void {
    this.#thread?.bell.close();
    this.#thread?.data.close();
  }

  /**
   * Looks at the execution it runs, and lowers the priority of one that uses much processor time.
   *
   * @returns its cell and for how long it was seen running; null when there is none, or it is being ended
   */
  look(now: number): { cell: number; ranMs: number } | null {
    // The cell first: the lane writes the sequence before it, so a new cell never comes with an old sequence.
    const { cell } = this.words;
    const { sequence } = this.words;
    if (cell < 0 || sequence !== this.#sequence) {
      if (this.#isDemoted && !this.#restorePriority()) this.retire();
      this.#sequence = cell < 0 ? -1 : sequence;
      this.#seen = unseen(now);
      if (cell < 0) return null;
    }
    if (this.#state === 'killed') return null;
    const seen = this.#seen;
    const ranMs = now - seen.since;
    const isBlocked = this.callArea.state !== CALL_STATE.idle;
    if (ranMs > STUCK_MS) seen.isStuck = true;
    // Most executions that are seen here wait for a host call: files of /proc are read for those that do work, and for
    // those that wait so often that they are never seen at it.
    if (ranMs > (isBlocked ? WAITING_MS : STUCK_MS) && seen.touchedKib < 0)
      seen.touchedKib = touchedKib(this.words.linuxThreadId);
    if (ranMs > STUCK_MS && !isBlocked && !this.#isDemoted) this.#demoteIfBurning(now);
    return { cell, ranMs };
  }

  /** Asks the lane to end its thread after the current execution. */
  retire(): void {
    this.words.retire();
    this.words.wake();
  }

  /** Ends the thread, unless the execution in `cell` has ended by itself. @param threads those of the pool */
  kill(cell: number, threads: readonly Worker[]): void {
    // If the execution ends by itself right now, the lane must not take another one that would be killed with it.
    this.words.retire();
    // The execution has ended by itself meanwhile, so the thread retires after its current one instead.
    if (this.words.cell !== cell) return;
    this.#state = 'killed';
    const { threadId } = this.words;
    const worker = threads.find(t => t.threadId === threadId);
    if (worker !== undefined) this.#gone = new Promise(resolve => worker.once('exit', () => resolve()));
    this.words.turnOff();
    this.#thread?.abort.abort();
  }

  /**
   * Lowers the priority if the execution uses much processor time. Measures processor time, not elapsed time, because a
   * lane that only waited must not get a lower priority.
   */
  #demoteIfBurning(now: number): void {
    const seen = this.#seen;
    const thread = this.words.linuxThreadId;
    const patience = canRaise ? DEMOTE_MS : DEMOTE_FOR_GOOD_MS;
    if (seen.cpuAt !== 0 && now - seen.cpuAt < patience) return;
    const burntMs = cpuMs(thread) - seen.cpuMs;
    const isFirst = seen.cpuAt === 0;
    seen.cpuAt = now;
    seen.cpuMs += burntMs;
    if (isFirst || burntMs < patience / 4) return;
    this.#isDemoted = true;
    setThreadPriority(thread, NICE_LOWEST);
  }

  /** @returns false when this process may not raise priorities */
  #restorePriority(): boolean {
    this.#isDemoted = false;
    return setThreadPriority(this.words.linuxThreadId, 0);
  }
}
