import { Buffer } from 'node:buffer';
import type { HostFunction } from './host-functions.ts';
import type { HostArgument, HostResult } from './host-result.ts';
import {
  CALL,
  CALL_DATA_AT,
  CALL_DATA_BYTES,
  CALL_STATE,
  callAt,
  LANE,
  laneAt,
  type SharedViews,
} from './shared-layout.ts';

const EMPTY = new Uint8Array(0);
const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/** Reads the ranges that the arguments of a call point to. */
export type GuestRanges = { range(pointer: number, length: number): Uint8Array };

/** A message for the data port, next to the answer in the call area. */
export type LargeAnswer = { message: Uint8Array; transfer: ArrayBuffer[] };

/**
 * One lane's call area: the blocking channel through which a lane asks the main thread, one call at a time. The state
 * word says whose turn it is:
 *
 *     lane: idle -> asked      main: asked -> served -> idle      lane, inside poll_oneoff: idle -> sleeping -> idle
 *
 * The lane writes the call before `ask`, the main thread writes the answer before `release`; both ends read only what
 * was written before the state word changed.
 */
export class CallArea {
  readonly #views: SharedViews;
  readonly #word: number;
  readonly #header: number;
  readonly #dataAt: number;

  constructor(views: SharedViews, lane: number) {
    this.#views = views;
    this.#word = laneAt(lane) + LANE.call;
    this.#header = callAt(lane) >> 2;
    this.#dataAt = callAt(lane) + CALL_DATA_AT;
  }

  /** One of `CALL_STATE`. */
  get state(): number {
    return Atomics.load(this.#views.words, this.#word);
  }

  set state(state: number) {
    Atomics.store(this.#views.words, this.#word, state);
  }

  // The lane's end.

  /** Lane: writes a call with one number, one of `OPERATION`. */
  writeNumber(operation: number, value: number): void {
    const { all32 } = this.#views;
    all32[this.#header + CALL.operation] = operation;
    all32[this.#header + CALL.numbers] = value;
    all32[this.#header + CALL.elsewhere] = 0;
  }

  /**
   * Lane: writes a call of a host function. The lengths of its parts were checked before.
   *
   * @param operation index of the row in HOST_FUNCTIONS
   * @param total bytes of all parts
   * @returns null, or the parts if they do not fit: the lane posts them on its data port before it asks
   */
  writeCall(
    row: HostFunction,
    operation: number,
    args: ReadonlyArray<number | bigint>,
    total: number,
    guest: GuestRanges,
  ): Uint8Array<ArrayBuffer> | null {
    const { all32, bytes } = this.#views;
    const header = this.#header;
    const elsewhere = total > CALL_DATA_BYTES ? new Uint8Array(total) : null;
    const target = elsewhere ?? bytes;
    let at = elsewhere === null ? this.#dataAt : 0;
    let a = 0;
    for (let k = 0; k < row.parameters.length; k++) {
      const kind = row.parameters[k];
      const word = header + CALL.numbers + 2 * k;
      if (kind === 'i64') {
        const value = BigInt.asUintN(64, BigInt(args[a++] ?? 0));
        all32[word] = Number(value & 0xffffffffn);
        all32[word + 1] = Number(value >> 32n);
        continue;
      }
      if (kind === 'i32') {
        all32[word] = Number(args[a++]);
        continue;
      }
      const pointer = Number(args[a++]);
      const length = Number(args[a++]) >>> 0;
      all32[word] = length;
      if (kind === 'buf') continue;
      target.set(guest.range(pointer, length), at);
      at += length;
    }
    all32[header + CALL.operation] = operation;
    all32[header + CALL.dataBytes] = total;
    all32[header + CALL.elsewhere] = elsewhere === null ? 0 : 1;
    return elsewhere;
  }

  /** Lane: hands the call to the main thread, which looks at it once the lane is marked. */
  ask(): void {
    this.state = CALL_STATE.asked;
  }

  /** Lane: sleeps until the call is answered. */
  waitForAnswer(): void {
    const { words } = this.#views;
    while (this.state !== CALL_STATE.idle) {
      Atomics.wait(words, this.#word, CALL_STATE.asked);
      Atomics.wait(words, this.#word, CALL_STATE.served);
    }
  }

  /** Lane: the value of the answer, or an error code below zero. */
  get code(): number {
    return this.#views.all32[this.#header + CALL.code]!;
  }

  /** Lane: bytes of the answer that `result_read` gives; the raw part follows them. */
  get resultBytes(): number {
    return this.#views.all32[this.#header + CALL.resultBytes]!;
  }

  /** Lane: bytes of the raw part of the answer. */
  get bodyBytes(): number {
    return this.#views.all32[this.#header + CALL.bodyBytes]!;
  }

  /** Lane: a copy of the answer and its raw part, or null if both were posted on the data port. */
  readAnswer(): Uint8Array | null {
    if (this.#views.all32[this.#header + CALL.elsewhere] === 1) return null;
    return this.#views.bytes.slice(this.#dataAt, this.#dataAt + this.resultBytes + this.bodyBytes);
  }

  // The main thread's end.

  /** Main thread: takes the call; the lane waits for its answer. */
  serve(): void {
    this.state = CALL_STATE.served;
  }

  /** Main thread: index of the row in HOST_FUNCTIONS, or one of `OPERATION`. */
  get operation(): number {
    return this.#views.all32[this.#header + CALL.operation]!;
  }

  /** Main thread: the number that `writeNumber` wrote. */
  get number(): number {
    return this.#views.all32[this.#header + CALL.numbers]!;
  }

  /**
   * Main thread: reads the arguments of a call, copied out of shared memory.
   *
   * @param receive takes the parts that did not fit from the lane's data port
   * @returns null when a text is not valid UTF-8
   */
  readArguments(row: HostFunction, receive: () => Uint8Array): HostArgument[] | null {
    const { all32, bytes } = this.#views;
    const numbers = this.#header + CALL.numbers;
    const data =
      all32[this.#header + CALL.elsewhere] === 1
        ? Buffer.from(receive())
        : Buffer.from(bytes.slice(this.#dataAt, this.#dataAt + all32[this.#header + CALL.dataBytes]!).buffer);
    const args: HostArgument[] = [];
    let at = 0;
    for (let k = 0; k < row.parameters.length; k++) {
      const kind = row.parameters[k]!;
      const value = all32[numbers + 2 * k]!;
      if (kind === 'i32') args.push(value);
      else if (kind === 'i64') args.push((BigInt(all32[numbers + 2 * k + 1]!) << 32n) | BigInt(value >>> 0));
      else if (kind === 'buf') args.push(value >>> 0);
      else {
        const part = data.subarray(at, at + value);
        at += value;
        const argument = kind === 'bytes' ? part : decode(part);
        if (argument === null) return null;
        args.push(argument);
      }
    }
    return args;
  }

  /**
   * Main thread: writes the answer of a handler.
   *
   * @returns null, or what has to be posted on the lane's data port before `release`, because it does not fit
   */
  writeAnswer(result: HostResult): LargeAnswer | null {
    const { all32, bytes } = this.#views;
    const { handedOver } = result;
    const data = handedOver ?? (typeof result.data === 'string' ? Buffer.from(result.data) : (result.data ?? EMPTY));
    const body = result.body ?? EMPTY;
    const total = data.length + body.length;
    let large: LargeAnswer | null = null;
    if (total <= CALL_DATA_BYTES) {
      bytes.set(data, this.#dataAt);
      bytes.set(body, this.#dataAt + data.length);
    } else if (handedOver !== undefined) {
      large = { message: handedOver, transfer: [handedOver.buffer] };
    } else {
      const message = new Uint8Array(total);
      message.set(data);
      message.set(body, data.length);
      large = { message, transfer: [message.buffer] };
    }
    all32[this.#header + CALL.elsewhere] = large === null ? 0 : 1;
    all32[this.#header + CALL.code] = result.code;
    all32[this.#header + CALL.resultBytes] = data.length;
    all32[this.#header + CALL.bodyBytes] = body.length;
    return large;
  }

  /** Main thread: wakes the lane, which reads the answer. */
  release(): void {
    this.state = CALL_STATE.idle;
    Atomics.notify(this.#views.words, this.#word, 1);
  }
}

/** @returns null when it is not valid UTF-8 */
export function decode(part: Uint8Array): string | null {
  try {
    return decoder.decode(part);
  } catch {
    return null;
  }
}
