import { CONTROL, GLOBAL_VALUE_BYTES, GLOBAL_VALUES_AT } from '../../abi/host-memory.ts';
import { leb, signedLeb } from '../../abi/leb.ts';
import type { GlobalVariable } from './initial-values.ts';

/** A function that the gate adds to a module: its type as text, and its body with locals and `end`. */
export type AddedFunction = { type: string; body: number[] };

const END = 0x0b;
const call = (index: number): number[] => [0x10, ...leb(index)];
const constant = (value: number): number[] => [0x41, ...signedLeb(value)];
/** The alignment field of an instruction that names memory 1. */
const CONTROL_ALIGNMENT = 0x42;
/** `i32.store` of a word of the control memory, with the address 0 below the value. */
const storeWord = (word: number): number[] => [0x36, CONTROL_ALIGNMENT, 1, ...leb(word * 4)];
const loadWord = (word: number): number[] => [...constant(0), 0x28, CONTROL_ALIGNMENT, 1, ...leb(word * 4)];

const calls = (indices: ReadonlyArray<number | undefined>): number[] =>
  indices.flatMap(index => (index === undefined ? [] : call(index)));

/**
 * The whole execution: calls the functions before the entry, notes that in the control memory, calls the entry and
 * stores its result there.
 */
export function runFunction(before: ReadonlyArray<number | undefined>, entry: number): AddedFunction {
  const body = [
    ...calls(before),
    ...[...constant(0), ...constant(1), ...storeWord(CONTROL.entered)],
    ...[...constant(0), ...call(entry), ...storeWord(CONTROL.code)],
  ];
  return { type: '->', body: [0, ...body, END] };
}

/** Stores of a value of each type into memory 1, by the log2 of the alignment. */
const STORES: Readonly<Record<string, { opcode: number[]; alignment: number }>> = {
  i32: { opcode: [0x36], alignment: 2 },
  i64: { opcode: [0x37], alignment: 3 },
  f32: { opcode: [0x38], alignment: 2 },
  f64: { opcode: [0x39], alignment: 3 },
  v128: { opcode: [0xfd, 0x0b], alignment: 4 },
};

/**
 * Runs only the start: calls the given functions, then stores the value of each mutable global in the control memory;
 * for a reference whether it is null.
 */
export function startFunction(
  functions: ReadonlyArray<number | undefined>,
  globals: readonly GlobalVariable[],
): AddedFunction {
  const stores: number[] = [];
  let at = GLOBAL_VALUES_AT;
  globals.forEach(({ mutable, type }, index) => {
    if (!mutable) return;
    const store = STORES[type];
    stores.push(...constant(0), 0x23, ...leb(index));
    if (store === undefined) stores.push(0xd1, 0x36, CONTROL_ALIGNMENT, 1, ...leb(at));
    else stores.push(...store.opcode, 0x40 | store.alignment, 1, ...leb(at));
    at += GLOBAL_VALUE_BYTES;
  });
  return { type: '->', body: [0, ...calls(functions), ...stores, END] };
}

/** What `memory.size` becomes: the size of the memory as the guest knows it. */
export const SIZE_FUNCTION: AddedFunction = { type: '->i32', body: [0, ...loadWord(CONTROL.pages), END] };

/**
 * What `memory.grow` becomes: raises the size the guest knows, and grows the memory itself only when it is smaller than
 * that.
 *
 * @param max pages
 */
export function growFunction(max: number): AddedFunction {
  const [by, before] = [0, 1];
  const get = (local: number): number[] => [0x20, local];
  const set = (local: number): number[] => [0x21, local];
  const memorySize = [0x3f, 0];
  const failed = [0x04, 0x40, ...constant(-1), 0x0f, END];
  const body = [
    ...[...loadWord(CONTROL.pages), ...set(before)],
    // if (by > max - before) return -1
    ...[...get(by), ...constant(max), ...get(before), 0x6b, 0x4b, ...failed],
    // by += before
    ...[...get(by), ...get(before), 0x6a, ...set(by)],
    // if (by > memory.size) if (memory.grow(by - memory.size) == -1) return -1
    ...[...get(by), ...memorySize, 0x4b, 0x04, 0x40],
    ...[...get(by), ...memorySize, 0x6b, 0x40, 0, ...constant(-1), 0x46, ...failed],
    END,
    // pages = by; return before
    ...[...constant(0), ...get(by), ...storeWord(CONTROL.pages), ...get(before)],
  ];
  return { type: 'i32->i32', body: [1, 1, 0x7f, ...body, END] };
}
