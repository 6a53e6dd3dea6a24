import type { Metric } from '../../base/metric.ts';
import type { ServingProcess } from './serving-process.ts';
import { SummedCounts } from './summed-counts.ts';

/** A process that has not answered by then is left out. */
const ANSWER_MS = 2000;

type Question = { unanswered: Set<ServingProcess>; found: Metric[][]; answered(): void };

/** Metrics that only grow; the others are of the moment. */
const isCounted = ({ type }: Metric): boolean => type !== 'gauge';

/** Asks the serving processes for their metrics. What those counted that have ended stays counted. */
export class MetricsQuestions {
  readonly #running: ReadonlySet<ServingProcess>;
  readonly #open = new Map<number, Question>();
  /** The counters of each process when it was last heard. */
  readonly #last = new Map<ServingProcess, Metric[]>();
  readonly #ended = new SummedCounts();
  #asked = 0;

  constructor(running: ReadonlySet<ServingProcess>) {
    this.#running = running;
  }

  /** The metrics of each process that answers in time, and what is counted of the others. */
  async ask(): Promise<Metric[][]> {
    const unanswered = new Set([...this.#running].filter(p => p.isReady));
    const number = ++this.#asked;
    const found: Metric[][] = [];
    if (unanswered.size > 0)
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
    return [...found, ...this.#countedBy(unanswered)];
  }

  /** @param late processes that have not answered this time */
  #countedBy(late: ReadonlySet<ServingProcess>): Metric[][] {
    for (const [serving, counted] of this.#last) {
      if (this.#running.has(serving)) continue;
      this.#last.delete(serving);
      this.#ended.add(counted);
    }
    const ofLate = [...late].flatMap(serving => this.#last.get(serving) ?? []);
    return [this.#ended.metrics(), ofLate].filter(metrics => metrics.length > 0);
  }

  answer(from: ServingProcess, number: number, metrics: Metric[]): void {
    if (this.#running.has(from)) this.#last.set(from, metrics.filter(isCounted));
    const question = this.#open.get(number);
    if (question?.unanswered.delete(from) !== true) return;
    question.found.push(metrics);
    if (question.unanswered.size === 0) question.answered();
  }
}
