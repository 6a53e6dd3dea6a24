import * as abi from "./plugin_host";
import { decodeBase64 } from "./base64";
import { Json, strings } from "./json";
import { errorOf, NOT_FOUND, parked, parkedBody, refusal, Result } from "./result";
import { pointer, utf8, utf8Text } from "./text";

const IF_ABSENT = 0;
const IF_EQUAL = 1;

/** What became of a conditional write. */
export class KVUpdate {
  /** `presentBytes`: the value that stood in the way of a write that was not made; null when the key is absent. */
  constructor(public written: bool, public presentBytes: ArrayBuffer | null = null) {}
  /** The same as text. */
  get present(): string | null {
    const bytes = this.presentBytes;
    return bytes === null ? null : utf8Text(bytes);
  }
}

/** Keys in order, and the place to go on from; null at the end. */
export class KeyPage {
  constructor(public keys: string[], public next: string | null) {}
}

export function readKey(key: string): Result<ArrayBuffer | null> {
  const k = utf8(key);
  const n = abi.kv_get(pointer(k), k.byteLength);
  if (n == NOT_FOUND) return new Result<ArrayBuffer | null>(null);
  return n < 0 ? new Result<ArrayBuffer | null>(null, errorOf(n)) : new Result<ArrayBuffer | null>(parked(n));
}

export function writeKey(key: string, value: ArrayBuffer, ttlSeconds: i32): string | null {
  const k = utf8(key);
  return refusal(abi.kv_set(pointer(k), k.byteLength, pointer(value), value.byteLength, ttlSeconds));
}

export function listKeys(prefix: string, after: string, limit: i32): Result<KeyPage> {
  const p = utf8(prefix);
  const a = utf8(after);
  const n = abi.kv_list(pointer(p), p.byteLength, pointer(a), a.byteLength, limit);
  if (n < 0) return new Result<KeyPage>(new KeyPage([], null), errorOf(n));
  const page = Json.trusted(parked(n));
  const items = page.get("keys").items();
  const keys: string[] = [];
  for (let i = 0; i < items.length; i++) keys.push(items[i].text);
  const next = page.get("next");
  return new Result<KeyPage>(new KeyPage(keys, next.isNull ? null : next.text));
}

/** Writes only if the key is absent (`expected` null) or has the value `expected`. */
export function updateKey(key: string, expected: ArrayBuffer | null, value: ArrayBuffer, ttlSeconds: i32): Result<KVUpdate> {
  const k = utf8(key);
  const e = expected === null ? new ArrayBuffer(0) : expected!;
  const mode = expected === null ? IF_ABSENT : IF_EQUAL;
  const n = abi.kv_update(pointer(k), k.byteLength, mode, pointer(e), e.byteLength, pointer(value), value.byteLength, ttlSeconds);
  if (n < 0) return new Result<KVUpdate>(new KVUpdate(false), errorOf(n));
  if (n == 1) return new Result<KVUpdate>(new KVUpdate(true));
  // One byte says whether there is a value: an empty one is not an absent one.
  if (load<u8>(pointer(parked(1))) == 0) return new Result<KVUpdate>(new KVUpdate(false));
  return new Result<KVUpdate>(new KVUpdate(false, parkedBody()));
}

/** Values of several keys, in the order of the keys; null in the place of an absent one. */
export function readKeys(keys: string[]): Result<Array<ArrayBuffer | null>> {
  const order = strings(keys).finish();
  const n = abi.kv_get_many(order.pointer, order.length);
  if (n < 0) return new Result<Array<ArrayBuffer | null>>([], errorOf(n));
  const values = Json.trusted(parked(n));
  const out = new Array<ArrayBuffer | null>(keys.length);
  for (let i = 0; i < keys.length; i++) {
    const value = values.get(keys[i]);
    out[i] = value.isNull ? null : decodeBase64(value.from + 1, value.to - 1);
  }
  return new Result<Array<ArrayBuffer | null>>(out);
}

export function addToKey(key: string, delta: i64, ttlSeconds: i32): Result<i64> {
  const k = utf8(key);
  const n = abi.kv_increment(pointer(k), k.byteLength, delta, ttlSeconds);
  return n < 0 ? new Result<i64>(0, errorOf(n)) : new Result<i64>(I64.parseInt(String.UTF8.decode(parked(n))));
}

export function removeKey(key: string): Result<bool> {
  const k = utf8(key);
  const n = abi.kv_delete(pointer(k), k.byteLength);
  return n < 0 ? new Result<bool>(false, errorOf(n)) : new Result<bool>(n == 1);
}
