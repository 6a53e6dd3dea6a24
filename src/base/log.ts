import pino from 'pino';

export type Log = pino.Logger;

/**
 * Writes JSON lines without secrets: callers leave them out, and `redact` removes any that remain.
 *
 * @param to where they are written: standard output unless given
 */
export function makeLog(level: string, to: pino.DestinationStream = pino.destination(1)): Log {
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
  return pino(options, to);
}
