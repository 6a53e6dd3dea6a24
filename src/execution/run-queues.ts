import {
  appendCell,
  endRunning,
  isQueued,
  isRunnable,
  limitOf,
  markQueue,
  type QueueMask,
  runningOf,
  setLimit,
  takeBackAll,
  takeBackWhile,
  unmarkQueue,
} from '../abi/run-queue.ts';
import { ACTIVE, CELL_COUNT, QUEUE_COUNT, type SharedViews, URGENT } from '../abi/shared-layout.ts';
import { LIMITS } from '../base/limits.ts';
import { ReusedEntries } from '../base/reused-entries.ts';
import { type Caller, PluginLine } from './plugin-line.ts';
import type { Slots } from './slot-leases.ts';
import type { SlotCount } from './slot-messages.ts';

/** The limit that refuses one more execution. */
export type FullLine = 'waitingPerPluginMax' | 'waitingPerCallerMax' | 'executionsInFlightMax';

export type WaitingLimits = Record<FullLine, number>;

/** How many executions may wait in a serving process; the processes of a host divide its limits. */
export const waitingLimits = (processes: number): WaitingLimits => ({
  waitingPerPluginMax: Math.ceil(LIMITS.waitingPerPluginMax / processes),
  waitingPerCallerMax: Math.ceil(LIMITS.waitingPerCallerMax / processes),
  executionsInFlightMax: Math.ceil(LIMITS.executionsInFlightMax / processes),
});

/**
 * The main thread's end of the run queues: hands out cells and pushes them into the rings the lanes take from, in the
 * order that the line of each plugin decides (`plugin-line`). A plugin has a shared queue only while it has work in
 * flight, so the lanes look only at active plugins, however many are installed.
 */
export class RunQueues {
  readonly #words: Int32Array;
  readonly #freeCells = Array.from({ length: CELL_COUNT - 1 }, (_, k) => CELL_COUNT - 2 - k);
  readonly #freeQueues = Array.from({ length: QUEUE_COUNT }, (_, k) => QUEUE_COUNT - 1 - k);
  readonly #lines = new ReusedEntries<PluginLine>(line => line.inFlight > 0);
  /** The lines of plugins with work in flight. */
  readonly #open: PluginLine[] = [];
  readonly #awaited = new Uint8Array(CELL_COUNT);
  /** 1 for cells that are in a ring, or that a lane has taken. */
  readonly #released = new Uint8Array(CELL_COUNT);
  readonly #lineOfCell: Array<PluginLine | undefined> = new Array(CELL_COUNT).fill(undefined);
  readonly #callerOfCell: Array<Caller | undefined> = new Array(CELL_COUNT).fill(undefined);
  /** Plugins that wait for a queue, in order. */
  readonly #waiting: PluginLine[] = [];
  /** Until when a caller of a plugin counts as one whose executions reach their deadline, the latest at the end. */
  readonly #lateUntil = new Map<string, number>();
  readonly #slots: Slots;
  readonly #limits: WaitingLimits;
  #inFlight = 0;

  /** @param slots what this process may use of each plugin's slots */
  constructor(views: SharedViews, slots: Slots, limits: WaitingLimits) {
    this.#words = views.words;
    this.#slots = slots;
    this.#limits = limits;
  }

  get inFlight(): number {
    return this.#inFlight;
  }

  /**
   * Takes a cell for an execution of a plugin.
   *
   * @param caller key under which the execution is counted
   * @param isAwaited whether another execution waits for it: lanes take from such queues first, otherwise waiting
   * executions could hold all threads
   * @param now monotonic time in ms
   * @returns the cell, or the limit that is reached
   */
  acquire(pluginId: string, caller: string, isAwaited: boolean, now: number): number | FullLine {
    const line = this.#lineFor(pluginId);
    if (line.inFlight >= this.#limits.waitingPerPluginMax) return 'waitingPerPluginMax';
    if (this.#inFlight >= this.#limits.executionsInFlightMax) return 'executionsInFlightMax';
    if (line.inFlight === 0) {
      line.open(now, this.#slots.countOf(pluginId), this.#slots.isWatched(pluginId));
      line.place = this.#open.push(line) - 1;
    }
    // An execution that another one waits for must not wait itself.
    const isLate = !isAwaited && this.#lateUntil.size > 0 && (this.#lateUntil.get(`${pluginId}\0${caller}`) ?? 0) > now;
    const admitted = line.admit(caller, now, this.#limits.waitingPerCallerMax, isLate);
    if (admitted === undefined) return 'waitingPerCallerMax';
    const cell = this.#freeCells.pop()!;
    if (isAwaited) {
      this.#awaited[cell] = 1;
      if (line.awaited++ === 0) this.#mark(URGENT, line.queue);
    }
    this.#inFlight++;
    this.#lineOfCell[cell] = line;
    this.#callerOfCell[cell] = admitted;
    return cell;
  }

  /** An execution has reached its deadline: for a while its caller yields to others of the plugin. @param now monotonic time in ms */
  noteLate(cell: number, now: number): void {
    const key = `${this.#lineOf(cell).pluginId}\0${this.#callerOf(cell).key}`;
    this.#lateUntil.delete(key);
    this.#lateUntil.set(key, now + LIMITS.quarantineWindowMs);
    for (const [oldest, until] of this.#lateUntil) {
      if (until > now && this.#lateUntil.size <= LIMITS.callersCountedMax) break;
      this.#lateUntil.delete(oldest);
    }
  }

  /** An execution has ended in time: its caller yields no longer. */
  noteInTime(cell: number): void {
    if (this.#lateUntil.size > 0) this.#lateUntil.delete(`${this.#lineOf(cell).pluginId}\0${this.#callerOf(cell).key}`);
  }

  #lineFor(pluginId: string): PluginLine {
    const known = this.#lines.get(pluginId);
    if (known !== undefined) return known;
    const line = new PluginLine(pluginId);
    this.#lines.add(pluginId, line);
    return line;
  }

  /** The line of a plugin with work in flight. */
  #openLine(pluginId: string): PluginLine | undefined {
    const line = this.#lines.get(pluginId);
    return line !== undefined && line.inFlight > 0 ? line : undefined;
  }

  /** Passes a filled cell to the lanes, at once or when its turn comes. */
  push(cell: number): void {
    const line = this.#lineOf(cell);
    const caller = this.#callerOf(cell);
    if (line.queue < 0) {
      const queue = this.#freeQueues.pop();
      if (queue !== undefined) this.#lend(queue, line);
      else if (!line.hasWaiting) this.#waiting.push(line);
    }
    // A second caller has come: executions of the first caller in the ring must not all run before it.
    const wasAlone = line.queue >= 0 && !line.isSharing;
    if (wasAlone && !line.isAlone) this.#beginSharing(line);
    if (line.enter(caller, cell)) this.#append(line.queue, cell);
    if (line.hasWaiting && wasAlone) this.#appendWaiting(line);
    if (line.isWatched) this.#slots.note(line.pluginId, line.inFlight);
    if (line.isPartial) this.#noteLack(line);
  }

  /** The run in a cell was dropped for its first read: it leaves its slot. @returns whether this gave the lanes work */
  beginReading(cell: number): boolean {
    const line = this.#lineOf(cell);
    const caller = this.#callerOf(cell);
    this.#released[cell] = 0;
    return this.#goOn(line, caller, line.beginReading(caller));
  }

  /** The first read is done: the execution runs before those that wait. */
  endReading(cell: number): void {
    const line = this.#lineOf(cell);
    if (line.endReading(this.#callerOf(cell), cell)) this.#append(line.queue, cell);
  }

  /** Says so when executions wait although all slots this process has of the plugin are used. */
  #noteLack(line: PluginLine): void {
    if (line.queue < 0) return;
    const running = runningOf(this.#words, line.queue);
    const waiting = line.inFlight - running;
    if (waiting > 0 && running >= limitOf(this.#words, line.queue))
      this.#slots.lack(line.pluginId, Math.min(waiting, LIMITS.slotsPerPlugin));
  }

  /** Reports lacks of slots of every plugin; what lanes take and end meanwhile is not seen when it happens. */
  noteLacks(): void {
    for (const line of this.#open) if (line.isPartial) this.#noteLack(line);
  }

  /**
   * Sets the slots this process has of a plugin.
   *
   * @returns whether no more executions run than may run now
   */
  useSlots(pluginId: string, slots: SlotCount, isWatched: boolean): boolean {
    const line = this.#openLine(pluginId);
    if (line === undefined) return true;
    const before = line.limit;
    line.useSlots(slots, isWatched);
    if (line.queue < 0) return true;
    const running = setLimit(this.#words, line.queue, line.limit);
    // What several callers have in the ring was put there for more slots: one of them may not get all that are left.
    if (line.isSharing && line.limit < before) this.#takeBack(line);
    this.#appendWaiting(line);
    return running <= line.limit && (!line.isSharing || line.isWithin);
  }

  /** Takes back the cells of all callers that no lane has taken yet, each to the head of its caller's line. */
  #takeBack(line: PluginLine): void {
    const byCaller = Map.groupBy(takeBackAll(this.#words, line.queue), cell => this.#callerOf(cell));
    for (const [caller, cells] of byCaller) {
      for (const cell of cells) this.#released[cell] = 0;
      line.takeBack(caller, cells);
    }
  }

  /** The callers with executions of a plugin in flight. */
  callersOf(pluginId: string): string[] {
    return this.#openLine(pluginId)?.callers() ?? [];
  }

  /** The plugins with executions in flight, and how many. */
  *active(): Generator<readonly [pluginId: string, inFlight: number]> {
    for (const line of this.#open) yield [line.pluginId, line.inFlight];
  }

  /** Takes back the cells that no lane has taken yet; from now on the callers of the plugin share its slots. */
  #beginSharing(line: PluginLine): void {
    this.#takeBack(line);
    line.isSharing = true;
    setLimit(this.#words, line.queue, line.limit);
  }

  /** Pushes cells that may enter the ring. @returns whether there were any */
  #appendWaiting(line: PluginLine, only?: Caller): boolean {
    let pushed = false;
    for (let cell = line.next(only); cell !== undefined; cell = line.next(only)) {
      this.#append(line.queue, cell);
      pushed = true;
    }
    return pushed;
  }

  #lend(queue: number, line: PluginLine): void {
    line.queue = queue;
    line.isSharing = !line.isAlone;
    setLimit(this.#words, queue, line.limit);
    if (line.awaited > 0) this.#mark(URGENT, queue);
    this.#mark(ACTIVE, queue);
  }

  #mark(mask: QueueMask, queue: number): void {
    if (queue >= 0) markQueue(this.#words, mask, queue);
  }

  #unmark(mask: QueueMask, queue: number): void {
    if (queue >= 0) unmarkQueue(this.#words, mask, queue);
  }

  #append(queue: number, cell: number): void {
    this.#released[cell] = 1;
    appendCell(this.#words, queue, cell);
  }

  /**
   * Frees a cell that no lane holds any more. Lends the queue to the next plugin when its plugin has nothing left in
   * flight.
   *
   * @param ranMs how long the execution ran; 0 when it never did
   * @returns whether this gave the lanes work
   */
  release(cell: number, ranMs: number): boolean {
    const line = this.#lineOf(cell);
    const caller = this.#callerOf(cell);
    const wasReleased = this.#released[cell] === 1;
    this.#released[cell] = 0;
    this.#lineOfCell[cell] = undefined;
    this.#callerOfCell[cell] = undefined;
    this.#freeCells.push(cell);
    this.#inFlight--;
    if (this.#awaited[cell] === 1) {
      this.#awaited[cell] = 0;
      if (--line.awaited === 0) this.#unmark(URGENT, line.queue);
    }
    const next = line.leave(caller, wasReleased, ranMs);
    const { isWatched, pluginId } = line;
    const hasWork = line.inFlight === 0 ? this.#close(line) : this.#goOn(line, caller, next);
    if (isWatched) this.#slots.note(pluginId, line.inFlight);
    return hasWork;
  }

  /** Passes on the slot of an ended execution. */
  #goOn(line: PluginLine, caller: Caller, next: 'none' | 'caller' | 'any'): boolean {
    if (line.queue < 0) return false;
    // Must come before the push; otherwise a lane could take the eighth execution of one caller.
    if (line.isAlone && line.isSharing) {
      line.isSharing = false;
      setLimit(this.#words, line.queue, line.limit);
    }
    if (next === 'none') return false;
    return this.#appendWaiting(line, next === 'caller' ? caller : undefined);
  }

  /**
   * Closes the line of a plugin with nothing left in flight, and lends its queue to the next plugin that waits for one.
   */
  #close(line: PluginLine): boolean {
    const last = this.#open.pop()!;
    if (last !== line) {
      this.#open[line.place] = last;
      last.place = line.place;
    }
    const { queue } = line;
    line.queue = -1;
    if (queue < 0) return false;
    const next = this.#waiting.shift();
    if (next === undefined) {
      this.#unmark(ACTIVE, queue);
      this.#freeQueues.push(queue);
      return false;
    }
    this.#lend(queue, next);
    return this.#appendWaiting(next);
  }

  /** Whether no lane has taken the execution in a cell yet. */
  isWaiting(cell: number): boolean {
    const line = this.#lineOf(cell);
    return this.#released[cell] === 0 || isQueued(this.#words, line.queue, cell);
  }

  /** The slots of a plugin here, for all callers and for one; at least one, which another process may give. */
  slotsOf(pluginId: string): SlotCount {
    const { all, ofOne } = this.#slots.countOf(pluginId);
    return { all: Math.max(1, all), ofOne: Math.max(1, ofOne) };
  }

  /** When an execution of a caller can be admitted, in ms; 0 while the plugin has nothing in flight. */
  roomInMs(pluginId: string, caller: string, now: number, timeoutMs: number): number {
    return this.#openLine(pluginId)?.roomInMs(caller, now, timeoutMs) ?? 0;
  }

  /** Lowers the running count of a queue for a lane whose thread was ended. */
  endRunning(queue: number): void {
    endRunning(this.#words, queue);
  }

  /** Whether any plugin has both a waiting execution and a free cell. */
  hasRunnable(): boolean {
    for (const line of this.#open) if (line.queue >= 0 && isRunnable(this.#words, line.queue)) return true;
    return false;
  }

  /**
   * Removes waiting executions that are past their deadline from their queues; competes with the lanes for the head.
   *
   * @param isLate whether the execution in a cell is past its deadline
   * @returns cells that no lane has taken or will take
   */
  takeLate(isLate: (cell: number) => boolean): number[] {
    const late: number[] = [];
    for (const line of this.#open) {
      for (const caller of line.waitingCallers())
        while (caller.oldest !== undefined && isLate(caller.oldest)) late.push(line.drop(caller));
      if (line.queue < 0 && !line.hasWaiting) {
        const k = this.#waiting.indexOf(line);
        if (k >= 0) this.#waiting.splice(k, 1);
      }
      if (line.queue >= 0) late.push(...takeBackWhile(this.#words, line.queue, isLate));
    }
    return late;
  }

  #lineOf(cell: number): PluginLine {
    const line = this.#lineOfCell[cell];
    if (line === undefined) throw new Error(`cell ${cell} is not in use`);
    return line;
  }

  #callerOf(cell: number): Caller {
    const caller = this.#callerOfCell[cell];
    if (caller === undefined) throw new Error(`cell ${cell} is not in use`);
    return caller;
  }
}
