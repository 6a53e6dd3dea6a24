import { BELL, BELL_BITS, BELL_WANTED } from './shared-layout.ts';

/**
 * How lanes get the main thread's attention. A lane first marks itself in the bell word; then, only if the main thread
 * sleeps, one lane posts a doorbell message. A message costs more than a short execution.
 */

/** Lane: marks itself, so that the main thread serves it when it next looks at the lanes. */
export function markLane(words: Int32Array, lane: number): void {
  Atomics.or(words, BELL, 1 << (lane % BELL_BITS));
}

/** Lane: whether it has to post a doorbell message: the main thread sleeps, and no other lane has woken it. */
export const mustRing = (words: Int32Array): boolean => Atomics.and(words, BELL, ~BELL_WANTED) < 0;

/** Main thread: asks for a doorbell message, whatever the lanes have marked. */
export function wantBell(words: Int32Array): void {
  Atomics.store(words, BELL, BELL_WANTED);
}

/** Main thread: it will look at the lanes by itself; no lane has to ring until `sleepUnlessMarked`. */
export function silenceBell(words: Int32Array): void {
  Atomics.and(words, BELL, ~BELL_WANTED);
}

/** Main thread: whether a lane has marked itself since `takeMarks`; only while the bell is silenced. */
export const isMarked = (words: Int32Array): boolean => Atomics.load(words, BELL) !== 0;

/** Main thread: marks all lanes, because a thread may have ended before it could do so itself. */
export function markAllLanes(words: Int32Array): void {
  Atomics.or(words, BELL, ~BELL_WANTED);
}

/** Main thread: takes the marks, and silences the bell. @returns bit k for the lanes whose index is k modulo 31 */
export const takeMarks = (words: Int32Array): number => Atomics.exchange(words, BELL, 0) & ~BELL_WANTED;

/** Main thread: asks for a doorbell message. @returns false if a lane has marked itself meanwhile */
export const sleepUnlessMarked = (words: Int32Array): boolean =>
  Atomics.compareExchange(words, BELL, 0, BELL_WANTED) === 0;
