/** How long a job lasts. */
const TURN_MS = 3000;
/** For how long after a delivery another job follows: what is appended then need not wait for one. */
const WARM_MS = 30_000;

/** The time in which this host may deliver: as long as it runs the job of the queue (docs/outbox.md "The job"). */
export class DeliveryTurn {
  #settle: ((error: Error | null) => void) | null = null;
  #ended: AbortSignal | null = null;
  #until = 0;
  #warmUntil = 0;

  get isOurs(): boolean {
    return this.#settle !== null;
  }

  /** Whether another job has to follow. */
  get isWarm(): boolean {
    return performance.now() < this.#warmUntil;
  }

  /**
   * @param ended aborted when the turn has to end
   * @returns when the turn has ended
   * @throws Error why nothing could be delivered
   */
  begin(ended: AbortSignal): Promise<void> {
    this.end(null);
    this.#ended = ended;
    this.#until = performance.now() + TURN_MS;
    return new Promise((resolve, reject) => {
      this.#settle = error => (error === null ? resolve() : reject(error));
    });
  }

  /** Something was delivered: more may follow soon. */
  delivered(): void {
    this.#warmUntil = performance.now() + WARM_MS;
  }

  /** @returns how long the turn still lasts, ms; infinite without one, which need not be ended */
  leftMs(): number {
    if (!this.isOurs) return Number.POSITIVE_INFINITY;
    if (this.#ended?.aborted === true) return 0;
    return Math.max(0, this.#until - performance.now());
  }

  /** Ends the job. @param error why it failed, or null */
  end(error: Error | null): void {
    this.#settle?.(error);
    this.#settle = null;
  }
}
