/** A sleep that `wake` ends early. */
export class WakeableSleep {
  #wake: () => void = () => {};

  /**
   * Sleeps until the time is over, `wake` is called, or `signal` is aborted. Returns at once if `signal` is aborted
   * already.
   */
  sleep(ms: number, signal: AbortSignal): Promise<void> {
    if (signal.aborted) return Promise.resolve();
    return new Promise(resolve => {
      const end = (): void => {
        clearTimeout(timer);
        signal.removeEventListener('abort', end);
        resolve();
      };
      const timer = setTimeout(end, ms);
      signal.addEventListener('abort', end);
      this.#wake = end;
    });
  }

  wake(): void {
    this.#wake();
  }
}
