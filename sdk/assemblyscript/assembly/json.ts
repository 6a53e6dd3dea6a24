// JSON without a tree. A value is a place in UTF-8 text; members are looked up by scanning, which for the small documents
// of events is faster than building objects. Text of unknown origin is checked once, by `Json.parse`; what is not JSON
// reads as null. The writer appends UTF-8 to one growing buffer.
import { utf8, utf8TextAt } from "./text";

const QUOTE: u8 = 34;
const BACKSLASH: u8 = 92;
const DEPTH_MAX = 64;

export const enum Kind { Null, Bool, Number, String, Array, Object }

function isSpace(c: u8): bool {
  return c == 32 || c == 10 || c == 13 || c == 9;
}

function skipSpace(at: usize, end: usize): usize {
  while (at < end && isSpace(load<u8>(at))) at++;
  return at;
}

/** Behind the closing quote of the string at `at`; 0 when there is none. */
function skipString(at: usize, end: usize): usize {
  at++;
  // Eight bytes at once: the lowest high bit of `found` marks the first quote or backslash.
  while (at + 8 <= end) {
    const word = load<u64>(at);
    const quotes = word ^ 0x2222222222222222;
    const slashes = word ^ 0x5c5c5c5c5c5c5c5c;
    const found = (((quotes - 0x0101010101010101) & ~quotes) | ((slashes - 0x0101010101010101) & ~slashes)) & 0x8080808080808080;
    if (found == 0) {
      at += 8;
      continue;
    }
    at += <usize>(ctz(found) >> 3);
    if (load<u8>(at) == QUOTE) return at + 1;
    at += 2;
  }
  while (at < end) {
    const c = load<u8>(at);
    if (c == QUOTE) return at + 1;
    at += c == BACKSLASH ? 2 : 1;
  }
  return 0;
}

function isHex(c: u8): bool {
  return (c >= 48 && c <= 57) || ((c | 32) >= 97 && (c | 32) <= 102);
}

/** A number as an integer; 0 when it has a fraction, or is too large to be exact. */
function wholeOf(value: f64): i64 {
  return Math.floor(value) == value && Math.abs(value) < 9007199254740992 ? <i64>value : 0;
}

/** The end of the string at `at`; 0 when it has none, or an escape or a character that JSON does not allow. */
function skipText(at: usize, end: usize): usize {
  const behind = skipString(at, end);
  for (let p = at + 1; p + 1 < behind; p++) {
    const c = load<u8>(p);
    if (c < 32) return 0;
    if (c != BACKSLASH) continue;
    const escaped = load<u8>(++p);
    if (escaped == 117) {
      for (let k = 0; k < 4; k++) if (++p + 1 >= behind || !isHex(load<u8>(p))) return 0;
    } else if (
      escaped != QUOTE && escaped != BACKSLASH && escaped != 47 && escaped != 98 &&
      escaped != 102 && escaped != 110 && escaped != 114 && escaped != 116
    )
      return 0;
  }
  return behind;
}

/** Behind the value at `at`; 0 when it is not JSON, or nested too deeply. */
function skipValue(at: usize, end: usize, depth: i32): usize {
  at = skipSpace(at, end);
  if (at >= end || depth > DEPTH_MAX) return 0;
  const c = load<u8>(at);
  if (c == QUOTE) return skipText(at, end);
  if (c == 123 || c == 91) return skipGroup(at, end, depth, c == 123);
  if (c == 116) return end - at >= 4 && load<u32>(at) == 0x65757274 ? at + 4 : 0;
  if (c == 110) return end - at >= 4 && load<u32>(at) == 0x6c6c756e ? at + 4 : 0;
  if (c == 102) return end - at >= 5 && load<u32>(at + 1) == 0x65736c61 ? at + 5 : 0;
  return skipNumber(at, end);
}

function skipDigits(at: usize, end: usize): usize {
  while (at < end && load<u8>(at) >= 48 && load<u8>(at) <= 57) at++;
  return at;
}

/** Behind the number at `at`; 0 when there is none. */
function skipNumber(at: usize, end: usize): usize {
  if (load<u8>(at) == 45) at++;
  const whole = skipDigits(at, end);
  if (whole == at || (load<u8>(at) == 48 && whole > at + 1)) return 0;
  at = whole;
  if (at < end && load<u8>(at) == 46) {
    const fraction = skipDigits(at + 1, end);
    if (fraction == at + 1) return 0;
    at = fraction;
  }
  if (at < end && (load<u8>(at) | 32) == 101) {
    at++;
    if (at < end && (load<u8>(at) == 43 || load<u8>(at) == 45)) at++;
    const exponent = skipDigits(at, end);
    if (exponent == at) return 0;
    at = exponent;
  }
  return at;
}

function skipGroup(at: usize, end: usize, depth: i32, members: bool): usize {
  const close: u8 = members ? 125 : 93;
  at = skipSpace(at + 1, end);
  if (at < end && load<u8>(at) == close) return at + 1;
  while (true) {
    if (members) {
      at = skipSpace(at, end);
      if (at >= end || load<u8>(at) != QUOTE) return 0;
      at = skipText(at, end);
      if (at == 0) return 0;
      at = skipSpace(at, end);
      if (at >= end || load<u8>(at) != 58) return 0;
      at++;
    }
    at = skipValue(at, end, depth + 1);
    if (at == 0) return 0;
    at = skipSpace(at, end);
    if (at >= end) return 0;
    const c = load<u8>(at++);
    if (c == close) return at;
    if (c != 44) return 0;
  }
}

/** Behind the value at `at` of a text that is JSON. Values of the host may be nested deeper than `skipValue` recurses. */
function behindValue(at: usize, end: usize): usize {
  at = skipSpace(at, end);
  let depth = 0;
  while (at < end) {
    const c = load<u8>(at);
    if (c == QUOTE) {
      at = skipString(at, end);
      if (at == 0) return end;
      if (depth == 0) return at;
      continue;
    }
    const opens = c == 123 || c == 91;
    const closes = c == 125 || c == 93;
    // A number or a word ends where its group goes on or ends.
    if (depth == 0 && (closes || c == 44 || isSpace(c))) return at;
    at++;
    if (opens) depth++;
    else if (closes && --depth == 0) return at;
  }
  return end;
}

/** Whether the JSON string at `at` (its opening quote) is `key`. */
function sameText(at: usize, to: usize, key: string): bool {
  const n = key.length;
  if (to - at - 2 == <usize>n) {
    let k = 0;
    while (k < n) {
      const c = load<u8>(at + 1 + k);
      if (c >= 128 || c == BACKSLASH || <i32>c != key.charCodeAt(k)) break;
      k++;
    }
    if (k == n) return true;
  }
  for (let p = at + 1; p < to - 1; p++) {
    const c = load<u8>(p);
    if (c >= 128 || c == BACKSLASH) return textOf(at, to) == key;
  }
  return false;
}

/** Text of the JSON string between its quotes. */
function textOf(from: usize, to: usize): string {
  for (let p = from + 1; p < to - 1; p++) if (load<u8>(p) == BACKSLASH) return unescape(utf8TextAt(from + 1, <i32>(to - from - 2)));
  return utf8TextAt(from + 1, <i32>(to - from - 2));
}

const MEMBER_BYTES = 16;

/** What can be written as JSON: `obj()`, `list()`, or a value that was read. */
export abstract class JSONValue {
  /** The finished text, as it is now; what is added later is not in it. */
  abstract finish(): Bytes;

  /** The JSON text. */
  toString(): string {
    return this.finish().toString();
  }
}

/** A value that was read; an absent one reads as null. */
export class Json extends JSONValue {
  private places: ArrayBuffer | null = null;
  private members: i32 = 0;

  /** `keep` holds the text alive; [from, to) is this value's part of it, empty for an absent one. */
  constructor(private keep: ArrayBuffer, readonly from: usize, readonly to: usize) {
    super();
  }

  /** A value that is not there. */
  static absent(): Json {
    return ABSENT;
  }

  /** Reads UTF-8 text; absent when it is not exactly one JSON value. */
  static parse(text: ArrayBuffer): Json {
    const start = changetype<usize>(text);
    const end = start + text.byteLength;
    const from = skipSpace(start, end);
    const to = skipValue(from, end, 0);
    return to == 0 || skipSpace(to, end) != end ? ABSENT : new Json(text, from, to);
  }

  /** Text that is known to be one JSON value: the host's own. */
  static trusted(text: ArrayBuffer): Json {
    const start = changetype<usize>(text);
    return new Json(text, start, start + text.byteLength);
  }

  /** The same with text. @example Json.parseText('{"a":1}').i64("a") */
  static parseText(text: string): Json {
    return Json.parse(utf8(text));
  }

  get kind(): Kind {
    if (this.from >= this.to) return Kind.Null;
    const c = load<u8>(this.from);
    if (c == 123) return Kind.Object;
    if (c == 91) return Kind.Array;
    if (c == QUOTE) return Kind.String;
    if (c == 116 || c == 102) return Kind.Bool;
    return c == 110 ? Kind.Null : Kind.Number;
  }

  /** Whether it is null or absent. */
  get isNull(): bool {
    return this.kind == Kind.Null;
  }

  /** Whether it is not there: no such member, or text that is not JSON. */
  get isAbsent(): bool {
    return this.from >= this.to;
  }

  /** Places of an object's members, found once: opening quote, end of the key, start and end of the value. */
  private index(): ArrayBuffer {
    let room = new ArrayBuffer(16 * MEMBER_BYTES);
    let n = 0;
    let at = skipSpace(this.from + 1, this.to);
    while (at < this.to && load<u8>(at) == QUOTE) {
      if ((n + 1) * MEMBER_BYTES > room.byteLength) {
        const bigger = new ArrayBuffer(room.byteLength * 2);
        memory.copy(changetype<usize>(bigger), changetype<usize>(room), room.byteLength);
        room = bigger;
      }
      const m = changetype<usize>(room) + n * MEMBER_BYTES;
      const keyEnd = skipString(at, this.to);
      const from = skipSpace(skipSpace(keyEnd, this.to) + 1, this.to);
      const to = behindValue(from, this.to);
      store<u32>(m, <u32>at, 0);
      store<u32>(m, <u32>keyEnd, 4);
      store<u32>(m, <u32>from, 8);
      store<u32>(m, <u32>to, 12);
      n++;
      at = skipSpace(skipSpace(to, this.to) + 1, this.to);
    }
    this.members = n;
    this.places = room;
    return room;
  }

  /** A member by name; null when there is none. The last of equal names counts, as everywhere. */
  get(key: string): Json {
    if (this.kind != Kind.Object) return ABSENT;
    const known = this.places;
    const base = changetype<usize>(known === null ? this.index() : known);
    for (let k = this.members - 1; k >= 0; k--) {
      const m = base + k * MEMBER_BYTES;
      if (sameText(load<u32>(m, 0), load<u32>(m, 4), key)) return new Json(this.keep, load<u32>(m, 8), load<u32>(m, 12));
    }
    return ABSENT;
  }

  has(key: string): bool {
    return !this.get(key).isAbsent;
  }

  /** Names of an object's members, in order. */
  keys(): string[] {
    const out: string[] = [];
    if (this.kind != Kind.Object) return out;
    let at = skipSpace(this.from + 1, this.to);
    while (at < this.to && load<u8>(at) == QUOTE) {
      const keyEnd = skipString(at, this.to);
      out.push(textOf(at, keyEnd));
      const to = behindValue(skipSpace(keyEnd, this.to) + 1, this.to);
      at = skipSpace(skipSpace(to, this.to) + 1, this.to);
    }
    return out;
  }

  /** Elements of an array, in order. */
  items(): Json[] {
    const out: Json[] = [];
    if (this.kind != Kind.Array) return out;
    let at = skipSpace(this.from + 1, this.to);
    while (at < this.to && load<u8>(at) != 93) {
      const to = behindValue(at, this.to);
      out.push(new Json(this.keep, at, to));
      at = skipSpace(skipSpace(to, this.to) + 1, this.to);
    }
    return out;
  }

  /** Text of a string, digits of a number, empty for anything else. */
  get text(): string {
    const kind = this.kind;
    if (kind == Kind.String) return textOf(this.from, this.to);
    return kind == Kind.Number ? String.UTF8.decodeUnsafe(this.from, this.to - this.from) : "";
  }

  /** An integer, exact over all 64 bits; 0 for anything else, also for one that does not fit. */
  get integer(): i64 {
    if (this.kind != Kind.Number) return 0;
    const isNegative = load<u8>(this.from) == 45;
    // Built below zero, where there is one number more.
    let value: i64 = 0;
    for (let at = this.from + (isNegative ? 1 : 0); at < this.to; at++) {
      const digit = <i64>load<u8>(at) - 48;
      // 1.0 and 1e3 are integers, too.
      if (digit < 0 || digit > 9) return wholeOf(this.float);
      if (value < (i64.MIN_VALUE + digit) / 10) return 0;
      value = value * 10 - digit;
    }
    if (isNegative) return value;
    return value == i64.MIN_VALUE ? 0 : -value;
  }

  /** A number with a fraction; 0 for anything else. */
  get float(): f64 {
    return this.kind == Kind.Number ? F64.parseFloat(this.text) : 0;
  }

  /** Whether it is `true`. */
  get flag(): bool {
    return this.kind == Kind.Bool && load<u8>(this.from) == 116;
  }

  /** `text` of a member. */
  str(key: string): string {
    return this.get(key).text;
  }

  /** `integer` of a member. */
  i64(key: string): i64 {
    return this.get(key).integer;
  }

  /** `float` of a member. */
  f64(key: string): f64 {
    return this.get(key).float;
  }

  /** `flag` of a member. */
  bool(key: string): bool {
    return this.get(key).flag;
  }

  finish(): Bytes {
    const b = new Bytes();
    b.value(this);
    return b;
  }

  /** The value as JSON text. */
  toString(): string {
    return this.from >= this.to ? "null" : String.UTF8.decodeUnsafe(this.from, this.to - this.from);
  }
}

const ABSENT = new Json(new ArrayBuffer(0), 0, 0);

/** Text without its escapes, in one pass over one buffer: memory is never freed within an execution. */
function unescape(raw: string): string {
  const n = raw.length;
  const room = new ArrayBuffer(n << 1);
  const start = changetype<usize>(room);
  let to = start;
  let k = 0;
  while (k < n) {
    let c = raw.charCodeAt(k++);
    if (c == 92 && k < n) {
      c = raw.charCodeAt(k++);
      if (c == 110) c = 10;
      else if (c == 116) c = 9;
      else if (c == 114) c = 13;
      else if (c == 98) c = 8;
      else if (c == 102) c = 12;
      else if (c == 117) {
        c = <i32>parseInt(raw.substr(k, 4), 16);
        k += 4;
      }
    }
    store<u16>(to, <u16>c);
    to += 2;
  }
  return String.UTF16.decodeUnsafe(start, <i32>(to - start));
}

/** UTF-8 text that grows. */
export class Bytes {
  private room: ArrayBuffer = new ArrayBuffer(256);
  length: i32 = 0;

  get pointer(): usize {
    return changetype<usize>(this.room);
  }

  /** A place for `n` more bytes. */
  private more(n: i32): usize {
    const need = this.length + n;
    if (need > this.room.byteLength) {
      const bigger = new ArrayBuffer(max(need, this.room.byteLength * 2));
      memory.copy(changetype<usize>(bigger), this.pointer, this.length);
      this.room = bigger;
    }
    return this.pointer + this.length;
  }

  byte(c: u8): void {
    store<u8>(this.more(1), c);
    this.length++;
  }

  /** Bytes that are UTF-8 already. */
  raw(from: usize, length: i32): void {
    memory.copy(this.more(length), from, length);
    this.length += length;
  }

  /** A value that was read; null for an absent one. */
  value(v: Json): void {
    if (v.from < v.to) this.raw(v.from, <i32>(v.to - v.from));
    else this.plain("null");
  }

  /** The digits of a number; null for infinities and what is no number, as JSON has none of them. */
  float(v: f64): void {
    this.plain(isFinite(v) ? v.toString() : "null");
  }

  /** Text as it is. */
  plain(s: string): void {
    const n = s.length;
    const at = this.more(n * 3);
    this.length += <i32>String.UTF8.encodeUnsafe(changetype<usize>(s), n, at, false, String.UTF8.ErrorMode.REPLACE);
  }

  /** Text as a JSON string. */
  quoted(s: string): void {
    const n = s.length;
    // Six bytes are the most one UTF-16 unit takes.
    let at = this.more(n * 6 + 2);
    const start = at;
    store<u8>(at++, QUOTE);
    for (let i = 0; i < n; i++) {
      const c = <u32>s.charCodeAt(i);
      if (c < 128) {
        if (c >= 32 && c != 34 && c != 92) store<u8>(at++, <u8>c);
        else if (c == 34 || c == 92 || c == 10 || c == 13 || c == 9) {
          store<u8>(at++, BACKSLASH);
          store<u8>(at++, c == 10 ? 110 : c == 13 ? 114 : c == 9 ? 116 : <u8>c);
        } else {
          store<u32>(at, 0x3030755c);
          store<u8>(at + 4, c < 16 ? 48 : 49);
          const low = c & 15;
          store<u8>(at + 5, <u8>(low < 10 ? 48 + low : 87 + low));
          at += 6;
        }
      } else {
        // Surrogates stay together: encode the rest of the run at once.
        let k = i + 1;
        while (k < n && s.charCodeAt(k) >= 128) k++;
        at += String.UTF8.encodeUnsafe(changetype<usize>(s) + (<usize>i << 1), k - i, at, false, String.UTF8.ErrorMode.REPLACE);
        i = k - 1;
      }
    }
    store<u8>(at++, QUOTE);
    this.length += <i32>(at - start);
  }

  toString(): string {
    return String.UTF8.decodeUnsafe(this.pointer, this.length);
  }
}

/** Writes an object member by member: `obj().str("a", "b").num("n", 1)`. */
export class Obj extends JSONValue {
  readonly bytes: Bytes = new Bytes();
  private open: bool = true;

  constructor() {
    super();
    this.bytes.byte(123);
  }

  private key(k: string): void {
    if (!this.open) {
      this.open = true;
      this.bytes.length--;
    }
    if (this.bytes.length > 1) this.bytes.byte(44);
    this.bytes.quoted(k);
    this.bytes.byte(58);
  }

  str(k: string, v: string): Obj {
    this.key(k);
    this.bytes.quoted(v);
    return this;
  }

  /** An integer, with all digits. */
  num(k: string, v: i64): Obj {
    this.key(k);
    this.bytes.plain(v.toString());
    return this;
  }

  float(k: string, v: f64): Obj {
    this.key(k);
    this.bytes.float(v);
    return this;
  }

  bool(k: string, v: bool): Obj {
    this.key(k);
    this.bytes.plain(v ? "true" : "false");
    return this;
  }

  nul(k: string): Obj {
    this.key(k);
    this.bytes.plain("null");
    return this;
  }

  /** A value that was read. */
  json(k: string, v: Json): Obj {
    this.key(k);
    this.bytes.value(v);
    return this;
  }

  /** An object inside this one; null for none. */
  object(k: string, v: Obj | null): Obj {
    if (v === null) return this.nul(k);
    this.key(k);
    const inner = v.finish();
    this.bytes.raw(inner.pointer, inner.length);
    return this;
  }

  list(k: string, v: List): Obj {
    this.key(k);
    const inner = v.finish();
    this.bytes.raw(inner.pointer, inner.length);
    return this;
  }

  /** Text that is JSON already. */
  raw(k: string, v: string): Obj {
    this.key(k);
    this.bytes.plain(v);
    return this;
  }

  finish(): Bytes {
    if (this.open) {
      this.open = false;
      this.bytes.byte(125);
    }
    return this.bytes;
  }
}

/** Writes an array element by element: `list().str("a").num(1)`. */
export class List extends JSONValue {
  readonly bytes: Bytes = new Bytes();
  private open: bool = true;

  constructor() {
    super();
    this.bytes.byte(91);
  }

  private next(): void {
    if (!this.open) {
      this.open = true;
      this.bytes.length--;
    }
    if (this.bytes.length > 1) this.bytes.byte(44);
  }

  str(v: string): List {
    this.next();
    this.bytes.quoted(v);
    return this;
  }

  /** An integer, with all digits. */
  num(v: i64): List {
    this.next();
    this.bytes.plain(v.toString());
    return this;
  }

  float(v: f64): List {
    this.next();
    this.bytes.float(v);
    return this;
  }

  bool(v: bool): List {
    this.next();
    this.bytes.plain(v ? "true" : "false");
    return this;
  }

  nul(): List {
    this.next();
    this.bytes.plain("null");
    return this;
  }

  /** A value that was read, an object or another list. */
  add(v: JSONValue): List {
    this.next();
    const inner = v.finish();
    this.bytes.raw(inner.pointer, inner.length);
    return this;
  }

  finish(): Bytes {
    if (this.open) {
      this.open = false;
      this.bytes.byte(93);
    }
    return this.bytes;
  }
}

/** An empty object. @example obj().str("name", "Ada").num("times", 2) */
export function obj(): Obj {
  return new Obj();
}

/** An empty array. @example list().str("a").num(2) */
export function list(): List {
  return new List();
}

/** An array of strings. */
export function strings(values: string[]): List {
  const out = list();
  for (let i = 0; i < values.length; i++) out.str(values[i]);
  return out;
}

/** An array of values that are JSON text already. */
export function arr(items: string[]): string {
  return "[" + items.join(",") + "]";
}

/** A string as JSON text. */
export function quote(s: string): string {
  const b = new Bytes();
  b.quoted(s);
  return b.toString();
}
