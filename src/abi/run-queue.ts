import { type ACTIVE, LANE, laneAt, QUEUE, queueAt, RING_MASK, type URGENT } from './shared-layout.ts';

/**
 * The shared run queue of a plugin: a ring of cells, the count of those that run, and how many may run. The main thread
 * appends; lanes take from the head by compare-and-swap, and so does the main thread when it takes cells back.
 */

/** The word of a queue that counts: the executions that run in the low half, how many may run in the high half. */
const RUNNING_MASK = 0xffff;
const LIMIT_SHIFT = 16;

const slotsWord = (queue: number): number => queueAt(queue) + QUEUE.slots;

/**
 * Main thread: sets how many executions of a queue may run at once. A lane takes a cell by compare-and-swap of limit and
 * count together, so from the return on none takes one under the old limit. Comes before the append it is meant for.
 *
 * @returns how many run; more than the limit if it was lowered below
 */
export function setLimit(words: Int32Array, queue: number, limit: number): number {
  const at = slotsWord(queue);
  for (;;) {
    const before = Atomics.load(words, at);
    const running = before & RUNNING_MASK;
    if (Atomics.compareExchange(words, at, before, (limit << LIMIT_SHIFT) | running) === before) return running;
  }
}

/** How many executions of a queue may run at once. */
export const limitOf = (words: Int32Array, queue: number): number =>
  Atomics.load(words, slotsWord(queue)) >>> LIMIT_SHIFT;

/** Main thread: appends a cell. */
export function appendCell(words: Int32Array, queue: number, cell: number): void {
  const at = queueAt(queue);
  const tail = words[at + QUEUE.tail]!;
  words[at + QUEUE.ring + (tail & RING_MASK)] = cell;
  Atomics.store(words, at + QUEUE.tail, (tail + 1) | 0);
}

/**
 * Lane: takes the next cell of a queue, counts it as running, and notes it in the lane's words.
 *
 * @returns the cell, or -1 when nothing waits or as many run as may
 */
export function takeCell(words: Int32Array, queue: number, lane: number): number {
  const at = queueAt(queue);
  const own = laneAt(lane);
  for (;;) {
    const head = Atomics.load(words, at + QUEUE.head);
    if (head === Atomics.load(words, at + QUEUE.tail)) return -1;
    const slots = Atomics.load(words, at + QUEUE.slots);
    if ((slots & RUNNING_MASK) >= slots >>> LIMIT_SHIFT) return -1;
    if (Atomics.compareExchange(words, at + QUEUE.slots, slots, slots + 1) !== slots) continue;
    const cell = words[at + QUEUE.ring + (head & RING_MASK)]!;
    if (Atomics.compareExchange(words, at + QUEUE.head, head, (head + 1) | 0) === head) {
      // Noted at once, without a call between: the cell of a thread that ends from now on is known.
      words[own + LANE.queue] = queue;
      words[own + LANE.sequence] = (words[own + LANE.sequence]! + 1) | 0;
      Atomics.store(words, own + LANE.current, cell + 1);
      return cell;
    }
    Atomics.sub(words, at + QUEUE.slots, 1);
  }
}

/** Main thread: takes back all cells that no lane has taken, in order. */
export function takeBackAll(words: Int32Array, queue: number): number[] {
  const at = queueAt(queue);
  const tail = words[at + QUEUE.tail]!;
  let head = Atomics.load(words, at + QUEUE.head);
  while (head !== tail) {
    const found = Atomics.compareExchange(words, at + QUEUE.head, head, tail);
    if (found === head) break;
    head = found;
  }
  const cells: number[] = [];
  for (let k = head; k !== tail; k = (k + 1) | 0) cells.push(words[at + QUEUE.ring + (k & RING_MASK)]!);
  return cells;
}

/** Main thread: takes back the cells at the head for which a condition holds, up to the first for which it does not. */
export function takeBackWhile(words: Int32Array, queue: number, condition: (cell: number) => boolean): number[] {
  const at = queueAt(queue);
  const cells: number[] = [];
  for (;;) {
    const head = Atomics.load(words, at + QUEUE.head);
    if (head === words[at + QUEUE.tail]!) return cells;
    const cell = words[at + QUEUE.ring + (head & RING_MASK)]!;
    if (!condition(cell)) return cells;
    if (Atomics.compareExchange(words, at + QUEUE.head, head, (head + 1) | 0) === head) cells.push(cell);
  }
}

/** Main thread: whether no lane has taken a cell of the queue yet. */
export function isQueued(words: Int32Array, queue: number, cell: number): boolean {
  const at = queueAt(queue);
  const tail = words[at + QUEUE.tail]!;
  for (let k = Atomics.load(words, at + QUEUE.head); k !== tail; k = (k + 1) | 0)
    if (words[at + QUEUE.ring + (k & RING_MASK)] === cell) return true;
  return false;
}

/** Whether cells of a queue wait that no lane has taken. */
export const hasQueued = (words: Int32Array, queue: number): boolean =>
  Atomics.load(words, queueAt(queue) + QUEUE.head) !== Atomics.load(words, queueAt(queue) + QUEUE.tail);

/** How many executions of a queue run. */
export const runningOf = (words: Int32Array, queue: number): number =>
  Atomics.load(words, slotsWord(queue)) & RUNNING_MASK;

/** Whether cells of a queue wait, and one more may run. */
export const isRunnable = (words: Int32Array, queue: number): boolean =>
  hasQueued(words, queue) && runningOf(words, queue) < limitOf(words, queue);

/** Main thread: lowers the running count for a lane whose thread has ended. */
export function endRunning(words: Int32Array, queue: number): void {
  Atomics.sub(words, slotsWord(queue), 1);
}

/** The masks of queues: those that may hold work, and those of which other executions wait for executions. */
export type QueueMask = typeof ACTIVE | typeof URGENT;

/** Main thread: puts a queue into a mask. */
export function markQueue(words: Int32Array, mask: QueueMask, queue: number): void {
  Atomics.or(words, mask + (queue >> 5), 1 << (queue & 31));
}

/** Main thread: takes a queue out of a mask. */
export function unmarkQueue(words: Int32Array, mask: QueueMask, queue: number): void {
  Atomics.and(words, mask + (queue >> 5), ~(1 << (queue & 31)));
}

/** Half of a mask: bit k of half 0 is queue k, bit k of half 1 is queue 32 + k. */
export const maskHalf = (words: Int32Array, mask: QueueMask, half: 0 | 1): number => Atomics.load(words, mask + half);
