export type LogLine = { level: number; text: string };

/** How an execution ended. The host, not the lane, decides `no_slot`, `deadline`, `memory_budget` and `crashed`. */
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
 * An ended execution. `body` and `output` may be views of shared memory, which are valid only until the callback
 * returns.
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
  /** What a recorded execution drew (`drawn`); left out where that is nothing. */
  drawn?: Uint8Array;
  /** For an execution that was not admitted: when a place will be free. */
  retryAfterSeconds?: number;
};

const EMPTY = new Uint8Array(0);

/** The outcome of an execution in which the plugin did not respond. */
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
