import fs from 'node:fs';
import { createRequire } from 'node:module';
import pino from 'pino';
import { foreignFunctions } from './foreign-functions.ts';

export type Log = pino.Logger;

/** Priorities of the journal by level of pino: what is above none of them is an error (sd-daemon(3)). */
const PRIORITIES: ReadonlyArray<readonly [below: number, priority: number]> = [
  [30, 7],
  [40, 6],
  [50, 4],
];
const ERROR_PRIORITY = 3;

/** The priority of a line in the journal as it stands before the line, by the level of pino. */
export function journalPrefix(level: number): string {
  const [, priority = ERROR_PRIORITY] = PRIORITIES.find(([below]) => level < below) ?? [];
  return `<${priority}>`;
}

/** Whether a descriptor leads to the journal: `JOURNAL_STREAM` names its device and inode (systemd.exec(5)). */
export function isJournal(fd: number, stream: string | undefined): boolean {
  if (stream === undefined) return false;
  const { dev, ino } = fs.fstatSync(fd);
  return stream === `${dev}:${ino}`;
}

const PINO_METADATA = Symbol.for('pino.metadata');
/** Asks pino for the level of each line. */
const LEVELLED = { [PINO_METADATA]: true, lastLevel: 30 };

/** Bytes of lines that wait while standard output is not read; further lines are dropped and counted. */
const WAITING_BYTES_MAX = 1024 * 1024;
/** Bytes written at a time; a pipe takes that many. */
const CHUNK_BYTES = 64 * 1024;
/** How soon it is tried again when standard output takes nothing. */
const RETRY_MS = 50;
/** How long a process that ends tries to write what waits. */
const LAST_LINES_MS = 1000;

/** fcntl(2), and its flag on Linux and macOS. */
const [F_GETFL, F_SETFL] = [3, 4];
const O_NONBLOCK = process.platform === 'darwin' ? 0x4 : 0o4000;

/**
 * Makes standard output one that does not block, where it is a pipe or a socket. That belongs to what is open, which other processes
 * share: each start of a child that inherits it makes it block again, so it is asked for before each write.
 *
 * @returns null where standard output is a file or a terminal, or the system does not offer it
 */
function unblocker(): (() => void) | null {
  const kind = fs.fstatSync(1);
  if (!kind.isFIFO() && !kind.isSocket()) return null;
  try {
    const library = process.platform === 'darwin' ? 'libSystem.dylib' : 'libc.so.6';
    const fcntl = foreignFunctions().load(library).func('int fcntl(int fd, int command, ...)');
    return () => {
      const flags: unknown = fcntl(1, F_GETFL);
      if (typeof flags === 'number' && flags >= 0 && (flags & O_NONBLOCK) === 0)
        fcntl(1, F_SETFL, 'int', flags | O_NONBLOCK);
    };
  } catch {
    return null;
  }
}

const isFull = (error: unknown): boolean =>
  error instanceof Error && 'code' in error && (error.code === 'EAGAIN' || error.code === 'EBUSY');

/**
 * Standard output for lines of a log. A reader that stops (a stuck collector, a paused pager) or is gone must not stop the service:
 * nothing waits for it, and what it does not take is dropped in the end. The destination of pino does not fit: without `sync` it never
 * ends when a write fails in another way than by a full pipe, and with it it waits for the reader.
 */
class StandardOutput {
  /** Set by pino before each line. */
  lastLevel = 30;
  readonly #prefix: (level: number) => string;
  readonly #unblock = unblocker();
  #waiting: Buffer[] = [];
  #bytes = 0;
  #retry: NodeJS.Timeout | null = null;
  #dropped = 0;
  /** The last write has failed, and not because a pipe was full. */
  #isFailing = false;
  #warn: (lines: number) => void = () => {};

  constructor(prefix: (level: number) => string) {
    this.#prefix = prefix;
    // Asks pino for the level of each line.
    Object.assign(this, { [PINO_METADATA]: true });
    process.on('exit', () => this.flush());
  }

  write(line: string): void {
    const bytes = Buffer.from(this.#prefix(this.lastLevel) + line);
    if (this.#bytes + bytes.length > WAITING_BYTES_MAX) {
      this.#dropped++;
      return;
    }
    this.#waiting.push(bytes);
    this.#bytes += bytes.length;
    if (this.#retry === null) this.#drain();
  }

  /** @param warn called with how many lines were dropped, when lines are written again */
  whenDropped(warn: (lines: number) => void): void {
    this.#warn = warn;
  }

  /** Writes what waits, before the process ends or goes on as another program; gives up after a second. */
  flush(): void {
    const until = performance.now() + LAST_LINES_MS;
    while (!this.#writeAll() && performance.now() < until)
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, RETRY_MS);
  }

  #drain(): void {
    this.#retry = null;
    if (this.#writeAll()) {
      if (this.#dropped === 0 || this.#isFailing) return;
      const lines = this.#dropped;
      this.#dropped = 0;
      this.#warn(lines);
      return;
    }
    // The process may end meanwhile: `exit` writes what it can.
    this.#retry = setTimeout(() => this.#drain(), RETRY_MS).unref();
  }

  /** @returns false while standard output takes nothing */
  #writeAll(): boolean {
    while (this.#waiting.length > 0) {
      const chunk = this.#chunk();
      let written: number;
      try {
        this.#unblock?.();
        written = fs.writeSync(1, chunk);
        this.#isFailing = false;
      } catch (error) {
        if (isFull(error)) {
          this.#waiting.unshift(chunk);
          return false;
        }
        // A full disk, a reader that is gone: later lines may find it otherwise.
        this.#isFailing = true;
        this.#dropped += chunk.toString('latin1').split('\n').length - 1;
        written = chunk.length;
      }
      this.#bytes -= written;
      if (written < chunk.length) this.#waiting.unshift(chunk.subarray(written));
    }
    return true;
  }

  /** Takes the lines that are written next. */
  #chunk(): Buffer {
    let bytes = 0;
    let lines = 0;
    while (lines < this.#waiting.length && (lines === 0 || bytes < CHUNK_BYTES))
      bytes += this.#waiting[lines++]?.length ?? 0;
    const taken = this.#waiting.splice(0, lines);
    return taken.length === 1 && taken[0] !== undefined ? taken[0] : Buffer.concat(taken);
  }
}

/**
 * Standard output; in the journal each line begins with its priority, so that `journalctl -p warning` finds it.
 *
 * @param journal the variable `JOURNAL_STREAM`
 */
export function standardOutput(journal: string | undefined): StandardOutput {
  return new StandardOutput(isJournal(1, journal) ? journalPrefix : () => '');
}

let plain: StandardOutput | null = null;

/** For logs that name no output: one for the process, because each listens for the end of it. */
function plainOutput(): StandardOutput {
  plain ??= standardOutput(undefined);
  return plain;
}

/** What lines look like: an object of JSON each, or text for people. */
export type LogFormat = 'json' | 'pretty';

/** A destination to which lines are written as people read them. The library is loaded when it is needed. */
function prettied(to: pino.DestinationStream): pino.DestinationStream {
  const pretty = createRequire(import.meta.url)('pino-pretty') as typeof import('pino-pretty');
  const format = pretty.prettyFactory({
    colorize: process.stdout.isTTY === true,
    singleLine: true,
    translateTime: 'SYS:yyyy-mm-dd HH:MM:ss.l',
  });
  return {
    ...LEVELLED,
    write(line: string) {
      if ('lastLevel' in to) to.lastLevel = this.lastLevel;
      to.write(format(line));
    },
  } as pino.DestinationStream & { lastLevel: number };
}

/**
 * Writes JSON lines without secrets: callers leave them out, and `redact` removes any that remain.
 *
 * @param to where they are written: standard output unless given
 * @param lines what they look like
 */
export function makeLog(level: string, to: pino.DestinationStream = plainOutput(), lines: LogFormat = 'json'): Log {
  const options: pino.LoggerOptions = {
    level,
    base: undefined,
    timestamp: pino.stdTimeFunctions.isoTime,
    redact: [
      'password',
      'token',
      'secret',
      'authorization',
      'cookie',
      '*.password',
      '*.token',
      '*.secret',
      '*.authorization',
      '*.cookie',
    ],
  };
  const target = lines === 'pretty' ? prettied(to) : to;
  if (to instanceof StandardOutput) {
    const notice = pino({ ...options, level: 'warn' }, target);
    to.whenDropped(n => notice.warn({ lines: n }, 'log lines were dropped: standard output was not read'));
  }
  return pino(options, target);
}
