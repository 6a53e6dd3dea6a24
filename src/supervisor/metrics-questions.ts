import type { Metric } from '../base/metric.ts';
import type { ServingProcess } from './serving-process.ts';

/** A process that has not answered by then is left out. */
const ANSWER_MS = 2000;

type Question = { unanswered: Set<ServingProcess>; found: Metric[][]; answered(): void };

/** Asks the serving processes for their metrics. */
export class MetricsQuestions {
  readonly #running: ReadonlySet<ServingProcess>;
  readonly #open = new Map<number, Question>();
  #asked = 0;

  constructor(running: ReadonlySet<ServingProcess>) {
    this.#running = running;
  }

  /** The metrics of each process that answers in time. */
  async ask(): Promise<Metric[][]> {
    const unanswered = new Set([...this.#running].filter(p => p.isReady));
    if (unanswered.size === 0) return [];
    const number = ++this.#asked;
    const found: Metric[][] = [];
    await new Promise<void>(resolve => {
      const late = setTimeout(resolve, ANSWER_MS);
      this.#open.set(number, {
        unanswered,
        found,
        answered() {
          clearTimeout(late);
          resolve();
        },
      });
      for (const serving of unanswered) serving.send({ kind: 'ask_metrics', number });
    });
    this.#open.delete(number);
    return found;
  }

  answer(from: ServingProcess, number: number, metrics: Metric[]): void {
    const question = this.#open.get(number);
    if (question?.unanswered.delete(from) !== true) return;
    question.found.push(metrics);
    if (question.unanswered.size === 0) question.answered();
  }
}
