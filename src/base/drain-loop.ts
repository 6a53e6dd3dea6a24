import { WakeableSleep } from './wakeable-sleep.ts';

export type DrainSteps<Held> = {
  /**
   * Takes what the work needs, such as a lock of the database.
   *
   * @param lost to be called when it is gone
   * @returns null when another host has it: that host does the work, and looks once more when it lets go
   */
  begin(lost: () => void): Promise<Held | null>;
  /** One pass over what waits. @returns when the next one is due, ms; null when nothing is left */
  pass(held: Held, ended: AbortSignal): Promise<number | null>;
  /** Waits for what is under way, and lets go of what was taken. */
  end(held: Held): Promise<void>;
  /** Whether something waits again: another host may have found the lock taken at the last moment. */
  isLeft(): Promise<boolean>;
  /** Called with an error that ended the work; the loop goes on when it is woken. */
  onError(error: unknown): void;
};

/** Work that is done when it is woken: takes a lock, makes passes until nothing is left, sleeping in between, and lets go. Never twice at once. */
export class DrainLoop<Held> {
  readonly #steps: DrainSteps<Held>;
  readonly #stop = new AbortController();
  readonly #idle = new WakeableSleep();
  #running: Promise<void> | null = null;
  #holds = false;
  /** Woken since the last pass began. */
  #again = false;

  constructor(steps: DrainSteps<Held>) {
    this.#steps = steps;
  }

  /** Whether it has what the work needs now. */
  get isAtWork(): boolean {
    return this.#holds;
  }

  /** There may be something to do. */
  wake(): void {
    this.#again = true;
    this.#idle.wake();
    if (this.#running !== null || this.#stop.signal.aborted) return;
    // Later, so that a step that wakes the loop finds it running.
    this.#running = Promise.resolve()
      .then(() => this.#run())
      .catch((error: unknown) => {
        // At once again it would only fail again.
        this.#again = false;
        this.#steps.onError(error);
      })
      .finally(() => {
        this.#running = null;
        if (this.#again) this.wake();
      });
  }

  async #run(): Promise<void> {
    while (this.#again && !this.#stop.signal.aborted) {
      const lost = new AbortController();
      const held = await this.#steps.begin(() => lost.abort());
      if (held === null) {
        this.#again = false;
        return;
      }
      try {
        this.#holds = true;
        await this.#drain(held, AbortSignal.any([lost.signal, this.#stop.signal]));
      } finally {
        this.#holds = false;
        await this.#steps.end(held);
      }
      if (!this.#stop.signal.aborted && (await this.#steps.isLeft())) this.#again = true;
    }
  }

  async #drain(held: Held, ended: AbortSignal): Promise<void> {
    while (!ended.aborted) {
      this.#again = false;
      const nextMs = await this.#steps.pass(held, ended);
      if (this.#again) continue;
      if (nextMs === null) return;
      if (nextMs > 0) await this.#idle.sleep(nextMs, ended);
    }
  }

  /** Ends after the pass under way; what is left waits for the next start. */
  async close(): Promise<void> {
    this.#stop.abort();
    await this.#running;
  }
}
