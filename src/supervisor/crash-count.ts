import { LIMITS } from '../base/limits.ts';
import type { Suspect } from '../records/suspects.ts';

/** How the serving process ended, and what its lanes were running. */
export type Ending = {
  code: number | null;
  signal: NodeJS.Signals | null;
  /** Versions the lanes noted. */
  versions: ReadonlySet<number>;
  /** What speaks for want of memory as the cause, or null. */
  memory: string | null;
  /** Monotonic, in ms. */
  atMs: number;
  /** As administrators read it. */
  at: Date;
};

type Counted = { atMs: number; at: Date; how: string; killed: boolean; memory: string | null };

/** Signals a process raises by what it does itself. */
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

/** How a process ended by its own doing; null when it was ended, or ended in order. */
function ownCrash({ code, signal }: Ending): string | null {
  if (signal !== null) return OWN_SIGNALS.has(signal) ? signal : null;
  if (code === V8_FATAL) return `a fatal error of V8 (exit code ${V8_FATAL})`;
  // A shell in between tells a signal as 128 and its number.
  for (const [name, number] of OWN_SIGNALS) if (code === 128 + number) return `${name} (exit code ${code})`;
  return null;
}

/**
 * Counts crashes of the serving process against the plugin versions that ran at them. Two within ten minutes by a signal of
 * the process's own making are enough; being killed counts only with a sign that memory was the cause, and at the third time.
 * A signal from outside, as an operator sends it, suspends no plugin.
 */
export class CrashCount {
  readonly #ofVersion = new Map<number, Counted[]>();

  /** Counts an ending. @returns the versions to suspend, with what was seen */
  note(e: Ending): Suspect[] {
    const own = ownCrash(e);
    const killed = e.signal === 'SIGKILL' && e.memory !== null;
    if (own === null && !killed) return [];
    const suspects: Suspect[] = [];
    for (const versionId of e.versions) {
      const before = this.#ofVersion.get(versionId) ?? [];
      const crash = { atMs: e.atMs, at: e.at, how: own ?? 'SIGKILL', killed, memory: killed ? e.memory : null };
      const all = [...before.filter(c => c.atMs > e.atMs - LIMITS.crashWindowMs), crash];
      this.#ofVersion.delete(versionId);
      const guilty = all.filter(c => !c.killed).length >= CRASHES_MAX || all.filter(c => c.killed).length >= KILLS_MAX;
      if (guilty) suspects.push({ versionId, seen: describe(all) });
      else this.#ofVersion.set(versionId, all);
    }
    for (const oldest of this.#ofVersion.keys()) {
      if (this.#ofVersion.size <= VERSIONS_MAX) break;
      this.#ofVersion.delete(oldest);
    }
    return suspects;
  }
}

function describe(all: readonly Counted[]): string {
  const each = all.map(c => `${c.how} at ${c.at.toISOString()}${c.memory === null ? '' : ` (${c.memory})`}`);
  return `ended ${all.length} times within ${LIMITS.crashWindowMs / 60_000} minutes: ${each.join(', ')}`;
}
