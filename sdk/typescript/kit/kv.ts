import { assertKind, checked, NOT_FOUND, parked, parkedText, timeToLive, toJSON } from './host.ts';
import * as raw from './host-functions.js';

/** What became of a conditional write; `present` is the value that stood in its way, null when the key is absent. */
export type KVUpdate = { written: true } | { written: false; present: string | null };

/** Keys in order, and the key to go on after; null at the end. */
export type KeyPage = { keys: string[]; next: string | null };

const IF_ABSENT = 0;
const IF_EQUAL = 1;

/** Length of the value; null when the key is absent. */
function lengthOf(key: string): number | null {
  assertKind('a key', key, 'string');
  const result = raw.kv_get(key);
  return result === NOT_FOUND ? null : checked(result);
}

export function getText(key: string): string | null {
  const length = lengthOf(key);
  return length === null ? null : raw.result_text(length);
}

export function getBytes(key: string): Uint8Array | null {
  const length = lengthOf(key);
  return length === null ? null : raw.result_bytes(length);
}

/** Values are text or bytes: what else is passed would be stored as "[object Object]" and its like. */
function assertValue(value: unknown): void {
  if (typeof value !== 'string' && !(value instanceof Uint8Array))
    throw new TypeError(
      `a value must be a string or a Uint8Array, not ${value === null ? 'null' : typeof value}; JSON.stringify makes text`,
    );
}

export function set(key: string, value: string | Uint8Array, ttlSeconds: number): void {
  assertKind('a key', key, 'string');
  assertValue(value);
  checked(raw.kv_set(key, value, timeToLive(ttlSeconds)));
}

export const remove = (key: string): boolean => checked(raw.kv_delete(key)) === 1;

export function list(prefix: string, after: string, limit: number): KeyPage {
  return parked(raw.kv_list(prefix, after, limit));
}

export function getMany(keys: readonly string[]): Array<string | null> {
  const values: Record<string, string | null> = parked(raw.kv_get_many(toJSON(keys)));
  return keys.map(key => {
    const value = values[key];
    return typeof value === 'string' ? raw.utf8_text(Uint8Array.fromBase64(value)) : null;
  });
}

export function update(key: string, expected: string | null, value: string | Uint8Array, ttlSeconds: number): KVUpdate {
  assertKind('a key', key, 'string');
  assertValue(value);
  const mode = expected === null ? IF_ABSENT : IF_EQUAL;
  if (checked(raw.kv_update(key, mode, expected ?? '', value, timeToLive(ttlSeconds))) === 1) return { written: true };
  // One byte says whether there is a value: an empty one is not an absent one.
  const isThere = raw.result_bytes(1)[0] === 1;
  return { written: false, present: isThere ? raw.body_text() : null };
}

export const increment = (key: string, delta: number | bigint, ttlSeconds: number): bigint =>
  BigInt(parkedText(raw.kv_increment(key, BigInt(delta), timeToLive(ttlSeconds))));
