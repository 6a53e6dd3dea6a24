import * as abi from "./abi";
import { arr, Json, quote } from "./json";

const IF_ABSENT = 0;
const IF_EQUAL = 1;

/** What became of a conditional write. */
export class KVUpdate {
  /** `present`: the value that stood in the way of a write that was not made; null when the key is absent. */
  constructor(public written: bool, public present: string | null) {}
}

/** Keys in order, and the place to go on from; null at the end. */
export class KeyPage {
  constructor(public keys: string[], public next: string | null) {}
}

/** Writes only if the key is absent (`expected` null) or has the value `expected`; null when the host refuses. */
export function updateKey(key: string, expected: string | null, value: string, ttlSeconds: i32): KVUpdate | null {
  const k = String.UTF8.encode(key);
  const e = expected === null ? new ArrayBuffer(0) : String.UTF8.encode(expected!);
  const v = String.UTF8.encode(value);
  const mode = expected === null ? IF_ABSENT : IF_EQUAL;
  const n = abi.kv_update(at(k), k.byteLength, mode, at(e), e.byteLength, at(v), v.byteLength, ttlSeconds);
  if (n < 0) return null;
  if (n == 1) return new KVUpdate(true, null);
  // One byte says whether there is a value: an empty one is not an absent one.
  const isThere = new ArrayBuffer(1);
  abi.result_read(at(isThere), 1);
  if (load<u8>(at(isThere)) == 0) return new KVUpdate(false, null);
  const present = new ArrayBuffer(abi.body_len());
  abi.body_read(0, at(present), present.byteLength);
  return new KVUpdate(false, String.UTF8.decode(present));
}

/** Values of several keys, in the order of the keys; null in the place of an absent one. Null when the host refuses. */
export function readKeys(keys: string[]): Array<string | null> | null {
  const quoted: string[] = [];
  for (let i = 0; i < keys.length; i++) quoted.push(quote(keys[i]));
  const list = String.UTF8.encode(arr(quoted));
  const n = abi.kv_get_many(at(list), list.byteLength);
  if (n < 0) return null;
  const answer = new ArrayBuffer(n);
  abi.result_read(at(answer), n);
  const values = Json.trusted(answer);
  const out = new Array<string | null>(keys.length);
  for (let i = 0; i < keys.length; i++) {
    const value = values.get(keys[i]);
    out[i] = value.isNull ? null : decodeBase64(value);
  }
  return out;
}

@inline function at(b: ArrayBuffer): usize {
  return changetype<usize>(b);
}

/** The six bits a character of base64 stands for. */
function sextet(c: u8): u32 {
  if (c >= 97) return c - 71;
  if (c >= 65) return c - 65;
  if (c >= 48) return c + 4;
  return c == 43 ? 62 : 63;
}

/** Text whose UTF-8 bytes the host wrote as base64 with padding. */
function decodeBase64(value: Json): string {
  let from = value.from + 1;
  const end = value.to - 1;
  const length = <i32>(end - from);
  if (length == 0) return "";
  const padding: i32 = (load<u8>(end - 1) == 61 ? 1 : 0) + (load<u8>(end - 2) == 61 ? 1 : 0);
  const bytes = new ArrayBuffer((length >> 2) * 3);
  let to = at(bytes);
  for (; from < end; from += 4, to += 3) {
    const word = (sextet(load<u8>(from)) << 18) | (sextet(load<u8>(from, 1)) << 12) | (sextet(load<u8>(from, 2)) << 6) | sextet(load<u8>(from, 3));
    store<u8>(to, <u8>(word >> 16));
    store<u8>(to, <u8>(word >> 8), 1);
    store<u8>(to, <u8>word, 2);
  }
  return String.UTF8.decodeUnsafe(at(bytes), bytes.byteLength - padding);
}
