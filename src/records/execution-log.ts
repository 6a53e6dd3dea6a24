import type { ExecutionOutcome, LogLine } from '../abi/execution-outcome.ts';
import { messageOf } from '../base/errors.ts';
import { LIMITS } from '../base/limits.ts';
import type { Log } from '../base/log.ts';
import type { Suspension } from './suspension.ts';

/** An execution as the log names it. */
export type LoggedExecution = {
  plugin: { id: string; version: string } | null;
  trigger: string;
  kind: 'http' | 'messenger' | 'call';
  requestId: string;
  /** Empty without a trace context. */
  traceId: string;
  caller: string;
};

const traceOf = ({ traceId }: LoggedExecution): object => (traceId === '' ? {} : { trace_id: traceId });

/** The current window of log lines of one trigger, or of one plugin's own log. */
type Window = { fields: Record<string, string>; startedAt: number; written: number; leftOut: number };

const WINDOW_MS = 60_000;
const HOUR_MS = 3_600_000;
const LEVELS = ['debug', 'info', 'warn', 'error'] as const;

/**
 * Log lines of executions: one for each trap, each stopped execution and each suspension, and with `log.plugins` those
 * the plugins write. A trigger that fails all the time gets a few lines per minute; the next line says how many were
 * suppressed.
 */
export class ExecutionLog {
  readonly #log: Log;
  readonly #ofPlugins: boolean;
  readonly #now: () => number;
  readonly #windows = new Map<string, Window>();
  /** Bytes of the plugins' own log lines in the current hour, by plugin. */
  readonly #bytes = new Map<string, { hour: number; bytes: number }>();

  /**
   * @param ofPlugins whether lines of plugins are also written
   * @param now monotonic clock, in ms
   */
  constructor(log: Log, ofPlugins: boolean, now: () => number = () => performance.now()) {
    this.#log = log;
    this.#now = now;
    this.#ofPlugins = ofPlugins;
  }

  /** Logs an ended execution if it trapped or was stopped. */
  note(e: LoggedExecution, o: ExecutionOutcome): void {
    if (o.kind === 'ok' && o.log.length === 0) return;
    if (e.plugin === null) return;
    if (this.#ofPlugins && o.log.length > 0) this.#writeLines(e, e.plugin, o.log);
    const failed = o.kind === 'trapped' || o.kind === 'exited' || o.kind === 'crashed';
    const stopped = o.kind === 'deadline' || o.kind === 'memory_budget';
    if (!failed && !stopped) return;
    // A calling plugin chooses the function name, so all calls count as one trigger.
    const trigger = e.kind === 'call' ? 'call' : e.trigger;
    const leftOut = this.#admit({ plugin: e.plugin.id, trigger });
    if (leftOut === null) return;
    const facts = {
      plugin: e.plugin.id,
      version: e.plugin.version,
      trigger: e.trigger,
      request_id: e.requestId,
      ...traceOf(e),
      caller: e.caller,
      outcome: o.kind,
      failure: o.failure.split('\n')[0] ?? '',
      run_ms: Math.round(o.runMs),
      ...(leftOut > 0 ? { left_out: leftOut } : {}),
    };
    this.#log.warn(facts, failed ? 'execution trapped' : 'execution stopped');
  }

  /** Number of lines suppressed before this one; null when this one is suppressed too. */
  #admit(fields: Record<string, string>): number | null {
    const key = Object.values(fields).join('\0');
    const now = this.#now();
    let window = this.#windows.get(key);
    if (window === undefined) {
      window = { fields, startedAt: now, written: 0, leftOut: 0 };
      this.#windows.set(key, window);
    } else if (now - window.startedAt >= WINDOW_MS) {
      window.startedAt = now;
      window.written = 0;
    }
    if (window.written >= LIMITS.logLinesPerTriggerMinute) {
      window.leftOut++;
      return null;
    }
    window.written++;
    const { leftOut } = window;
    window.leftOut = 0;
    return leftOut;
  }

  /** Logs the lines a plugin wrote with `log`. */
  #writeLines(e: LoggedExecution, plugin: { id: string; version: string }, lines: readonly LogLine[]): void {
    const hour = Math.floor(Date.now() / HOUR_MS);
    const used = this.#bytes.get(plugin.id);
    let bytes = used?.hour === hour ? used.bytes : 0;
    for (const line of lines) {
      const before = bytes;
      bytes += line.text.length + 16;
      if (before > LIMITS.logBytesPerPluginHour) break;
      const facts = { plugin: plugin.id, trigger: e.trigger, request_id: e.requestId, ...traceOf(e) };
      if (bytes > LIMITS.logBytesPerPluginHour)
        this.#log.warn({ ...facts, bytes_max: LIMITS.logBytesPerPluginHour }, 'plugin log left out for this hour');
      else this.#log[LEVELS[line.level] ?? 'info']({ ...facts, text: line.text }, 'plugin log');
    }
    this.#bytes.set(plugin.id, { hour, bytes });
  }

  /** Logs a suspension. */
  readonly suspended = (s: Suspension): void => {
    const facts = {
      plugin: s.pluginId,
      ...(s.trigger === '' ? { version_id: s.versionId } : { trigger: s.trigger }),
      ...(s.caller === null ? {} : { caller: s.caller }),
      ...(s.trigger === '' ? {} : { callers: s.callers }),
      since: s.since,
      until: s.until,
      cause: s.cause,
    };
    if (s.trigger === '') return this.#log.error(facts, 'plugin suspended');
    // A caller with many addresses is suspended under each of them, so these lines are limited too.
    const leftOut =
      s.caller === null ? 0 : this.#admit({ plugin: s.pluginId, trigger: s.trigger, caller: 'suspended' });
    if (leftOut === null) return;
    this.#log.warn(leftOut > 0 ? { ...facts, left_out: leftOut } : facts, 'trigger suspended');
  };

  /** Logs that a suspension holds only on this host, because its row could not be written. */
  readonly notStored = (error: unknown): void =>
    this.#log.error({ error: messageOf(error) }, 'a suspension could not be stored');

  /** Logs the number of suppressed lines of triggers that have not failed since, and removes old windows. */
  sweep(): void {
    const now = this.#now();
    for (const [key, w] of this.#windows) {
      if (now - w.startedAt < WINDOW_MS) continue;
      this.#windows.delete(key);
      if (w.leftOut > 0) this.#log.warn({ ...w.fields, left_out: w.leftOut }, 'execution log lines left out');
    }
    const hour = Math.floor(Date.now() / HOUR_MS);
    for (const [plugin, used] of this.#bytes) if (used.hour !== hour) this.#bytes.delete(plugin);
  }
}
