import { PAGE_BYTES } from '../../src/base/limits.ts';
import type { RewrittenModule } from '../../src/plugins/gate/rewrite.ts';
import { OneLane } from './one-lane.ts';

/** What an execution is given. */
export type Input = { event: string; body?: string };

/** What is left of an execution where nothing can be left: on a memory that no other execution had. */
type Reference = { input: Input; answer: string; memory: Uint8Array };

export type Attack = {
  executions: number;
  /** How many ran on a memory of another execution. */
  again: number;
  /** Differences to an execution on a new memory, the first ones. */
  leaks: string[];
};

function referenceOf(module: RewrittenModule, input: Input): Reference {
  const lane = new OneLane(module, { fixed: true, recycle: false });
  const answer = lane.run(input.event, input.body);
  return { input, answer, memory: lane.memory.slice(0, lane.pages * PAGE_BYTES) };
}

/** The first byte in which two memories differ, or -1; beyond the end of the reference all must be zero. */
function firstDifference(memory: Uint8Array, reference: Uint8Array): number {
  const own = Buffer.from(memory.buffer, memory.byteOffset, memory.length);
  const zeros = new Uint8Array(PAGE_BYTES);
  const common = own.subarray(0, reference.length);
  if (common.length < reference.length) return common.length;
  if (common.compare(reference) !== 0) return common.findIndex((b, k) => b !== reference[k]);
  for (let at = reference.length; at < own.length; at += PAGE_BYTES)
    if (own.subarray(at, at + PAGE_BYTES).compare(zeros) !== 0) return at;
  return -1;
}

/**
 * Runs a plugin again and again on the code of a lane, with random numbers and clocks held still, so that every
 * execution of an event must leave the very memory that one on a new memory leaves. After each execution the whole memory
 * is filled with another byte, as a guest could, before it is given back; some end as after a trap, and some are
 * dropped at their first host call before they run.
 *
 * @param inputs of the executions
 * @param next a whole number below its argument, by chance
 */
export function attackIsolation(
  module: RewrittenModule,
  inputs: readonly Input[],
  executions: number,
  next: (below: number) => number,
): Attack {
  const references = inputs.map(input => referenceOf(module, input));
  const lane = new OneLane(module, { fixed: true, recycle: true });
  const attack: Attack = { executions, again: 0, leaks: [] };
  for (let k = 0; k < executions && attack.leaks.length < 5; k++) {
    const reference = references[next(references.length)];
    if (reference === undefined) throw new Error('there are no inputs');
    const { body, event } = reference.input;
    if (next(4) === 0) {
      const isDropped = lane.drop(event, body);
      lane.memory.fill(1 + next(255));
      if (lane.release(isDropped)) attack.again++;
    }
    const answer = lane.run(event, body);
    if (answer !== reference.answer) attack.leaks.push(`execution ${k} answered ${answer.slice(0, 100)}`);
    const different = firstDifference(lane.memory, reference.memory);
    if (different >= 0) attack.leaks.push(`execution ${k} left another byte at ${different}`);
    lane.memory.fill(1 + next(255));
    if (lane.release(next(50) !== 0)) attack.again++;
  }
  return attack;
}
