import { performance } from 'node:perf_hooks';
import { isAsked, type LargeInput, readOutcome, runMsOf, writeInput } from '../abi/cell-codec.ts';
import { type ExecutionOutcome, type OutcomeKind, withoutAnswer } from '../abi/execution-outcome.ts';
import { offerFirstReads, readQuestion, writeFirstAnswer } from '../abi/first-reads.ts';
import type { HostFunction } from '../abi/host-functions.ts';
import type { HostArgument, HostResult } from '../abi/host-result.ts';
import type { LargeOutput, LoadedModule } from '../abi/lane-messages.ts';
import { LogArea } from '../abi/log-area.ts';
import { CELL_COUNT, SHARED_BYTES, type SharedViews, viewsOf } from '../abi/shared-layout.ts';
import { LIMITS } from '../base/limits.ts';
import { HostCallPort } from './host-call-port.ts';
import { LanePool } from './lane-pool.ts';
import { prepareLaneSource } from './lane-source.ts';
import type { MemoryBudget } from './memory-budget.ts';
import { NestedCalls } from './nested-calls.ts';
import { type FullLine, RunQueues, waitingLimits } from './run-queues.ts';
import type { Slots, SlotUser } from './slot-leases.ts';
import type { SlotCount } from './slot-messages.ts';

/** One execution to run: plain data and one callback. `C` is the context that host functions get of it. */
export type Execution<C> = {
  pluginId: string;
  /** Number of the installed version; names the module. */
  moduleId: number;
  entry: number;
  /** Event JSON. */
  event: string;
  body: Uint8Array | null;
  /** Absolute, in ms of `performance.now()` of this thread. */
  deadline: number;
  context: C;
  /** Whether what it draws is kept for its recording. */
  isRecorded?: boolean;
  /** The plugins whose executions wait for this one, outermost first; empty unless a plugin called this one. */
  callers: readonly string[];
  /** The key it is counted under (`callerKey`); the callers of a plugin share its slots. */
  caller: string;
  done(outcome: ExecutionOutcome): void;
};

export type ExecutorOptions<C> = {
  lanes: number;
  recycle: boolean;
  /** Resident memory above which the execution using the most memory is stopped. */
  memory: MemoryBudget;
  /** What this process may use of each plugin's slots. */
  slots: Slots;
  /** Number of serving processes of this host, which share its limits. */
  processes: number;
  /** Longest time of an execution, waiting included. */
  timeoutMs: number;
  /** How long a run may have taken, in ms, that is dropped for its first read. */
  dropWithinMs?: number;
  /** Directory for the lane's stripped sources. */
  cacheDirectory: string;
  noteFile: string | null;
  dispatch(row: HostFunction, args: HostArgument[], execution: Execution<C>): HostResult | Promise<HostResult>;
  loadModule(id: number): Promise<LoadedModule>;
  /** Called for each admitted execution with its module. */
  useModule(id: number): void;
  /** Called with the outcome of each admitted execution. */
  over(context: C, outcome: ExecutionOutcome): void;
  /** Called once for each admitted execution, when nothing of it runs any more. */
  ended(context: C, how: 'ended' | 'killed'): void;
  onError(error: unknown, operation: string): void;
};

/** What a lane may keep for later executions: all lanes there can be together at most a quarter of the memory budget. */
const warmBytesMax = (budgetBytes: number): number =>
  budgetBytes === 0 ? LIMITS.warmBytesPerLane : Math.min(LIMITS.warmBytesPerLane, budgetBytes / 4 / LIMITS.lanesMax);

/** To run a longer one again would cost more than to put its thread to sleep and wake it. */
const DROP_WITHIN_MS = 0.1;
const SWEEP_MS = 2;
const MEMORY_CHECK_MS = 20;
/** How long lanes have to give up what they keep before an execution is stopped, and how soon they are asked again. */
const GIVE_UP_MS = 50;
const GIVE_UP_AGAIN_MS = 1000;
const FULL: Record<FullLine, string> = {
  waitingPerPluginMax: 'too many requests to this plugin are waiting',
  waitingPerCallerMax: 'too many requests of this caller to this plugin are waiting',
  executionsInFlightMax: 'too many requests to this host are waiting',
};
const EMPTY = new Uint8Array(0);

type Admitted<C> = {
  execution: Execution<C>;
  admittedAt: number;
  event: Uint8Array | null;
  /** When its last dropped run began, and what such runs and their reads took, in ms. */
  firstAt: number;
  firstMs: number;
};

/**
 * Runs executions: takes a cell, lets a lane run it, reads the outcome, releases the cell. Plugin code runs in no other
 * way.
 */
export class Executor<C> implements SlotUser {
  readonly #options: ExecutorOptions<C>;
  readonly #views: SharedViews;
  readonly #queues: RunQueues;
  readonly #pool: LanePool;
  readonly #port: HostCallPort;
  /** Cells whose first read is done. */
  readonly #reading = new Set<number>();
  readonly #nested = new NestedCalls();
  readonly #admitted: Array<Admitted<C> | undefined> = new Array(CELL_COUNT).fill(undefined);
  #sweep: NodeJS.Timeout | null = null;
  #memoryCheckAt = 0;
  #giveUpAt = 0;
  #draining = false;
  #idle: (() => void) | null = null;

  constructor(options: ExecutorOptions<C>) {
    this.#options = options;
    const memory = new SharedArrayBuffer(SHARED_BYTES);
    this.#views = viewsOf(memory);
    this.#queues = new RunQueues(this.#views, options.slots, waitingLimits(options.processes));
    const port = new HostCallPort({
      dispatch: (row, args, cell) => options.dispatch(row, args, this.#of(cell).execution),
      loadModule: id => options.loadModule(id),
      largeInput: cell => this.#largeInput(cell),
      onError: (error, operation) => options.onError(error, operation),
      answered: () => {
        if (this.#queues.inFlight === 1) this.#pool.spinForNextCall();
      },
    });
    this.#pool = new LanePool({
      memory,
      views: this.#views,
      lanes: options.lanes,
      recycle: options.recycle,
      warmBytesMax: warmBytesMax(options.memory.share),
      dropWithinMs: options.dropWithinMs ?? DROP_WITHIN_MS,
      laneFile: prepareLaneSource(options.cacheDirectory, 'run-plugin'),
      noteFile: options.noteFile,
      onThreadError: error => options.onError(error, 'lane'),
      events: {
        completed: (cell, lane) => this.#completed(cell, lane),
        ended: (cell, queue) => this.#threadEnded(cell, queue),
        asked: lane => {
          port.serve(lane);
          // The lane that asked is blocked now; another lane must take the queued work.
          if (this.#queues.hasRunnable()) this.#pool.wakeFor(this.#queues.inFlight);
        },
      },
    });
    port.attach(this.#pool);
    this.#port = port;
  }

  start(): void {
    this.#pool.start();
  }

  /** Lets the lanes give up what they keep for later executions. */
  giveUpMemory(): void {
    this.#pool.giveUpMemory();
  }

  /** Called when this process gets slots of a plugin, or shall use fewer. */
  useSlots(pluginId: string, slots: SlotCount, isWatched: boolean): boolean {
    const fits = this.#queues.useSlots(pluginId, slots, isWatched);
    if (this.#queues.hasRunnable()) this.#pool.wakeFor(this.#queues.inFlight);
    return fits;
  }

  callersOf = (pluginId: string): string[] => this.#queues.callersOf(pluginId);
  active = (): Iterable<readonly [pluginId: string, inFlight: number]> => this.#queues.active();

  get inFlight(): number {
    return this.#queues.inFlight;
  }

  get lanesRunning(): number {
    return this.#pool.running;
  }

  /** Admits one execution; its callback is called exactly once, later. */
  execute(execution: Execution<C>): void {
    const { caller, callers, pluginId } = execution;
    const isNested = callers.length > 0;
    if (this.#draining && !isNested) return this.#refuse(execution, 'draining', 'the host is shutting down');
    if (isNested) {
      if (this.#nested.isFull) return this.#refuse(execution, 'queue_full', 'too many calls of plugins are under way');
      if (this.#nested.wouldStarve({ callers, to: pluginId, caller }, this.#queues))
        return this.#refuse(
          execution,
          'no_slot',
          'all slots of the called plugin wait for slots of the calling plugin',
        );
    }
    const now = performance.now();
    const cell = this.#queues.acquire(pluginId, caller, isNested, now);
    if (typeof cell !== 'number') return this.#refuseFull(execution, cell, now);
    this.#options.useModule(execution.moduleId);
    const event = writeInput(this.#views, cell, execution);
    this.#admitted[cell] = { execution, admittedAt: now, event, firstAt: 0, firstMs: 0 };
    // One alone is faster when its lane waits for the answer.
    const isPlain = !isNested && event === null && execution.isRecorded !== true;
    offerFirstReads(this.#views, cell, isPlain && this.#queues.inFlight > 1);
    if (isNested) this.#nested.add(cell, { callers, to: pluginId, caller });
    this.#pool.drainSoon();
    this.#queues.push(cell);
    this.#pool.wakeFor(this.#queues.inFlight);
    this.#sweep ??= setInterval(() => this.#look(), SWEEP_MS);
  }

  #refuse(execution: Execution<C>, kind: OutcomeKind, failure: string): void {
    execution.done(withoutAnswer(kind, failure, 0, 0));
  }

  #refuseFull(execution: Execution<C>, limit: FullLine, now: number): void {
    const { processes } = this.#options;
    const most = `at most ${waitingLimits(processes)[limit]} (${limit}${processes > 1 ? `, in each of ${processes} processes` : ''})`;
    const outcome = withoutAnswer('queue_full', `${FULL[limit]}: ${most}`, 0, 0);
    execution.done({ ...outcome, retryAfterSeconds: this.#retryAfter(execution, now) });
  }

  /** Whole seconds until one more execution of the same caller can be admitted. */
  #retryAfter({ caller, pluginId }: Execution<C>, now: number): number {
    return Math.max(1, Math.ceil(this.#queues.roomInMs(pluginId, caller, now, this.#options.timeoutMs) / 1000));
  }

  #of(cell: number): Admitted<C> {
    const admitted = this.#admitted[cell];
    if (admitted === undefined) throw new Error(`cell ${cell} holds no execution`);
    return admitted;
  }

  #largeInput(cell: number): LargeInput {
    const { event, execution } = this.#of(cell);
    return { event: event ?? EMPTY, body: execution.body ?? EMPTY };
  }

  /** Called when a lane has finished an execution: reads the outcome, answers the caller, frees the cell. */
  #completed(cell: number, lane: number): void {
    const admitted = this.#of(cell);
    const answered = this.#answered[cell] === 1;
    if (isAsked(this.#views, cell)) {
      if (answered) this.#free(cell, runMsOf(this.#views, cell));
      else this.#readFirst(cell, admitted);
      return;
    }
    const { admittedAt, execution, firstMs } = admitted;
    const sinceAdmittedMs = performance.now() - admittedAt;
    const receive = (): LargeOutput | undefined => this.#pool.receive(lane) as LargeOutput | undefined;
    const outcome = readOutcome(this.#views, cell, sinceAdmittedMs, receive);
    const heldSlotMs = outcome.runMs;
    outcome.runMs += firstMs;
    outcome.queueWaitMs = Math.max(0, outcome.queueWaitMs - firstMs);
    if (!answered) this.#queues.noteInTime(cell);
    try {
      if (!answered) this.#answer(execution, outcome);
    } finally {
      this.#free(cell, heldSlotMs);
    }
  }

  /** Does the first read of an execution, and queues it again. */
  #readFirst(cell: number, admitted: Admitted<C>): void {
    admitted.firstAt = performance.now() - runMsOf(this.#views, cell);
    const { operation, text } = readQuestion(this.#views, cell);
    this.#reading.add(cell);
    if (this.#queues.beginReading(cell)) this.#pool.wakeFor(this.#queues.inFlight);
    this.#port.readFirst(cell, operation, text, result => {
      // It has been answered at its deadline, and the cell may hold another one.
      if (this.#admitted[cell] !== admitted) return;
      this.#reading.delete(cell);
      admitted.firstMs += performance.now() - admitted.firstAt;
      writeFirstAnswer(this.#views, cell, result);
      this.#pool.drainSoon();
      this.#queues.endReading(cell);
      this.#pool.wakeFor(this.#queues.inFlight);
    });
  }

  /** Answers the executions whose first read was not done before their deadline. */
  #endLateReads(now: number): void {
    for (const cell of this.#reading) {
      const { admittedAt, execution, firstAt, firstMs } = this.#of(cell);
      if (execution.deadline > now) continue;
      const ran = firstMs + now - firstAt;
      const wait = now - admittedAt - ran;
      if (wait <= ran) this.#queues.noteLate(cell, now);
      this.#free(cell, 0);
      this.#answer(execution, { ...lateOutcome(wait, ran, 0), retryAfterSeconds: this.#retryAfter(execution, now) });
    }
  }

  #answer(execution: Execution<C>, outcome: ExecutionOutcome): void {
    execution.done(outcome);
    this.#options.over(execution.context, outcome);
  }

  /** 1 for cells whose caller was answered before their thread had ended. */
  readonly #answered = new Uint8Array(CELL_COUNT);

  #free(cell: number, ranMs: number, how: 'ended' | 'killed' = 'ended'): void {
    const admitted = this.#admitted[cell];
    this.#admitted[cell] = undefined;
    this.#answered[cell] = 0;
    this.#reading.delete(cell);
    this.#nested.remove(cell);
    // All lanes that could take the newly admitted work may be asleep.
    if (this.#queues.release(cell, ranMs)) this.#pool.wakeFor(this.#queues.inFlight);
    if (admitted !== undefined) this.#options.ended(admitted.execution.context, how);
    if (this.#queues.inFlight > 0) return;
    this.#idle?.();
  }

  #threadEnded(cell: number, queue: number): void {
    if (cell < 0) return;
    const admitted = this.#admitted[cell];
    this.#queues.endRunning(queue);
    if (admitted === undefined) return;
    if (this.#answered[cell] === 0) {
      this.#answered[cell] = 1;
      const ran = performance.now() - admitted.admittedAt;
      const outcome = withoutAnswer('crashed', 'the thread that ran the plugin ended unexpectedly', 0, ran);
      this.#answer(admitted.execution, outcome);
    }
    this.#free(cell, performance.now() - admitted.admittedAt, 'killed');
    if (this.#queues.inFlight > 0) this.#pool.wakeFor(this.#queues.inFlight);
  }

  /**
   * Runs every 2 ms while anything is in flight: ends late executions, lowers priorities, enforces the memory budget.
   */
  #look(): void {
    if (this.#queues.inFlight === 0) {
      if (this.#sweep !== null) clearInterval(this.#sweep);
      this.#sweep = null;
      return;
    }
    const now = performance.now();
    this.#refuseLate(now);
    this.#endLateReads(now);
    // Before the look at who has eaten: a lane that ends now may run another plugin next.
    this.#pool.drainAll();
    const eater = this.#findEater(now);
    this.#pool.sweep((cell, lastMs, lane) => {
      const admitted = this.#admitted[cell];
      if (admitted === undefined || this.#answered[cell] === 1) return false;
      const ranMs = lastMs + admitted.firstMs;
      const late = admitted.execution.deadline <= now;
      if (!late && lane !== eater) return false;
      this.#answered[cell] = 1;
      const wait = Math.max(0, now - admitted.admittedAt - ranMs);
      if (late && wait <= ranMs) this.#queues.noteLate(cell, now);
      const outcome = late
        ? {
            ...lateOutcome(wait, ranMs, this.#pool.touchedKib(lane)),
            retryAfterSeconds: this.#retryAfter(admitted.execution, now),
          }
        : withoutAnswer(
            'memory_budget',
            "stopped because the host's memory budget was used up and this execution used the most memory",
            wait,
            ranMs,
          );
      this.#answer(admitted.execution, { ...outcome, log: new LogArea(this.#views, lane).read() });
      return true;
    });
    this.#queues.noteLacks();
    if (this.#queues.hasRunnable()) this.#pool.wakeOrGrow(this.#queues.inFlight);
  }

  /** Refuses the executions that waited until their deadline. */
  #refuseLate(now: number): void {
    const late: Array<Admitted<C>> = [];
    // Frees all cells first, so that `Retry-After` does not count the executions refused here.
    for (const cell of this.#queues.takeLate(k => this.#of(k).execution.deadline <= now)) {
      late.push(this.#of(cell));
      this.#free(cell, 0);
    }
    for (const { admittedAt, execution, firstMs } of late) {
      const wait = now - admittedAt - firstMs;
      // Where its first reads took longer than it waited, it is no slot that was lacking.
      const outcome =
        wait > firstMs
          ? withoutAnswer('no_slot', 'no slot was free before the deadline', wait, firstMs)
          : lateOutcome(wait, firstMs, 0);
      this.#answer(execution, { ...outcome, retryAfterSeconds: this.#retryAfter(execution, now) });
    }
  }

  /** The lane whose execution touched the most memory, if memory must be given up; otherwise -1. */
  #findEater(now: number): number {
    if (now < this.#memoryCheckAt) return -1;
    this.#memoryCheckAt = now + MEMORY_CHECK_MS;
    // The memory of an ended thread must be free before another thread is chosen.
    if (this.#pool.killing || !this.#options.memory.isExceeded) return -1;
    // Memory that is only kept for later goes first.
    if (now >= this.#giveUpAt) {
      this.#giveUpAt = now + GIVE_UP_AGAIN_MS;
      this.#memoryCheckAt = now + GIVE_UP_MS;
      this.giveUpMemory();
      return -1;
    }
    let eater = -1;
    let most = -1;
    this.#pool.sweep((_cell, _ranMs, lane) => {
      const touched = this.#pool.touchedKib(lane);
      if (touched > most) {
        most = touched;
        eater = lane;
      }
      return false;
    });
    return eater;
  }

  /** Refuses new executions and resolves when the running ones have ended. */
  async drain(): Promise<void> {
    this.#draining = true;
    if (this.#queues.inFlight > 0) await new Promise<void>(resolve => (this.#idle = resolve));
  }

  async close(): Promise<void> {
    if (this.#sweep !== null) clearInterval(this.#sweep);
    await this.#pool.close();
  }
}

/** Memory that an execution past its deadline must have taken for that to be the likely cause. */
const MUCH_KIB = 64 * 1024;

/**
 * The outcome of an execution past its deadline. If it waited longer than it ran, the lack of slots is the cause, not
 * the plugin.
 *
 * @param tookKib memory it has taken, KiB
 */
function lateOutcome(waitMs: number, ranMs: number, tookKib: number): ExecutionOutcome {
  if (waitMs > ranMs) {
    const why = `a slot was free only after ${Math.round(waitMs)} ms, too late to end in time`;
    return withoutAnswer('no_slot', why, waitMs, ranMs);
  }
  const [took, grows] =
    tookKib < MUCH_KIB
      ? ['', '']
      : [`, in which it took ${Math.round(tookKib / 1024)} MB of memory`, 'data that only grow, '];
  const why = `the execution was stopped at its deadline, after it had run for ${Math.round(ranMs)} ms${took}: look for ${grows}an endless loop, a wait, or a host call that takes long`;
  return { ...withoutAnswer('deadline', why, waitMs, ranMs), peakPages: Math.round(tookKib / PAGE_KIB) };
}

const PAGE_KIB = 64;
