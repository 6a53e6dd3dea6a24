import type { Metric } from '../../base/metric.ts';

type Value = Metric['values'][number];

const keyOf = ({ labels, metricName = '' }: Value): string =>
  JSON.stringify([metricName, Object.entries(labels).sort(([a], [b]) => (a < b ? -1 : 1))]);

/** Counters and histograms of processes that have ended, added up: a count never falls because a process ends. */
export class SummedCounts {
  readonly #metrics = new Map<string, { metric: Metric; values: Map<string, Value> }>();

  add(counted: readonly Metric[]): void {
    for (const metric of counted) {
      const sum = this.#metrics.get(metric.name) ?? { metric, values: new Map<string, Value>() };
      this.#metrics.set(metric.name, sum);
      for (const value of metric.values) {
        const before = sum.values.get(keyOf(value))?.value ?? 0;
        sum.values.set(keyOf(value), { ...value, value: before + value.value });
      }
    }
  }

  metrics(): Metric[] {
    return [...this.#metrics.values()].map(({ metric, values }) => ({ ...metric, values: [...values.values()] }));
  }
}
