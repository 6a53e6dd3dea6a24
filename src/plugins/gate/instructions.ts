import type { Reader } from './reader.ts';
import { plainEffect, prefixedEffect, vectorEffect } from './stack-effects.ts';

/** Reads a value type the gate allows: numbers, vectors, funcref, externref, exnref. */
export function readValueType(r: Reader): string {
  const t = r.byte();
  switch (t) {
    case 0x7f:
      return 'i32';
    case 0x7e:
      return 'i64';
    case 0x7d:
      return 'f32';
    case 0x7c:
      return 'f64';
    case 0x7b:
      return 'v128';
    case 0x70:
      return 'funcref';
    case 0x6f:
      return 'externref';
    case 0x69:
      return 'exnref';
    default:
      return r.refuse(
        'gc-type',
        `value type 0x${t.toString(16)} is not allowed: garbage-collected types escape every memory limit`,
      );
  }
}

export function readReferenceType(r: Reader): void {
  const t = r.byte();
  if (t !== 0x70 && t !== 0x6f && t !== 0x69) r.refuse('gc-type', `reference type 0x${t.toString(16)} is not allowed`);
}

const NAMES_MEMORY = 'the module uses more than one memory; the memory cap holds for one memory only';

function skipMemoryArgument(r: Reader): void {
  // An alignment of 64 and above is followed by a memory index (multi-memory proposal).
  if (r.u32() >= 64) r.refuse('multi-memory', NAMES_MEMORY);
  r.skipLeb(5);
}

/** @returns the net effect on the operand stack */
function skipVectorInstruction(r: Reader): number {
  const op = r.u32();
  if (op <= 11 || op === 92 || op === 93) skipMemoryArgument(r);
  else if (op === 12 || op === 13) r.advance(16);
  else if (op >= 21 && op <= 34) r.advance(1);
  else if (op >= 84 && op <= 91) {
    skipMemoryArgument(r);
    r.advance(1);
  } else if (op > 275) r.refuse('unknown-instruction', `vector instruction ${op} is not known to this host`);
  return vectorEffect(op);
}

/** @returns the net effect on the operand stack */
function skipPrefixedInstruction(r: Reader): number {
  const op = r.u32();
  if (op > 17) r.refuse('unknown-instruction', `instruction 0xfc ${op} is not known to this host`);
  // memory.init, memory.copy and memory.fill name memories, of which only index 0 exists.
  const ownMemory = (): void => {
    if (r.u32() !== 0) r.refuse('multi-memory', NAMES_MEMORY);
  };
  if (op === 8 || op === 9) r.namesDataSegments = true;
  if (op === 9 || op === 13) r.dropsSegments = true;
  if (op === 8) {
    r.skipLeb(5);
    ownMemory();
  } else if (op === 10) {
    ownMemory();
    ownMemory();
  } else if (op === 11) ownMemory();
  else if (op === 12 || op === 14) {
    r.skipLeb(5);
    r.skipLeb(5);
  } else if (op > 8) r.skipLeb(5);
  return prefixedEffect(op);
}

/** @returns the net effect on the operand stack */
export function skipPlain(r: Reader, op: number): number {
  if ((op >= 0x45 && op <= 0xc4) || op === 0x01 || op === 0x1a || op === 0x1b || op === 0xd1) return plainEffect(op);
  if (op === 0xd2) r.namesFunctions = true;
  if ((op >= 0x20 && op <= 0x26) || op === 0xd2 || op === 0x41) r.skipLeb(5);
  else if (op >= 0x28 && op <= 0x3e) skipMemoryArgument(r);
  else
    switch (op) {
      case 0x42:
        r.skipLeb(10);
        break;
      case 0x43:
        r.advance(4);
        break;
      case 0x44:
        r.advance(8);
        break;
      case 0x1c: {
        const types = r.count(1, 'types on one select');
        for (let k = 0; k < types; k++) readValueType(r);
        break;
      }
      case 0x3f:
      case 0x40:
        r.memorySites.push(r.at - 1);
        if (r.byte() !== 0) r.refuse('multi-memory', NAMES_MEMORY);
        break;
      case 0xd0:
        readReferenceType(r);
        break;
      case 0xfc:
        return skipPrefixedInstruction(r);
      case 0xfd:
        return skipVectorInstruction(r);
      case 0xfb:
        return r.refuse('gc-type', 'the module uses garbage-collected types, which escape every memory limit');
      case 0xfe:
        return r.refuse('threads', 'the module uses atomic instructions; shared memory is not allowed');
      default:
        return r.refuse('unknown-instruction', `instruction 0x${op.toString(16)} is not known to this host`);
    }
  return plainEffect(op);
}
