import { Buffer } from 'node:buffer';
import { performance } from 'node:perf_hooks';
import { type MessagePort, receiveMessageOnPort } from 'node:worker_threads';
import { HOST_ERROR, HOST_ERROR_TEXT, type HostErrorCode, type HostFunction } from '../src/abi/host-functions.ts';
import type { LoadedModule } from '../src/abi/lane-messages.ts';
import {
  BELL,
  BELL_BITS,
  BELL_WANTED,
  CALL,
  CALL_DATA_AT,
  CALL_DATA_BYTES,
  CALL_STATE,
  callAt,
  LANE,
  laneAt,
  OPERATION,
  type SharedViews,
  SLOT_OUTPUT_AT,
  SLOT_OUTPUT_BYTES,
  slotAt,
} from '../src/abi/shared-layout.ts';
import { LIMITS } from '../src/base/limits.ts';
import type { ExecutionState } from './execution-state.ts';
import type { GuestMemory } from './guest-memory.ts';
import { isAlone } from './take-work.ts';
import { trap } from './trap.ts';

/**
 * An execution that has run for longer does not spin any more, because spinning would count as its own processor time.
 */
const SPIN_MS_PER_EXECUTION = 20;

/**
 * The lane's end of the blocking channel to the host (the other end: execution/host-call-port). The lane writes the
 * arguments into its call area, sets the call word, marks itself, rings if the main thread wants a doorbell, and sleeps
 * until the main thread clears the word.
 */
export class HostChannel {
  readonly #views: SharedViews;
  readonly #bell: MessagePort;
  readonly #data: MessagePort;
  readonly #state: ExecutionState;
  readonly #guest: GuestMemory;
  readonly #call: number;
  readonly #bellBit: number;
  readonly #header: number;
  readonly #dataAt: number;
  readonly #spinMs: number;
  #outputAt = 0;
  #spinLeftMs = 0;

  constructor(
    views: SharedViews,
    lane: number,
    bell: MessagePort,
    data: MessagePort,
    state: ExecutionState,
    guest: GuestMemory,
    spinMs: number,
  ) {
    this.#views = views;
    this.#bell = bell;
    this.#data = data;
    this.#state = state;
    this.#guest = guest;
    this.#spinMs = spinMs;
    this.#call = laneAt(lane) + LANE.call;
    this.#bellBit = 1 << (lane % BELL_BITS);
    this.#header = callAt(lane) >> 2;
    this.#dataAt = callAt(lane) + CALL_DATA_AT;
  }

  /** Names the slot whose output area `keepBody` may fill. */
  beginSlot(slot: number): void {
    this.#outputAt = slotAt(slot) + SLOT_OUTPUT_AT;
    this.#spinLeftMs = this.#spinMs > 0 ? SPIN_MS_PER_EXECUTION : 0;
  }

  /** Marks this lane, so that the main thread serves it when it next looks at the lanes. */
  mark(): void {
    Atomics.or(this.#views.words, BELL, this.#bellBit);
  }

  /** Wakes the main thread if it sleeps and no lane has woken it yet. */
  ring(): void {
    if (Atomics.and(this.#views.words, BELL, ~BELL_WANTED) < 0) this.#bell.postMessage(0);
  }

  /**
   * Copies a response body out of the guest: after its headers in the slot if it fits, otherwise into a separate
   * buffer.
   */
  keepBody(headers: Uint8Array, body: Uint8Array): Uint8Array | null {
    if (headers.length + body.length > SLOT_OUTPUT_BYTES) return body.slice();
    this.#views.bytes.set(body, this.#outputAt + headers.length);
    return null;
  }

  /** Reports that the lane sleeps in `poll_oneoff`, so that another lane takes the queued work. */
  sleeping(on: boolean): void {
    Atomics.store(this.#views.words, this.#call, on ? CALL_STATE.sleeping : CALL_STATE.idle);
    if (!on) return;
    this.mark();
    this.ring();
  }

  #exchange(operation: number): void {
    const { all32, words } = this.#views;
    all32[this.#header + CALL.operation] = operation;
    Atomics.store(words, this.#call, CALL_STATE.asked);
    this.mark();
    this.ring();
    if (this.#spinLeftMs > 0 && isAlone(words)) this.#lookOut();
    while (Atomics.load(words, this.#call) !== CALL_STATE.idle) {
      Atomics.wait(words, this.#call, CALL_STATE.asked);
      Atomics.wait(words, this.#call, CALL_STATE.served);
    }
  }

  /** Spins for a moment: sleeping and being woken would cost as much as a short query. */
  #lookOut(): void {
    const { words } = this.#views;
    const from = performance.now();
    const until = from + Math.min(this.#spinMs, this.#spinLeftMs);
    let now = from;
    while (Atomics.load(words, this.#call) !== CALL_STATE.idle && now < until) now = performance.now();
    this.#spinLeftMs -= now - from;
  }

  /** Waits for an answer that is still outstanding because a stack overflow in the guest interrupted the call. */
  settle(): void {
    const { words } = this.#views;
    for (;;) {
      const now = Atomics.load(words, this.#call);
      if (now === CALL_STATE.idle) return;
      if (now === CALL_STATE.sleeping) {
        Atomics.store(words, this.#call, CALL_STATE.idle);
        return;
      }
      Atomics.wait(words, this.#call, now);
    }
  }

  #received(): unknown {
    for (;;) {
      const message = receiveMessageOnPort(this.#data);
      if (message !== undefined) return message.message;
    }
  }

  /** Fetches the module of a version; undefined when the host cannot load it, with the reason in `state.failure`. */
  loadModule(id: number): LoadedModule | undefined {
    this.#views.all32[this.#header + CALL.numbers] = id;
    this.#views.all32[this.#header + CALL.elsewhere] = 0;
    this.#exchange(OPERATION.loadModule);
    if (this.#views.all32[this.#header + CALL.result] !== 0) {
      this.#state.failure = this.#resultText();
      return undefined;
    }
    return this.#received() as LoadedModule;
  }

  /** Fetches an event and body that did not fit the slot. */
  fetchInput(slot: number): { event: Uint8Array; body: Uint8Array } {
    this.#views.all32[this.#header + CALL.numbers] = slot;
    this.#views.all32[this.#header + CALL.elsewhere] = 0;
    this.#exchange(OPERATION.fetchInput);
    return this.#received() as { event: Uint8Array; body: Uint8Array };
  }

  #resultText(): string {
    const length = this.#views.all32[this.#header + CALL.resultBytes] ?? 0;
    return Buffer.from(this.#views.bytes.slice(this.#dataAt, this.#dataAt + length)).toString();
  }

  #quota(bytes: number): void {
    this.#state.hostCallBytes += bytes;
    if (this.#state.hostCallBytes <= LIMITS.hostCallBytesMax) return;
    this.#state.ended = 'quota';
    this.#state.failure = `more than ${LIMITS.hostCallBytesMax} bytes through host calls in one execution`;
    trap();
  }

  /** Checks all lengths before anything is copied; returns the total, or an error code below zero. */
  #measure(row: HostFunction, args: ReadonlyArray<number | bigint>): number {
    let total = 0;
    let a = 0;
    for (const kind of row.parameters) {
      if (kind === 'i32' || kind === 'i64') {
        a++;
        continue;
      }
      const pointer = Number(args[a++]);
      const length = Number(args[a++]) >>> 0;
      if (!this.#guest.holds(pointer, length))
        return this.#fail(HOST_ERROR.invalid, 'the pointer and length do not lie inside the memory');
      if (kind === 'buf') continue;
      const max =
        kind === 'bytes'
          ? LIMITS.requestBodyBytesMax
          : kind === 'json'
            ? LIMITS.kvValueBytesMax
            : LIMITS.hostCallTextBytesMax;
      if (length > max)
        return this.#fail(
          HOST_ERROR.tooLarge,
          `an argument of ${row.name} has ${length} bytes; at most ${max} are allowed`,
        );
      total += length;
    }
    return total;
  }

  #fail(code: HostErrorCode, text: string): number {
    this.#state.error = text;
    return code;
  }

  /**
   * Makes one host call: copies the arguments out of the guest, waits for the host, keeps the result for `result_read`.
   *
   * @param operation index of the row in HOST_FUNCTIONS
   * @returns the result for the guest: a value or length, or an error code below zero
   */
  call(row: HostFunction, operation: number, args: ReadonlyArray<number | bigint>): number {
    const total = this.#measure(row, args);
    if (total < 0) return total;
    this.#quota(total);
    const { all32, bytes } = this.#views;
    const elsewhere = total > CALL_DATA_BYTES ? new Uint8Array(total) : null;
    let at = 0;
    let a = 0;
    let buffer: { pointer: number; length: number } | null = null;
    for (let k = 0; k < row.parameters.length; k++) {
      const kind = row.parameters[k];
      const word = this.#header + CALL.numbers + 2 * k;
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
      if (kind === 'buf') {
        buffer = { pointer, length };
        continue;
      }
      if (elsewhere === null) bytes.set(this.#guest.range(pointer, length), this.#dataAt + at);
      else elsewhere.set(this.#guest.range(pointer, length), at);
      at += length;
    }
    all32[this.#header + CALL.dataBytes] = total;
    all32[this.#header + CALL.elsewhere] = elsewhere === null ? 0 : 1;
    if (elsewhere !== null) this.#data.postMessage(elsewhere, [elsewhere.buffer]);
    this.#exchange(operation);
    return this.#take(buffer);
  }

  /** Takes the host's answer. Makes new views of the guest memory, because other code ran meanwhile. */
  #take(buffer: { pointer: number; length: number } | null): number {
    const { all32, bytes } = this.#views;
    const h = this.#header;
    const result = all32[h + CALL.result] ?? HOST_ERROR.internal;
    const length = all32[h + CALL.resultBytes] ?? 0;
    const bodyLength = all32[h + CALL.bodyBytes] ?? 0;
    const whole =
      all32[h + CALL.elsewhere] === 1
        ? (this.#received() as Uint8Array)
        : bytes.slice(this.#dataAt, this.#dataAt + length + bodyLength);
    this.#quota(length + bodyLength);
    if (result < 0) {
      this.#state.error =
        length > 0 ? Buffer.from(whole).toString() : (HOST_ERROR_TEXT[result as HostErrorCode] ?? 'error');
      return result;
    }
    if (buffer !== null) {
      this.#guest.write(whole.subarray(0, length), buffer.pointer, buffer.length);
      return result;
    }
    this.#state.parked = whole.subarray(0, length);
    this.#state.parkedBody = whole.subarray(length);
    return result;
  }
}
