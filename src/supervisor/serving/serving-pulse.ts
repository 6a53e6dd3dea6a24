import type { ServingProcess } from './serving-process.ts';

/** Interval of the questions, and how many a process may leave without an answer. */
const ASK_MS = 2000;
const UNANSWERED_MAX = 10;

/**
 * Asks each serving process every two seconds whether its event loop turns, and kills one that has not answered for
 * twenty: its connections would wait for ever, and the kernel would go on giving it new ones. Counts questions instead
 * of time, so that a machine that was suspended does not look like a process that hangs.
 */
export class ServingPulse {
  readonly #running: Iterable<ServingProcess>;
  readonly #warn: (text: string) => void;
  #timer: NodeJS.Timeout | null = null;

  constructor(running: Iterable<ServingProcess>, warn: (text: string) => void) {
    this.#running = running;
    this.#warn = warn;
  }

  start(): void {
    this.#timer = setInterval(() => this.#ask(), ASK_MS);
  }

  stop(): void {
    if (this.#timer !== null) clearInterval(this.#timer);
    this.#timer = null;
  }

  /** Whether every process answers; one that does not was killed, and has not ended yet. */
  get isBeating(): boolean {
    for (const serving of this.#running) if (serving.unanswered > UNANSWERED_MAX) return false;
    return true;
  }

  #ask(): void {
    for (const serving of this.#running) {
      if (!serving.isReady) continue;
      if (++serving.unanswered > UNANSWERED_MAX) {
        const seconds = (UNANSWERED_MAX * ASK_MS) / 1000;
        this.#warn(`the serving process ${serving.pid} has not answered for ${seconds} s; it is killed`);
        serving.child.kill('SIGKILL');
      } else serving.send({ kind: 'ask_alive' });
    }
  }
}
