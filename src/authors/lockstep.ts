import { LIMITS } from '../base/limits.ts';

/** An execution that makes no call keeps the others no longer than this. */
const HELD_MS_MAX = 250;
/** For how long the others wait until an execution has a thread, which may have to be started. */
const STARTING_MS_MAX = 2000;

/**
 * Lets executions of a test that run at the same time go on together, from host call to host call: each call is answered when
 * all others have made one, too, or have ended. So two callers who read a key before either writes it do so in every run,
 * and not by chance.
 */
export class Lockstep {
  #running = 0;
  /** Calls that are being answered. */
  #answering = 0;
  readonly #held: Array<() => void> = [];
  #timer: NodeJS.Timeout | null = null;
  /** When a call was first held. */
  #heldAt = 0;
  readonly #threads: () => number;

  /** @param threads how many threads are ready to run executions */
  constructor(threads: () => number) {
    this.#threads = threads;
  }

  /** An execution begins. */
  begin(): void {
    this.#running++;
  }

  /** An execution has ended. */
  end(): void {
    this.#running--;
    this.#look();
  }

  /** Answers a host call in its turn. */
  answer<T>(work: () => T | Promise<T>): T | Promise<T> {
    return this.#running <= 1 ? work() : this.#later(work);
  }

  async #later<T>(work: () => T | Promise<T>): Promise<T> {
    await new Promise<void>(resolve => {
      if (this.#held.push(resolve) === 1) this.#heldAt = performance.now();
      this.#timer ??= setTimeout(() => this.#late(), HELD_MS_MAX);
      this.#look();
    });
    this.#answering++;
    try {
      return await work();
    } finally {
      this.#answering--;
      this.#look();
    }
  }

  /** A call was held for long: it waits on only for an execution whose thread is not ready. */
  #late(): void {
    const haveThreads = this.#threads() >= Math.min(this.#running, LIMITS.slotsPerPlugin);
    if (haveThreads || performance.now() - this.#heldAt > STARTING_MS_MAX) return this.#go();
    this.#timer = setTimeout(() => this.#late(), HELD_MS_MAX);
  }

  #look(): void {
    const expected = Math.min(this.#running, LIMITS.slotsPerPlugin) - this.#answering;
    if (this.#held.length > 0 && this.#held.length >= expected) this.#go();
  }

  #go(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
    for (const answer of this.#held.splice(0)) answer();
  }
}
