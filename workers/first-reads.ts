import { Buffer } from 'node:buffer';
import { performance } from 'node:perf_hooks';
import {
  firstReadsOf,
  ITEM,
  leaveTrail,
  QUESTION_HEAD_BYTES,
  readTrail,
  TRAIL_BYTES_MAX,
} from '../src/abi/first-reads.ts';
import { FIRST_READS, type SharedViews } from '../src/abi/shared-layout.ts';

/** Ends a run that is dropped. Not an error, because the stack of one takes longer to write than the run. */
const DROPPED = Object.freeze({ message: 'the run is dropped' });

/** The answer to a read: a value or an error code for the guest, and the result or the text of the error. */
export type FirstAnswer = { code: number; result: Uint8Array };

/**
 * The lane's end of the reads that an execution begins with (src/abi/first-reads). A run that comes to a read, before it
 * has asked the host for anything else, is dropped. The next one is the same up to there, because it gets the same input,
 * times, random bytes and answers.
 */
export class FirstReads {
  readonly #trail = Buffer.alloc(TRAIL_BYTES_MAX);
  /** What the trail holds, and up to where this run has got it. */
  #bytes = 0;
  #at = 0;
  #views: SharedViews | null = null;
  #cell = 0;
  /** Up to when, as `performance.now()`, a run may be dropped. */
  #until = 0;
  #isOffered = false;

  /** Begins a run. @param until up to when, as `performance.now()`, it may be dropped */
  begin(views: SharedViews, cell: number, until: number): void {
    const state = firstReadsOf(views, cell);
    this.#views = views;
    this.#cell = cell;
    this.#until = until;
    this.#isOffered = state === FIRST_READS.offered;
    this.#at = 0;
    this.#bytes = state === FIRST_READS.none ? 0 : readTrail(views, cell, this.#trail);
  }

  /** The guest does something that is no read: what it reads from now on does not come first. */
  end(): void {
    this.#isOffered = false;
    this.#at = this.#bytes;
  }

  get #isBehind(): boolean {
    return this.#at === this.#bytes;
  }

  /** The time that the dropped run read here; undefined for none. */
  time(): bigint | undefined {
    if (this.#isBehind) return undefined;
    if (this.#trail[this.#at] !== ITEM.clock) return void this.end();
    const ns = this.#trail.readBigInt64LE(this.#at + 1);
    this.#at += 9;
    return ns;
  }

  /** Writes down a time that was read. */
  noteTime(ns: bigint): void {
    if (!this.#makeRoom(9)) return;
    this.#trail[this.#at] = ITEM.clock;
    this.#trail.writeBigInt64LE(ns, this.#at + 1);
    this.#forward(9);
  }

  /** Fills a range with the random bytes that the dropped run drew here. @returns false for none */
  random(range: Uint8Array): boolean {
    if (this.#isBehind) return false;
    const from = this.#at + 5;
    if (this.#trail[this.#at] !== ITEM.random || this.#trail.readUInt32LE(this.#at + 1) !== range.length) {
      this.end();
      return false;
    }
    range.set(this.#trail.subarray(from, from + range.length));
    this.#at = from + range.length;
    return true;
  }

  /** Writes down random bytes that were drawn. */
  noteRandom(range: Uint8Array): void {
    if (!this.#makeRoom(5 + range.length)) return;
    this.#trail[this.#at] = ITEM.random;
    this.#trail.writeUInt32LE(range.length, this.#at + 1);
    this.#trail.set(range, this.#at + 5);
    this.#forward(5 + range.length);
  }

  /** The answer that the dropped run has asked for here; undefined for none. */
  answer(operation: number, text: Uint8Array): FirstAnswer | undefined {
    if (this.#isBehind) return undefined;
    const trail = this.#trail;
    const textAt = this.#at + QUESTION_HEAD_BYTES;
    const answerAt = textAt + text.length;
    if (
      trail[this.#at] !== ITEM.read ||
      trail.readUInt32LE(this.#at + 1) !== operation ||
      trail.readUInt32LE(this.#at + 5) !== text.length ||
      trail.compare(text, 0, text.length, textAt, answerAt) !== 0
    )
      return void this.end();
    const resultAt = answerAt + 8;
    this.#at = resultAt + trail.readUInt32LE(answerAt + 4);
    return { code: trail.readInt32LE(answerAt), result: Uint8Array.from(trail.subarray(resultAt, this.#at)) };
  }

  /**
   * Leaves a read to the main thread, unless this run has taken too long.
   *
   * @param operation index of the function in HOST_FUNCTIONS
   * @param text its one argument, in UTF-8
   * @returns whether it is left: the run must be dropped
   */
  leave(operation: number, text: Uint8Array): boolean {
    const views = this.#views;
    if (views === null || !this.#isOffered || performance.now() > this.#until) return false;
    const questionAt = this.#at;
    const bytes = QUESTION_HEAD_BYTES + text.length;
    if (!this.#makeRoom(bytes)) return false;
    this.#trail[questionAt] = ITEM.read;
    this.#trail.writeUInt32LE(operation, questionAt + 1);
    this.#trail.writeUInt32LE(text.length, questionAt + 5);
    this.#trail.set(text, questionAt + QUESTION_HEAD_BYTES);
    leaveTrail(views, this.#cell, this.#trail.subarray(0, questionAt + bytes), questionAt);
    return true;
  }

  /** Ends the guest of a run that is dropped. One that catches it traps at its next call. */
  drop(): never {
    throw DROPPED;
  }

  /** @returns false where nothing is written down, or the trail would be too long */
  #makeRoom(bytes: number): boolean {
    // Some room is left for the answer.
    this.#isOffered &&= this.#bytes + bytes <= TRAIL_BYTES_MAX / 2;
    return this.#isOffered;
  }

  #forward(bytes: number): void {
    this.#at += bytes;
    this.#bytes = this.#at;
  }
}
