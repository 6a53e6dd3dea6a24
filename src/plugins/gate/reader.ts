import type { FindingRule } from '../finding.ts';

/** A refusal of the gate: what is wrong, and at which byte. */
export class GateRefusal extends Error {
  readonly rule: FindingRule;
  readonly offset: number;

  constructor(rule: FindingRule, message: string, offset: number) {
    super(message);
    this.name = 'GateRefusal';
    this.rule = rule;
    this.offset = offset;
  }
}

const utf8 = new TextDecoder('utf-8', { fatal: true });

/** Reads the binary format of WebAssembly core modules (core specification 5). Every read is bounded by `end`. */
export class Reader {
  readonly bytes: Uint8Array;
  at: number;
  end: number;
  /** Set when code names data segments by index (memory.init, data.drop), so that they must not be changed. */
  namesDataSegments = false;
  /** Set when code names functions by index (ref.func). */
  namesFunctions = false;
  /** Set when code drops segments (data.drop, elem.drop). */
  dropsSegments = false;
  /** Offsets of the instructions memory.size and memory.grow, of two bytes each. */
  readonly memorySites: number[] = [];

  constructor(bytes: Uint8Array, at = 0, end = bytes.length) {
    this.bytes = bytes;
    this.at = at;
    this.end = end;
  }

  refuse(rule: FindingRule, message: string): never {
    throw new GateRefusal(rule, message, this.at);
  }

  byte(): number {
    if (this.at >= this.end) this.refuse('truncated', 'the module ends in the middle of a value');
    return this.bytes[this.at++]!;
  }

  peek(): number {
    if (this.at >= this.end) this.refuse('truncated', 'the module ends in the middle of a value');
    return this.bytes[this.at]!;
  }

  /** Skips a number of bytes that must not exceed the section. */
  advance(count: number): void {
    if (count > this.end - this.at) this.refuse('truncated', 'a length points beyond the end of its section');
    this.at += count;
  }

  /** Unsigned LEB128 of 32 bits, computed with doubles so that nothing overflows. */
  u32(): number {
    let value = 0;
    let scale = 1;
    for (let k = 0; k < 5; k++) {
      const b = this.byte();
      value += (b & 127) * scale;
      if (b < 128) {
        if (value > 0xffffffff) this.refuse('malformed', 'an integer does not fit 32 bits');
        return value;
      }
      scale *= 128;
    }
    return this.refuse('malformed', 'an integer is longer than 5 bytes');
  }

  /** Skips one LEB128 of at most `bytesMax` bytes. */
  skipLeb(bytesMax: number): void {
    for (let k = 0; k < bytesMax; k++) if (this.byte() < 128) return;
    this.refuse('malformed', `an integer is longer than ${bytesMax} bytes`);
  }

  name(): string {
    const length = this.u32();
    const from = this.at;
    this.advance(length);
    try {
      return utf8.decode(this.bytes.subarray(from, this.at));
    } catch {
      return this.refuse('malformed', 'a name is not valid UTF-8');
    }
  }

  /** Signed LEB128 of 32 bits. */
  s32(): number {
    let value = 0;
    let shift = 0;
    for (let k = 0; k < 5; k++) {
      const b = this.byte();
      value |= (b & 127) << shift;
      shift += 7;
      if (b < 128) return shift < 32 && (b & 64) !== 0 ? value | (-1 << shift) : value;
    }
    return this.refuse('malformed', 'an integer is longer than 5 bytes');
  }

  count(max: number, what: string): number {
    const n = this.u32();
    if (n > max) this.refuse('too-many', `${n} ${what}; at most ${max} are allowed`);
    return n;
  }
}
