import fs from 'node:fs';
import path from 'node:path';

/** Share of the limit above which memory counts as nearly used up. */
const NEAR = 0.95;

/** What the kernel reports about memory: how many processes it killed for lack of it, and how much is used. */
type Reading = { kills: number; used: number; limit: number; where: string };

function numberIn(file: string, pattern: RegExp): number | null {
  try {
    const found = pattern.exec(fs.readFileSync(file, 'latin1'))?.[1];
    return found === undefined ? null : Number(found);
  } catch {
    return null;
  }
}

/**
 * Decides whether a killed process may have been killed for lack of memory. The kernel counts such kills for the
 * control group (versions 2 and 1) and for the machine, and shortly before one the used memory is near its limit.
 */
export class MemoryWatch {
  readonly #proc: string;
  readonly #groups: readonly string[];
  #before: Reading;
  /** The last reading that was near the limit, and its time on the monotonic clock. */
  #near: { reading: Reading; at: number } | null = null;

  /**
   * @param proc where procfs is mounted
   * @param cgroups where the control groups are mounted
   */
  constructor(proc = '/proc', cgroups = '/sys/fs/cgroup') {
    this.#proc = proc;
    this.#groups = groupsOf(proc, cgroups);
    this.#before = this.#read();
  }

  /** Notes whether memory is nearly used up. Call it often, because a kill frees the memory. */
  look(nowMs: number): void {
    const reading = this.#read();
    if (reading.limit > 0 && reading.used >= NEAR * reading.limit) this.#near = { reading, at: nowMs };
  }

  /**
   * Evidence that a process was just killed for lack of memory; null when there is none.
   *
   * @param sinceMs earlier readings near the limit do not count
   */
  explain(sinceMs: number): string | null {
    const before = this.#before;
    const now = this.#read();
    this.#before = now;
    if (now.kills > before.kills)
      return `the out-of-memory count of the ${now.where} rose from ${before.kills} to ${now.kills}`;
    const near = this.#near;
    if (near === null || near.at < sinceMs) return null;
    const mb = (bytes: number): number => Math.round(bytes / 2 ** 20);
    const { limit, used, where } = near.reading;
    return `the memory of the ${where} stood at ${mb(used)} of ${mb(limit)} MB`;
  }

  #read(): Reading {
    for (const group of this.#groups) {
      const file = (name: string): string => path.join(group, name);
      // Version 2, then version 1.
      const limit =
        numberIn(file('memory.max'), /^(\d+)/) ?? numberIn(file('memory.limit_in_bytes'), /^(\d{1,15})\s*$/);
      const used = numberIn(file('memory.current'), /^(\d+)/) ?? numberIn(file('memory.usage_in_bytes'), /^(\d+)/);
      const kills =
        numberIn(file('memory.events'), /^oom_kill (\d+)/m) ?? numberIn(file('memory.oom_control'), /^oom_kill (\d+)/m);
      // A control group without a limit shares the machine's memory.
      if (limit !== null && used !== null && kills !== null) return { kills, used, limit, where: 'control group' };
    }
    const meminfo = path.join(this.#proc, 'meminfo');
    const total = (numberIn(meminfo, /^MemTotal:\s+(\d+)/m) ?? 0) * 1024;
    const available = (numberIn(meminfo, /^MemAvailable:\s+(\d+)/m) ?? 0) * 1024;
    const kills = numberIn(path.join(this.#proc, 'vmstat'), /^oom_kill (\d+)/m) ?? 0;
    return { kills, used: total - available, limit: total, where: 'machine' };
  }
}

/** Directories that may describe the control group of this process, the nearest first. */
function groupsOf(proc: string, cgroups: string): string[] {
  let text = '';
  try {
    text = fs.readFileSync(path.join(proc, 'self/cgroup'), 'latin1');
  } catch {
    // Not Linux: no control groups.
  }
  const v2 = /^0::(\/.*)$/m.exec(text)?.[1];
  const v1 = /^\d+:(?:[^:]*,)?memory(?:,[^:]*)?:(\/.*)$/m.exec(text)?.[1];
  return [
    ...(v2 === undefined ? [] : [path.join(cgroups, v2)]),
    ...(v1 === undefined ? [] : [path.join(cgroups, 'memory', v1), path.join(cgroups, 'memory')]),
    // Inside a container the group of the container is mounted as the root.
    cgroups,
  ];
}
