import type { PluginRuntime } from './plugin-runtime.ts';

/** Plugin versions a lane keeps; the least recently used one is removed first. */
const RUNTIMES_MAX = 64;

/**
 * The plugin versions a lane has run, and the memories it keeps for their next executions: both bounded, and what was
 * used least recently goes first.
 */
export class RuntimeCache {
  readonly #runtimes = new Map<number, PluginRuntime>();
  readonly #warmBytesMax: number;
  #warmBytes = 0;
  #last = -1;

  /** @param warmBytesMax of all kept memories together */
  constructor(warmBytesMax: number) {
    this.#warmBytesMax = warmBytesMax;
  }

  /** Looks without counting it as a use. */
  peek(id: number): PluginRuntime | undefined {
    return this.#runtimes.get(id);
  }

  get(id: number): PluginRuntime | undefined {
    const known = this.#runtimes.get(id);
    if (known === undefined || id === this.#last) return known;
    this.#last = id;
    this.#runtimes.delete(id);
    this.#runtimes.set(id, known);
    return known;
  }

  add(id: number, runtime: PluginRuntime): void {
    if (this.#runtimes.size >= RUNTIMES_MAX) {
      const [oldest] = this.#runtimes;
      if (oldest !== undefined) {
        this.#warmBytes -= oldest[1].warmBytes;
        this.#runtimes.delete(oldest[0]);
      }
    }
    this.#last = id;
    this.#runtimes.set(id, runtime);
  }

  /**
   * Ends the execution of a runtime.
   *
   * @param clean whether the guest returned normally
   * @returns whether its memory is kept
   */
  release(runtime: PluginRuntime, clean: boolean): boolean {
    const kept = runtime.release(clean);
    if (!kept) return false;
    this.#warmBytes += runtime.warmBytes;
    if (this.#warmBytes > this.#warmBytesMax) this.#giveUpOldest();
    return runtime.warmBytes > 0;
  }

  /** Call it before an execution: its runtime then holds the memory itself. */
  begin(runtime: PluginRuntime): void {
    this.#warmBytes -= runtime.warmBytes;
  }

  #giveUpOldest(): void {
    for (const runtime of this.#runtimes.values()) {
      if (this.#warmBytes <= this.#warmBytesMax) return;
      this.#warmBytes -= runtime.warmBytes;
      runtime.giveUp();
    }
  }

  /** Forgets everything. */
  clear(): void {
    this.#runtimes.clear();
    this.#warmBytes = 0;
    this.#last = -1;
  }
}
