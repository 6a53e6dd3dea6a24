import type { ChildProcess } from 'node:child_process';
import { messageOf } from '../../base/errors.ts';
import { exited } from '../children/child.ts';
import { lowerStartPriority, raiseStartPriority } from '../children/start-priority.ts';

/** Delay before the process is started: another one that starts would take twice as long if both loaded at the same time. */
const DELAY_MS = 150;
const KILLED_MS = 2000;

/** A loaded process that waits to take over, so that a crash costs less than half a second. */
export class Standby {
  readonly #spawn: () => ChildProcess;
  readonly #progress: (text: string) => void;
  #child: ChildProcess | null = null;
  #timer: NodeJS.Timeout | null = null;
  #isClosed = false;

  constructor(spawn: () => ChildProcess, progress: (text: string) => void) {
    this.#spawn = spawn;
    this.#progress = progress;
  }

  /** Starts a process that loads its modules meanwhile. @param hurries none serves yet */
  start(hurries = false): void {
    if (this.#isClosed || this.#child !== null) return;
    const child = hurries ? this.#spawn() : this.#load();
    this.#child = child;
    child.once('exit', () => {
      if (this.#child === child) this.#child = null;
    });
  }

  /** Starts one in a moment. */
  soon(): void {
    if (this.#timer !== null || this.#isClosed) return;
    this.#timer = setTimeout(() => {
      this.#timer = null;
      try {
        this.start();
      } catch (error) {
        // Without a standby only the next crash costs more time.
        this.#progress(`no process can stand by: ${messageOf(error)}`);
      }
    }, DELAY_MS);
  }

  #load(): ChildProcess {
    const child = this.#spawn();
    lowerStartPriority(child);
    return child;
  }

  /** The process that waits, or a new one. @param hurries no other process serves in its place meanwhile */
  take(hurries: boolean): ChildProcess {
    const child = this.#child ?? this.#load();
    this.#child = null;
    if (hurries) raiseStartPriority(child.pid);
    return child;
  }

  /** Ends the process that waits, because it has loaded the program as it was. */
  drop(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
    this.#child?.kill('SIGKILL');
    this.#child = null;
  }

  /** Ends the process that waits, and waits for its exit: the program that takes over could not wait for it. */
  async end(): Promise<void> {
    const child = this.#child;
    this.drop();
    if (child !== null) await exited(child, KILLED_MS);
  }

  /** Ends it, and starts none any more. */
  close(): void {
    this.#isClosed = true;
    this.drop();
  }
}
