import type { ChildProcess } from 'node:child_process';

/** The pid of a child that was started. @throws Error for one that was not: 0 would name the whole process group in a signal */
export function startedPid({ pid }: Pick<ChildProcess, 'pid'>): number {
  if (pid === undefined) throw new Error('the process was not started');
  return pid;
}
