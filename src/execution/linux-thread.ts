import fs from 'node:fs';
import os from 'node:os';
import { foreignFunctions } from '../base/foreign-functions.ts';

/** Facts that Linux reports about one thread of this process, by its thread id; on other systems they are 0. */

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

/** Policies of sched(7). */
const SCHED_OTHER = 0;
const SCHED_IDLE = 5;

let setScheduler: ((thread: number, policy: number, parameters: Buffer) => number) | null = null;

/**
 * Lets a thread run only while no other one wants its processor, which it gives up at once, or as others do. The lowest
 * niceness alone would let it finish its slice of some milliseconds first. Threads it starts later do the same.
 *
 * @returns whether the system does it
 */
export function setIdlePolicy(thread: number, isIdle: boolean): boolean {
  if (process.platform !== 'linux') return false;
  try {
    setScheduler ??= foreignFunctions()
      .load('libc.so.6')
      .func('int sched_setscheduler(int thread, int policy, const void* parameters)');
    // struct sched_param: a priority, which is 0 for both.
    return setScheduler(thread, isIdle ? SCHED_IDLE : SCHED_OTHER, Buffer.alloc(4)) === 0;
  } catch {
    // Another C library than the expected one.
    return false;
  }
}

const CAP_SYS_NICE = 23;
/** RLIMIT_NICE as getrlimit(2) counts it: 20 allows every niceness down to 0. */
const RLIMIT_FOR_NICE_0 = 20;

/**
 * Whether this process may raise a priority it has lowered, because of a capability (capabilities(7)) or its limit
 * (getrlimit(2)). True where the system does not report either.
 */
export function mayRaisePriority(): boolean {
  try {
    const limit = /^Max nice priority\s+(\d+|unlimited)/m.exec(fs.readFileSync('/proc/self/limits', 'latin1'))?.[1];
    if (limit === 'unlimited' || Number(limit ?? 0) >= RLIMIT_FOR_NICE_0) return true;
    const effective = /^CapEff:\s*([0-9a-f]+)/m.exec(fs.readFileSync('/proc/self/status', 'latin1'))?.[1] ?? '0';
    return ((BigInt(`0x${effective}`) >> BigInt(CAP_SYS_NICE)) & 1n) === 1n;
  } catch {
    return true;
  }
}
