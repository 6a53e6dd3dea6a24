import type { LaneWords } from '../src/abi/lane-words.ts';
import { hasQueued, isRunnable, maskHalf, runningOf, takeCell } from '../src/abi/run-queue.ts';
import { ACTIVE, QUEUE_COUNT, URGENT } from '../src/abi/shared-layout.ts';

/** An execution a lane has taken: it counts as running in its queue. */
export type Taken = { queue: number; cell: number };

/**
 * Takes the next execution: plugins in turns, starting after the one served last. In three of four turns, executions
 * that others wait for come first, because the waiting ones hold threads. Not in every turn, or plugins that call each
 * other would delay all others.
 *
 * @param own words of the lane, in which the execution it takes is noted at once
 * @param after number of the last turn; decides the queue to begin with
 * @returns null when there is nothing this lane may run
 */
export function takeWork(words: Int32Array, own: LaneWords, after: number): Taken | null {
  const low = maskHalf(words, ACTIVE, 0);
  const high = maskHalf(words, ACTIVE, 1);
  if ((low | high) === 0) return null;
  if ((own.sequence & 3) !== 3) {
    const urgentLow = low & maskHalf(words, URGENT, 0);
    const urgentHigh = high & maskHalf(words, URGENT, 1);
    if ((urgentLow | urgentHigh) !== 0) {
      const taken = takeFrom(words, own.lane, after, urgentLow, urgentHigh);
      if (taken !== null) return taken;
    }
  }
  return takeFrom(words, own.lane, after, low, high);
}

/** Takes the next execution from the queues named in two halves of a mask. */
function takeFrom(words: Int32Array, lane: number, after: number, low: number, high: number): Taken | null {
  for (let k = 0; k < QUEUE_COUNT; k++) {
    const queue = (after + k) & (QUEUE_COUNT - 1);
    if ((((queue < 32 ? low : high) >>> (queue & 31)) & 1) === 0) continue;
    const cell = takeCell(words, queue, lane);
    if (cell >= 0) return { queue, cell };
  }
  return null;
}

/** Whether any queue holds work that a free slot of its plugin would let run. */
export function mayTake(words: Int32Array): boolean {
  for (const half of [0, 1] as const) {
    let mask = maskHalf(words, ACTIVE, half);
    while (mask !== 0) {
      const bit = 31 - Math.clz32(mask & -mask);
      mask &= mask - 1;
      if (isRunnable(words, half * 32 + bit)) return true;
    }
  }
  return false;
}

/** Whether the lane's execution is the only one: nothing waits and nothing else runs. */
export function isAlone(words: Int32Array): boolean {
  let running = 0;
  for (const half of [0, 1] as const) {
    let mask = maskHalf(words, ACTIVE, half);
    while (mask !== 0) {
      const bit = 31 - Math.clz32(mask & -mask);
      mask &= mask - 1;
      const queue = half * 32 + bit;
      if (hasQueued(words, queue)) return false;
      running += runningOf(words, queue);
    }
  }
  return running <= 1;
}
