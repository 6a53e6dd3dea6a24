import { type BodyCounts, compileCost, refuseFunction, type Signatures } from './compile-cost.ts';
import { GATE } from './gate-limits.ts';
import { readValueType, skipPlain } from './instructions.ts';
import { GateRefusal, type Reader } from './reader.ts';

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

/** Walks one function body, tracking the height of the operand stack, and counts the work of the compilers. */
class BodyWalk {
  readonly #r: Reader;
  readonly #signatures: Signatures;
  readonly #index: number;
  readonly #counts: BodyCounts;
  readonly #frames: Frame[] = [];
  #height = 0;
  #reachable = true;
  #tries = 0;

  constructor(r: Reader, signatures: Signatures, index: number, counts: BodyCounts) {
    this.#r = r;
    this.#signatures = signatures;
    this.#index = index;
    this.#counts = counts;
  }

  /** Reads to the final `end` of the body. */
  run(end: number, results: number): void {
    const r = this.#r;
    this.#frames.push(this.#frame(OP.block, 0, results));
    while (this.#frames.length > 0) {
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

  #frame(op: number, parameters: number, results: number): Frame {
    const isTry = op === OP.try || op === OP.tryTable;
    if (isTry) this.#tries++;
    return {
      height: Math.max(0, this.#height - parameters),
      parameters,
      results,
      isTry,
      isLoop: op === OP.loop,
      reachable: this.#reachable,
      start: this.#r.at,
    };
  }

  /** In unreachable code the stack may be too short; elsewhere the compiler refuses that. */
  #move(effect: number): void {
    const height = this.#height + effect;
    const floor = this.#frames.at(-1)?.height ?? 0;
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
    this.#height = this.#frames.at(-1)?.height ?? 0;
  }

  #throw(values: number): void {
    this.#counts.passed += values;
    this.#merge(this.#tries > 0 ? 2 : 1);
  }

  #parametersOfTag(tag: number): number {
    return this.#signatures.parameters[this.#signatures.tags[tag] ?? -1] ?? 0;
  }

  /** Parameters and results of a block, from its type. */
  #blockType(): [number, number] {
    const t = this.#r.peek();
    if (t === 0x63 || t === 0x64) this.#r.refuse('gc-type', 'a block has a garbage-collected type');
    // A single value type, or no value (0x40), is encoded as a negative number of one byte.
    if (t >= 0x40 && t < 0x80) {
      this.#r.advance(1);
      return [0, t === 0x40 ? 0 : 1];
    }
    const index = this.#r.u32();
    const parameters = this.#signatures.parameters[index];
    const results = this.#signatures.results[index];
    if (parameters === undefined || results === undefined)
      return this.#r.refuse('malformed', `function ${this.#index} has a block of type ${index}, which does not exist`);
    return [parameters, results];
  }

  #enter(op: number): void {
    const [parameters, results] = this.#blockType();
    if (op === OP.if) this.#move(-1);
    // An `if` keeps the state for its `else`.
    this.#merge(op === OP.if ? 2 : 1);
    this.#counts.passed += parameters + results;
    if (op === OP.loop && this.#reachable) this.#counts.phis += this.#counts.locals;
    if (op === OP.tryTable) this.#catchClauses();
    this.#frames.push(this.#frame(op, parameters, results));
    if (this.#frames.length > GATE.nesting)
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
    const frame = this.#frames.at(-1);
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
    const frame = this.#frames.pop();
    if (frame === undefined) return;
    if (frame.isTry) this.#tries--;
    if (frame.isLoop) this.#counts.looped += this.#r.at - frame.start;
    this.#reachable = frame.reachable;
    this.#height = frame.height;
    this.#move(frame.results);
    this.#merge(1);
  }

  /** Number of values a branch to a label passes on. */
  #arityOf(label: number): number {
    const frame = this.#frames[this.#frames.length - 1 - label];
    return frame === undefined ? 0 : frame.isLoop ? frame.parameters : frame.results;
  }

  #branch(op: number): void {
    const r = this.#r;
    if (op === OP.brTable) {
      this.#move(-1);
      const labels = r.count(GATE.tableLabels, 'labels in one br_table');
      let arity = 0;
      const seen = new Set<number>();
      for (let k = 0; k <= labels; k++) {
        const label = r.u32();
        if (k === 0) arity = this.#arityOf(label);
        seen.add(label);
      }
      this.#counts.passed += labels + arity * seen.size;
      // The optimizing compiler copies the locals for each entry of the table.
      this.#counts.atEntries += this.#reachable ? labels * this.#counts.locals : 0;
      this.#merge(1 + seen.size);
      return this.#stop();
    }
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

/**
 * Reads one function body.
 *
 * @param r reader at the size of the body
 * @param index of the function, for messages
 * @returns counts of the compilers' work
 * @throws GateRefusal naming the function and the limit
 */
export function readFunctionBody(r: Reader, index: number, signatures: Signatures): BodyCounts {
  const size = r.count(GATE.bodyBytes, `bytes in function ${index}`);
  const end = r.at + size;
  if (end > r.end) r.refuse('truncated', `function ${index} reaches beyond the code section`);
  const type = signatures.functions[index] ?? -1;
  let locals = signatures.parameters[type] ?? 0;
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
  const results = signatures.results[type] ?? 0;
  const counts: BodyCounts = {
    offset: end - size,
    bytes: size,
    locals,
    stack: 0,
    control: 0,
    carried: 0,
    phis: 0,
    atEntries: 0,
    calls: 0,
    atCalls: 0,
    passed: (signatures.parameters[type] ?? 0) + results,
    looped: 0,
  };
  new BodyWalk(r, signatures, index, counts).run(end, results);
  if (r.at !== end) r.refuse('malformed', `function ${index} does not end where its size says`);
  const refusal = refuseFunction(index, counts, compileCost(counts));
  if (refusal !== null) throw new GateRefusal(refusal.rule, refusal.message, refusal.offset);
  return counts;
}
