import type { Span, Tracing } from '../base/tracing.ts';
import type { AnswerCounts } from './answer-counts.ts';
import { requestSpan } from './trace-context.ts';
import type { WaitingAnswers } from './waiting-answers.ts';

type Answered = { path: string; span: Span | null };

/** Share of the clients that a process which takes over gets first: it is slow until its code is compiled. */
const FIRST_SHARE = 1 / 64;

/**
 * The share of the clients that a process which takes over has at a point of the time for it: it doubles six times.
 *
 * @param passed part of the time that has passed, 0 to 1
 */
export const takeOverShare = (passed: number): number => (passed >= 1 ? 1 : FIRST_SHARE ** (1 - Math.max(0, passed)));

/**
 * How often each connection is closed on average. While the share of the new connections that the other process takes
 * grows as above, so does the share of clients it has.
 */
const CLOSED_TIMES = -Math.log(FIRST_SHARE);

/** What all exchanges of a server have in common, and what may change while it runs. */
export class Door {
  /** Lines of the head behind the request id, which comes last. */
  readonly after: string;
  /** What clients have not taken yet. */
  readonly waiting: WaitingAnswers;
  readonly #tracing: Tracing | null;
  /** Whether the trace context of a peer counts (`tracing.trust`). */
  readonly #trusts: (peer: string) => boolean;
  /** Counts answers; null when no program reads the counts. */
  readonly #counts: AnswerCounts | null;
  #closing: { since: number; ms: number; connections: number; closed: number } | null = null;

  constructor(
    after: string,
    waiting: WaitingAnswers,
    counts: AnswerCounts | null,
    tracing: Tracing | null = null,
    trusts: (peer: string) => boolean = () => false,
  ) {
    this.after = after;
    this.waiting = waiting;
    this.#counts = counts;
    this.#tracing = tracing;
    this.#trusts = trusts;
  }

  /** The span of a request; null without tracing. */
  spanOf(
    method: string,
    headers: Readonly<Record<string, string>>,
    requestId: string,
    peer: () => string,
  ): Span | null {
    if (this.#tracing === null) return null;
    const trusted = headers.traceparent !== undefined && this.#trusts(peer());
    return requestSpan(this.#tracing, method, headers, requestId, trusted);
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
   * Connections are closed behind their answers from now on, because another process takes their clients
   * (`takeOverShare`), all after `ms`.
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
    if (passed < 1 && c.closed >= c.connections * CLOSED_TIMES * passed) return false;
    c.closed++;
    return true;
  }
}
