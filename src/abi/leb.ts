/** Signed LEB128 bytes of a 32-bit integer. */
export function signedLeb(value: number): number[] {
  const out: number[] = [];
  let rest = value | 0;
  for (;;) {
    const low = rest & 127;
    rest >>= 7;
    if ((rest === 0 && (low & 64) === 0) || (rest === -1 && (low & 64) !== 0)) {
      out.push(low);
      return out;
    }
    out.push(low | 128);
  }
}

/** Unsigned LEB128 bytes of a non-negative integer below 2^32. */
export function leb(value: number): number[] {
  const out: number[] = [];
  let rest = value;
  do {
    const low = rest % 128;
    rest = Math.floor(rest / 128);
    out.push(rest > 0 ? low | 128 : low);
  } while (rest > 0);
  return out;
}
