import type { ExecutionOutcome, OutcomeKind } from '../abi/execution-outcome.ts';
import { type ErrorCode, ServiceError, STATUS_OF } from '../base/errors.ts';
import { LIMITS } from '../base/limits.ts';

type Failure = Exclude<OutcomeKind, 'ok'>;

/** The error code a caller gets for each failure; the cause is in the execution record. */
const CODE: Record<Failure, ErrorCode> = {
  handler_error: 'plugin_error',
  trapped: 'plugin_trapped',
  exited: 'plugin_trapped',
  crashed: 'plugin_trapped',
  load_failed: 'internal',
  invalid_response: 'plugin_response_invalid',
  quota: 'plugin_quota_exceeded',
  no_slot: 'no_slot',
  queue_full: 'no_slot',
  deadline: 'deadline_exceeded',
  memory_budget: 'memory_budget',
  draining: 'draining',
};

/** `Retry-After` when no better estimate is known. */
const RETRY_SECONDS: Partial<Record<Failure, number>> = { no_slot: 1, queue_full: 1, memory_budget: 5, draining: 2 };

function detailOf(kind: Failure, o: ExecutionOutcome, timeoutMs: number): string {
  switch (kind) {
    case 'handler_error':
      return 'the handler of the plugin reported an error';
    case 'trapped':
    case 'exited':
    case 'crashed':
      return 'the plugin crashed while it handled the request';
    case 'load_failed':
      return 'the plugin could not be loaded';
    case 'invalid_response':
      // The text names a header or a limit of the plugin's own answer and nothing of the host.
      return `the plugin gave an invalid response: ${o.failure}`;
    case 'quota':
      return `the plugin exceeded a quota: ${o.failure}`;
    case 'no_slot':
      return `no slot was free in time: at most ${LIMITS.slotsPerPlugin} executions of a plugin run at once (slotsPerPlugin), and the request waited ${timeoutMs} ms`;
    case 'queue_full':
      // The text names a limit of the host.
      return o.failure;
    case 'deadline':
      return `the execution took longer than ${timeoutMs} ms`;
    case 'memory_budget':
      return "the execution was stopped because the host's memory budget was used up";
    case 'draining':
      return 'the host is shutting down';
  }
}

/** The refusal that answers a failed execution. */
export function outcomeReply(
  o: ExecutionOutcome,
  timeoutMs: number,
  headers: ReadonlyArray<readonly [string, string]>,
): { status: number; error: ServiceError } {
  const kind = o.kind === 'ok' ? 'crashed' : o.kind;
  const code = CODE[kind];
  const retry = RETRY_SECONDS[kind] === undefined ? undefined : (o.retryAfterSeconds ?? RETRY_SECONDS[kind]);
  const all = headers.map(([n, v]): [string, string] => [n, v]);
  if (retry !== undefined) all.push(['Retry-After', String(retry)]);
  return { status: STATUS_OF[code], error: new ServiceError(code, detailOf(kind, o, timeoutMs), { headers: all }) };
}
