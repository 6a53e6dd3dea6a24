import { counter, Durations, histogram, type Metric } from '../base/metric.ts';

/** Labels of paths: few, whatever clients ask for. */
const KINDS = [
  ['trigger', '/api/triggers/'],
  ['api', '/api/'],
  ['plugin_page', '/plugins/'],
] as const;
type Kind = (typeof KINDS)[number][0] | 'page';

const kindOf = (path: string): Kind => KINDS.find(([, start]) => path.startsWith(start))?.[0] ?? 'page';

class OfKind {
  readonly byStatus = new Map<number, number>();
  readonly durations = new Durations();
}

/** Counts the answers of a server since the process started, for metrics. */
export class AnswerCounts {
  readonly #byKind = new Map<Kind, OfKind>();
  readonly #refused = new Map<string, number>();

  /** @param since `performance.now()` when the head of the request had come in */
  answered(path: string, status: number, since: number): void {
    const kind = kindOf(path);
    let counts = this.#byKind.get(kind);
    if (counts === undefined) {
      counts = new OfKind();
      this.#byKind.set(kind, counts);
    }
    counts.byStatus.set(status, (counts.byStatus.get(status) ?? 0) + 1);
    counts.durations.add(performance.now() - since);
  }

  /** @param code of the closed list of errors */
  refused(code: string): void {
    this.#refused.set(code, (this.#refused.get(code) ?? 0) + 1);
  }

  metrics(): Metric[] {
    const all = [...this.#byKind];
    const name = 'plugin_host_http_request_duration_seconds';
    return [
      counter(
        'plugin_host_http_requests_total',
        'Requests that were answered, by what they were for and by status.',
        all.flatMap(([kind, { byStatus }]) =>
          [...byStatus].map(([status, count]) => [{ kind, status: String(status) }, count] as const),
        ),
      ),
      histogram(
        name,
        'Time from the head of a request to the beginning of its answer.',
        all.flatMap(([kind, { durations }]) => durations.series(name, { kind })),
      ),
      counter(
        'plugin_host_refusals_total',
        'Answers with an error, by its code.',
        [...this.#refused].map(([code, count]) => [{ code }, count] as const),
      ),
    ];
  }
}
