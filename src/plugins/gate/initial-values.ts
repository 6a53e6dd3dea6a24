import { GATE } from './gate-limits.ts';
import { readReferenceType, readValueType } from './instructions.ts';
import type { Reader } from './reader.ts';

/** A global variable, and where its entry lies in the module. */
export type GlobalVariable = {
  type: string;
  mutable: boolean;
  /** Whether it begins as a null reference. */
  isNull: boolean;
  start: number;
  end: number;
};

/**
 * A data segment. `address`: where its bytes are copied to when an instance is made; null if the offset is computed or
 * the segment is passive.
 */
export type DataSegment = { active: boolean; address: number | null; entryAt: number; start: number; end: number };

function skipConstantExpression(r: Reader): void {
  for (let k = 0; k < 65; k++) {
    const op = r.byte();
    if (op === 0x0b) return;
    if (op === 0x41 || op === 0x23 || op === 0xd2) r.skipLeb(5);
    else if (op === 0x42) r.skipLeb(10);
    else if (op === 0x43) r.advance(4);
    else if (op === 0x44) r.advance(8);
    else if (op === 0xd0) readReferenceType(r);
    else if (op === 0xfd) {
      if (r.u32() !== 12) r.refuse('unknown-instruction', 'a constant expression contains a vector instruction');
      r.advance(16);
    } else if (!((op >= 0x6a && op <= 0x6c) || (op >= 0x7c && op <= 0x7e)))
      r.refuse('unknown-instruction', `a constant expression contains instruction 0x${op.toString(16)}`);
  }
  r.refuse('malformed', 'a constant expression is longer than 64 instructions');
}

export function readGlobals(r: Reader): GlobalVariable[] {
  const globals: GlobalVariable[] = [];
  const count = r.count(GATE.globals, 'globals');
  for (let i = 0; i < count; i++) {
    const start = r.at;
    const type = readValueType(r);
    const mutability = r.byte();
    if (mutability > 1) r.refuse('malformed', `global ${i} has an unknown mutability`);
    const isNull = r.peek() === 0xd0;
    skipConstantExpression(r);
    globals.push({ type, mutable: mutability === 1, isNull, start, end: r.at });
  }
  return globals;
}

/** @returns the number of segments, and where the first begins */
export function readElements(r: Reader): { count: number; entriesAt: number } {
  const count = r.count(GATE.elementSegments, 'element segments');
  const entriesAt = r.at;
  let total = 0;
  for (let i = 0; i < count; i++) {
    const flags = r.u32();
    if (flags > 7) r.refuse('malformed', `element segment ${i} has unknown flags`);
    if (!(flags & 1)) {
      if (flags & 2) r.u32();
      skipConstantExpression(r);
    }
    if (flags & 3) {
      if (flags & 4) readReferenceType(r);
      else r.advance(1);
    }
    const items = r.u32();
    total += items;
    if (total > GATE.elements) r.refuse('too-many', `more than ${GATE.elements} table elements`);
    for (let k = 0; k < items; k++) {
      if (flags & 4) skipConstantExpression(r);
      else r.skipLeb(5);
    }
  }
  return { count, entriesAt };
}

export function readData(r: Reader): DataSegment[] {
  const segments: DataSegment[] = [];
  const count = r.count(GATE.dataSegments, 'data segments');
  for (let i = 0; i < count; i++) {
    const entryAt = r.at;
    const flags = r.u32();
    if (flags > 2) r.refuse('malformed', `data segment ${i} has unknown flags`);
    if (flags === 2 && r.u32() !== 0) r.refuse('multi-memory', 'a data segment names a second memory');
    const address = flags === 1 ? null : readOffset(r);
    const length = r.u32();
    const start = r.at;
    r.advance(length);
    segments.push({ active: flags !== 1, address, entryAt, start, end: r.at });
  }
  return segments;
}

/** The offset of a segment: an address if it is one constant, otherwise null. */
function readOffset(r: Reader): number | null {
  const from = r.at;
  if (r.byte() === 0x41) {
    const value = r.s32();
    if (r.peek() === 0x0b) {
      r.at++;
      return value >>> 0;
    }
  }
  r.at = from;
  skipConstantExpression(r);
  return null;
}
