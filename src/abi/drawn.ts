import { Buffer } from 'node:buffer';

/**
 * What an execution drew: readings of clocks and random bytes, in the order of its calls, so that a replay draws the
 * same (docs/plugins.md "Recordings"). The lane that runs an execution writes it, the lane of a replay reads it.
 *
 *   item = [0 | 1] i64 nanoseconds of the clock (WASI preview1: 0 real time, 1 monotonic)
 *        | [2]     u32 length, bytes
 *
 * Numbers are little endian.
 */
const RANDOM = 2;
const CLOCK_ITEM_BYTES = 9;
const RANDOM_HEAD_BYTES = 5;
/** Draws beyond it are not kept: a replay takes those from its own machine. */
const DRAWN_BYTES_MAX = 256 * 1024;

export class DrawnWriter {
  readonly #items: Uint8Array[] = [];
  #bytes = 0;

  clock(clock: number, nanoseconds: bigint): void {
    const item = new Uint8Array(CLOCK_ITEM_BYTES);
    item[0] = clock;
    new DataView(item.buffer).setBigInt64(1, nanoseconds, true);
    this.#add(item);
  }

  random(bytes: Uint8Array): void {
    if (this.#bytes + bytes.length > DRAWN_BYTES_MAX) return this.#end();
    const item = new Uint8Array(RANDOM_HEAD_BYTES + bytes.length);
    item[0] = RANDOM;
    new DataView(item.buffer).setUint32(1, bytes.length, true);
    item.set(bytes, RANDOM_HEAD_BYTES);
    this.#add(item);
  }

  #add(item: Uint8Array): void {
    if (this.#bytes + item.length > DRAWN_BYTES_MAX) return this.#end();
    this.#items.push(item);
    this.#bytes += item.length;
  }

  /** An item behind a gap would be drawn in the place of the missing one. */
  #end(): void {
    this.#bytes = DRAWN_BYTES_MAX;
  }

  take(): Uint8Array {
    // Not in a buffer that others share: it may be posted.
    return Uint8Array.from(Buffer.concat(this.#items));
  }
}

export class DrawnReader {
  readonly #clocks: [bigint[], bigint[]] = [[], []];
  /** The next reading of each clock. */
  readonly #at: [number, number] = [0, 0];
  /** What a clock reads more than the one here: by its first reading, and by the last one that was taken. */
  readonly #aheadAtFirst: [bigint, bigint] = [0n, 0n];
  readonly #ahead: [bigint, bigint] = [0n, 0n];
  readonly #random: Uint8Array;
  #randomAt = 0;

  /** Anything that is no item ends it: a recording may come from anywhere. */
  constructor(drawn: Uint8Array) {
    const view = new DataView(drawn.buffer, drawn.byteOffset, drawn.byteLength);
    const random: Uint8Array[] = [];
    for (let at = 0; at < drawn.length; ) {
      const kind = drawn[at];
      if ((kind === 0 || kind === 1) && at + CLOCK_ITEM_BYTES <= drawn.length) {
        this.#clocks[kind].push(view.getBigInt64(at + 1, true));
        at += CLOCK_ITEM_BYTES;
      } else if (kind === RANDOM && at + RANDOM_HEAD_BYTES <= drawn.length) {
        const end = at + RANDOM_HEAD_BYTES + view.getUint32(at + 1, true);
        random.push(drawn.subarray(at + RANDOM_HEAD_BYTES, end));
        at = end;
      } else break;
    }
    this.#random = Buffer.concat(random);
  }

  /** Whether the recording has a further reading of a clock. */
  hasClock(): boolean {
    return this.#clocks.some((readings, clock) => readings.length > (this.#at[clock] ?? 0));
  }

  /** What a clock reads now, without taking a reading. @param now what the clock here reads */
  present(clock: 0 | 1, now: bigint): bigint {
    const [first, last] = [this.#aheadAtFirst[clock], this.#ahead[clock]];
    return now + (first > last ? first : last);
  }

  /**
   * The next reading of a clock. After the last one it goes on at the speed of the clock here, and has run for no less than
   * the replay has: what looks whether its time is up sees that before the deadline of the replay.
   *
   * @param now what the clock here reads
   */
  clock(clock: 0 | 1, now: bigint): bigint {
    const readings = this.#clocks[clock];
    const at = this.#at[clock];
    const reading = readings[at];
    if (reading === undefined) return this.present(clock, now);
    this.#at[clock]++;
    this.#ahead[clock] = reading - now;
    if (at === 0) this.#aheadAtFirst[clock] = reading - now;
    return reading;
  }

  /** Fills a range with the next random bytes. @returns false when there are not enough left */
  random(range: Uint8Array): boolean {
    const end = this.#randomAt + range.length;
    if (end > this.#random.length) return false;
    range.set(this.#random.subarray(this.#randomAt, end));
    this.#randomAt = end;
    return true;
  }
}
