export type LogLine = { level: number; text: string };

/** What became of an execution. `no_slot`, `deadline`, `memory_budget` and `crashed` are the host's own verdicts. */
export const OUTCOME_KINDS = [
  'ok',
  'handler_error',
  'trapped',
  'exited',
  'invalid_response',
  'quota',
  'load_failed',
  'no_slot',
  'queue_full',
  'deadline',
  'memory_budget',
  'crashed',
  'draining',
] as const;
export type OutcomeKind = (typeof OUTCOME_KINDS)[number];

/**
 * An ended execution. `body` and `output` may be views of shared memory: they hold only until the callback returns.
 */
export type ExecutionOutcome = {
  kind: OutcomeKind;
  /** 0 when the handler gave no response. */
  status: number;
  /** Flat `name NUL value NUL` text. */
  headers: string;
  body: Uint8Array;
  /** Bytes handed to `output`. */
  output: Uint8Array;
  /** What went wrong, for the administrator; never shown to the caller. */
  failure: string;
  log: LogLine[];
  queueWaitMs: number;
  runMs: number;
  hostCalls: number;
  peakPages: number;
  /** When there will be room again, for executions that found none. */
  retryAfterSeconds?: number;
};

const EMPTY = new Uint8Array(0);

/** An outcome without an answer of the plugin. */
export function withoutAnswer(
  kind: OutcomeKind,
  failure: string,
  queueWaitMs: number,
  runMs: number,
): ExecutionOutcome {
  return {
    kind,
    status: 0,
    headers: '',
    body: EMPTY,
    output: EMPTY,
    failure,
    log: [],
    queueWaitMs,
    runMs,
    hostCalls: 0,
    peakPages: 0,
  };
}
