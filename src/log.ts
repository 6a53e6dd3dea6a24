import pino from 'pino';

export type Log = pino.Logger;

/** JSON lines on standard output; nothing in them is secret (`redact` stands behind the callers). */
export function makeLog(level: string): Log {
  return pino({
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
  });
}
