import { type BodyCounts, compileCost, refuseFunction, type Signatures } from './compile-cost.ts';
import { GATE } from './gate-limits.ts';
import { readValueType, skipPlain } from './instructions.ts';
import { GateRefusal, type Reader } from './reader.ts';
import { plainEffect } from './stack-effects.ts';

/** An open block. `height`: height of the operand stack below the block's parameters. */
type Frame = {
  height: number;
  parameters: number;
  results: number;
  isTry: boolean;
  isLoop: boolean;
  /** Whether the block is reachable: unreachable code is read but not compiled. */
  reachable: boolean;
  start: number;
  /** The last `br_table` that names it, so that each counts a block once. */
  namedBy: number;
};

const OP = {
  unreachable: 0x00,
  block: 0x02,
  loop: 0x03,
  if: 0x04,
  else: 0x05,
  try: 0x06,
  catch: 0x07,
  throw: 0x08,
  rethrow: 0x09,
  throwRef: 0x0a,
  end: 0x0b,
  br: 0x0c,
  brIf: 0x0d,
  brTable: 0x0e,
  return: 0x0f,
  call: 0x10,
  callIndirect: 0x11,
  returnCall: 0x12,
  returnCallIndirect: 0x13,
  delegate: 0x18,
  catchAll: 0x19,
  tryTable: 0x1f,
  memorySize: 0x3f,
  memoryGrow: 0x40,
} as const;

/** What follows the byte of an instruction. */
const FOLLOWS = {
  /** Read one by one. */
  other: 0,
  nothing: 1,
  /** An integer of at most five bytes. */
  integer: 2,
  /** An integer of at most ten bytes. */
  longInteger: 3,
  /** Alignment and offset in the memory. */
  memoryArgument: 4,
} as const;

/** By opcode, for the most frequent instructions: those that neither branch nor call. */
const FOLLOWING = new Uint8Array(256);
FOLLOWING.fill(FOLLOWS.nothing, 0x45, 0xc4 + 1).fill(FOLLOWS.nothing, 0x1a, 0x1b + 1);
FOLLOWING.fill(FOLLOWS.integer, 0x20, 0x26 + 1).fill(FOLLOWS.integer, 0x41, 0x41 + 1);
FOLLOWING.fill(FOLLOWS.longInteger, 0x42, 0x42 + 1);
FOLLOWING.fill(FOLLOWS.memoryArgument, 0x28, 0x3e + 1);

const noCounts = (): BodyCounts => ({
  offset: 0,
  bytes: 0,
  locals: 0,
  stack: 0,
  control: 0,
  carried: 0,
  phis: 0,
  atEntries: 0,
  calls: 0,
  atCalls: 0,
  passed: 0,
  looped: 0,
});

/** Reads function bodies, tracking the height of the operand stack, and counts the work of the compilers. */
export class BodyReader {
  readonly #r: Reader;
  readonly #signatures: Signatures;
  #index = 0;
  #counts = noCounts();
  /** Open blocks, up to `#depth`; those behind are used again. */
  readonly #frames: Frame[] = [];
  #depth = 0;
  #height = 0;
  #reachable = true;
  #tries = 0;
  /** How many `br_table` there were. */
  #branchTables = 0;

  /** @param r reader of the code section */
  constructor(r: Reader, signatures: Signatures) {
    this.#r = r;
    this.#signatures = signatures;
  }

  /**
   * Reads the next function body, from its size on.
   *
   * @param index of the function, for messages
   * @returns counts of the compilers' work
   * @throws GateRefusal naming the function and the limit
   */
  read(index: number): BodyCounts {
    const r = this.#r;
    const { functions, parameters, results } = this.#signatures;
    const size = r.count(GATE.bodyBytes, `bytes in function ${index}`);
    const end = r.at + size;
    if (end > r.end) r.refuse('truncated', `function ${index} reaches beyond the code section`);
    const type = functions[index] ?? -1;
    const counts = noCounts();
    counts.offset = r.at;
    counts.bytes = size;
    counts.locals = this.#locals(index, parameters[type] ?? 0);
    counts.passed = (parameters[type] ?? 0) + (results[type] ?? 0);
    this.#index = index;
    this.#counts = counts;
    this.#walk(end, results[type] ?? 0);
    if (r.at !== end) r.refuse('malformed', `function ${index} does not end where its size says`);
    const refusal = refuseFunction(index, counts, compileCost(counts));
    if (refusal !== null) throw new GateRefusal(refusal.rule, refusal.message, refusal.offset);
    return counts;
  }

  /** @returns the number of parameters and locals */
  #locals(index: number, parameters: number): number {
    const r = this.#r;
    let locals = parameters;
    const groups = r.count(GATE.locals, `groups of locals in function ${index}`);
    for (let k = 0; k < groups; k++) {
      locals += r.u32();
      if (locals > GATE.locals)
        r.refuse(
          'locals',
          `function ${index} has more than ${GATE.locals} parameters and locals; the compiler's memory grows with them`,
        );
      readValueType(r);
    }
    return locals;
  }

  /** Reads to the final `end` of the body. */
  #walk(end: number, results: number): void {
    const r = this.#r;
    this.#depth = 0;
    this.#height = 0;
    this.#reachable = true;
    this.#tries = 0;
    this.#open(OP.block, 0, results);
    while (this.#depth > 0) {
      this.#skipStraight(end);
      if (r.at >= end) r.refuse('truncated', `function ${this.#index} has no end`);
      const op = r.byte();
      if (
        (op <= OP.returnCallIndirect && op !== 0x01) ||
        op === OP.delegate ||
        op === OP.catchAll ||
        op === OP.tryTable
      )
        this.#control(op);
      else {
        // Both become calls in the module that runs.
        if (op === OP.memorySize || op === OP.memoryGrow) this.#countCall(op === OP.memoryGrow ? 2 : 1);
        const effect = skipPlain(r, op);
        if (effect !== 0) this.#move(effect);
      }
    }
  }

  /**
   * Skips the most frequent instructions, which are most of a body, up to the first other one. Anything unusual about one
   * is left to `skipPlain`, which says what is wrong with it.
   */
  #skipStraight(end: number): void {
    const r = this.#r;
    const { bytes } = r;
    const floor = this.#frames[this.#depth - 1]?.height ?? 0;
    let { at } = r;
    let height = this.#height;
    let highest = this.#counts.stack;
    while (at < end) {
      const op = bytes[at]!;
      const follows = FOLLOWING[op]!;
      if (follows === FOLLOWS.other) break;
      let next = at + 1;
      if (follows !== FOLLOWS.nothing) {
        if (follows === FOLLOWS.memoryArgument && bytes[next++]! >= 64) break;
        let left = follows === FOLLOWS.longInteger ? 10 : 5;
        while (left > 0 && bytes[next++]! >= 128) left--;
        if (left === 0) break;
      }
      at = next;
      height += plainEffect(op);
      if (height < floor) height = floor;
      if (height > highest) highest = height;
    }
    r.at = at;
    this.#height = height;
    this.#counts.stack = highest;
  }

  /** Opens a block. */
  #open(op: number, parameters: number, results: number): void {
    const isTry = op === OP.try || op === OP.tryTable;
    if (isTry) this.#tries++;
    let frame = this.#frames[this.#depth];
    if (frame === undefined) {
      frame = {
        height: 0,
        parameters: 0,
        results: 0,
        isTry: false,
        isLoop: false,
        reachable: true,
        start: 0,
        namedBy: 0,
      };
      this.#frames.push(frame);
    }
    this.#depth++;
    frame.height = Math.max(0, this.#height - parameters);
    frame.parameters = parameters;
    frame.results = results;
    frame.isTry = isTry;
    frame.isLoop = op === OP.loop;
    frame.reachable = this.#reachable;
    frame.start = this.#r.at;
  }

  /** In unreachable code the stack may be too short; elsewhere the compiler refuses that. */
  #move(effect: number): void {
    const height = this.#height + effect;
    const floor = this.#frames[this.#depth - 1]?.height ?? 0;
    this.#height = height < floor ? floor : height;
    if (height > this.#counts.stack) this.#counts.stack = height;
  }

  /** Counts a place where the compilers copy or merge the state of all locals and stack values. */
  #merge(times: number): void {
    if (!this.#reachable) return;
    this.#counts.control += times;
    const values = times * (this.#counts.locals + this.#height);
    this.#counts.carried += values;
    if (this.#tries > 0) this.#counts.phis += values;
  }

  #control(op: number): void {
    switch (op) {
      case OP.block:
      case OP.loop:
      case OP.if:
      case OP.try:
      case OP.tryTable:
        return this.#enter(op);
      case OP.else:
      case OP.catch:
      case OP.catchAll:
        return this.#nextArm(op);
      case OP.delegate:
        this.#r.skipLeb(5);
        return this.#leave();
      case OP.end:
        return this.#leave();
      case OP.br:
      case OP.brIf:
      case OP.brTable:
        return this.#branch(op);
      case OP.call:
      case OP.callIndirect:
      case OP.returnCall:
      case OP.returnCallIndirect:
        return this.#call(op);
      case OP.throw:
        this.#throw(this.#parametersOfTag(this.#r.u32()));
        return this.#stop();
      case OP.rethrow:
        this.#r.skipLeb(5);
        this.#throw(0);
        return this.#stop();
      case OP.throwRef:
        this.#throw(1);
        return this.#stop();
      case OP.return:
        this.#counts.passed += this.#frames[0]?.results ?? 0;
        return this.#stop();
      case OP.unreachable:
        return this.#stop();
      default:
        this.#r.refuse('unknown-instruction', `instruction 0x${op.toString(16)} is not known to this host`);
    }
  }

  /** Marks the following code as unreachable. */
  #stop(): void {
    this.#reachable = false;
    this.#height = this.#frames[this.#depth - 1]?.height ?? 0;
  }

  #throw(values: number): void {
    this.#counts.passed += values;
    this.#merge(this.#tries > 0 ? 2 : 1);
  }

  #parametersOfTag(tag: number): number {
    return this.#signatures.parameters[this.#signatures.tags[tag] ?? -1] ?? 0;
  }

  #enter(op: number): void {
    const r = this.#r;
    const { parameters, results } = this.#signatures;
    const t = r.peek();
    if (t === 0x63 || t === 0x64) r.refuse('gc-type', 'a block has a garbage-collected type');
    // A single value type, or no value (0x40), is encoded as a negative number of one byte.
    if (t >= 0x40 && t < 0x80) {
      r.advance(1);
      return this.#enterTyped(op, 0, t === 0x40 ? 0 : 1);
    }
    const index = r.u32();
    if (index >= parameters.length)
      return r.refuse('malformed', `function ${this.#index} has a block of type ${index}, which does not exist`);
    this.#enterTyped(op, parameters[index] ?? 0, results[index] ?? 0);
  }

  #enterTyped(op: number, parameters: number, results: number): void {
    if (op === OP.if) this.#move(-1);
    // An `if` keeps the state for its `else`.
    this.#merge(op === OP.if ? 2 : 1);
    this.#counts.passed += parameters + results;
    if (op === OP.loop && this.#reachable) this.#counts.phis += this.#counts.locals;
    if (op === OP.tryTable) this.#catchClauses();
    this.#open(op, parameters, results);
    if (this.#depth > GATE.nesting)
      this.#r.refuse('nesting', `function ${this.#index} nests blocks deeper than ${GATE.nesting}`);
  }

  #catchClauses(): void {
    const r = this.#r;
    const clauses = r.count(1000, 'catch clauses in one block');
    for (let k = 0; k < clauses; k++) {
      const kind = r.byte();
      this.#counts.passed += kind < 2 ? this.#parametersOfTag(r.u32()) + 1 : 1;
      r.skipLeb(5);
      this.#merge(2);
    }
  }

  /** `else`, `catch`, `catch_all`: restarts the block with another stack. */
  #nextArm(op: number): void {
    const frame = this.#frames[this.#depth - 1];
    if (frame === undefined) return;
    this.#merge(1);
    this.#reachable = frame.reachable;
    this.#height = frame.height;
    let values = frame.parameters;
    if (op !== OP.else) {
      // A handler does not catch exceptions of its own calls.
      if (frame.isTry) this.#tries--;
      frame.isTry = false;
      values = op === OP.catch ? this.#parametersOfTag(this.#r.u32()) : 0;
      this.#counts.passed += values;
    }
    this.#move(values);
    this.#merge(1);
  }

  #leave(): void {
    const frame = this.#frames[--this.#depth];
    if (frame === undefined) return;
    if (frame.isTry) this.#tries--;
    if (frame.isLoop) this.#counts.looped += this.#r.at - frame.start;
    this.#reachable = frame.reachable;
    this.#height = frame.height;
    this.#move(frame.results);
    this.#merge(1);
  }

  /** The block that a label names. */
  #target(label: number): Frame {
    const frame = label < this.#depth ? this.#frames[this.#depth - 1 - label] : undefined;
    return (
      frame ?? this.#r.refuse('malformed', `function ${this.#index} branches to block ${label}, which is not open`)
    );
  }

  /** Number of values a branch to a label passes on. */
  #arityOf(label: number): number {
    const frame = this.#target(label);
    return frame.isLoop ? frame.parameters : frame.results;
  }

  #branchTable(): void {
    const r = this.#r;
    this.#move(-1);
    const labels = r.count(GATE.tableLabels, 'labels in one br_table');
    const table = ++this.#branchTables;
    let arity = 0;
    let targets = 0;
    for (let k = 0; k <= labels; k++) {
      const label = r.u32();
      if (k === 0) arity = this.#arityOf(label);
      const frame = this.#target(label);
      if (frame.namedBy === table) continue;
      frame.namedBy = table;
      targets++;
    }
    this.#counts.passed += labels + arity * targets;
    // The optimizing compiler copies the locals for each entry of the table.
    this.#counts.atEntries += this.#reachable ? labels * this.#counts.locals : 0;
    this.#merge(1 + targets);
    this.#stop();
  }

  #branch(op: number): void {
    const r = this.#r;
    if (op === OP.brTable) return this.#branchTable();
    if (op === OP.brIf) this.#move(-1);
    this.#counts.passed += this.#arityOf(r.u32());
    this.#merge(op === OP.brIf ? 2 : 1);
    if (op === OP.br) this.#stop();
  }

  /** Counts a call that passes so many values. */
  #countCall(values: number): void {
    this.#counts.passed += values;
    this.#counts.calls++;
    if (this.#reachable) this.#counts.atCalls += this.#counts.locals + this.#height;
    if (this.#tries > 0) this.#merge(2);
  }

  #call(op: number): void {
    const r = this.#r;
    const { functions, parameters, results } = this.#signatures;
    const indirect = op === OP.callIndirect || op === OP.returnCallIndirect;
    const named = r.u32();
    if (indirect) r.skipLeb(5);
    const type = indirect ? named : (functions[named] ?? -1);
    const takes = (parameters[type] ?? 0) + (indirect ? 1 : 0);
    const gives = results[type] ?? 0;
    this.#countCall(takes + gives);
    this.#move(-takes);
    if (op === OP.returnCall || op === OP.returnCallIndirect) this.#stop();
    else this.#move(gives);
  }
}
