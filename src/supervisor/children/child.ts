import { type ChildProcess, spawn } from 'node:child_process';
import path from 'node:path';
import { OperatorError } from '../../base/errors.ts';
import type { Child } from './adopted-child.ts';

/** Path of the program's entry file, to start child processes with; in a release it is JavaScript. */
export const MAIN = path.join(import.meta.dirname, `../../main${path.extname(import.meta.filename)}`);

/** A failure at the start; the message is one line that says what to do. */
export class StartError extends OperatorError {
  override readonly name = 'StartError';
}

/** Waits for the child to exit. @returns false when it still runs after `ms` */
export function exited(child: Child, ms: number): Promise<boolean> {
  if (child.exitCode !== null || child.signalCode !== null) return Promise.resolve(true);
  return new Promise(resolve => {
    const timer = setTimeout(() => resolve(false), ms);
    child.once('exit', () => {
      clearTimeout(timer);
      resolve(true);
    });
  });
}

/**
 * Starts a program that must not outlive this process, even if this process is killed: a shell holds the read end of a
 * pipe and interrupts the program when the pipe closes. The child is in a separate process group, so that Ctrl-C
 * reaches only the supervisor, which stops its children in order.
 *
 * @param signal shell name of the signal that makes the program stop cleanly
 */
export function spawnGuarded(
  command: string,
  args: readonly string[],
  signal: string,
  env: NodeJS.ProcessEnv,
): ChildProcess {
  const script = `
    exec 3<&0
    "$@" 3<&- </dev/null &
    child=$!
    { cat <&3 >/dev/null; kill -${signal} $child 2>/dev/null; } &
    wait $child
    code=$?
    exit $code`;
  return spawn('/bin/sh', ['-c', script, 'sh', command, ...args], {
    stdio: ['pipe', 'pipe', 'pipe'],
    detached: true,
    env,
  });
}
