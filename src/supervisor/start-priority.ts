import fs from 'node:fs';
import os from 'node:os';
import { mayRaisePriority } from '../execution/linux-thread.ts';

/** Niceness of a process that starts while another one serves: it takes what that leaves. */
const STARTING_NICE = 19;

/** Sets the niceness of a process; one that has ended is let be. */
function setNice(pid: number, nice: number): void {
  try {
    os.setPriority(pid, nice);
  } catch {}
}

/**
 * Lets a process that starts take only the processor time that others leave, so that requests do not wait for it. Does
 * nothing where the priority could not be raised again.
 */
export function lowerStartPriority(pid: number | undefined): void {
  if (pid !== undefined && mayRaisePriority()) setNice(pid, STARTING_NICE);
}

/** Gives the process, with all threads it has started since, its priority. */
export function raiseStartPriority(pid: number | undefined): void {
  if (pid === undefined) return;
  let threads: string[] = [];
  try {
    threads = fs.readdirSync(`/proc/${pid}/task`);
  } catch {}
  // The process itself where the system lists no threads.
  for (const thread of [pid, ...threads.map(Number)]) {
    try {
      if (os.getPriority(thread) === STARTING_NICE) os.setPriority(thread, 0);
    } catch {}
  }
}
