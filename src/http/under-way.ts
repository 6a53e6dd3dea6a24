type Batch = { open: number; over: (() => void) | null };

/**
 * Counts requests without an answer. Not a set of promises: it would be filled and emptied at each request
 * (`base/reused-entries` says what that costs).
 */
export class UnderWay {
  #batch: Batch = { open: 0, over: null };
  #before: Promise<unknown> = Promise.resolve();

  /** Counts one more. @returns what to call when it has ended */
  begin(): () => void {
    const batch = this.#batch;
    batch.open++;
    return () => {
      if (--batch.open === 0) batch.over?.();
    };
  }

  /** Resolves when all that have begun until now have ended. */
  async ended(): Promise<void> {
    const batch = this.#batch;
    this.#batch = { open: 0, over: null };
    const over = batch.open === 0 ? null : new Promise<void>(resolve => (batch.over = resolve));
    this.#before = Promise.all([this.#before, over]);
    await this.#before;
  }
}
