// A small JSON reader (UTF-8 in, tree out) and writer. The host sends well-formed JSON; text of other origin is read with
// bounds checked, and what is not JSON reads as null.
const QUOTE: u8 = 34;
const BACKSLASH: u8 = 92;
const DEPTH_MAX = 64;

export const enum Kind { Null, Bool, Number, String, Array, Object }

export class Json {
  kind: i32 = Kind.Null;
  /** Text of a string, digits of a number. */
  raw: string = "";
  flag: bool = false;
  keys: string[] = [];
  items: Json[] = [];

  static parse(buf: ArrayBuffer): Json {
    const p = new Parser(changetype<usize>(buf), buf.byteLength);
    const value = p.value(0);
    p.space();
    return p.bad || p.at < p.end ? NULL : value;
  }

  static parseText(text: string): Json {
    return Json.parse(String.UTF8.encode(text));
  }

  get(key: string): Json {
    for (let i = 0, n = this.keys.length; i < n; i++) if (unchecked(this.keys[i]) == key) return unchecked(this.items[i]);
    return NULL;
  }

  has(key: string): bool {
    return this.keys.includes(key);
  }

  at(index: i32): Json {
    return index >= 0 && index < this.items.length ? this.items[index] : NULL;
  }

  /** Text of a string or digits of a number, empty for anything else. */
  str(key: string): string {
    return this.get(key).raw;
  }

  /** An integer, exact over all 64 bits. */
  i64(key: string): i64 {
    const raw = this.get(key).raw;
    return raw.length ? I64.parseInt(raw) : 0;
  }

  bool(key: string): bool {
    return this.get(key).flag;
  }

  get isNull(): bool {
    return this.kind == Kind.Null;
  }

  get length(): i32 {
    return this.items.length;
  }
}

const NULL = new Json();

class Parser {
  at: usize;
  end: usize;
  bad: bool = false;

  constructor(from: usize, length: i32) {
    this.at = from;
    this.end = from + length;
  }

  space(): void {
    while (this.at < this.end && load<u8>(this.at) <= 32) this.at++;
  }

  private take(c: u8): bool {
    if (this.at < this.end && load<u8>(this.at) == c) {
      this.at++;
      return true;
    }
    return false;
  }

  private fail(): Json {
    this.bad = true;
    this.at = this.end;
    return NULL;
  }

  value(depth: i32): Json {
    this.space();
    if (this.at >= this.end || depth > DEPTH_MAX) return this.fail();
    const c = load<u8>(this.at);
    if (c == 123) return this.object(depth);
    if (c == 91) return this.array(depth);
    const j = new Json();
    if (c == QUOTE) {
      j.kind = Kind.String;
      j.raw = this.text();
      return j;
    }
    if (c == 116 || c == 102) {
      const n: usize = c == 116 ? 4 : 5;
      if (this.end - this.at < n) return this.fail();
      j.kind = Kind.Bool;
      j.flag = c == 116;
      this.at += n;
      return j;
    }
    if (c == 110) {
      if (this.end - this.at < 4) return this.fail();
      this.at += 4;
      return j;
    }
    const from = this.at;
    while (this.at < this.end) {
      const d = load<u8>(this.at);
      if ((d < 48 || d > 57) && d != 43 && d != 45 && d != 46 && d != 69 && d != 101) break;
      this.at++;
    }
    if (this.at == from) return this.fail();
    j.kind = Kind.Number;
    j.raw = String.UTF8.decodeUnsafe(from, this.at - from);
    return j;
  }

  private object(depth: i32): Json {
    const j = new Json();
    j.kind = Kind.Object;
    this.at++;
    this.space();
    if (this.take(125)) return j;
    while (true) {
      this.space();
      if (this.at >= this.end || load<u8>(this.at) != QUOTE) return this.fail();
      const key = this.text();
      this.space();
      if (!this.take(58)) return this.fail();
      const value = this.value(depth + 1);
      if (this.bad) return NULL;
      j.keys.push(key);
      j.items.push(value);
      this.space();
      if (this.take(44)) continue;
      return this.take(125) ? j : this.fail();
    }
  }

  private array(depth: i32): Json {
    const j = new Json();
    j.kind = Kind.Array;
    this.at++;
    this.space();
    if (this.take(93)) return j;
    while (true) {
      const value = this.value(depth + 1);
      if (this.bad) return NULL;
      j.items.push(value);
      this.space();
      if (this.take(44)) continue;
      return this.take(93) ? j : this.fail();
    }
  }

  private text(): string {
    this.at++;
    const from = this.at;
    let escaped = false;
    while (this.at < this.end) {
      const c = load<u8>(this.at);
      if (c == QUOTE) break;
      if (c == BACKSLASH) {
        escaped = true;
        this.at++;
      }
      this.at++;
    }
    if (this.at >= this.end) {
      this.fail();
      return "";
    }
    const raw = String.UTF8.decodeUnsafe(from, this.at - from);
    this.at++;
    return escaped ? unescape(raw) : raw;
  }
}

function unescape(raw: string): string {
  let out = "";
  let k = 0;
  const n = raw.length;
  while (k < n) {
    const c = raw.charCodeAt(k++);
    if (c != 92 || k >= n) {
      out += String.fromCharCode(c);
      continue;
    }
    const d = raw.charCodeAt(k++);
    if (d == 110) out += "\n";
    else if (d == 116) out += "\t";
    else if (d == 114) out += "\r";
    else if (d == 98) out += "\b";
    else if (d == 102) out += "\f";
    else if (d == 117) {
      out += String.fromCharCode(<i32>parseInt(raw.substr(k, 4), 16));
      k += 4;
    } else out += String.fromCharCode(d);
  }
  return out;
}

export function quote(s: string): string {
  let clean = true;
  for (let i = 0, n = s.length; i < n; i++) {
    const c = s.charCodeAt(i);
    if (c < 32 || c == 34 || c == 92) {
      clean = false;
      break;
    }
  }
  if (clean) return '"' + s + '"';
  let out = '"';
  for (let i = 0, n = s.length; i < n; i++) {
    const c = s.charCodeAt(i);
    if (c == 34) out += '\\"';
    else if (c == 92) out += "\\\\";
    else if (c == 10) out += "\\n";
    else if (c == 13) out += "\\r";
    else if (c == 9) out += "\\t";
    else if (c < 32) out += "\\u00" + (c < 16 ? "0" : "1") + "0123456789abcdef".charAt(c & 15);
    else out += String.fromCharCode(c);
  }
  return out + '"';
}

/** Writes an object member by member: `obj().str("a", "b").num("n", 1)`. */
export class Obj {
  private text: string = "";

  private key(k: string): void {
    this.text += (this.text.length ? "," : "") + quote(k) + ":";
  }

  str(k: string, v: string): Obj {
    this.key(k);
    this.text += quote(v);
    return this;
  }

  num(k: string, v: i64): Obj {
    this.key(k);
    this.text += v.toString();
    return this;
  }

  bool(k: string, v: bool): Obj {
    this.key(k);
    this.text += v ? "true" : "false";
    return this;
  }

  /** A value that is JSON already. */
  raw(k: string, v: string): Obj {
    this.key(k);
    this.text += v;
    return this;
  }

  toString(): string {
    return "{" + this.text + "}";
  }
}

export function obj(): Obj {
  return new Obj();
}

/** An array of values that are JSON already. */
export function arr(items: string[]): string {
  return "[" + items.join(",") + "]";
}

/** A JSON value as text again. */
export function stringify(j: Json): string {
  if (j.kind == Kind.String) return quote(j.raw);
  if (j.kind == Kind.Number) return j.raw;
  if (j.kind == Kind.Bool) return j.flag ? "true" : "false";
  if (j.kind == Kind.Null) return "null";
  const parts: string[] = [];
  for (let i = 0; i < j.items.length; i++) parts.push((j.kind == Kind.Object ? quote(j.keys[i]) + ":" : "") + stringify(j.items[i]));
  return j.kind == Kind.Object ? "{" + parts.join(",") + "}" : "[" + parts.join(",") + "]";
}
