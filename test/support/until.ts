import { setTimeout as sleep } from 'node:timers/promises';

/**
 * Waits until something holds, and looks every 5 ms.
 *
 * @param ms generous: on a busy machine a serving process takes half a minute to start
 * @returns true
 * @throws Error with the condition when it does not hold in time
 */
export async function until(holds: () => boolean | Promise<boolean>, ms = 120_000): Promise<true> {
  for (const end = Date.now() + ms; !(await holds()); await sleep(5))
    if (Date.now() > end) throw new Error(`this did not hold within ${ms / 1000} s: ${holds}`);
  return true;
}
