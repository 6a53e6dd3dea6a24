import {
  ACTIVE,
  QUEUE,
  QUEUE_COUNT,
  queueAt,
  RING_MASK,
  type SharedViews,
  SLOT_COUNT,
  URGENT,
} from '../abi/shared-layout.ts';
import { LIMITS } from '../base/limits.ts';
import { type Caller, PluginLine } from './plugin-line.ts';

/** The limit that leaves no room for one more execution. */
export type FullLine = 'waitingPerPluginMax' | 'waitingPerCallerMax' | 'executionsInFlightMax';

/** Lines of plugins that have nothing in flight, kept to be used again. */
const SPARE_LINES_MAX = 64;

/**
 * Main's end of the run queues: hands out slots and pushes them into the rings the lanes take from, in the order the line
 * of each plugin decides (`plugin-line`). A shared queue is lent to a plugin only while it has work in flight, so that the
 * lanes look at active plugins alone, however many are installed.
 */
export class RunQueues {
  readonly #words: Int32Array;
  readonly #freeSlots = Array.from({ length: SLOT_COUNT - 1 }, (_, k) => SLOT_COUNT - 2 - k);
  readonly #freeQueues = Array.from({ length: QUEUE_COUNT }, (_, k) => QUEUE_COUNT - 1 - k);
  readonly #lines = new Map<string, PluginLine>();
  readonly #spareLines: PluginLine[] = [];
  readonly #awaited = new Uint8Array(SLOT_COUNT);
  /** 1 for slots that are in a ring, or that a lane has taken. */
  readonly #released = new Uint8Array(SLOT_COUNT);
  readonly #lineOfSlot: Array<PluginLine | undefined> = new Array(SLOT_COUNT).fill(undefined);
  readonly #callerOfSlot: Array<Caller | undefined> = new Array(SLOT_COUNT).fill(undefined);
  /** Plugins that wait for a queue, in order. */
  readonly #waiting: PluginLine[] = [];
  #inFlight = 0;

  constructor(views: SharedViews) {
    this.#words = views.words;
  }

  get inFlight(): number {
    return this.#inFlight;
  }

  /**
   * Takes a slot for an execution of a plugin.
   *
   * @param caller by whose key its executions are counted
   * @param isAwaited whether another execution waits for it: lanes take from such queues first, or every thread could be held by one that waits
   * @param now monotonic time in ms
   * @returns the limit that is reached when there is no slot for it
   */
  acquire(pluginId: string, caller: string, isAwaited: boolean, now: number): number | FullLine {
    let line = this.#lines.get(pluginId);
    if (line !== undefined && line.inFlight >= LIMITS.waitingPerPluginMax) return 'waitingPerPluginMax';
    if (this.#freeSlots.length === 0) return 'executionsInFlightMax';
    if (line === undefined) {
      line = this.#spareLines.pop() ?? new PluginLine();
      line.open(pluginId, now);
      this.#lines.set(pluginId, line);
    }
    const admitted = line.admit(caller, now);
    if (admitted === undefined) return 'waitingPerCallerMax';
    const slot = this.#freeSlots.pop()!;
    if (isAwaited) {
      this.#awaited[slot] = 1;
      if (line.awaited++ === 0) this.#mark(URGENT, line.queue);
    }
    this.#inFlight++;
    this.#lineOfSlot[slot] = line;
    this.#callerOfSlot[slot] = admitted;
    return slot;
  }

  /** Lets the lanes have a filled slot, at once or when it is its turn. */
  push(slot: number): void {
    const line = this.#lineOf(slot);
    const caller = this.#callerOf(slot);
    if (line.queue < 0) {
      const queue = this.#freeQueues.pop();
      if (queue !== undefined) this.#lend(queue, line);
      else if (!line.hasWaiting) this.#waiting.push(line);
    }
    // The second caller of a plugin: what the first one has in the ring must not come before it.
    const wasAlone = line.queue >= 0 && this.#limitOf(line) === LIMITS.slotsPerCaller;
    if (wasAlone && !line.isAlone) this.#beginSharing(line);
    if (line.enter(caller, slot)) this.#append(line.queue, slot);
    if (line.hasWaiting && wasAlone) this.#appendWaiting(line);
  }

  #limitOf(line: PluginLine): number {
    return this.#words[queueAt(line.queue) + QUEUE.limit]!;
  }

  /** Takes back what no lane has taken yet; from now on the callers of the plugin share its slots. */
  #beginSharing(line: PluginLine): void {
    const at = queueAt(line.queue);
    const tail = this.#words[at + QUEUE.tail]!;
    let head = Atomics.load(this.#words, at + QUEUE.head);
    // The lanes compete for the head.
    while (head !== tail) {
      const found = Atomics.compareExchange(this.#words, at + QUEUE.head, head, tail);
      if (found === head) break;
      head = found;
    }
    const back: number[] = [];
    for (let k = head; k !== tail; k = (k + 1) | 0) back.push(this.#words[at + QUEUE.ring + (k & RING_MASK)]!);
    for (const slot of back) this.#released[slot] = 0;
    if (back[0] !== undefined) line.takeBack(this.#callerOf(back[0]), back);
    Atomics.store(this.#words, at + QUEUE.limit, LIMITS.slotsPerPlugin);
  }

  /** Whether anything was pushed. */
  #appendWaiting(line: PluginLine, only?: Caller): boolean {
    let pushed = false;
    for (let slot = line.next(only); slot !== undefined; slot = line.next(only)) {
      this.#append(line.queue, slot);
      pushed = true;
    }
    return pushed;
  }

  #lend(queue: number, line: PluginLine): void {
    line.queue = queue;
    const limit = line.isAlone ? LIMITS.slotsPerCaller : LIMITS.slotsPerPlugin;
    this.#words[queueAt(queue) + QUEUE.limit] = limit;
    if (line.awaited > 0) this.#mark(URGENT, queue);
    this.#mark(ACTIVE, queue);
  }

  #mark(mask: number, queue: number): void {
    if (queue >= 0) Atomics.or(this.#words, mask + (queue >> 5), 1 << (queue & 31));
  }

  #unmark(mask: number, queue: number): void {
    if (queue >= 0) Atomics.and(this.#words, mask + (queue >> 5), ~(1 << (queue & 31)));
  }

  #append(queue: number, slot: number): void {
    this.#released[slot] = 1;
    const at = queueAt(queue);
    const tail = this.#words[at + QUEUE.tail]!;
    this.#words[at + QUEUE.ring + (tail & RING_MASK)] = slot;
    Atomics.store(this.#words, at + QUEUE.tail, (tail + 1) | 0);
  }

  /**
   * Gives a slot back once no lane holds it; lends the queue on when its plugin has nothing left in flight.
   *
   * @param ranMs how long the execution ran; 0 when it never did
   * @returns whether lanes got work by it
   */
  release(slot: number, ranMs: number): boolean {
    const line = this.#lineOf(slot);
    const caller = this.#callerOf(slot);
    const wasReleased = this.#released[slot] === 1;
    this.#released[slot] = 0;
    this.#lineOfSlot[slot] = undefined;
    this.#callerOfSlot[slot] = undefined;
    this.#freeSlots.push(slot);
    this.#inFlight--;
    if (this.#awaited[slot] === 1) {
      this.#awaited[slot] = 0;
      if (--line.awaited === 0) this.#unmark(URGENT, line.queue);
    }
    const next = line.leave(caller, wasReleased, ranMs);
    if (line.inFlight === 0) return this.#close(line);
    if (line.queue < 0) return false;
    // Before anything is pushed: a lane must not take the eighth execution of one caller.
    if (line.isAlone && this.#limitOf(line) !== LIMITS.slotsPerCaller)
      Atomics.store(this.#words, queueAt(line.queue) + QUEUE.limit, LIMITS.slotsPerCaller);
    if (next === 'none') return false;
    return this.#appendWaiting(line, next === 'caller' ? caller : undefined);
  }

  /** A plugin has nothing left in flight: its queue is lent to the next one that waits for a queue. */
  #close(line: PluginLine): boolean {
    this.#lines.delete(line.pluginId);
    const { queue } = line;
    line.queue = -1;
    if (this.#spareLines.length < SPARE_LINES_MAX) this.#spareLines.push(line);
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

  /** Whether no lane has taken the execution in a slot yet. */
  isWaiting(slot: number): boolean {
    const line = this.#lineOf(slot);
    if (this.#released[slot] === 0) return true;
    const at = queueAt(line.queue);
    const tail = this.#words[at + QUEUE.tail]!;
    for (let k = Atomics.load(this.#words, at + QUEUE.head); k !== tail; k = (k + 1) | 0)
      if (this.#words[at + QUEUE.ring + (k & RING_MASK)] === slot) return true;
    return false;
  }

  /** When there will be room for an execution of a caller, in ms; 0 while the plugin has nothing in flight. */
  roomInMs(pluginId: string, caller: string, now: number, timeoutMs: number): number {
    return this.#lines.get(pluginId)?.roomInMs(caller, now, timeoutMs) ?? 0;
  }

  /** A lane that was ended cannot lower its queue's running count itself. */
  endRunning(queue: number): void {
    Atomics.sub(this.#words, queueAt(queue) + QUEUE.running, 1);
  }

  /** Whether any plugin has an execution waiting that its free slots would let run. */
  hasRunnable(): boolean {
    for (const line of this.#lines.values()) {
      if (line.queue < 0) continue;
      const at = queueAt(line.queue);
      if (
        Atomics.load(this.#words, at + QUEUE.head) !== this.#words[at + QUEUE.tail]! &&
        Atomics.load(this.#words, at + QUEUE.running) < this.#limitOf(line)
      )
        return true;
    }
    return false;
  }

  /**
   * Takes waiting executions that can no longer make it out of their queues; competes with the lanes for the head.
   *
   * @param isLate whether the execution in a slot is past its deadline
   * @returns slots that no lane has taken or will take
   */
  takeLate(isLate: (slot: number) => boolean): number[] {
    const late: number[] = [];
    for (const line of this.#lines.values()) {
      for (const caller of line.waitingCallers())
        while (caller.oldest !== undefined && isLate(caller.oldest)) late.push(line.drop(caller));
      if (line.queue < 0 && !line.hasWaiting) {
        const k = this.#waiting.indexOf(line);
        if (k >= 0) this.#waiting.splice(k, 1);
      }
      if (line.queue < 0) continue;
      const at = queueAt(line.queue);
      for (;;) {
        const head = Atomics.load(this.#words, at + QUEUE.head);
        if (head === this.#words[at + QUEUE.tail]!) break;
        const slot = this.#words[at + QUEUE.ring + (head & RING_MASK)]!;
        if (!isLate(slot)) break;
        if (Atomics.compareExchange(this.#words, at + QUEUE.head, head, (head + 1) | 0) === head) late.push(slot);
      }
    }
    return late;
  }

  #lineOf(slot: number): PluginLine {
    const line = this.#lineOfSlot[slot];
    if (line === undefined) throw new Error(`slot ${slot} is not in use`);
    return line;
  }

  #callerOf(slot: number): Caller {
    const caller = this.#callerOfSlot[slot];
    if (caller === undefined) throw new Error(`slot ${slot} is not in use`);
    return caller;
  }
}
