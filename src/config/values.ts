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

const UNIT_MS: Readonly<Record<string, number>> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 };

/** A length of time in words, like `15m` or `1h30m`, in ms. */
export function durationMs(words: string): number {
  let ms = 0;
  for (const [, amount, unit] of words.matchAll(/(\d+(?:\.\d+)?)(ms|s|m|h|d)/g))
    ms += Number(amount) * (UNIT_MS[unit ?? ''] ?? 0);
  return ms;
}

/** Such a text, from and to so many ms. */
export const duration = (leastMs: number, mostMs: number, bounds: string) =>
  z
    .string()
    .regex(/^(\d+(\.\d+)?(ms|s|m|h|d))+$/, 'must be a length of time like 15m, 1h30m or 90s')
    .refine(words => durationMs(words) >= leastMs && durationMs(words) <= mostMs, `must be ${bounds}`);

/** Address of a name server, with a port or without. */
export const isNameServer = (text: string): boolean =>
  isIP(text) !== 0 || /^(?:[\d.]+|\[[0-9a-f:.]+\]):\d{1,5}$/i.test(text);
