import { z } from 'zod';

/** Names of Prometheus (its "Metric names and labels"); ours begin with `plugin_host_`. */
const NAME = /^[a-zA-Z_][a-zA-Z0-9_]*$/;

/**
 * A metric with its values, as one serving process has it, in the form in which prom-client puts those of several
 * processes together. Each process may leave out values; `sum` adds those with the same labels, `max` takes the largest.
 */
export const metric = z.object({
  name: z.string().regex(NAME),
  help: z.string(),
  type: z.enum(['counter', 'gauge', 'histogram']),
  aggregator: z.enum(['sum', 'max']),
  values: z.array(
    z.object({
      value: z.number(),
      labels: z.record(z.string().regex(NAME), z.union([z.string(), z.number()])),
      /** The series of a histogram: with `_bucket`, `_sum` or `_count` behind its name. */
      metricName: z.string().regex(NAME).optional(),
    }),
  ),
});
export type Metric = z.infer<typeof metric>;

type Labels = Readonly<Record<string, string>>;
type Value = readonly [labels: Labels, value: number];

const valuesOf = (values: number | readonly Value[]): Metric['values'] =>
  typeof values === 'number'
    ? [{ value: values, labels: {} }]
    : values.map(([labels, value]) => ({ value, labels: { ...labels } }));

/** A counter; its name ends with `_total`. */
export const counter = (name: string, help: string, values: number | readonly Value[]): Metric => ({
  name,
  help,
  type: 'counter',
  aggregator: 'sum',
  values: valuesOf(values),
});

/** What goes up and down. @param aggregator `max` for what every process sees in the same place, like the database */
export const gauge = (
  name: string,
  help: string,
  values: number | readonly Value[],
  aggregator: Metric['aggregator'] = 'sum',
): Metric => ({ name, help, type: 'gauge', aggregator, values: valuesOf(values) });

/** Upper bounds of the buckets of durations, in seconds: an execution ends after five at the latest. */
const BOUNDS = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5] as const;

/** How durations are distributed. */
export class Durations {
  readonly #buckets = new Float64Array(BOUNDS.length + 1);
  #sum = 0;

  add(ms: number): void {
    const seconds = ms / 1000;
    let k = 0;
    while (k < BOUNDS.length && seconds > BOUNDS[k]!) k++;
    this.#buckets[k]!++;
    this.#sum += seconds;
  }

  /** The series of a histogram with these labels. */
  series(name: string, labels: Labels): Metric['values'] {
    let count = 0;
    const buckets = [...BOUNDS, '+Inf'].map((le, k) => {
      count += this.#buckets[k]!;
      return { value: count, labels: { ...labels, le }, metricName: `${name}_bucket` };
    });
    return [
      ...buckets,
      { value: this.#sum, labels: { ...labels }, metricName: `${name}_sum` },
      { value: count, labels: { ...labels }, metricName: `${name}_count` },
    ];
  }
}

export const histogram = (name: string, help: string, values: Metric['values']): Metric => ({
  name,
  help,
  type: 'histogram',
  aggregator: 'sum',
  values,
});
