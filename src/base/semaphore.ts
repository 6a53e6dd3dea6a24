/** Lets work run a few at a time, in the order it came. */
export class InTurn {
  #free: number;
  readonly #waiting: Array<() => void> = [];

  /** @param atOnce how many may run together */
  constructor(atOnce: number) {
    this.#free = atOnce;
  }

  /** Waits for a place, runs the work, and hands the place on whatever became of it. */
  async run<T>(work: () => Promise<T>): Promise<T> {
    if (this.#free === 0) await new Promise<void>(resolve => this.#waiting.push(resolve));
    else this.#free--;
    try {
      return await work();
    } finally {
      // The place goes to the next in line without becoming free in between.
      const next = this.#waiting.shift();
      if (next === undefined) this.#free++;
      else next();
    }
  }
}
