export const FNV_START = 0xcbf29ce484222325n;
const PRIME = 0x100000001b3n;

/** Carries on FNV-1a over words of 64 bits, and over the bytes behind the last whole word. */
export function fnv(start: bigint, chunk: Uint8Array): bigint {
  const view = new DataView(chunk.buffer, chunk.byteOffset, chunk.length);
  const words = chunk.length - (chunk.length % 8);
  let state = start;
  for (let at = 0; at < words; at += 8) state = BigInt.asUintN(64, (state ^ view.getBigUint64(at, true)) * PRIME);
  for (const byte of chunk.subarray(words)) state = BigInt.asUintN(64, (state ^ BigInt(byte)) * PRIME);
  return state;
}
