import type { ChildProcess } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import { mayRaisePriority, setIdlePolicy } from '../../execution/linux-thread.ts';

/** Niceness of a process that starts while another one serves: it takes what that leaves. */
const STARTING_NICE = 19;
/** A process that has not started by then, because others need all processors, gets a small share of them. */
const IDLE_MS = 5000;

/** Sets the niceness of a thread; one that has ended is let be. */
function setNice(thread: number, nice: number): void {
  try {
    os.setPriority(thread, nice);
  } catch {}
}

/** The process itself where the system lists no threads. */
function threadsOf(pid: number): number[] {
  try {
    return fs.readdirSync(`/proc/${pid}/task`).map(Number);
  } catch {
    return [pid];
  }
}

/** The threads that still have the priority of a start: a thread may have set its own. */
const starting = (pid: number): number[] =>
  threadsOf(pid).filter(thread => {
    try {
      return os.getPriority(thread) === STARTING_NICE;
    } catch {
      return false;
    }
  });

/**
 * Lets a process that starts take only the processor time that others leave, so that requests do not wait for it. Does
 * nothing where the priority could not be raised again.
 */
export function lowerStartPriority(child: ChildProcess): void {
  const { pid } = child;
  if (pid === undefined || !mayRaisePriority()) return;
  // Threads take the policy of the one that starts them: those that were started meanwhile may have been too early.
  for (let done = 0, all = threadsOf(pid); done < all.length; all = threadsOf(pid)) {
    done = all.length;
    for (const thread of all) {
      setIdlePolicy(thread, true);
      setNice(thread, STARTING_NICE);
    }
  }
  const share = setTimeout(() => {
    for (const thread of starting(pid)) setIdlePolicy(thread, false);
  }, IDLE_MS);
  share.unref();
  child.once('exit', () => clearTimeout(share));
}

/**
 * Lets the program that takes the place of this one load with the lowest niceness, until `raiseStartPriority`. Not under
 * the policy above: a program of an older release would stay there, with all its children.
 */
export function lowerOwnPriority(): void {
  if (mayRaisePriority()) setNice(process.pid, STARTING_NICE);
}

/** Gives the process, with all threads it has started since, its priority. */
export function raiseStartPriority(pid: number | undefined): void {
  if (pid === undefined) return;
  for (const thread of starting(pid)) {
    setIdlePolicy(thread, false);
    setNice(thread, 0);
  }
}
