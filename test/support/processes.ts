import fs from 'node:fs';

/** What `/proc` says of one process (proc(5)). */
export type ProcessEntry = {
  pid: number;
  parent: number;
  group: number;
  /** Clock ticks after the start of the system: with the pid it names one process for ever, since pids are used again. */
  startedAt: number;
  /** Whether it has ended, and only waits for its parent to ask how. */
  isZombie: boolean;
};

/** One process; null when there is none of that pid. */
export function readProcess(pid: number): ProcessEntry | null {
  let stat: string;
  try {
    stat = fs.readFileSync(`/proc/${pid}/stat`, 'latin1');
  } catch {
    return null;
  }
  // The name may hold anything, so fields are counted from behind it.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return {
    pid,
    parent: Number(fields[1]),
    group: Number(fields[2]),
    startedAt: Number(fields[19]),
    isZombie: fields[0] === 'Z' || fields[0] === 'X',
  };
}

/** All processes of the machine; none where the system has no `/proc`. */
export function listProcesses(): ProcessEntry[] {
  let names: string[];
  try {
    names = fs.readdirSync('/proc');
  } catch {
    return [];
  }
  return names.filter(name => /^\d+$/.test(name)).flatMap(name => readProcess(Number(name)) ?? []);
}

/** The words a process was started with, for messages; empty when it has ended. */
export function commandOf(pid: number): string {
  try {
    return fs.readFileSync(`/proc/${pid}/cmdline`, 'latin1').replaceAll('\0', ' ').trim();
  } catch {
    return '';
  }
}

/** Whether a process was started by another one, or by one of its children, and all between them still live. */
export function isBelow(pid: number, ancestor: number): boolean {
  for (let one = readProcess(pid); one !== null && one.pid > 1; one = readProcess(one.parent))
    if (one.parent === ancestor) return true;
  return false;
}
