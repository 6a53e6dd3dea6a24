/** A wait that ends early when somebody wakes the sleeper. */
export class Nap {
  #wake: () => void = () => {};

  /** @param signal ends it too, and for good */
  take(ms: number, signal: AbortSignal): Promise<void> {
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
