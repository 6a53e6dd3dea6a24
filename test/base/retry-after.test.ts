import t from 'tap';
import { retryAfterMs } from '../../src/base/retry-after.ts';

t.test('Retry-After is seconds or a date in any form of HTTP; a text that is neither asks for nothing', t => {
  const now = Date.UTC(1994, 10, 6, 8, 49, 0);
  const rows: Array<[value: string | null, ms: number | null]> = [
    ['120', 120_000],
    [' 0 ', 0],
    ['Sun, 06 Nov 1994 08:49:37 GMT', 37_000],
    ['Sunday, 06-Nov-94 08:49:37 GMT', 37_000],
    ['Sun Nov  6 08:49:37 1994', 37_000],
    ['Sun, 06 Nov 1994 08:48:00 GMT', 0],
    [null, null],
    ['', null],
    ['-1', null],
    ['1.5', null],
    ['1e3', null],
    ['soon', null],
    ['Sunday', null],
    ['1994-11-06T08:49:37Z', null],
  ];
  for (const [value, ms] of rows) t.equal(retryAfterMs(value, now), ms, String(value));
  t.end();
});
