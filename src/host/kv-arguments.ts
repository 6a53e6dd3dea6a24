import { z } from 'zod';
import { HOST_ERROR } from '../abi/host-functions.ts';
import { type HostResult, hostError } from '../abi/host-result.ts';
import { LIMITS } from '../base/limits.ts';

/** What plugins give the functions of the key-value store, and what of it is refused (docs/abi.md "Key-value store"). */

/** Modes of `kv_update` (docs/abi.md). */
export const MODE = { ifAbsent: 0, ifEqual: 1 } as const;

/** Why a key is refused, or null. */
export function badKey(key: string): HostResult | null {
  if (key === '') return hostError(HOST_ERROR.invalid, 'the key is empty');
  if (key.includes('\0')) return hostError(HOST_ERROR.invalid, 'the key contains a NUL character');
  const bytes = Buffer.byteLength(key);
  if (bytes > LIMITS.kvKeyBytesMax)
    return hostError(HOST_ERROR.tooLarge, `the key has ${bytes} bytes; at most ${LIMITS.kvKeyBytesMax} are allowed`);
  return null;
}

/** Why a value is refused, or null. @param name what the error calls it */
export function badValue(value: Uint8Array, name: string): HostResult | null {
  if (value.length <= LIMITS.kvValueBytesMax) return null;
  return hostError(
    HOST_ERROR.tooLarge,
    `the ${name} has ${value.length} bytes; at most ${LIMITS.kvValueBytesMax} are allowed`,
  );
}

/** Why a time to live in seconds is refused, or null. */
export const badTtl = (ttl: number): HostResult | null =>
  ttl < 0 ? hostError(HOST_ERROR.invalid, 'the time to live is below zero') : null;

const keyList = z.array(z.string());

/** The keys of `kv_get_many` without duplicates, or why they are refused. */
export function parseKeys(json: string): string[] | HostResult {
  let value: unknown;
  try {
    value = JSON.parse(json);
  } catch {
    return hostError(HOST_ERROR.invalid, 'the keys are not JSON; they must be an array of strings');
  }
  const parsed = keyList.safeParse(value);
  if (!parsed.success) return hostError(HOST_ERROR.invalid, 'the keys must be a JSON array of strings');
  const keys = parsed.data;
  if (keys.length > LIMITS.kvManyKeysMax)
    return hostError(
      HOST_ERROR.tooLarge,
      `the call has ${keys.length} keys; at most ${LIMITS.kvManyKeysMax} are allowed in one call`,
    );
  for (const [k, key] of keys.entries()) {
    const bad = badKey(key);
    if (bad !== null) return { ...bad, data: `/${k}: ${String(bad.data)}` };
    if (!key.isWellFormed()) return hostError(HOST_ERROR.invalid, `/${k}: the key contains half a surrogate pair`);
  }
  return [...new Set(keys)];
}

/** The answer to `kv_get_many` where the values are too much for one call. */
export const tooLargeTogether = (bytes: number): HostResult =>
  hostError(
    HOST_ERROR.tooLarge,
    `the values have ${bytes} bytes together; at most ${LIMITS.kvManyBytesMax} are read in one call`,
  );

/** Whether a value is the decimal text of an int64. */
export function isInt64(text: string): boolean {
  return /^-?[0-9]{1,19}$/.test(text) && BigInt.asIntN(64, BigInt(text)) === BigInt(text);
}
