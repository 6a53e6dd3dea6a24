import { Buffer } from 'node:buffer';
import { performance } from 'node:perf_hooks';
import { type MessagePort, receiveMessageOnPort } from 'node:worker_threads';
import { CallArea } from '../src/abi/call-area.ts';
import { keepBody, type LargeInput } from '../src/abi/cell-codec.ts';
import { markLane, mustRing } from '../src/abi/doorbell.ts';
import { HOST_ERROR, HOST_ERROR_TEXT, type HostErrorCode, type HostFunction } from '../src/abi/host-functions.ts';
import type { LoadedModule } from '../src/abi/lane-messages.ts';
import { CALL_STATE, OPERATION, type SharedViews } from '../src/abi/shared-layout.ts';
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
 * call into its call area, marks itself, rings if the main thread wants a doorbell, and sleeps until the answer is
 * there.
 */
export class HostChannel {
  readonly #views: SharedViews;
  readonly #bell: MessagePort;
  readonly #data: MessagePort;
  readonly #state: ExecutionState;
  readonly #guest: GuestMemory;
  readonly #lane: number;
  readonly #area: CallArea;
  readonly #spinMs: number;
  #cell = 0;
  /** The range of the guest that the answer of the call goes to, when a parameter of it is one. */
  #bufferAt = 0;
  #bufferBytes = 0;
  /** Which argument is the length of that buffer. */
  #bufferArgument = 0;
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
    this.#lane = lane;
    this.#area = new CallArea(views, lane);
  }

  /** Names the cell whose output area `keepBody` may fill. */
  beginCell(cell: number): void {
    this.#cell = cell;
    this.#spinLeftMs = this.#spinMs > 0 ? SPIN_MS_PER_EXECUTION : 0;
  }

  /** Marks this lane, so that the main thread serves it when it next looks at the lanes. */
  mark(): void {
    markLane(this.#views.words, this.#lane);
  }

  /** Wakes the main thread if it sleeps and no lane has woken it yet. */
  ring(): void {
    if (mustRing(this.#views.words)) this.#bell.postMessage(0);
  }

  /**
   * Copies a response body out of the guest: after its headers in the cell if it fits, otherwise into a separate
   * buffer.
   */
  keepBody(headers: Uint8Array, body: Uint8Array): Uint8Array | null {
    return keepBody(this.#views, this.#cell, headers.length, body);
  }

  /** Reports that the lane sleeps in `poll_oneoff`, so that another lane takes the queued work. */
  sleeping(on: boolean): void {
    this.#state.first.end();
    this.#area.state = on ? CALL_STATE.sleeping : CALL_STATE.idle;
    if (!on) return;
    this.mark();
    this.ring();
  }

  /** Hands over the call that was written, and waits for the answer. */
  #exchange(): void {
    this.#area.ask();
    this.mark();
    this.ring();
    if (this.#spinLeftMs > 0 && isAlone(this.#views.words)) this.#spin();
    this.#area.waitForAnswer();
  }

  /** Spins for a moment: sleeping and being woken would cost as much as a short query. */
  #spin(): void {
    const from = performance.now();
    const until = from + Math.min(this.#spinMs, this.#spinLeftMs);
    let now = from;
    while (this.#area.state !== CALL_STATE.idle && now < until) now = performance.now();
    this.#spinLeftMs -= now - from;
  }

  /** State of the lane's call, one of `CALL_STATE`. */
  get state(): number {
    return this.#area.state;
  }

  /** Waits for an answer that is still outstanding because a stack overflow in the guest interrupted the call. */
  settle(): void {
    const { state } = this.#area;
    if (state === CALL_STATE.idle) return;
    if (state === CALL_STATE.sleeping) this.#area.state = CALL_STATE.idle;
    else this.#area.waitForAnswer();
  }

  #received(): unknown {
    for (;;) {
      const message = receiveMessageOnPort(this.#data);
      if (message !== undefined) return message.message;
    }
  }

  /** Fetches the module of a version; undefined when the host cannot load it, with the reason in `state.failure`. */
  loadModule(id: number): LoadedModule | undefined {
    this.#area.writeNumber(OPERATION.loadModule, id);
    this.#exchange();
    if (this.#area.code === 0) return this.#received() as LoadedModule;
    this.#state.failure = Buffer.from(this.#area.readAnswer() ?? (this.#received() as Uint8Array)).toString();
    return undefined;
  }

  /** Fetches an event and body that did not fit the cell. */
  fetchInput(cell: number): LargeInput {
    this.#area.writeNumber(OPERATION.fetchInput, cell);
    this.#exchange();
    return this.#received() as LargeInput;
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
      if (kind === 'buf') {
        this.#bufferAt = pointer;
        this.#bufferBytes = length;
        this.#bufferArgument = a - 1;
        continue;
      }
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
    const given = this.#withinQuota(row, args, LIMITS.hostCallBytesMax - this.#state.hostCallBytes - total);
    if (typeof given === 'number') return given;
    this.#quota(total);
    if (row.mayComeFirst) {
      const read = this.#firstRead(operation, args);
      if (read !== undefined) return read;
    }
    this.#state.first.end();
    const large = this.#area.writeCall(row, operation, given, total, this.#guest);
    if (large !== null) this.#data.postMessage(large, [large.buffer]);
    this.#exchange();
    return this.#take(row);
  }

  /** The answer to a call that the main thread has done for a run that was dropped; undefined if there is none. */
  #firstRead(operation: number, args: ReadonlyArray<number | bigint>): number | undefined {
    const text = this.#guest.range(Number(args[0]), Number(args[1]));
    const answer = this.#state.first.answer(operation, text);
    if (answer !== undefined) return this.#keep(answer.code, answer.result, answer.result.length, 0);
    if (!this.#state.first.leave(operation, text)) return undefined;
    this.#state.ended = 'asked';
    return this.#state.first.drop();
  }

  /**
   * The arguments of a call that fills a buffer, with a buffer that the quota has room for. Where it has none, the call is
   * refused, so that the handler can go on: of all else, passing the quota ends the execution.
   */
  #withinQuota(
    row: HostFunction,
    args: ReadonlyArray<number | bigint>,
    left: number,
  ): ReadonlyArray<number | bigint> | number {
    if (!row.parameters.includes('buf') || this.#bufferBytes <= left) return args;
    if (left <= 0)
      return this.#fail(
        HOST_ERROR.tooLarge,
        `one execution may read ${LIMITS.hostCallBytesMax} bytes through host calls (hostCallBytesMax): read a part, or hand out the address of file_url`,
      );
    this.#bufferBytes = left;
    return args.with(this.#bufferArgument, left);
  }

  /** Takes the host's answer. Makes new views of the guest memory, because other code ran meanwhile. */
  #take(row: HostFunction): number {
    const { bodyBytes, code, resultBytes } = this.#area;
    const whole = this.#area.readAnswer() ?? (this.#received() as Uint8Array);
    if (code < 0 || !row.parameters.includes('buf')) return this.#keep(code, whole, resultBytes, bodyBytes);
    this.#quota(resultBytes + bodyBytes);
    this.#guest.write(whole.subarray(0, resultBytes), this.#bufferAt, this.#bufferBytes);
    return code;
  }

  /** Keeps an answer for `result_read` and `body_read`, or its error for `error_read`. @returns the value for the guest */
  #keep(code: number, whole: Uint8Array, resultBytes: number, bodyBytes: number): number {
    this.#quota(resultBytes + bodyBytes);
    if (code < 0) {
      this.#state.error =
        resultBytes > 0 ? Buffer.from(whole).toString() : (HOST_ERROR_TEXT[code as HostErrorCode] ?? 'error');
      return code;
    }
    this.#state.parked = whole.subarray(0, resultBytes);
    this.#state.parkedBody = whole.subarray(resultBytes);
    return code;
  }
}
