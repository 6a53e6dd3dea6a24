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
