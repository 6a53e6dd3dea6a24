import { LIMITS } from '../../base/limits.ts';
import type { Suspect } from '../../records/suspects.ts';
import type { Crash } from '../../records/suspension.ts';

/** How the serving process ended, and which versions its lanes were running. */
export type Ending = {
  code: number | null;
  signal: NodeJS.Signals | null;
  /** Versions that the lanes had noted in the file. */
  versions: ReadonlySet<number>;
  /** Evidence that the process was killed for lack of memory, or null. */
  memory: string | null;
  /** Time of the monotonic clock, in ms. */
  atMs: number;
  /** Time of day, for administrators. */
  at: Date;
};

type Counted = { atMs: number; at: Date; signal: string; how: string; killed: boolean; memory: string | null };

/** Signals that a process causes itself. */
const OWN_SIGNALS = new Map<string, number>([
  ['SIGILL', 4],
  ['SIGTRAP', 5],
  ['SIGABRT', 6],
  ['SIGBUS', 7],
  ['SIGSEGV', 11],
]);
/** Node's exit code for a fatal error of V8. */
const V8_FATAL = 5;
const CRASHES_MAX = 2;
const KILLS_MAX = 3;
const VERSIONS_MAX = 1000;

/** How a process crashed by itself; null when it was killed from outside or stopped cleanly. */
function ownCrash({ code, signal }: Ending): { signal: string; how: string } | null {
  if (signal !== null) return OWN_SIGNALS.has(signal) ? { signal, how: signal } : null;
  if (code === V8_FATAL) return { signal: 'V8', how: `a fatal error of V8 (exit code ${V8_FATAL})` };
  // A shell reports a signal as exit code 128 plus the signal's number.
  for (const [name, number] of OWN_SIGNALS)
    if (code === 128 + number) return { signal: name, how: `${name} (exit code ${code})` };
  return null;
}

/**
 * Counts crashes of the serving process against the plugin versions that ran during them. Two crashes within ten
 * minutes, by a signal the process caused itself, suspend a version. A kill counts only with evidence that the cause
 * was lack of memory, and suspends at the third time. A signal from outside, for example from an operator, suspends no
 * plugin.
 */
export class CrashCount {
  readonly #ofVersion = new Map<number, Counted[]>();

  /** Counts an end of the serving process. @returns the versions to suspend, with the reason */
  note(e: Ending): Suspect[] {
    const own = ownCrash(e);
    const killed = e.signal === 'SIGKILL' && e.memory !== null;
    if (own === null && !killed) return [];
    const suspects: Suspect[] = [];
    for (const versionId of e.versions) {
      const before = this.#ofVersion.get(versionId) ?? [];
      const how = own ?? { signal: 'SIGKILL', how: 'SIGKILL' };
      const crash = { atMs: e.atMs, at: e.at, ...how, killed, memory: killed ? e.memory : null };
      const all = [...before.filter(c => c.atMs > e.atMs - LIMITS.crashWindowMs), crash];
      this.#ofVersion.delete(versionId);
      const guilty = all.filter(c => !c.killed).length >= CRASHES_MAX || all.filter(c => c.killed).length >= KILLS_MAX;
      if (guilty) suspects.push({ versionId, seen: describe(all), crashes: all.map(crashOf) });
      else this.#ofVersion.set(versionId, all);
    }
    for (const oldest of this.#ofVersion.keys()) {
      if (this.#ofVersion.size <= VERSIONS_MAX) break;
      this.#ofVersion.delete(oldest);
    }
    return suspects;
  }
}

const crashOf = (c: Counted): Crash => ({
  signal: c.signal,
  at: c.at.toISOString(),
  out_of_memory: c.memory !== null,
});

function describe(all: readonly Counted[]): string {
  const each = all.map(c => `${c.how} at ${c.at.toISOString()}${c.memory === null ? '' : ` (${c.memory})`}`);
  return `ended ${all.length} times within ${LIMITS.crashWindowMs / 60_000} minutes: ${each.join(', ')}`;
}
