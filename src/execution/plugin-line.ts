import { LIMITS } from '../base/limits.ts';
import { ReusedEntries } from '../base/reused-entries.ts';
import type { SlotCount } from './slot-messages.ts';

/**
 * Largest number of executions in the ring while a plugin serves only one caller: about nine for each of the caller's
 * seven slots, so that the lanes find work without the main thread. Further executions wait in the line, and so do
 * those of a second caller.
 */
const ALONE_IN_RING_MAX = 64;

/** What one caller has in flight with one plugin. */
class Caller {
  readonly key: string;
  inFlight = 0;
  /** How many of them are in the ring or running. */
  released = 0;
  /** Whether one of its executions reached its deadline lately: it yields to callers of which none did. */
  isLate = false;
  /** Neighbours among the callers that wait (`WaitingCallers`). */
  previous: Caller | null = null;
  next: Caller | null = null;
  isListed = false;
  /** Cells that wait in the line, oldest first from `#first` on. */
  #waiting: number[] = [];
  #first = 0;

  constructor(key: string) {
    this.key = key;
  }

  get waits(): boolean {
    return this.#first < this.#waiting.length;
  }

  get oldest(): number | undefined {
    return this.#waiting[this.#first];
  }

  append(cell: number): void {
    this.#waiting.push(cell);
  }

  shift(): number {
    const cell = this.#waiting[this.#first++];
    if (cell === undefined) throw new Error('nothing waits');
    if (this.#first === this.#waiting.length) {
      this.#waiting = [];
      this.#first = 0;
    }
    return cell;
  }

  /** Puts cells back before all that wait now. */
  prepend(cells: readonly number[]): void {
    this.#waiting = [...cells, ...this.#waiting.slice(this.#first)];
    this.#first = 0;
  }

  includes(cell: number): boolean {
    return this.#waiting.indexOf(cell, this.#first) >= 0;
  }
}

export type { Caller };

/** Whether a caller comes before one that has waited longer. */
const comesBefore = (caller: Caller, other: Caller): boolean =>
  caller.isLate === other.isLate ? caller.released < other.released : other.isLate;

/** Callers with waiting executions, in the order in which they began to wait: a list, because they change at each execution. */
class WaitingCallers {
  #first: Caller | null = null;
  #last: Caller | null = null;

  get isEmpty(): boolean {
    return this.#first === null;
  }

  add(caller: Caller): void {
    if (caller.isListed) return;
    caller.isListed = true;
    caller.previous = this.#last;
    if (this.#last === null) this.#first = caller;
    else this.#last.next = caller;
    this.#last = caller;
  }

  remove(caller: Caller): void {
    if (!caller.isListed) return;
    const { next, previous } = caller;
    if (previous === null) this.#first = next;
    else previous.next = next;
    if (next === null) this.#last = previous;
    else next.previous = previous;
    caller.previous = null;
    caller.next = null;
    caller.isListed = false;
  }

  /** The one given last may be removed meanwhile. */
  *[Symbol.iterator](): Generator<Caller> {
    for (let caller = this.#first; caller !== null; ) {
      const { next }: Caller = caller;
      yield caller;
      caller = next;
    }
  }
}

/**
 * The admitted executions of one plugin, and the order in which they run. The lanes take from the plugin's ring first
 * come, first served; this class decides which executions enter the ring:
 *
 * - A single caller may fill the ring, but the lanes leave one slot free for the next caller (`slotsPerCaller`).
 * - With several callers, each may have its share of the slots in the ring or running. Beyond its share it gets only
 *   slots that no other caller wants. Among the callers that want a slot, the one with the fewest comes first.
 * - A caller whose executions reached their deadline lately gets only slots that no other caller wants, so that many of
 *   them cannot fill the ring before an execution that ends.
 */
export class PluginLine {
  readonly pluginId: string;
  /** Index of the shared queue, or -1 while all queues are lent to other plugins. */
  queue = -1;
  /** Index among the lines with work in flight. */
  place = -1;
  inFlight = 0;
  /** Number of executions that other executions wait for; those hold threads meanwhile. */
  awaited = 0;
  /** Executions in the ring or running. */
  released = 0;
  /** Whether several callers share the ring, as far as the lanes know. */
  isSharing = false;
  /** Whether this process has not all slots of the plugin, and whether it must say what it uses of them. */
  isPartial = false;
  isWatched = false;
  /** Slots this process has: for several callers, and for one. */
  #slots: number = LIMITS.slotsPerPlugin;
  #slotsOfOne: number = LIMITS.slotsPerCaller;
  /** Mean run time of the executions that ended lately, in ms; negative before the first has ended. */
  #meanMs = -1;
  /** When the line was opened, and when an execution was last admitted, in ms of the monotonic clock. */
  #openedAt = 0;
  #admittedAt = 0;
  readonly #callers = new ReusedEntries<Caller>(caller => caller.inFlight > 0);
  /** Number of callers with executions in flight. */
  #callersInUse = 0;
  readonly #waiting = new WaitingCallers();
  #last: Caller | null = null;

  constructor(pluginId: string) {
    this.pluginId = pluginId;
  }

  /** Begins again, with nothing in flight. */
  open(now: number, slots: SlotCount, isWatched: boolean): void {
    this.useSlots(slots, isWatched);
    this.queue = -1;
    this.#meanMs = -1;
    this.#openedAt = now;
  }

  /** @param slots how many executions may run at once here from now on */
  useSlots({ all, ofOne }: SlotCount, isWatched: boolean): void {
    this.isWatched = isWatched;
    this.isPartial = all !== LIMITS.slotsPerPlugin;
    this.#slots = all;
    this.#slotsOfOne = ofOne;
  }

  /** The callers with executions in flight. */
  callers(): string[] {
    return [...this.#callers.inUse()].map(caller => caller.key);
  }

  /** Whether each caller has at most so many in the ring or running as one may have. */
  get isWithin(): boolean {
    for (const caller of this.#callers.inUse()) if (caller.released > this.#slotsOfOne) return false;
    return true;
  }

  /** How many executions may run at once now. */
  get limit(): number {
    return this.isAlone ? this.#slotsOfOne : this.#slots;
  }

  /** Whether at most one caller has executions in flight. */
  get isAlone(): boolean {
    return this.#callersInUse <= 1;
  }

  get hasWaiting(): boolean {
    return !this.#waiting.isEmpty;
  }

  waitingCallers(): Iterable<Caller> {
    return this.#waiting;
  }

  #find(key: string): Caller | undefined {
    return this.#last?.key === key ? this.#last : this.#callers.get(key);
  }

  /**
   * Counts one more execution of a caller.
   *
   * @param isLate whether one of its executions reached its deadline lately
   * @returns undefined when the caller has `most` already
   */
  admit(key: string, now: number, most: number, isLate: boolean): Caller | undefined {
    let caller = this.#find(key);
    if (caller === undefined) {
      caller = new Caller(key);
      this.#callers.add(key, caller);
    } else if (caller.inFlight >= most) return undefined;
    this.#last = caller;
    caller.isLate = isLate;
    this.#admittedAt = now;
    if (caller.inFlight++ === 0) this.#callersInUse++;
    this.inFlight++;
    return caller;
  }

  /** The share of one caller while others want slots too. */
  get #share(): number {
    return this.isAlone ? this.#slotsOfOne : Math.min(this.#slotsOfOne, Math.ceil(this.#slots / this.#callersInUse));
  }

  #mayRelease(caller: Caller): boolean {
    if (this.isAlone) return caller.released < ALONE_IN_RING_MAX;
    if (!caller.isLate && caller.released < this.#share) return true;
    return this.released < this.#slots && caller.released < this.#slotsOfOne;
  }

  /** Whether an execution may enter the ring at once; otherwise it waits in the line. */
  enter(caller: Caller, cell: number): boolean {
    if (!caller.waits && this.queue >= 0 && this.#mayRelease(caller)) {
      this.#release(caller);
      return true;
    }
    caller.append(cell);
    this.#waiting.add(caller);
    return false;
  }

  #release(caller: Caller): void {
    caller.released++;
    this.released++;
  }

  /** Puts cells that were in the ring back to the head of their caller's line. */
  takeBack(caller: Caller, cells: readonly number[]): void {
    if (cells.length === 0) return;
    caller.prepend(cells);
    caller.released -= cells.length;
    this.released -= cells.length;
    this.#waiting.add(caller);
  }

  /**
   * The next execution that may enter the ring, if any: of the given caller, or of the caller with the fewest in the
   * ring.
   */
  next(only?: Caller): number | undefined {
    if (this.#waiting.isEmpty || this.queue < 0) return undefined;
    const caller = only ?? this.#findLeast();
    if (caller === undefined || !caller.waits || !this.#mayRelease(caller)) return undefined;
    this.#release(caller);
    // Among callers with equal numbers, the one served most recently comes last.
    this.#waiting.remove(caller);
    const cell = caller.shift();
    if (caller.waits) this.#waiting.add(caller);
    return cell;
  }

  #findLeast(): Caller | undefined {
    let least: Caller | undefined;
    for (const caller of this.#waiting) {
      if (least !== undefined && !comesBefore(caller, least)) continue;
      if (!this.#mayRelease(caller)) continue;
      least = caller;
      if (least.released === 0 && !least.isLate) break;
    }
    return least;
  }

  /** Takes the oldest waiting execution of a caller out of the line. */
  drop(caller: Caller): number {
    const cell = caller.shift();
    if (!caller.waits) this.#waiting.remove(caller);
    return cell;
  }

  /**
   * An execution leaves its slot while its first read is done.
   *
   * @returns which callers may get a slot because of it: `caller` means only its own
   */
  beginReading(caller: Caller): 'none' | 'caller' | 'any' {
    caller.released--;
    this.released--;
    return this.#successors(caller);
  }

  /** It comes back, before all that wait. @returns whether it may enter the ring at once */
  endReading(caller: Caller, cell: number): boolean {
    if (this.queue >= 0 && this.#mayRelease(caller)) {
      this.#release(caller);
      return true;
    }
    caller.prepend([cell]);
    this.#waiting.add(caller);
    return false;
  }

  #successors(caller: Caller): 'none' | 'caller' | 'any' {
    if (this.#waiting.isEmpty) return 'none';
    if (this.released < this.#slots) return 'any';
    return caller.waits ? 'caller' : 'none';
  }

  /**
   * Counts an execution as ended.
   *
   * @param wasReleased whether it had entered the ring
   * @param ranMs 0 when it never ran
   * @returns which callers may get a slot because of it: `caller` means only its own
   */
  leave(caller: Caller, wasReleased: boolean, ranMs: number): 'none' | 'caller' | 'any' {
    const shareBefore = this.#share;
    this.inFlight--;
    if (wasReleased) {
      caller.released--;
      this.released--;
    }
    if (ranMs > 0) this.#meanMs = this.#meanMs < 0 ? ranMs : this.#meanMs + (ranMs - this.#meanMs) / 8;
    if (--caller.inFlight === 0) {
      this.#callersInUse--;
      if (this.#last === caller) this.#last = null;
    }
    if (this.#share !== shareBefore && !this.#waiting.isEmpty) return 'any';
    return this.#successors(caller);
  }

  /**
   * Estimates when one more execution of a caller can be admitted, in ms: after those it has in flight, at the rate at
   * which executions of this plugin ended lately. Before any has ended, assumes that the oldest ends at its deadline.
   * Never later than the deadline of the last one admitted, because all have ended by then.
   */
  roomInMs(key: string, now: number, timeoutMs: number): number {
    if (this.#meanMs < 0) return Math.max(0, this.#openedAt + timeoutMs - now);
    const slots = Math.max(1, Math.min(LIMITS.slotsPerCaller, this.#share));
    const rounds = Math.ceil(((this.#find(key)?.inFlight ?? 0) + 1) / slots);
    return Math.min(rounds * this.#meanMs, Math.max(0, this.#admittedAt + timeoutMs - now));
  }
}
