import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { z } from 'zod';
import { messageOf } from '../base/errors.ts';
import { foreignFunctions } from '../base/foreign-functions.ts';

const { O_APPEND, O_CREAT, O_NOFOLLOW, O_RDWR } = fs.constants;

/** Of flock(2). */
const LOCK_EX = 2;
const LOCK_NB = 4;
/** The holder writes its note right after it got the lock. */
const NOTE_MS = 500;
/** How long a holder that has ended may still seem to hold the lock. */
const ORPHAN_MS = 2000;

const note = z.object({ pid: z.number(), host: z.string(), command: z.string() });

/** The process that holds a data directory, as its note says. */
export type LockHolder = z.infer<typeof note>;

export type DataLock =
  /** Ours until this process ends, or `release` is called. */
  | { state: 'held'; release(): void }
  /** Another process holds it; null when its note cannot be read. */
  | { state: 'taken'; by: LockHolder | null }
  /** The system or the file system has no such locks. */
  | { state: 'unsupported'; why: string };

/** Name of the lock file below the data directory. It stays: removing it would let two processes lock two files. */
export const LOCK_FILE = 'supervisor.lock';

/** Locks an open file for this process, without waiting. @returns false when another process has it */
function lockFile(fd: number): boolean {
  const koffi = foreignFunctions();
  const library = process.platform === 'darwin' ? 'libSystem.dylib' : 'libc.so.6';
  const flock = koffi.load(library).func('int flock(int fd, int operation)');
  if (flock(fd, LOCK_EX | LOCK_NB) === 0) return true;
  const errno = koffi.errno();
  if (errno === koffi.os.errno.EWOULDBLOCK || errno === koffi.os.errno.EAGAIN) return false;
  throw new Error(`flock failed with errno ${errno}`);
}

/** Whether the process that wrote a note was on this machine and has ended. */
function isGone(by: LockHolder | null): boolean {
  return by !== null && by.host === os.hostname() && !fs.existsSync(`/proc/${by.pid}`);
}

function readNote(file: string): LockHolder | null {
  try {
    return note.parse(JSON.parse(fs.readFileSync(file, 'utf8')));
  } catch {
    return null;
  }
}

/**
 * Locks a data directory, which must exist. The kernel holds the lock for as long as this process lives, however it ends,
 * and for no longer: a crash or a reboot leaves no lock behind, and a process that was given the same pid has none.
 *
 * @param command what runs here, for the message of a second process that is refused
 * @throws OperatorError when the package that calls C functions is missing
 */
export function lockDataDirectory(directory: string, command: string): DataLock {
  // A missing package is the operator's to install; only a system without locks is told as one.
  foreignFunctions();
  const file = path.join(directory, LOCK_FILE);
  const fd = fs.openSync(file, O_RDWR | O_CREAT | O_APPEND | O_NOFOLLOW, 0o600);
  let got: boolean;
  try {
    got = lockFile(fd);
    // A child the holder was making when it was killed keeps the lock for a moment more.
    for (const until = Date.now() + ORPHAN_MS; !got && isGone(readNote(file)) && Date.now() < until; got = lockFile(fd))
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 20);
  } catch (error) {
    fs.closeSync(fd);
    return { state: 'unsupported', why: messageOf(error) };
  }
  if (!got) {
    fs.closeSync(fd);
    let by = readNote(file);
    for (const until = Date.now() + NOTE_MS; by === null && Date.now() < until; by = readNote(file))
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 20);
    return { state: 'taken', by };
  }
  fs.ftruncateSync(fd);
  fs.writeSync(fd, `${JSON.stringify({ pid: process.pid, host: os.hostname(), command } satisfies LockHolder)}\n`);
  return { state: 'held', release: () => fs.closeSync(fd) };
}

/** Who holds a directory, in words. */
export function holderText(by: LockHolder | null): string {
  if (by === null) return 'another process';
  const where = by.host === os.hostname() ? '' : ` on ${by.host}`;
  return `process ${by.pid}${where} (plugin-host ${by.command})`;
}
