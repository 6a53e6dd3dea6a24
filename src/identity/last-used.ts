/**
 * Collects last-used times and writes them in batches, so that requests do not wait for the write and a busy token does
 * not cause many updates of its row. `write` gets the newest time of each credential.
 */
export class LastUsed {
  readonly #write: (entries: ReadonlyArray<{ id: number; at: Date }>) => Promise<void>;
  readonly #onError: (error: unknown) => void;
  #pending = new Map<number, number>();

  constructor(
    write: (entries: ReadonlyArray<{ id: number; at: Date }>) => Promise<void>,
    onError: (error: unknown) => void,
  ) {
    this.#write = write;
    this.#onError = onError;
  }

  note(id: number, nowMs: number): void {
    this.#pending.set(id, nowMs);
  }

  async flush(): Promise<void> {
    if (this.#pending.size === 0) return;
    const batch = this.#pending;
    this.#pending = new Map();
    try {
      await this.#write([...batch].map(([id, at]) => ({ id, at: new Date(at) })));
    } catch (error) {
      for (const [id, at] of batch) if (!this.#pending.has(id)) this.#pending.set(id, at);
      this.#onError(error);
    }
  }
}
