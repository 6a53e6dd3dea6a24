import type { ServingProcess } from './serving-process.ts';

/**
 * Passes on the question of a serving process whether the others have heard of a change, and gives the answer when all of
 * them have. A process that ends is not waited for.
 */
export class HeardQuestions {
  readonly #running: ReadonlySet<ServingProcess>;
  /** Processes that have yet to answer, by question. */
  readonly #open = new Map<string, { by: ServingProcess; number: number; unheard: Set<ServingProcess> }>();

  constructor(running: ReadonlySet<ServingProcess>) {
    this.#running = running;
  }

  ask(by: ServingProcess, number: number): void {
    const unheard = new Set([...this.#running].filter(p => p !== by && p.isReady));
    if (unheard.size === 0) return by.send({ kind: 'heard', number });
    this.#open.set(`${by.pid} ${number}`, { by, number, unheard });
    for (const other of unheard) other.send({ kind: 'ask_heard', by: by.pid, number });
  }

  /** A process has heard what was asked by a process with a number. */
  answer(from: ServingProcess, by: number, number: number): void {
    this.#note(`${by} ${number}`, from);
  }

  #note(key: string, from: ServingProcess): void {
    const question = this.#open.get(key);
    if (question?.unheard.delete(from) !== true || question.unheard.size > 0) return;
    this.#open.delete(key);
    question.by.send({ kind: 'heard', number: question.number });
  }

  ended(serving: ServingProcess): void {
    for (const [key, { by }] of [...this.#open]) {
      if (by === serving) this.#open.delete(key);
      else this.#note(key, serving);
    }
  }
}
