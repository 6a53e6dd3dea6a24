import { assertKind, checked, contentOf, int64, NOT_FOUND, parked, parkedText, timeToLive, toJSON } from './host.ts';
import * as raw from './host-functions.js';

/**
 * What became of a conditional write; `present` is the value that stood in its way, null when the key is absent, and
 * `presentBytes` the same for a value that is no text.
 */
export type KVUpdate = { written: true } | KVPresent;

class KVPresent {
  readonly written = false;
  readonly present: string | null;
  readonly #bytes: Uint8Array | null;

  constructor(bytes: Uint8Array | null) {
    this.present = bytes === null ? null : raw.utf8_text(bytes);
    this.#bytes = bytes;
  }
  get presentBytes(): Uint8Array | null {
    return this.#bytes;
  }
}

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

export function set(key: string, value: string | Uint8Array, ttlSeconds: number): void {
  assertKind('a key', key, 'string');
  checked(raw.kv_set(key, contentOf('a value', value), timeToLive(ttlSeconds)));
}

export const remove = (key: string): boolean => checked(raw.kv_delete(key)) === 1;

export function list(prefix: string, after: string, limit: number): KeyPage {
  return parked(raw.kv_list(prefix, after, limit));
}

export function getManyBytes(keys: readonly string[]): Array<Uint8Array | null> {
  const values: Record<string, string | null> = parked(raw.kv_get_many(toJSON(keys)));
  return keys.map(key => {
    const value = values[key];
    return typeof value === 'string' ? Uint8Array.fromBase64(value) : null;
  });
}

export const getMany = (keys: readonly string[]): Array<string | null> =>
  getManyBytes(keys).map(bytes => (bytes === null ? null : raw.utf8_text(bytes)));

export function update(
  key: string,
  expected: string | Uint8Array | null,
  value: string | Uint8Array,
  ttlSeconds: number,
): KVUpdate {
  assertKind('a key', key, 'string');
  const mode = expected === null ? IF_ABSENT : IF_EQUAL;
  const former = expected === null ? '' : contentOf('the value that is expected', expected);
  const content = contentOf('a value', value);
  if (checked(raw.kv_update(key, mode, former, content, timeToLive(ttlSeconds))) === 1) return { written: true };
  // One byte says whether there is a value: an empty one is not an absent one.
  const isThere = raw.result_bytes(1)[0] === 1;
  return new KVPresent(isThere ? raw.body_bytes() : null);
}

export const increment = (key: string, delta: number | bigint, ttlSeconds: number): bigint =>
  BigInt(parkedText(raw.kv_increment(key, int64('what is added', delta), timeToLive(ttlSeconds))));
