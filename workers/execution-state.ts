import type { CellResponse } from '../src/abi/cell-codec.ts';
import type { DrawnReader, DrawnWriter } from '../src/abi/drawn.ts';
import type { LogLine } from '../src/abi/execution-outcome.ts';
import type { HostFunction } from '../src/abi/host-functions.ts';
import { CONTROL } from '../src/abi/host-memory.ts';
import { LIMITS } from '../src/base/limits.ts';
import { FirstReads } from './first-reads.ts';

const EMPTY = new Uint8Array(0);
/** What a plugin requires for calls with a permission; a reply needs one for its files alone. */
const REQUIRED: Readonly<Record<NonNullable<HostFunction['permission']>, string>> = {
  sql: 'Database with this name',
  kv: 'KV',
  network: 'HTTP',
  notify: 'NotifyReq, and File for a message with files',
  events: 'EventsReq',
  'plugins:call': 'PluginDep for this plugin',
  file: 'File',
};
/** Levels of log lines: debug, info, warn, error. */
const WARN = 2;

/** A range of bytes. A typed-array view of it is made only when it is read, because most are not. */
export class Span {
  source: Uint8Array = EMPTY;
  from = 0;
  length = 0;

  set(source: Uint8Array, from: number, length: number): void {
    this.source = source;
    this.from = from;
    this.length = length;
  }

  view(): Uint8Array {
    return this.source.subarray(this.from, this.from + this.length);
  }
}

/** The state of one execution. Each lane has one object, reset before every execution. */
export class ExecutionState {
  /** The control memory, which the module's start function writes (src/abi/host-memory). */
  readonly control: Int32Array;
  /** Set once the guest must not continue; every later host call traps. `asked`: this run is dropped (first-reads). */
  ended: 'exit' | 'quota' | 'fault' | 'asked' | null = null;
  exitCode = 0;
  readonly event = new Span();
  readonly body = new Span();
  parked: Uint8Array = EMPTY;
  parkedBody: Uint8Array = EMPTY;
  error = '';
  /** The last host call that failed: its text, and the stack of the guest, which is written only when it is read. */
  failedCall: { text: string; at: Error } | null = null;
  response: CellResponse | null = null;
  /** Why the last `respond` was refused; cleared when a later one is accepted. */
  invalidResponse: string | null = null;
  output: Uint8Array = EMPTY;
  failure: string | null = null;
  logLines: LogLine[] = [];
  logBytes = 0;
  logTruncated = false;
  isDenialNoted = false;
  /** Takes each line as it comes, for an execution that is stopped. */
  keepLine: (line: LogLine) => void = () => {};
  hostCalls = 0;
  hostCallBytes = 0;
  deadline = 0;
  entry = 0;
  /** Takes what the guest draws, of an execution that is recorded. */
  drawing: DrawnWriter | null = null;
  readonly first = new FirstReads();
  /** Has what the guest drew when it was recorded, of one that is replayed. */
  replayed: DrawnReader | null = null;
  config: Readonly<Record<string, string>> = {};
  pluginId = '';

  constructor(control: Int32Array) {
    this.control = control;
  }

  /** Whether the start function or `_initialize` runs: host functions then answer "permission denied" (docs/abi.md). */
  get initializing(): boolean {
    return this.control[CONTROL.entered] === 0;
  }

  reset(): void {
    this.control[CONTROL.entered] = 0;
    this.control[CONTROL.code] = 0;
    this.control[CONTROL.pages] = 0;
    this.ended = null;
    this.exitCode = 0;
    this.parked = EMPTY;
    this.parkedBody = EMPTY;
    this.error = '';
    this.failedCall = null;
    this.response = null;
    this.invalidResponse = null;
    this.output = EMPTY;
    this.failure = null;
    if (this.logLines.length > 0) this.logLines = [];
    this.logBytes = 0;
    this.logTruncated = false;
    this.isDenialNoted = false;
    this.hostCalls = 0;
    this.hostCallBytes = 0;
    this.drawing = null;
    this.replayed = null;
  }

  /** What the guest drew; empty unless the execution is recorded. */
  get drawn(): Uint8Array {
    return this.drawing === null ? EMPTY : this.drawing.take();
  }

  /**
   * Bytes left for log text. The first text that exceeds them is cut and marked, the rest is dropped (docs/plugins.md
   * "Records").
   */
  log(level: number, text: string): void {
    const room = LIMITS.logBytesPerExecution - this.logBytes;
    if (room <= 0 || this.logLines.length >= 10_000) {
      this.logTruncated = true;
      return;
    }
    const { bytes, isCut, text: kept } = cutText(escapeControls(text.toWellFormed()), room);
    if (isCut) this.logTruncated = true;
    this.logBytes += bytes + 16;
    const line = { level, text: kept };
    this.logLines.push(line);
    this.keepLine(line);
  }

  /** Notes in the log which call was denied, the first time: the error that the plugin gets does not name it. */
  noteDenied({ name, permission }: HostFunction): void {
    if (this.isDenialNoted) return;
    this.isDenialNoted = true;
    this.log(WARN, `${name} was denied: it needs the requirement ${REQUIRED[permission ?? 'file']}`);
  }

  /** Notes in the log, once the guest has ended, that text was dropped. */
  closeLog(): void {
    if (this.logTruncated) this.logLines.push({ level: WARN, text: `log cut at ${LIMITS.logBytesPerExecution} bytes` });
  }
}

/** Control characters as `\xNN`; tab and newline stay. */
export function escapeControls(text: string): string {
  return text.replace(/[\x00-\x08\x0b-\x1f\x7f-\x9f]/g, c => `\\x${c.charCodeAt(0).toString(16).padStart(2, '0')}`);
}

/** A text of at most so many bytes in UTF-8, cut between two characters. */
function cutText(text: string, bytesMax: number): { text: string; bytes: number; isCut: boolean } {
  const bytes = Buffer.byteLength(text);
  if (bytes <= bytesMax) return { text, bytes, isCut: false };
  // A streaming decoder keeps the bytes of a character that is not whole to itself.
  const kept = new TextDecoder().decode(Buffer.from(text).subarray(0, bytesMax), { stream: true });
  return { text: kept, bytes: bytesMax, isCut: true };
}
