import fs from 'node:fs';
import { createRequire } from 'node:module';
import pino from 'pino';

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

/** Asks pino for the level of each line. */
const LEVELLED = { [Symbol.for('pino.metadata')]: true, lastLevel: 30 };

/** Bytes of lines that wait while standard output is not read; further lines are dropped and counted. */
const WAITING_BYTES_MAX = 1024 * 1024;
/** How long a process that ends tries to write what waits. */
const LAST_LINES_MS = 1000;

/** Where lines go that may be dropped. */
type Output = pino.DestinationStream & {
  lastLevel: number;
  /** Called with how many lines were dropped, when lines are written again. */
  whenDropped(warn: (lines: number) => void): void;
  /** Writes what waits, before the process goes on as another program; gives up after a second. */
  flush(): void;
};

/**
 * Standard output; in the journal each line begins with its priority, so that `journalctl -p warning` finds it. A reader that stops (a
 * stuck collector, a paused pager) must not stop the service: nothing waits for it, and what it does not take is dropped in the end.
 *
 * @param journal the variable `JOURNAL_STREAM`
 */
export function standardOutput(journal: string | undefined): Output {
  let until = Number.POSITIVE_INFINITY;
  // Looking at it makes a pipe one that does not block; otherwise the end of the process would wait for its reader.
  void process.stdout.writable;
  const to = pino.destination({
    dest: 1,
    sync: false,
    maxLength: WAITING_BYTES_MAX,
    retryEAGAIN: () => performance.now() < until,
  });
  const prefix = isJournal(1, journal) ? journalPrefix : (): string => '';
  let warn: (lines: number) => void = () => {};
  let dropped = 0;
  to.on('drop', () => {
    dropped++;
  });
  to.on('drain', () => {
    const lines = dropped;
    dropped = 0;
    if (lines > 0) warn(lines);
  });
  // Before the library writes the last lines.
  process.prependListener('exit', () => {
    until = performance.now() + LAST_LINES_MS;
  });
  return {
    ...LEVELLED,
    write(line: string) {
      to.write(prefix(this.lastLevel) + line);
    },
    whenDropped(by) {
      warn = by;
    },
    flush() {
      until = performance.now() + LAST_LINES_MS;
      try {
        to.flushSync();
      } catch {
        // Not read within that second.
      }
      until = Number.POSITIVE_INFINITY;
    },
  } as Output;
}

/** What lines look like: an object of JSON each, or text for people. */
export type LogFormat = 'json' | 'pretty';

/** The same destination, to which lines are written as people read them. The library is loaded when it is needed. */
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
export function makeLog(
  level: string,
  to: pino.DestinationStream | Output = standardOutput(undefined),
  lines: LogFormat = 'json',
): Log {
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
  const log = pino(options, lines === 'pretty' ? prettied(to) : to);
  if ('whenDropped' in to)
    (to as Output).whenDropped(n => log.warn({ lines: n }, 'log lines were dropped: standard output was not read'));
  return log;
}
