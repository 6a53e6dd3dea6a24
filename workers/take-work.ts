import { ACTIVE, LANE, QUEUE, QUEUE_COUNT, queueAt, RING_MASK, URGENT } from '../src/abi/shared-layout.ts';

/** An execution a lane has taken: it counts as running in its queue. */
export type Taken = { queue: number; slot: number };

/**
 * Takes the next execution: plugins in turns, starting after the one served last. In three of four turns, executions
 * that others wait for come first, because the waiting ones hold threads. Not in every turn, or plugins that call each
 * other would delay all others.
 *
 * @param laneWords word index of the lane, where the slot it takes is noted at once
 * @param after number of the last turn; decides the queue to begin with
 * @returns null when there is nothing this lane may run
 */
export function takeWork(words: Int32Array, laneWords: number, after: number): Taken | null {
  const low = Atomics.load(words, ACTIVE);
  const high = Atomics.load(words, ACTIVE + 1);
  if ((low | high) === 0) return null;
  if ((words[laneWords + LANE.sequence]! & 3) !== 3) {
    const urgentLow = low & Atomics.load(words, URGENT);
    const urgentHigh = high & Atomics.load(words, URGENT + 1);
    if ((urgentLow | urgentHigh) !== 0) {
      const taken = takeFrom(words, laneWords, after, urgentLow, urgentHigh);
      if (taken !== null) return taken;
    }
  }
  return takeFrom(words, laneWords, after, low, high);
}

/** Takes the next execution from the queues named in two mask words. */
function takeFrom(words: Int32Array, laneWords: number, after: number, low: number, high: number): Taken | null {
  for (let k = 0; k < QUEUE_COUNT; k++) {
    const q = (after + k) & (QUEUE_COUNT - 1);
    if ((((q < 32 ? low : high) >>> (q & 31)) & 1) === 0) continue;
    const at = queueAt(q);
    for (;;) {
      const head = Atomics.load(words, at + QUEUE.head);
      if (head === Atomics.load(words, at + QUEUE.tail)) break;
      if (Atomics.add(words, at + QUEUE.running, 1) >= Atomics.load(words, at + QUEUE.limit)) {
        Atomics.sub(words, at + QUEUE.running, 1);
        break;
      }
      const slot = words[at + QUEUE.ring + (head & RING_MASK)]!;
      if (Atomics.compareExchange(words, at + QUEUE.head, head, (head + 1) | 0) === head) {
        words[laneWords + LANE.queue] = q;
        words[laneWords + LANE.sequence] = (words[laneWords + LANE.sequence]! + 1) | 0;
        Atomics.store(words, laneWords + LANE.current, slot + 1);
        return { queue: q, slot };
      }
      Atomics.sub(words, at + QUEUE.running, 1);
    }
  }
  return null;
}

/** Whether any queue holds work that a free slot of its plugin would let run. */
export function mayTake(words: Int32Array): boolean {
  for (let half = 0; half < 2; half++) {
    let mask = Atomics.load(words, ACTIVE + half);
    while (mask !== 0) {
      const bit = 31 - Math.clz32(mask & -mask);
      mask &= mask - 1;
      const at = queueAt(half * 32 + bit);
      if (
        Atomics.load(words, at + QUEUE.head) !== Atomics.load(words, at + QUEUE.tail) &&
        Atomics.load(words, at + QUEUE.running) < Atomics.load(words, at + QUEUE.limit)
      )
        return true;
    }
  }
  return false;
}

/** Whether the lane's execution is the only one: nothing waits and nothing else runs. */
export function isAlone(words: Int32Array): boolean {
  let running = 0;
  for (let half = 0; half < 2; half++) {
    let mask = Atomics.load(words, ACTIVE + half);
    while (mask !== 0) {
      const bit = 31 - Math.clz32(mask & -mask);
      mask &= mask - 1;
      const at = queueAt(half * 32 + bit);
      if (Atomics.load(words, at + QUEUE.head) !== Atomics.load(words, at + QUEUE.tail)) return false;
      running += Atomics.load(words, at + QUEUE.running);
    }
  }
  return running <= 1;
}
