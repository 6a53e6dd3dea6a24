import { messageOf } from './errors.ts';
import type { Log } from './log.ts';
import { Seldom } from './seldom.ts';

/** Repeats work at an interval. Runs never overlap; an error is logged and the next run tries again. */
export function runPeriodically(ms: number, log: Log, name: string, work: () => Promise<unknown>): () => Promise<void> {
  let running: Promise<unknown> = Promise.resolve();
  let busy = false;
  const seldom = new Seldom();
  const timer = setInterval(() => {
    if (busy) return;
    busy = true;
    running = work()
      .catch((error: unknown) => {
        const reason = messageOf(error);
        seldom.line(reason, more => log.warn({ error: reason, ...more }, `${name} failed; it is tried again`));
      })
      .finally(() => {
        busy = false;
      });
  }, ms);
  return async () => {
    clearInterval(timer);
    await running;
  };
}
