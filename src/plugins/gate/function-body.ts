import { GATE } from '../../limits.ts';
import type { Reader } from './reader.ts';

/** Value types the gate knows, as bytes: numbers, vectors, funcref, externref, exnref. */
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
  // Alignment of 64 and above carries a memory index (multi-memory proposal).
  if (r.u32() >= 64) r.refuse('multi-memory', NAMES_MEMORY);
  r.skipLeb(5);
}

function skipVectorInstruction(r: Reader): void {
  const op = r.u32();
  if (op <= 11 || op === 92 || op === 93) skipMemoryArgument(r);
  else if (op === 12 || op === 13) r.advance(16);
  else if (op >= 21 && op <= 34) r.advance(1);
  else if (op >= 84 && op <= 91) {
    skipMemoryArgument(r);
    r.advance(1);
  } else if (op > 275) r.refuse('unknown-instruction', `vector instruction ${op} is not known to this host`);
}

function skipPrefixedInstruction(r: Reader): void {
  const op = r.u32();
  if (op <= 7) return;
  if (op === 9) r.namesDataSegments = true;
  if (op === 9 || op === 13 || (op >= 15 && op <= 17)) return r.skipLeb(5);
  if (op === 8 || op === 10 || op === 12 || op === 14) {
    // memory.init and memory.copy name memories; only index 0 exists.
    if (op === 8) {
      r.namesDataSegments = true;
      r.skipLeb(5);
      if (r.u32() !== 0) r.refuse('multi-memory', NAMES_MEMORY);
    } else if (op === 10) {
      if (r.u32() !== 0 || r.u32() !== 0) r.refuse('multi-memory', NAMES_MEMORY);
    } else {
      r.skipLeb(5);
      r.skipLeb(5);
    }
    return;
  }
  if (op === 11) {
    if (r.u32() !== 0) r.refuse('multi-memory', NAMES_MEMORY);
    return;
  }
  r.refuse('unknown-instruction', `instruction 0xfc ${op} is not known to this host`);
}

/** What one function costs the baseline compiler. */
type Cost = { depth: number; control: number };

function enterBlock(r: Reader, op: number, cost: Cost): void {
  const t = r.peek();
  if (t === 0x63 || t === 0x64) r.refuse('gc-type', 'a block has a garbage-collected type');
  r.skipLeb(5);
  cost.control++;
  if (++cost.depth > GATE.nesting) r.refuse('nesting', `blocks are nested deeper than ${GATE.nesting}`);
  if (op !== 0x1f) return;
  const catches = r.count(1000, 'catch clauses in one block');
  cost.control += catches;
  for (let k = 0; k < catches; k++) {
    if (r.byte() < 2) r.skipLeb(5);
    r.skipLeb(5);
  }
}

function skipControl(r: Reader, op: number, cost: Cost): boolean {
  switch (op) {
    case 0x02:
    case 0x03:
    case 0x04:
    case 0x06:
    case 0x1f:
      enterBlock(r, op, cost);
      return true;
    case 0x0b:
      cost.depth--;
      return true;
    case 0x18:
      r.skipLeb(5);
      cost.depth--;
      return true;
    case 0x05:
    case 0x19:
      cost.control++;
      return true;
    case 0x07:
    case 0x08:
    case 0x09:
    case 0x0c:
    case 0x0d:
      cost.control++;
      r.skipLeb(5);
      return true;
    case 0x0a:
      return true;
    case 0x0e: {
      const labels = r.count(65_520, 'labels in one br_table');
      cost.control += 1 + (labels >> 4);
      for (let k = 0; k <= labels; k++) r.skipLeb(5);
      return true;
    }
    default:
      return false;
  }
}

function skipPlain(r: Reader, op: number): void {
  if ((op >= 0x45 && op <= 0xc4) || op <= 1 || op === 0x0f || op === 0x1a || op === 0x1b || op === 0xd1) return;
  if (op === 0xd2) r.namesFunctions = true;
  if ((op >= 0x20 && op <= 0x26) || op === 0x10 || op === 0x12 || op === 0xd2 || op === 0x41) return r.skipLeb(5);
  if (op >= 0x28 && op <= 0x3e) return skipMemoryArgument(r);
  switch (op) {
    case 0x42:
      return r.skipLeb(10);
    case 0x43:
      return r.advance(4);
    case 0x44:
      return r.advance(8);
    case 0x11:
    case 0x13:
      r.skipLeb(5);
      return r.skipLeb(5);
    case 0x1c: {
      const types = r.count(1, 'types on one select');
      for (let k = 0; k < types; k++) readValueType(r);
      return;
    }
    case 0x3f:
    case 0x40:
      if (r.byte() !== 0) r.refuse('multi-memory', NAMES_MEMORY);
      return;
    case 0xd0:
      return readReferenceType(r);
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
}

/**
 * Walks one function body and bounds what it costs the baseline compiler (security.md: 50,000 locals x 5,000 ifs
 * take over 4 GB).
 *
 * @param r at the size of the body
 * @param index of the function, for messages
 * @throws GateRefusal naming the function and the limit
 */
export function checkFunctionBody(r: Reader, index: number): void {
  const size = r.count(GATE.bodyBytes, `bytes in function ${index}`);
  const end = r.at + size;
  if (end > r.end) r.refuse('truncated', `function ${index} reaches beyond the code section`);
  let locals = 0;
  const groups = r.count(GATE.locals, `groups of locals in function ${index}`);
  for (let k = 0; k < groups; k++) {
    locals += r.u32();
    if (locals > GATE.locals)
      r.refuse(
        'locals',
        `function ${index} has more than ${GATE.locals} locals; the compiler's memory grows with them`,
      );
    readValueType(r);
  }
  const cost: Cost = { depth: 1, control: 0 };
  while (cost.depth > 0) {
    if (r.at >= end) r.refuse('truncated', `function ${index} has no end`);
    const op = r.byte();
    if (op >= 0x45 && op <= 0xc4) continue;
    if (!skipControl(r, op, cost)) skipPlain(r, op);
  }
  if (r.at !== end) r.refuse('malformed', `function ${index} does not end where its size says`);
  if (cost.control > GATE.controlInstructions)
    r.refuse(
      'control',
      `function ${index} has ${cost.control} control instructions; at most ${GATE.controlInstructions}`,
    );
  if (locals * cost.control > GATE.localsTimesControl)
    r.refuse(
      'locals-times-control',
      `function ${index} has ${locals} locals and ${cost.control} control instructions; their product may be at most ${GATE.localsTimesControl}, because the compiler's memory grows with it`,
    );
}
