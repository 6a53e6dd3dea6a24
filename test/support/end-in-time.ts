import { isMainThread } from 'node:worker_threads';
import type { Base as Running } from 'tap';

/** How long a test process may live when its last subtest is over. Building what the next one needs may take as long on a busy machine. */
const END_MS = 60_000;
const LOOK_MS = 500;

/**
 * Loaded into every test process: one that does not end says what keeps it, and fails. Without this the time limit of its file would end
 * it, which says nothing. One whose runner has been killed ends as well.
 *
 * Threads of the process load it too and are left alone: in each the library would begin a report of its own, and give up after 30 s.
 */
if (isMainThread) {
  const { Base, default: t } = await import('tap');
  // The folder of a test goes before teardowns that were registered after it was made, unless there is one from before: then it goes
  // last, when nothing that the test has started writes to it any more.
  t.beforeEach(test => test.teardown(() => {}));
  const runner = process.ppid;
  /** From the outermost to the innermost. */
  const running = new Set<Running>();
  let endedAt = Number.POSITIVE_INFINITY;
  const follow = (test: Running): void => {
    test.on('subtestStart', inner => {
      if (!(inner instanceof Base)) return;
      running.add(inner);
      follow(inner);
    });
    test.on('subtestEnd', inner => {
      if (inner instanceof Base) running.delete(inner);
      endedAt = performance.now();
    });
  };
  follow(t);
  process.on('uncaughtException', (error, origin) => {
    // The library writes into the error.
    const open = Object.isExtensible(error) ? error : new Error(String(error), { cause: error });
    ([...running].at(-1) ?? t).hookDomain.onerror(open, origin);
    // The library only prints what comes after the last test has ended.
    if (t.results) process.exitCode = 1;
  });
  const look = setInterval(() => {
    if (process.ppid !== runner) process.exit(1);
    if (running.size > 0 || performance.now() - endedAt < END_MS) return;
    const kept = process.getActiveResourcesInfo().join(', ');
    clearInterval(look);
    t.fail(`the process has not ended ${END_MS / 1000} s after its last test; it is kept by: ${kept}`);
    t.end();
    setTimeout(() => process.exit(1), LOOK_MS);
  }, LOOK_MS);
  // Looking keeps no process.
  look.unref();
}
