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
import { LIMITS } from '../limits.ts';

/** The executions of one plugin that are admitted and not ended. */
type PluginLine = {
  pluginId: string;
  /** Index of the shared queue, or -1 while all are taken by other plugins. */
  queue: number;
  inFlight: number;
  /** How many of them other executions wait for, which hold threads meanwhile. */
  awaited: number;
  /** Slots that wait for a queue, oldest first. */
  held: number[];
};

/**
 * Main's end of the run queues: hands out slots and pushes them, first come, first served per plugin. A shared queue is
 * lent to a plugin only while it has work in flight, so that the lanes look at active plugins alone, however many are
 * installed.
 */
export class RunQueues {
  readonly #words: Int32Array;
  readonly #freeSlots = Array.from({ length: SLOT_COUNT - 1 }, (_, k) => SLOT_COUNT - 2 - k);
  readonly #freeQueues = Array.from({ length: QUEUE_COUNT }, (_, k) => QUEUE_COUNT - 1 - k);
  readonly #lines = new Map<string, PluginLine>();
  readonly #awaited = new Uint8Array(SLOT_COUNT);
  readonly #lineOfSlot: Array<PluginLine | undefined> = new Array(SLOT_COUNT).fill(undefined);
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
   * @param isAwaited whether another execution waits for it: lanes take from such queues first, or every thread could be held by one that waits
   * @returns undefined when the plugin or the host has too many already
   */
  acquire(pluginId: string, isAwaited: boolean): number | undefined {
    let line = this.#lines.get(pluginId);
    if (line === undefined) {
      line = { pluginId, queue: -1, inFlight: 0, awaited: 0, held: [] };
      this.#lines.set(pluginId, line);
    }
    if (line.inFlight >= LIMITS.waitingPerPluginMax) return undefined;
    const slot = this.#freeSlots.pop();
    if (slot === undefined) return undefined;
    line.inFlight++;
    if (isAwaited) {
      this.#awaited[slot] = 1;
      if (line.awaited++ === 0) this.#mark(URGENT, line.queue);
    }
    this.#inFlight++;
    this.#lineOfSlot[slot] = line;
    return slot;
  }

  /** Makes a filled slot visible to the lanes. */
  push(slot: number): void {
    const line = this.#lineOf(slot);
    if (line.queue < 0) {
      const queue = this.#freeQueues.pop();
      if (queue === undefined) {
        if (line.held.length === 0) this.#waiting.push(line);
        line.held.push(slot);
        return;
      }
      this.#lend(queue, line);
    }
    this.#append(line.queue, slot);
  }

  #lend(queue: number, line: PluginLine): void {
    line.queue = queue;
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
    const at = queueAt(queue);
    const tail = this.#words[at + QUEUE.tail]!;
    this.#words[at + QUEUE.ring + (tail & RING_MASK)] = slot;
    Atomics.store(this.#words, at + QUEUE.tail, (tail + 1) | 0);
  }

  /** Gives a slot back once no lane holds it; lends the queue on when its plugin has nothing left in flight. */
  release(slot: number): void {
    const line = this.#lineOf(slot);
    this.#lineOfSlot[slot] = undefined;
    this.#freeSlots.push(slot);
    this.#inFlight--;
    if (this.#awaited[slot] === 1) {
      this.#awaited[slot] = 0;
      if (--line.awaited === 0) this.#unmark(URGENT, line.queue);
    }
    if (--line.inFlight > 0) return;
    this.#lines.delete(line.pluginId);
    const queue = line.queue;
    if (queue < 0) return;
    const next = this.#waiting.shift();
    if (next === undefined) {
      this.#unmark(ACTIVE, queue);
      this.#freeQueues.push(queue);
      return;
    }
    this.#lend(queue, next);
    for (const held of next.held.splice(0)) this.#append(queue, held);
  }

  /** Whether no lane has taken the execution in a slot yet. */
  isWaiting(slot: number): boolean {
    const line = this.#lineOf(slot);
    if (line.queue < 0) return line.held.includes(slot);
    const at = queueAt(line.queue);
    const tail = this.#words[at + QUEUE.tail]!;
    for (let k = Atomics.load(this.#words, at + QUEUE.head); k !== tail; k = (k + 1) | 0)
      if (this.#words[at + QUEUE.ring + (k & RING_MASK)] === slot) return true;
    return false;
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
        Atomics.load(this.#words, at + QUEUE.running) < LIMITS.slotsPerPlugin
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
      while (line.held.length > 0 && isLate(line.held[0]!)) late.push(line.held.shift()!);
      if (line.held.length === 0) {
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
}
