import { OUTCOME_KINDS, type OutcomeKind } from '../abi/execution-outcome.ts';
import { counter, Durations, histogram, type Metric } from '../base/metric.ts';

/** Triggers with series of their own; those that come later are counted together, so that a scrape stays small. */
const TRIGGERS_MAX = 500;
/** No name of a plugin or trigger has brackets. */
const OTHERS = { plugin: '(others)', trigger: '(others)' } as const;

type Counted = { kind: OutcomeKind; queueWaitMs: number; runMs: number };

class OfTrigger {
  readonly labels: { plugin: string; trigger: string };
  readonly byOutcome = new Map<OutcomeKind, number>();
  readonly ran = new Durations();
  readonly waited = new Durations();

  constructor(labels: { plugin: string; trigger: string }) {
    this.labels = labels;
  }

  add({ kind, queueWaitMs, runMs }: Counted): void {
    this.byOutcome.set(kind, (this.byOutcome.get(kind) ?? 0) + 1);
    this.ran.add(runMs);
    this.waited.add(queueWaitMs);
  }
}

/** Counts executions by plugin, trigger and outcome since the process started, for metrics. */
export class ExecutionCounts {
  readonly #byPlugin = new Map<string, Map<string, OfTrigger>>();
  readonly #others = new OfTrigger(OTHERS);
  #triggers = 0;

  add(plugin: string, called: string, outcome: Counted): void {
    // The names of functions are the caller's to choose.
    const trigger = called.startsWith('call:') ? 'call' : called;
    (this.#byPlugin.get(plugin)?.get(trigger) ?? this.#newSeries(plugin, trigger)).add(outcome);
  }

  #newSeries(plugin: string, trigger: string): OfTrigger {
    if (this.#triggers >= TRIGGERS_MAX) return this.#others;
    this.#triggers++;
    const series = new OfTrigger({ plugin, trigger });
    const ofPlugin = this.#byPlugin.get(plugin);
    if (ofPlugin === undefined) this.#byPlugin.set(plugin, new Map([[trigger, series]]));
    else ofPlugin.set(trigger, series);
    return series;
  }

  metrics(): Metric[] {
    const all = [...this.#byPlugin.values()].flatMap(ofPlugin => [...ofPlugin.values()]);
    if (this.#others.byOutcome.size > 0) all.push(this.#others);
    const outcomes = all.flatMap(({ byOutcome, labels }) =>
      OUTCOME_KINDS.flatMap(outcome => {
        const count = byOutcome.get(outcome);
        return count === undefined ? [] : [[{ ...labels, outcome }, count] as const];
      }),
    );
    const seriesOf = (name: string, of: (trigger: OfTrigger) => Durations): Metric['values'] =>
      all.flatMap(trigger => of(trigger).series(name, trigger.labels));
    const ran = 'plugin_host_execution_duration_seconds';
    const waited = 'plugin_host_queue_wait_seconds';
    return [
      counter('plugin_host_executions_total', 'Executions that ended, by plugin, trigger and outcome.', outcomes),
      histogram(
        ran,
        'How long executions ran.',
        seriesOf(ran, t => t.ran),
      ),
      histogram(
        waited,
        'How long executions waited for a slot.',
        seriesOf(waited, t => t.waited),
      ),
    ];
  }
}
