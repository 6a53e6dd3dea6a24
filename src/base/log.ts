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

/**
 * Standard output; in the journal each line begins with its priority, so that `journalctl -p warning` finds it.
 *
 * @param journal the variable `JOURNAL_STREAM`
 */
export function standardOutput(journal: string | undefined): pino.DestinationStream {
  const to = pino.destination(1);
  if (!isJournal(1, journal)) return to;
  return {
    ...LEVELLED,
    write(line: string) {
      to.write(journalPrefix(this.lastLevel) + line);
    },
  } as pino.DestinationStream & { lastLevel: number };
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
  to: pino.DestinationStream = standardOutput(undefined),
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
  return pino(options, lines === 'pretty' ? prettied(to) : to);
}
