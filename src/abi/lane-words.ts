import { LANE, LANE_STATE, laneAt, QUEUE, queueAt, RING_MASK } from './shared-layout.ts';

/**
 * The words of one lane, and its completion ring: the lane puts in the cells whose executions have ended, the main
 * thread takes them out.
 */
export class LaneWords {
  /** Number of the lane. */
  readonly lane: number;
  readonly #words: Int32Array;
  readonly #at: number;

  constructor(words: Int32Array, lane: number) {
    this.lane = lane;
    this.#words = words;
    this.#at = laneAt(lane);
  }

  // The state: both ends change it by compare-and-swap.

  get isAwake(): boolean {
    return Atomics.load(this.#words, this.#at + LANE.state) === LANE_STATE.awake;
  }

  /** Whether the lane has no thread, or one that is not ready yet or is being ended. */
  get isOff(): boolean {
    return Atomics.load(this.#words, this.#at + LANE.state) === LANE_STATE.off;
  }

  turnOff(): void {
    Atomics.store(this.#words, this.#at + LANE.state, LANE_STATE.off);
  }

  /** Lane: its thread is ready. */
  turnOn(linuxThreadId: number, threadId: number): void {
    this.#words[this.#at + LANE.thread] = linuxThreadId;
    this.#words[this.#at + LANE.threadId] = threadId;
    Atomics.store(this.#words, this.#at + LANE.state, LANE_STATE.awake);
  }

  /** Lane: says that it sleeps from now on. Work that comes later wakes it; work that came before does not. */
  fallAsleep(): void {
    Atomics.store(this.#words, this.#at + LANE.state, LANE_STATE.asleep);
  }

  /** Lane: stays awake after all. @returns false if the main thread has woken it meanwhile */
  stayAwake(): boolean {
    const { asleep, awake } = LANE_STATE;
    return Atomics.compareExchange(this.#words, this.#at + LANE.state, asleep, awake) === asleep;
  }

  /** Lane: sleeps until it is woken. @returns false if that took longer than `ms` */
  sleep(ms: number): boolean {
    return Atomics.wait(this.#words, this.#at + LANE.state, LANE_STATE.asleep, ms) !== 'timed-out';
  }

  /** Main thread: wakes the lane. @returns false if it did not sleep */
  wake(): boolean {
    if (!this.stayAwake()) return false;
    Atomics.notify(this.#words, this.#at + LANE.state, 1);
    return true;
  }

  // The thread.

  /** Linux thread id; 0 where that is not known. */
  get linuxThreadId(): number {
    return this.#words[this.#at + LANE.thread]!;
  }

  /** Node's thread id; 0 while the thread loads its modules. */
  get threadId(): number {
    return this.#words[this.#at + LANE.threadId]!;
  }

  /** Whether the thread shall end, or has ended, between two executions. */
  get isRetiring(): boolean {
    return Atomics.load(this.#words, this.#at + LANE.retire) === 1;
  }

  /** Asks the lane to end its thread after its current execution. */
  retire(): void {
    Atomics.store(this.#words, this.#at + LANE.retire, 1);
  }

  /** Main thread: asks the lane to give up the memory it keeps for later executions. */
  askToGiveUp(): void {
    Atomics.store(this.#words, this.#at + LANE.giveUp, 1);
  }

  /** Lane: whether it was asked. */
  get mustGiveUp(): boolean {
    return Atomics.load(this.#words, this.#at + LANE.giveUp) === 1;
  }

  /** Lane: it is about to do so. */
  beginGiveUp(): void {
    Atomics.store(this.#words, this.#at + LANE.giveUp, 0);
  }

  /** Main thread: empties the words for a new thread. */
  reset(): void {
    for (const word of [LANE.current, LANE.call, LANE.retire, LANE.threadId, LANE.giveUp])
      this.#words[this.#at + word] = 0;
    this.#words[this.#at + LANE.doneHead] = this.#words[this.#at + LANE.doneTail]!;
    this.turnOff();
  }

  // The execution.

  /** Cell of the execution that runs, or -1. */
  get cell(): number {
    return Atomics.load(this.#words, this.#at + LANE.current) - 1;
  }

  /** Grows with each execution that the lane takes. */
  get sequence(): number {
    return this.#words[this.#at + LANE.sequence]!;
  }

  /** Queue of the execution that runs. */
  get queue(): number {
    return this.#words[this.#at + LANE.queue]!;
  }

  /** Lane: hands an ended execution over to the main thread, and lowers the running count of its queue. */
  complete(queue: number, cell: number): void {
    const words = this.#words;
    const at = this.#at;
    const slots = queueAt(queue) + QUEUE.slots;
    // No JavaScript function is called between these lines: a thread that is ended before the last of them still holds
    // its cell.
    const tail = words[at + LANE.doneTail]!;
    words[at + LANE.done + (tail & RING_MASK)] = cell;
    Atomics.store(words, at + LANE.doneTail, (tail + 1) | 0);
    Atomics.sub(words, slots, 1);
    Atomics.store(words, at + LANE.current, 0);
  }

  /** Main thread: takes the cell of the next ended execution, or -1. */
  takeCompleted(): number {
    const head = this.#words[this.#at + LANE.doneHead]!;
    if (head === Atomics.load(this.#words, this.#at + LANE.doneTail)) return -1;
    this.#words[this.#at + LANE.doneHead] = (head + 1) | 0;
    return this.#words[this.#at + LANE.done + (head & RING_MASK)]!;
  }

  /** Main thread: takes the cell of a thread that has ended. @returns the cell it held, or -1 */
  takeCell(): number {
    const { cell } = this;
    this.#words[this.#at + LANE.current] = 0;
    return cell;
  }
}
