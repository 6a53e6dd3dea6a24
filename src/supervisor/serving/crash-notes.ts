import type { Suspect } from '../../records/suspects.ts';
import { CrashCount } from './crash-count.ts';
import { MemoryWatch } from './memory-watch.ts';

/** Interval of the memory readings, and how old a reading may be to count as evidence for a kill. */
const MEMORY_LOOK_MS = 500;
const MEMORY_SEEN_MS = 3000;

/** Crashes of serving processes, and the plugin versions that the next process must suspend because of them. */
export class CrashNotes {
  readonly #crashes = new CrashCount();
  readonly #memory = new MemoryWatch();
  #timer: NodeJS.Timeout | null = null;
  /** Versions that the next serving process must suspend. */
  suspects: Suspect[] = [];

  /** Watches the memory, to tell later why a process was killed. */
  watch(): void {
    this.#timer = setInterval(() => this.#memory.look(performance.now()), MEMORY_LOOK_MS);
  }

  stop(): void {
    if (this.#timer !== null) clearInterval(this.#timer);
    this.#timer = null;
  }

  /** @param versions that the lanes were running. @returns those to suspend */
  note(versions: Set<number>, code: number | null, signal: NodeJS.Signals | null): Suspect[] {
    const atMs = performance.now();
    const memory = this.#memory.explain(atMs - MEMORY_SEEN_MS);
    const suspects = this.#crashes.note({ code, signal, versions, memory, atMs, at: new Date() });
    this.suspects = [...this.suspects, ...suspects];
    return suspects;
  }

  /** A process has suspended them. */
  suspended(suspects: readonly Suspect[]): void {
    this.suspects = this.suspects.filter(s => !suspects.includes(s));
  }
}
