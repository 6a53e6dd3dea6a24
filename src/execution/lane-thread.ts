import fs from 'node:fs';
import os from 'node:os';

/** What Linux tells of one thread of this process, by its thread id; elsewhere all of it is 0. */

/** Processor time in ms. */
export function cpuMs(thread: number): number {
  try {
    return Number(fs.readFileSync(`/proc/self/task/${thread}/schedstat`, 'latin1').split(' ')[0]) / 1e6;
  } catch {
    return 0;
  }
}

/** Memory first touched by the thread, in KiB: its minor page faults times the page size. */
export function touchedKib(thread: number): number {
  try {
    const stat = fs.readFileSync(`/proc/self/task/${thread}/stat`, 'latin1');
    return Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[7]) * 4;
  } catch {
    return 0;
  }
}

/** Whether the priority could be set; raising it again needs rights an ordinary user does not have. */
export function setThreadPriority(thread: number, nice: number): boolean {
  if (thread <= 0) return true;
  try {
    os.setPriority(thread, nice);
    return true;
  } catch {
    return false;
  }
}

const CAP_SYS_NICE = 23;

/** Whether this process may raise a priority it has lowered (capabilities(7)); assumed where the system does not tell. */
export function mayRaisePriority(): boolean {
  try {
    const effective = /^CapEff:\s*([0-9a-f]+)/m.exec(fs.readFileSync('/proc/self/status', 'latin1'))?.[1] ?? '0';
    return ((BigInt(`0x${effective}`) >> BigInt(CAP_SYS_NICE)) & 1n) === 1n;
  } catch {
    return true;
  }
}
