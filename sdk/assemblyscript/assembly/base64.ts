import { pointer, utf8 } from "./text";

const INVALID: u32 = 64;

/** The character of six bits. */
function digit(bits: u32): u8 {
  if (bits < 26) return <u8>(bits + 65);
  if (bits < 52) return <u8>(bits + 71);
  if (bits < 62) return <u8>(bits - 4);
  return bits == 62 ? 43 : 47;
}

/** The six bits of a character; 64 when it is no digit of base64. */
function sextet(c: u8): u32 {
  if (c >= 97 && c <= 122) return c - 71;
  if (c >= 65 && c <= 90) return c - 65;
  if (c >= 48 && c <= 57) return c + 4;
  if (c == 43) return 62;
  return c == 47 ? 63 : INVALID;
}

/** Bytes as base64 with padding. */
export function toBase64(bytes: ArrayBuffer): string {
  const n = bytes.byteLength;
  const groups = (n + 2) / 3;
  const out = new ArrayBuffer(groups * 4);
  let from = pointer(bytes);
  let to = pointer(out);
  for (let k = 0; k < groups; k++, from += 3, to += 4) {
    const left = n - k * 3;
    const word: u32 = (<u32>load<u8>(from) << 16) | (left > 1 ? <u32>load<u8>(from, 1) << 8 : 0) | (left > 2 ? <u32>load<u8>(from, 2) : 0);
    store<u8>(to, digit(word >> 18));
    store<u8>(to, digit((word >> 12) & 63), 1);
    store<u8>(to, left > 1 ? digit((word >> 6) & 63) : 61, 2);
    store<u8>(to, left > 2 ? digit(word & 63) : 61, 3);
  }
  return String.UTF8.decode(out);
}

/** Bytes of base64 with padding; null when the text is none. */
export function fromBase64(text: string): ArrayBuffer | null {
  const b = utf8(text);
  return decodeBase64(pointer(b), pointer(b) + b.byteLength);
}

/** Bytes of the base64 in [from, to); null when it is none. */
export function decodeBase64(from: usize, to: usize): ArrayBuffer | null {
  const length = <i32>(to - from);
  if (length == 0) return new ArrayBuffer(0);
  if ((length & 3) != 0) return null;
  const padding: i32 = load<u8>(to - 1) != 61 ? 0 : load<u8>(to - 2) != 61 ? 1 : 2;
  const bytes = new ArrayBuffer((length >> 2) * 3 - padding);
  let out = pointer(bytes);
  for (; from < to; from += 4, out += 3) {
    const left: i32 = from + 4 == to ? 3 - padding : 3;
    const a = sextet(load<u8>(from));
    const b = sextet(load<u8>(from, 1));
    const c: u32 = left > 1 ? sextet(load<u8>(from, 2)) : 0;
    const d: u32 = left > 2 ? sextet(load<u8>(from, 3)) : 0;
    if ((a | b | c | d) >= INVALID) return null;
    const word = (a << 18) | (b << 12) | (c << 6) | d;
    store<u8>(out, <u8>(word >> 16));
    if (left > 1) store<u8>(out, <u8>(word >> 8), 1);
    if (left > 2) store<u8>(out, <u8>word, 2);
  }
  return bytes;
}
