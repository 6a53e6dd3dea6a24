import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { z } from 'zod';
import { messageOf } from '../../base/errors.ts';
import { foreignFunctions } from '../../base/foreign-functions.ts';

const { O_APPEND, O_CREAT, O_NOFOLLOW, O_RDWR } = fs.constants;

/** Constants of flock(2). */
const LOCK_EX = 2;
const LOCK_NB = 4;
/** The note of the holder, which it writes right after it got the lock. */
const NOTE_MS = 500;
/** How long the lock may still be held after its holder has ended. */
const ORPHAN_MS = 2000;

const note = z.object({ pid: z.number(), host: z.string(), command: z.string() });

/** The process that holds a data directory, according to its note. */
export type LockHolder = z.infer<typeof note>;

export type DataLock =
  /** Locked by this process until it ends, or `release` is called. */
  | { state: 'held'; fd: number; release(): void }
  /** Another process holds it; null when its note cannot be read. */
  | { state: 'taken'; by: LockHolder | null }
  /** The operating system or the file system does not support such locks. */
  | { state: 'unsupported'; why: string };

/**
 * Name of the lock file in the data directory. It is never removed, or two processes could lock two different files.
 */
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
 * Locks a data directory, which must exist. The kernel holds the lock exactly as long as this process lives: a crash or
 * a reboot leaves no lock behind, and another process with the same pid does not have it.
 *
 * @param command the command that runs here, for the message of a second process that is refused
 */
export function lockDataDirectory(directory: string, command: string): DataLock {
  // A missing package is the operator's to install; only a system without locks counts as one.
  foreignFunctions();
  const file = path.join(directory, LOCK_FILE);
  const fd = fs.openSync(file, O_RDWR | O_CREAT | O_APPEND | O_NOFOLLOW, 0o600);
  let got: boolean;
  try {
    got = lockFile(fd);
    // A child that the holder was starting when it was killed keeps the lock for a moment.
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
  return { state: 'held', fd, release: () => fs.closeSync(fd) };
}

/** Describes the holder of a directory for an error message. */
export function holderText(by: LockHolder | null): string {
  if (by === null) return 'another process';
  const where = by.host === os.hostname() ? '' : ` on ${by.host}`;
  return `process ${by.pid}${where} (plugin-host ${by.command})`;
}

/** Whether a service holds the lock of a directory now. */
export function isServed(directory: string): boolean {
  const file = path.join(directory, LOCK_FILE);
  if (!fs.existsSync(file)) return false;
  const lock = lockDataDirectory(directory, 'command');
  if (lock.state === 'held') lock.release();
  return lock.state === 'taken' && lock.by?.command === 'serve';
}
