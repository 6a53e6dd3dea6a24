import { Buffer } from 'node:buffer';
import { performance } from 'node:perf_hooks';
import type { ExecutionOutcome, LogLine, OutcomeKind } from '../abi/execution-outcome.ts';
import type { LargeOutput } from '../abi/lane-messages.ts';
import { OUTCOME, type SharedViews, SLOT, SLOT_OUTPUT_AT, slotAt } from '../abi/shared-layout.ts';

const EMPTY = new Uint8Array(0);

const KINDS: Record<number, OutcomeKind> = {
  [OUTCOME.ok]: 'ok',
  [OUTCOME.handlerError]: 'handler_error',
  [OUTCOME.trap]: 'trapped',
  [OUTCOME.exit]: 'exited',
  [OUTCOME.invalidResponse]: 'invalid_response',
  [OUTCOME.quota]: 'quota',
  [OUTCOME.loadFailed]: 'load_failed',
};

/**
 * Reads the outcome a lane wrote into a slot. `body` and `output` are views of the slot.
 *
 * @param receive takes the parts that did not fit the slot from the lane's data port
 */
export function readOutcome(
  views: SharedViews,
  b: Buffer,
  slot: number,
  admittedAt: number,
  receive: () => LargeOutput | undefined,
): ExecutionOutcome {
  const { all32, all64 } = views;
  const h = slotAt(slot) >> 2;
  const runMs = all64[(h + SLOT.runMs) >> 1]!;
  const outcome: ExecutionOutcome = {
    kind: KINDS[all32[h + SLOT.outcome]!] ?? 'trapped',
    status: all32[h + SLOT.status]!,
    headers: '',
    body: EMPTY,
    output: EMPTY,
    failure: '',
    log: [],
    queueWaitMs: Math.max(0, performance.now() - admittedAt - runMs),
    runMs,
    hostCalls: all32[h + SLOT.hostCalls]!,
    peakPages: all32[h + SLOT.peakPages]!,
  };
  if (all32[h + SLOT.outputElsewhere] === 1) {
    const large = receive();
    if (large === undefined || large.slot !== slot)
      return { ...outcome, kind: 'crashed', failure: 'the output of the execution was lost' };
    return {
      ...outcome,
      headers: large.headers,
      body: large.answer,
      output: large.output,
      failure: large.error,
      log: parseLog(Buffer.from(large.log).toString()),
    };
  }
  let at = slotAt(slot) + SLOT_OUTPUT_AT;
  const next = (bytes: number): number => {
    at += bytes;
    return at;
  };
  outcome.headers = b.latin1Slice(at, next(all32[h + SLOT.headerBytes]!));
  const bodyBytes = all32[h + SLOT.answerBytes]!;
  if (bodyBytes > 0) outcome.body = b.subarray(at, next(bodyBytes));
  if (all32[h + SLOT.logBytes]! > 0) outcome.log = parseLog(b.utf8Slice(at, next(all32[h + SLOT.logBytes]!)));
  if (all32[h + SLOT.errorBytes]! > 0) outcome.failure = b.utf8Slice(at, next(all32[h + SLOT.errorBytes]!));
  if (all32[h + SLOT.outputBytes]! > 0) outcome.output = b.subarray(at, next(all32[h + SLOT.outputBytes]!));
  return outcome;
}

/** Parses the log text. The lane wrote it, so its shape is known. */
function parseLog(text: string): LogLine[] {
  return text === '' ? [] : (JSON.parse(text) as LogLine[]);
}
