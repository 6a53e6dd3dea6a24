import type { Span, Tracing } from '../base/tracing.ts';
import type { AnswerCounts } from './answer-counts.ts';

type Answered = { path: string; span: Span | null };

/** What all exchanges of a server have in common, and what may change while it runs. */
export class Door {
  /** Lines of the head behind the request id, which comes last. */
  readonly after: string;
  readonly tracing: Tracing | null;
  /** Counts answers; null when no program reads the counts. */
  readonly #counts: AnswerCounts | null;
  #closing: { since: number; ms: number; connections: number; closed: number } | null = null;

  constructor(after: string, counts: AnswerCounts | null, tracing: Tracing | null = null) {
    this.after = after;
    this.#counts = counts;
    this.tracing = tracing;
  }

  /** @param since `performance.now()` when the head of the request had come in */
  answered({ path, span }: Answered, status: number, since: number): void {
    this.#counts?.answered(path, status, since);
    if (span === null) return;
    const attributes = { 'http.response.status_code': status };
    if (status >= 500) span.end(attributes, `answered ${status}`);
    else span.end(attributes);
  }

  /** @param code of the closed list of errors */
  refused({ span }: Answered, code: string): void {
    this.#counts?.refused(code);
    span?.describe(null, { 'error.type': code });
  }

  /**
   * Connections are closed behind their answers from now on, because another process takes their clients: few at first,
   * all after `ms`. The other process has run nothing yet, and is slow until its code is compiled.
   *
   * @param connections that are open now
   * @param now by `performance.now()`
   */
  close(ms: number, connections: number, now = performance.now()): void {
    this.#closing ??= { since: now, ms, connections, closed: 0 };
  }

  /** Whether the connection of the answer that is sent now is to be closed behind it; each question may close one. @param now by `performance.now()` */
  closesNext(now = performance.now()): boolean {
    const c = this.#closing;
    if (c === null) return false;
    const passed = (now - c.since) / c.ms;
    if (passed < 1 && c.closed >= c.connections * passed * passed) return false;
    c.closed++;
    return true;
  }
}
