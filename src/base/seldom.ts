const AGAIN_MS = 60_000;

/** How many of equal log lines are written: while something is away, each attempt would write one. */
export class Seldom {
  readonly #againMs: number;
  readonly #last = new Map<string, { at: number; leftOut: number }>();

  /** @param againMs how soon an equal line is written again */
  constructor(againMs = AGAIN_MS) {
    this.#againMs = againMs;
  }

  /**
   * Calls `write` for the first line of a kind, and for one that comes a while after the last.
   *
   * @param kind what makes lines equal; one of a few
   * @param write gets the fields for the line that say how many were left out since the last; none when none were
   */
  line(kind: string, write: (more: { left_out?: number }) => void, now = performance.now()): void {
    const before = this.#last.get(kind);
    if (before !== undefined && now - before.at < this.#againMs) {
      before.leftOut++;
      return;
    }
    this.#last.set(kind, { at: now, leftOut: 0 });
    write(before === undefined || before.leftOut === 0 ? {} : { left_out: before.leftOut });
  }
}
