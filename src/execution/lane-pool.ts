import os from 'node:os';
import { performance } from 'node:perf_hooks';
import { MessageChannel } from 'node:worker_threads';
import type { CallArea } from '../abi/call-area.ts';
import { isMarked, markAllLanes, silenceBell, sleepUnlessMarked, takeMarks, wantBell } from '../abi/doorbell.ts';
import type { LaneTask } from '../abi/lane-messages.ts';
import { BELL_BITS, CALL_STATE } from '../abi/shared-layout.ts';
import { LIMITS } from '../base/limits.ts';
import { Lane, type LanePoolOptions } from './lane.ts';
import { type LaneThreads, makeLaneThreads } from './lane-threads.ts';

/** Delay between starts of replacement threads: eight at once take 200 to 350 ms, one 25 (docs/RATIONALE.md). */
const START_SPACING_MS = 100;
/** Longest wait at closing for threads that are loading. */
const LOADING_MS_MAX = 5000;
/** How long the main thread spins for the next call of an execution it has just answered, before it sleeps. */
const NEXT_CALL_SPIN_MS = 0.03;
/** How long a lane spins for an answer before it sleeps: about the time of one query. */
const SPIN_MS = 0.3;

/**
 * The threads that run plugins. Piscina owns them; each runs one long task, a lane, that takes one execution at a time
 * from the run queues. The main thread wakes a lane only when no unblocked lane is awake: waking costs about 40 us.
 */
export class LanePool {
  readonly #options: LanePoolOptions;
  readonly #words: Int32Array;
  readonly #pool: LaneThreads;
  readonly #lanes: Lane[];
  readonly #hot = Math.max(1, os.availableParallelism() - 1);
  /** Number of lanes in use; the places after them are spare. */
  #started = 0;
  #nextStartAt = 0;
  #closing = false;
  #drainSoon = false;
  readonly #timers = new Set<NodeJS.Timeout>();

  constructor(options: LanePoolOptions) {
    this.#options = options;
    this.#words = options.views.words;
    this.#pool = makeLaneThreads(options.laneFile);
    this.#lanes = Array.from({ length: LIMITS.lanesMax }, (_, index) => new Lane(options.views, index));
    wantBell(this.#words);
  }

  /** Starts the first lane; each of the others starts when the one before is ready. */
  start(): void {
    this.#startNext();
  }

  /** Starts lanes one at a time: threads that load together slow each other down and delay the first execution. */
  #startNext(): void {
    if (this.#closing || this.#started >= this.#lanes.length) return;
    this.#start(this.#lanes[this.#started++]!);
  }

  #startSpaced(lane: Lane): void {
    if (this.#closing) return;
    const now = performance.now();
    const due = Math.max(now, this.#nextStartAt);
    this.#nextStartAt = due + START_SPACING_MS;
    if (due === now) return this.#start(lane);
    const timer = setTimeout(() => {
      this.#timers.delete(timer);
      if (!this.#closing) this.#start(lane);
    }, due - now);
    this.#timers.add(timer);
  }

  #start(lane: Lane): void {
    const bell = new MessageChannel();
    const data = new MessageChannel();
    const abort = new AbortController();
    const generation = lane.begin({ abort, bell: bell.port1, data: data.port1 });
    bell.port1.on('message', () => this.drain());
    const [seconds, nanos] = process.hrtime();
    const task: LaneTask = {
      memory: this.#options.memory,
      lane: lane.index,
      bell: bell.port2,
      data: data.port2,
      clockOffsetMs: performance.now() - (seconds * 1000 + nanos / 1e6),
      recycle: this.#options.recycle,
      warmBytesMax: this.#options.warmBytesMax,
      dropWithinMs: this.#options.dropWithinMs,
      // With one processor, spinning would keep the thread that must answer from running.
      spinMs: os.availableParallelism() > 1 ? SPIN_MS : 0,
      noteFile: this.#options.noteFile,
    };
    const over = (error?: unknown): void => {
      if (lane.generation !== generation) return;
      if (!abort.signal.aborted && !this.#closing && !lane.words.isRetiring && error !== undefined)
        this.#options.onThreadError(error);
      // Piscina's promise rejects before the thread has exited, and the thread's memory is free only after that.
      lane.gone.then(() => this.#ended(lane, generation));
    };
    this.#pool.run(task, { transferList: [bell.port2, data.port2], signal: abort.signal }).then(() => over(), over);
  }

  #ended(lane: Lane, generation: number): void {
    if (lane.generation !== generation) return;
    this.#drainLane(lane);
    const { cell, wasKilled } = lane.end();
    this.#options.events.ended(cell, lane.words.queue, lane.index);
    // Kills come in bursts, so their replacements are spaced; a lane that retired is replaced at once.
    if (wasKilled) this.#startSpaced(lane);
    else if (!this.#closing) this.#start(lane);
  }

  /**
   * Schedules a look at the lanes after the sockets were read. Until then no lane needs to ring, and one look serves
   * all requests of an event-loop turn.
   */
  drainSoon(): void {
    if (this.#drainSoon) return;
    this.#drainSoon = true;
    silenceBell(this.#words);
    setImmediate(() => {
      this.#drainSoon = false;
      this.drain();
    });
  }

  /**
   * Spins for a moment, watching the lanes: an execution that got its answer usually makes its next call, or ends,
   * within microseconds, while sleeping and being woken costs about 40. Worth it only while nothing else waits for this
   * thread.
   */
  spinForNextCall(): void {
    silenceBell(this.#words);
    const until = performance.now() + NEXT_CALL_SPIN_MS;
    while (!isMarked(this.#words) && performance.now() < until);
    this.drain();
  }

  /** Serves the lanes that have something until none has, then asks for a doorbell message. */
  drain(): void {
    for (;;) {
      const lanes = takeMarks(this.#words);
      if (lanes === 0 && sleepUnlessMarked(this.#words)) return;
      for (let rest = lanes; rest !== 0; rest &= rest - 1) {
        const bit = 31 - Math.clz32(rest & -rest);
        for (let k = bit; k < this.#started; k += BELL_BITS) this.#drainLane(this.#lanes[k]!);
      }
    }
  }

  /** Looks at every lane, even at one that has not rung: its thread may have ended before it could. */
  drainAll(): void {
    markAllLanes(this.#words);
    this.drain();
  }

  #drainLane(lane: Lane): void {
    const { callArea, words } = lane;
    const { events } = this.#options;
    if (lane.noteReport() && this.#started < this.#options.lanes) this.#startNext();
    // The lane posted the outcome of its last execution before this call, so that message must be taken from the data
    // port first.
    const asked = callArea.state === CALL_STATE.asked;
    for (let cell = words.takeCompleted(); cell >= 0; cell = words.takeCompleted()) events.completed(cell, lane.index);
    if (!asked) return;
    callArea.serve();
    events.asked(lane.index);
  }

  /** Number of lanes that are awake, not blocked in a host call and not running a long execution. */
  #ready(enough: number): number {
    let n = 0;
    for (let k = 0; k < this.#started; k++) if (this.#lanes[k]!.isReady && ++n >= enough) return n;
    return n;
  }

  /** Wakes a lane if no other would take the waiting work. `depth` is the number of executions in flight. */
  wakeFor(depth: number): void {
    const ready = this.#ready(this.#hot);
    if (ready === 0 || (ready < this.#hot && depth > 8 * ready)) this.#wakeOne();
  }

  /**
   * Called when work waits although no lane is ready. Wakes a lane, or starts another thread when every thread is
   * blocked or runs a long execution, so that plugins that sleep in all their slots do not delay the others.
   */
  wakeOrGrow(depth: number): void {
    const ready = this.#ready(this.#hot);
    if (ready > 0 || this.#wakeOne()) {
      if (ready > 0 && ready < this.#hot && depth > 8 * ready) this.#wakeOne();
      return;
    }
    if (!this.#lanes.some(l => l.state === 'starting')) this.#startNext();
  }

  /** Wakes one sleeping lane. @returns whether there was one */
  #wakeOne(): boolean {
    for (let k = 0; k < this.#started; k++) if (this.#lanes[k]!.words.wake()) return true;
    return false;
  }

  /**
   * Checks all running executions: lowers the priority of those that use much processor time, and reports each cell
   * with the time it has run.
   *
   * @param running called for every lane that runs an execution; if it returns true, the thread is ended
   */
  sweep(running: (cell: number, ranMs: number, lane: number) => boolean): void {
    const now = performance.now();
    for (let k = 0; k < this.#started; k++) {
      const lane = this.#lanes[k]!;
      const seen = lane.look(now);
      if (seen !== null && running(seen.cell, seen.ranMs, lane.index)) lane.kill(seen.cell, this.#pool.threads);
    }
  }

  /** Asks every lane to give up the memory it keeps for later executions. */
  giveUpMemory(): void {
    for (let k = 0; k < this.#started; k++) {
      const { words } = this.#lanes[k]!;
      words.askToGiveUp();
      words.wake();
    }
  }

  /** Memory that the running execution of a lane has touched, in KiB; 0 for a short execution. */
  touchedKib(index: number): number {
    return this.#lanes[index]!.touchedKib;
  }

  /** Whether a thread is being ended, so that its memory is not free yet. */
  get killing(): boolean {
    return this.#lanes.some(l => l.state === 'killed');
  }

  generationOf(lane: number): number {
    return this.#lanes[lane]!.generation;
  }

  callAreaOf(lane: number): CallArea {
    return this.#lanes[lane]!.callArea;
  }

  /** Cell of the execution that a lane runs, or -1. */
  cellOf(lane: number): number {
    return this.#lanes[lane]!.words.cell;
  }

  post(lane: number, message: unknown, transfer: ArrayBuffer[] = []): void {
    this.#lanes[lane]!.post(message, transfer);
  }

  /** Takes the message that the lane posted before it set the word the main thread has just read. */
  receive(lane: number): unknown {
    return this.#lanes[lane]!.receive();
  }

  /** Number of lanes whose thread is ready. */
  get running(): number {
    return this.#lanes.filter(l => !l.words.isOff).length;
  }

  async close(): Promise<void> {
    this.#closing = true;
    for (const timer of this.#timers) clearTimeout(timer);
    const until = performance.now() + LOADING_MS_MAX;
    while (this.#lanes.some(l => l.isLoading) && performance.now() < until)
      await new Promise(resolve => setTimeout(resolve, 5));
    for (const lane of this.#lanes) lane.closePorts();
    await this.#pool.destroy();
  }
}
