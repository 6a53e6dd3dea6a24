import { Buffer } from 'node:buffer';
import type { HostResult } from './host-result.ts';
import { CELL, CELL_OUTPUT_AT, CELL_OUTPUT_BYTES, cellAt, FIRST_READS, type SharedViews } from './shared-layout.ts';

/**
 * The reads an execution begins with, which the main thread does between two runs of its handler (docs/RATIONALE.md
 * "Reads come first"). They lie in the cell, where the outcome is written at the end, as a trail of all that the guest
 * got from outside so far, in its order:
 *
 *   item = [clock]  i64 nanoseconds
 *        | [random] u32 length, bytes
 *        | [read]   u32 operation, u32 length, text; then, once answered, i32 code, u32 length, result
 *
 * A run writes down what it draws. At a read it ends, with the question as the last item. The main thread appends the
 * answer and queues the cell again; the next run gets what the trail holds, and goes on behind its end.
 */
export const ITEM = { clock: 1, random: 2, read: 3 } as const;

/** Words before the trail. */
const AT = { bytes: 0, questionAt: 1, reads: 2 } as const;
const TRAIL_AT = 32;
export const TRAIL_BYTES_MAX = CELL_OUTPUT_BYTES - TRAIL_AT;
/** Code and length of an answer. */
const ANSWER_HEAD_BYTES = 8;
/** Item, operation and length of a question. */
export const QUESTION_HEAD_BYTES = 9;
/** Reads of one execution that are done this way; those after them are blocking calls. */
const READS_MAX = 8;
const EMPTY = new Uint8Array(0);

const headerOf = (cell: number): number => cellAt(cell) >> 2;
const areaOf = (cell: number): number => (cellAt(cell) + CELL_OUTPUT_AT) >> 2;
const trailAt = (cell: number): number => cellAt(cell) + CELL_OUTPUT_AT + TRAIL_AT;

/** One of `FIRST_READS`. */
export const firstReadsOf = (views: SharedViews, cell: number): number =>
  views.all32[headerOf(cell) + CELL.firstReads]!;

function setState(views: SharedViews, cell: number, state: number): void {
  views.all32[headerOf(cell) + CELL.firstReads] = state;
}

/** Main thread: says before the first run whether the execution may leave reads to it. */
export function offerFirstReads(views: SharedViews, cell: number, isOffered: boolean): void {
  const area = areaOf(cell);
  views.all32[area + AT.bytes] = 0;
  views.all32[area + AT.reads] = 0;
  setState(views, cell, isOffered ? FIRST_READS.offered : FIRST_READS.none);
}

/** Lane: copies the trail. @param target of `TRAIL_BYTES_MAX` @returns its length in bytes */
export function readTrail(views: SharedViews, cell: number, target: Uint8Array): number {
  const bytes = views.all32[areaOf(cell) + AT.bytes]!;
  if (bytes > 0) target.set(views.bytes.subarray(trailAt(cell), trailAt(cell) + bytes));
  return bytes;
}

/**
 * Lane: leaves a trail that ends with a question.
 *
 * @param questionAt where in it the question begins
 */
export function leaveTrail(views: SharedViews, cell: number, trail: Uint8Array, questionAt: number): void {
  const area = areaOf(cell);
  views.bytes.set(trail, trailAt(cell));
  views.all32[area + AT.bytes] = trail.length;
  views.all32[area + AT.questionAt] = questionAt;
}

/** Main thread: the question that the lane has left. @returns index of the function in HOST_FUNCTIONS, and a copy of its argument */
export function readQuestion(views: SharedViews, cell: number): { operation: number; text: Buffer } {
  const { all32, buffer } = views;
  const at = trailAt(cell) + all32[areaOf(cell) + AT.questionAt]!;
  const textAt = at + QUESTION_HEAD_BYTES;
  const text = buffer.subarray(textAt, textAt + buffer.readUInt32LE(at + 5));
  return { operation: buffer.readUInt32LE(at + 1), text: Buffer.from(text) };
}

/** Main thread: appends the answer. One that does not fit is left out: the next run asks once more, and waits. */
export function writeFirstAnswer(views: SharedViews, cell: number, result: HostResult): void {
  const { all32, buffer } = views;
  const area = areaOf(cell);
  const bytes = all32[area + AT.bytes]!;
  const { body, code, data, handedOver } = result;
  const found = typeof data === 'string' ? Buffer.from(data) : (data ?? EMPTY);
  const end = bytes + ANSWER_HEAD_BYTES + found.length;
  if (body !== undefined || handedOver !== undefined || end > TRAIL_BYTES_MAX) {
    all32[area + AT.bytes] = all32[area + AT.questionAt]!;
    return setState(views, cell, FIRST_READS.answered);
  }
  const at = trailAt(cell) + bytes;
  buffer.writeInt32LE(code, at);
  buffer.writeUInt32LE(found.length, at + 4);
  buffer.set(found, at + ANSWER_HEAD_BYTES);
  all32[area + AT.bytes] = end;
  all32[area + AT.reads]!++;
  setState(views, cell, all32[area + AT.reads]! < READS_MAX ? FIRST_READS.offered : FIRST_READS.answered);
}
