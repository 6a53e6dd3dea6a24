import { Buffer } from 'node:buffer';
import type { ExecutionOutcome, LogLine, OutcomeKind } from './execution-outcome.ts';
import type { LargeOutput } from './lane-messages.ts';
import {
  CELL,
  CELL_INPUT_AT,
  CELL_INPUT_BYTES,
  CELL_OUTPUT_AT,
  CELL_OUTPUT_BYTES,
  cellAt,
  OUTCOME,
  type SharedViews,
} from './shared-layout.ts';

/**
 * What a cell holds, and how both ends write and read it. The main thread writes the input before it queues the cell;
 * the lane that took it reads the input and writes the outcome before it hands the cell over; then the main thread
 * reads the outcome. So no two threads touch a cell at the same time, and nothing here is atomic.
 */

const EMPTY = new Uint8Array(0);
const FAILURE_CHARACTERS_MAX = 4096;

export type CellInput = {
  moduleId: number;
  /** One of `ENTRY`. */
  entry: number;
  /** Event JSON. */
  event: string;
  body: Uint8Array | null;
  /** Absolute, in ms of the main thread's clock. */
  deadline: number;
  /** Whether what it draws is kept for its recording. */
  isRecorded?: boolean;
};

/** Event and body of an input that did not fit its cell. */
export type LargeInput = { event: Uint8Array; body: Uint8Array };

/** The response of a plugin. `body` is null if it is already in the cell, right after the headers. */
export type CellResponse = { status: number; headers: Uint8Array; body: Uint8Array | null; bodyBytes: number };

/** What a lane knows of the execution that has just ended. */
export type EndedExecution = {
  readonly response: CellResponse | null;
  readonly logLines: readonly LogLine[];
  readonly failure: string | null;
  readonly output: Uint8Array;
  readonly hostCalls: number;
  readonly drawn: Uint8Array;
};

/** A place that a range of bytes is set to. */
export type SpanTarget = { set(source: Uint8Array, from: number, length: number): void };

const headerOf = (cell: number): number => cellAt(cell) >> 2;

/**
 * Main thread: writes the input of an execution.
 *
 * @returns null, or the encoded event if event and body do not fit: the lane then asks for them with `fetchInput`
 */
export function writeInput(views: SharedViews, cell: number, input: CellInput): Uint8Array | null {
  const { all32, all64, buffer } = views;
  const header = headerOf(cell);
  const bodyBytes = input.body?.length ?? 0;
  // One UTF-16 unit takes at most three bytes in UTF-8.
  const fits =
    input.event.length * 3 + bodyBytes <= CELL_INPUT_BYTES ||
    Buffer.byteLength(input.event) + bodyBytes <= CELL_INPUT_BYTES;
  let large: Uint8Array | null = null;
  if (fits) {
    const at = cellAt(cell) + CELL_INPUT_AT;
    const written = buffer.write(input.event, at, 'utf8');
    all32[header + CELL.eventBytes] = written;
    if (input.body !== null) buffer.set(input.body, at + written);
  } else {
    large = new TextEncoder().encode(input.event);
    all32[header + CELL.eventBytes] = large.length;
  }
  all32[header + CELL.bodyBytes] = bodyBytes;
  all32[header + CELL.inputElsewhere] = fits ? 0 : 1;
  all32[header + CELL.moduleId] = input.moduleId;
  all32[header + CELL.entry] = input.entry;
  all32[header + CELL.recorded] = input.isRecorded === true ? 1 : 0;
  all64[(header + CELL.deadline) >> 1] = input.deadline;
  return large;
}

/** Lane: the module that the execution in a cell runs. */
export const moduleIdOf = (views: SharedViews, cell: number): number => views.all32[headerOf(cell) + CELL.moduleId]!;

/** Lane: the entry point of the execution in a cell, one of `ENTRY`. */
export const entryOf = (views: SharedViews, cell: number): number => views.all32[headerOf(cell) + CELL.entry]!;

/** Lane: whether what the execution in a cell draws is kept. */
export const isRecorded = (views: SharedViews, cell: number): boolean =>
  views.all32[headerOf(cell) + CELL.recorded] === 1;

/** Lane: when the execution in a cell must have ended, in ms of the main thread's clock. */
export const deadlineOf = (views: SharedViews, cell: number): number =>
  views.all64[(headerOf(cell) + CELL.deadline) >> 1]!;

/**
 * Lane: sets event and body of an execution to their places in the cell.
 *
 * @returns false if they did not fit and have to be fetched
 */
export function readInput(views: SharedViews, cell: number, event: SpanTarget, body: SpanTarget): boolean {
  const { all32, bytes } = views;
  const header = headerOf(cell);
  if (all32[header + CELL.inputElsewhere] === 1) return false;
  const at = cellAt(cell) + CELL_INPUT_AT;
  const eventBytes = all32[header + CELL.eventBytes]!;
  event.set(bytes, at, eventBytes);
  body.set(bytes, at + eventBytes, all32[header + CELL.bodyBytes]!);
  return true;
}

/**
 * Lane: copies a response body out of the guest to its final place, right after the headers.
 *
 * @returns null, or a copy of its own if headers and body do not fit the cell
 */
export function keepBody(views: SharedViews, cell: number, headerBytes: number, body: Uint8Array): Uint8Array | null {
  if (headerBytes + body.length > CELL_OUTPUT_BYTES) return body.slice();
  views.bytes.set(body, cellAt(cell) + CELL_OUTPUT_AT + headerBytes);
  return null;
}

/**
 * Lane: writes how an execution ended: headers, body, log, failure, output and what it drew, one after another.
 *
 * @param outcome one of `OUTCOME`
 * @param peakPages size of the guest's memory at its end, in pages of 64 KiB
 * @returns null, or the parts if they do not fit: the lane posts them on its data port
 */
export function writeOutcome(
  views: SharedViews,
  cell: number,
  outcome: number,
  peakPages: number,
  ended: EndedExecution,
): LargeOutput | null {
  const { all32, bytes } = views;
  const header = headerOf(cell);
  const { drawn, failure, logLines, output, response } = ended;
  const headers = response?.headers ?? EMPTY;
  const bodyBytes = response?.bodyBytes ?? 0;
  const log = logLines.length === 0 ? EMPTY : Buffer.from(JSON.stringify(logLines));
  const reason = failure === null ? EMPTY : Buffer.from(failure.slice(0, FAILURE_CHARACTERS_MAX));
  all32[header + CELL.outcome] = outcome;
  all32[header + CELL.hostCalls] = ended.hostCalls;
  all32[header + CELL.peakPages] = peakPages;
  all32[header + CELL.status] = response?.status ?? 0;
  all32[header + CELL.headerBytes] = headers.length;
  all32[header + CELL.bodyOutBytes] = bodyBytes;
  all32[header + CELL.logBytes] = log.length;
  all32[header + CELL.failureBytes] = reason.length;
  all32[header + CELL.outputBytes] = output.length;
  all32[header + CELL.drawnBytes] = drawn.length;
  const headersAt = cellAt(cell) + CELL_OUTPUT_AT;
  const bodyAt = headersAt + headers.length;
  const restBytes = log.length + reason.length + output.length + drawn.length;
  const isLarge = headers.length + bodyBytes + restBytes > CELL_OUTPUT_BYTES;
  all32[header + CELL.outputElsewhere] = isLarge ? 1 : 0;
  if (isLarge)
    return {
      cell,
      headers: Buffer.from(headers).latin1Slice(),
      body: response === null ? EMPTY : (response.body ?? bytes.slice(bodyAt, bodyAt + bodyBytes)),
      log: Uint8Array.from(log),
      failure: failure ?? '',
      output: Uint8Array.from(output),
      drawn,
    };
  if (headers.length > 0) bytes.set(headers, headersAt);
  if (response !== null && response.body !== null) bytes.set(response.body, bodyAt);
  let at = bodyAt + bodyBytes;
  if (log.length > 0) bytes.set(log, at);
  at += log.length;
  if (reason.length > 0) bytes.set(reason, at);
  at += reason.length;
  if (output.length > 0) bytes.set(output, at);
  at += output.length;
  if (drawn.length > 0) bytes.set(drawn, at);
  return null;
}

/** Lane: notes that the run was dropped for its first read. */
export function writeAsked(views: SharedViews, cell: number): void {
  views.all32[headerOf(cell) + CELL.outcome] = OUTCOME.asked;
}

/** Main thread: whether the run was dropped for its first read, so that there is no outcome yet. */
export const isAsked = (views: SharedViews, cell: number): boolean =>
  views.all32[headerOf(cell) + CELL.outcome] === OUTCOME.asked;

/** Main thread: how long the last run in a cell took, in ms. */
export const runMsOf = (views: SharedViews, cell: number): number => views.all64[(headerOf(cell) + CELL.runMs) >> 1]!;

/** Lane: notes how long the execution ran; comes last, so that writing the outcome counts too. */
export function writeRunMs(views: SharedViews, cell: number, ms: number): void {
  views.all64[(headerOf(cell) + CELL.runMs) >> 1] = ms;
}

const KINDS: Record<number, OutcomeKind> = {
  [OUTCOME.ok]: 'ok',
  [OUTCOME.handlerError]: 'handler_error',
  [OUTCOME.trap]: 'trapped',
  [OUTCOME.exit]: 'exited',
  [OUTCOME.invalidResponse]: 'invalid_response',
  [OUTCOME.quota]: 'quota',
  [OUTCOME.loadFailed]: 'load_failed',
  [OUTCOME.deadline]: 'deadline',
};

/**
 * Main thread: reads the outcome that a lane has written. `body` and `output` are views of the cell.
 *
 * @param sinceAdmittedMs time since the execution was admitted
 * @param receive takes the parts that did not fit the cell from the lane's data port
 */
export function readOutcome(
  views: SharedViews,
  cell: number,
  sinceAdmittedMs: number,
  receive: () => LargeOutput | undefined,
): ExecutionOutcome {
  const { all32, all64, buffer } = views;
  const header = headerOf(cell);
  const runMs = all64[(header + CELL.runMs) >> 1]!;
  const outcome: ExecutionOutcome = {
    kind: KINDS[all32[header + CELL.outcome]!] ?? 'trapped',
    status: all32[header + CELL.status]!,
    headers: '',
    body: EMPTY,
    output: EMPTY,
    failure: '',
    log: [],
    queueWaitMs: Math.max(0, sinceAdmittedMs - runMs),
    runMs,
    hostCalls: all32[header + CELL.hostCalls]!,
    peakPages: all32[header + CELL.peakPages]!,
  };
  if (all32[header + CELL.outputElsewhere] === 1) {
    const large = receive();
    if (large === undefined || large.cell !== cell)
      return { ...outcome, kind: 'crashed', failure: 'the output of the execution was lost' };
    const { body, drawn, failure, headers, output } = large;
    return { ...outcome, headers, body, output, drawn, failure, log: parseLog(Buffer.from(large.log).toString()) };
  }
  let at = cellAt(cell) + CELL_OUTPUT_AT;
  const next = (bytes: number): number => {
    at += bytes;
    return at;
  };
  outcome.headers = buffer.latin1Slice(at, next(all32[header + CELL.headerBytes]!));
  const bodyBytes = all32[header + CELL.bodyOutBytes]!;
  if (bodyBytes > 0) outcome.body = buffer.subarray(at, next(bodyBytes));
  const logBytes = all32[header + CELL.logBytes]!;
  if (logBytes > 0) outcome.log = parseLog(buffer.utf8Slice(at, next(logBytes)));
  const failureBytes = all32[header + CELL.failureBytes]!;
  if (failureBytes > 0) outcome.failure = buffer.utf8Slice(at, next(failureBytes));
  const outputBytes = all32[header + CELL.outputBytes]!;
  if (outputBytes > 0) outcome.output = buffer.subarray(at, next(outputBytes));
  const drawnBytes = all32[header + CELL.drawnBytes]!;
  if (drawnBytes > 0) outcome.drawn = Uint8Array.from(buffer.subarray(at, next(drawnBytes)));
  return outcome;
}

/** Parses the log text. The lane wrote it, so its shape is known. */
function parseLog(text: string): LogLine[] {
  return text === '' ? [] : (JSON.parse(text) as LogLine[]);
}
