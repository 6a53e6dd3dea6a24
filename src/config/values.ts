import { isIP } from 'node:net';
import { z } from 'zod';

/** Checks of configuration values that need more than a type. */

export const isWebAddress = (value: string): boolean =>
  value === '' || (/^https?:\/\//.test(value) && URL.canParse(value));

/** One to which paths can be added, and which holds no secret. */
export function isPlainAddress(value: string): boolean {
  if (value === '') return true;
  if (!isWebAddress(value)) return false;
  const { hash, password, search, username } = new URL(value);
  return hash + password + search + username === '' && !/[?#]/.test(value);
}

export function isIssuer(value: string): boolean {
  if (value === '') return true;
  if (!URL.canParse(value)) return false;
  const { hostname, protocol } = new URL(value);
  return protocol === 'https:' || (protocol === 'http:' && /^(localhost|127\.[\d.]+|\[::1\])$/.test(hostname));
}

/** Digits of the environment are a number; an empty text and `true` are none. */
const readNumber = (value: unknown): unknown =>
  typeof value === 'string' && /^-?\d+(\.\d+)?(e[+-]?\d+)?$/i.test(value.trim()) ? Number(value) : value;

const boundsOf = (least: number, most: number): string =>
  most === Number.MAX_SAFE_INTEGER ? `, at least ${least}` : ` from ${least} to ${most}`;

/** A number in bounds. */
export function numeric(least: number, most: number) {
  const words = `must be a number${boundsOf(least, most)}`;
  return z.preprocess(readNumber, z.number(words).min(least, words).max(most, words));
}

/** A whole number in bounds. */
export function whole(least: number, most = Number.MAX_SAFE_INTEGER) {
  const words = `must be a whole number${boundsOf(least, most)}`;
  return z.preprocess(readNumber, z.number(words).int(words).min(least, words).max(most, words));
}

const LIST = 'must be a list of texts, like [one, two]';

/** A list, or words with commas between them. */
export const list = z.union(
  [
    z.array(z.string()),
    z.string().transform(s =>
      s
        .split(',')
        .map(p => p.trim())
        .filter(p => p !== ''),
    ),
  ],
  LIST,
);

/** A list whose entries pass a test. @param noun what each of them must be */
export const listOf = (test: (entry: string) => boolean, noun: string) =>
  list.superRefine((all, ctx) => {
    const wrong = all.find(entry => !test(entry));
    if (wrong !== undefined) ctx.addIssue({ code: 'custom', message: `${JSON.stringify(wrong)} in it is not ${noun}` });
  });

const FLAG = 'must be true or false';
export const flag = z.union([z.boolean(), z.enum(['true', 'false']).transform(word => word === 'true')], FLAG);

/** Where PostgreSQL is, in the form of libpq. */
export const isDatabaseUrl = (value: string): boolean =>
  value === '' || (/^postgres(ql)?:\/\//.test(value) && URL.canParse(value)) || value.startsWith('socket:');

const UNIT_MS: Readonly<Record<string, number>> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 };

/** A length of time in words, like `15m` or `1h30m`, in ms. */
export function durationMs(words: string): number {
  let ms = 0;
  for (const [, amount, unit] of words.matchAll(/(\d+(?:\.\d+)?)(ms|s|m|h|d)/g))
    ms += Number(amount) * (UNIT_MS[unit ?? ''] ?? 0);
  return ms;
}

const DURATION = 'must be a length of time like 15m, 1h30m or 90s';

export const isDuration = (text: string): boolean => /^(\d+(\.\d+)?(ms|s|m|h|d))+$/.test(text);

/** Such a text, from and to so many ms. */
export const duration = (leastMs: number, mostMs: number, bounds: string) =>
  z
    .string(DURATION)
    .refine(isDuration, { message: DURATION, abort: true })
    .refine(words => durationMs(words) >= leastMs && durationMs(words) <= mostMs, `must be ${bounds}`);

/** Address of a name server, with a port or without. */
export const isNameServer = (text: string): boolean =>
  isIP(text) !== 0 || /^(?:[\d.]+|\[[0-9a-f:.]+\]):\d{1,5}$/i.test(text);
