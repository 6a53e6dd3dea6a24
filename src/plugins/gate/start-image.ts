import { Buffer } from 'node:buffer';
import { GLOBAL_VALUE_BYTES } from '../../abi/host-memory.ts';
import { leb, signedLeb } from '../../abi/leb.ts';
import type { GlobalVariable } from './initial-values.ts';

/** What the start of a module leaves: the size of its memory, all of the memory that is not zero, its globals. */
export type StartImage = {
  pages: number;
  /** In order of their addresses. */
  extents: Array<{ address: number; content: Uint8Array }>;
  /** The values of the mutable globals, in 16 bytes each; for a reference 1 if it is null. */
  globals: Uint8Array;
};

/**
 * The entry of a global in the module that runs, with the value the start left in it.
 *
 * @param value 16 bytes
 */
export function globalEntry({ type, mutable }: GlobalVariable, value: Uint8Array): Uint8Array {
  const raw = (length: number): number[] => [...value.subarray(0, length)];
  const view = Buffer.from(value.buffer, value.byteOffset, GLOBAL_VALUE_BYTES);
  const initial: Record<string, () => number[]> = {
    i32: () => [0x7f, 1, 0x41, ...signedLeb(view.readInt32LE(0))],
    i64: () => [0x7e, 1, 0x42, ...signedLeb64(view.readBigInt64LE(0))],
    f32: () => [0x7d, 1, 0x43, ...raw(4)],
    f64: () => [0x7c, 1, 0x44, ...raw(8)],
    v128: () => [0x7b, 1, 0xfd, 0x0c, ...raw(16)],
    funcref: () => [0x70, 1, 0xd0, 0x70],
    externref: () => [0x6f, 1, 0xd0, 0x6f],
    exnref: () => [0x69, 1, 0xd0, 0x69],
  };
  const entry = initial[type];
  if (entry === undefined || !mutable) throw new Error(`bug: a ${mutable ? '' : 'constant '}global of type ${type}`);
  return Uint8Array.from([...entry(), 0x0b]);
}

function signedLeb64(value: bigint): number[] {
  const out: number[] = [];
  let rest = value;
  for (;;) {
    const low = Number(rest & 127n);
    rest >>= 7n;
    if ((rest === 0n && (low & 64) === 0) || (rest === -1n && (low & 64) !== 0)) {
      out.push(low);
      return out;
    }
    out.push(low | 128);
  }
}

/** An active data segment: these bytes are copied to the address when an instance is made. */
export function activeSegment(address: number, contents: readonly Uint8Array[]): Uint8Array {
  const length = contents.reduce((sum, c) => sum + c.length, 0);
  return Buffer.concat([Uint8Array.from([0, 0x41, ...signedLeb(address), 0x0b, ...leb(length)]), ...contents]);
}
