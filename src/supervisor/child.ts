import { type ChildProcess, spawn } from 'node:child_process';

const BACKOFF_MS = [0, 0, 0, 100, 200, 400, 800, 1600, 3200, 6400, 10_000] as const;
/** A child that was ready for this time counts as started; its next end is not a failed start. */
const QUIET_MS = 3000;

/**
 * How long to wait before the next start of a child: not at all if the child had been ready for a while, otherwise
 * longer each time.
 */
export class Backoff {
  #failures = 0;
  #readyAt: number | null = null;

  /** @param nowMs monotonic time at which the child became ready */
  ready(nowMs: number): void {
    this.#readyAt = nowMs;
  }

  /** @param nowMs monotonic time at which the child ended */
  next(nowMs: number): number {
    if (this.#readyAt !== null && nowMs - this.#readyAt >= QUIET_MS) this.#failures = 0;
    this.#readyAt = null;
    const wait = BACKOFF_MS[Math.min(this.#failures, BACKOFF_MS.length - 1)] ?? 0;
    this.#failures++;
    return wait;
  }
}

/** Waits for the child to exit. @returns false when it still runs after `ms` */
export function exited(child: ChildProcess, ms: number): Promise<boolean> {
  if (child.exitCode !== null || child.signalCode !== null) return Promise.resolve(true);
  return new Promise(resolve => {
    const timer = setTimeout(() => resolve(false), ms);
    child.once('exit', () => {
      clearTimeout(timer);
      resolve(true);
    });
  });
}

/**
 * Starts a program that must not outlive this process, even if this process is killed: a shell holds the read end of a
 * pipe and interrupts the program when the pipe closes. The child is in a separate process group, so that Ctrl-C
 * reaches only the supervisor, which stops its children in order.
 *
 * @param signal shell name of the signal that makes the program stop cleanly
 */
export function spawnGuarded(
  command: string,
  args: readonly string[],
  signal: string,
  env: NodeJS.ProcessEnv,
): ChildProcess {
  const script = `
    exec 3<&0
    "$@" 3<&- </dev/null &
    child=$!
    { cat <&3 >/dev/null; kill -${signal} $child 2>/dev/null; } &
    wait $child
    code=$?
    exit $code`;
  return spawn('/bin/sh', ['-c', script, 'sh', command, ...args], {
    stdio: ['pipe', 'pipe', 'pipe'],
    detached: true,
    env,
  });
}
