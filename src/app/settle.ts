import { performance } from 'node:perf_hooks';
import { setTimeout as sleep } from 'node:timers/promises';

/** Share of a moment in which the event loop of a process that rests is busy. */
const BUSY_MAX = 0.2;
const MOMENT_MS = 150;
/** Two moments, because what waits for the database rests as well. */
const MOMENTS = 2;
const SETTLE_MS = 10_000;

/**
 * Waits until a process has done what follows its start, so that it is fast when clients come; ten seconds at most.
 *
 * @param hasStarted whether all its threads have started
 */
export async function settle(hasStarted: () => boolean): Promise<void> {
  const until = performance.now() + SETTLE_MS;
  for (let calm = 0; calm < MOMENTS && performance.now() < until; ) {
    const before = performance.eventLoopUtilization();
    await sleep(MOMENT_MS);
    const { utilization } = performance.eventLoopUtilization(before);
    calm = hasStarted() && utilization <= BUSY_MAX ? calm + 1 : 0;
  }
}
