/**
 * Net effect of an instruction on the height of the operand stack, for instructions whose effect does not depend on a
 * type of the module (core specification 3.4).
 */

/** One-byte instructions, by opcode. Those that depend on a type are in `body-reader`. */
const PLAIN = new Int8Array(256);
const set = (effect: number, ...ranges: Array<number | [number, number]>): void => {
  for (const range of ranges) {
    const [from, to] = typeof range === 'number' ? [range, range] : range;
    PLAIN.fill(effect, from, to + 1);
  }
};
// Constants, local.get, global.get, memory.size, ref.null, ref.func.
set(1, [0x41, 0x44], 0x20, 0x23, 0x3f, 0xd0, 0xd2);
// drop, local.set, global.set.
set(-1, 0x1a, 0x21, 0x24);
// select with and without types, stores, table.set.
set(-2, 0x1b, 0x1c, [0x36, 0x3e], 0x26);
// Comparisons and arithmetic of two values.
set(-1, [0x46, 0x4f], [0x51, 0x5a], [0x5b, 0x66], [0x6a, 0x78], [0x7c, 0x8a], [0x92, 0x98], [0xa0, 0xa6]);

/** Net effect of a one-byte instruction: 0 for conversions, loads, `local.tee` and the like. */
export const plainEffect = (op: number): number => PLAIN[op]!;

/** Instructions with the prefix 0xfc: truncations 0, memory.* and table.* as listed. */
const PREFIXED: Readonly<Record<number, number>> = {
  8: -3,
  10: -3,
  11: -3,
  12: -3,
  14: -3,
  15: -1,
  16: 1,
  17: -3,
};

export const prefixedEffect = (op: number): number => PREFIXED[op] ?? 0;

const VECTOR = new Int8Array(276).fill(-1);
// Loads, splats, lane extractions, tests, conversions: take one value and give one.
for (const [from, to] of [
  [0, 10],
  [15, 20],
  [21, 22],
  [24, 25],
  [27, 27],
  [29, 29],
  [31, 31],
  [33, 33],
  [77, 77],
  [83, 83],
  [92, 100],
  [103, 106],
  [116, 117],
  [122, 122],
  [124, 129],
  [131, 132],
  [135, 138],
  [148, 148],
  [160, 161],
  [163, 164],
  [167, 170],
  [192, 193],
  [195, 196],
  [199, 202],
  [224, 225],
  [227, 227],
  [236, 237],
  [239, 239],
  [248, 255],
  [257, 260],
] as const)
  VECTOR.fill(0, from, to + 1);
// Stores, bitselect, and instructions with three vectors.
for (const op of [11, 82, 88, 89, 90, 91, 261, 262, 263, 264, 265, 266, 267, 268, 275]) VECTOR[op] = -2;
VECTOR[12] = 1;

/** Instructions with the prefix 0xfd (vectors). */
export const vectorEffect = (op: number): number => VECTOR[op]!;
