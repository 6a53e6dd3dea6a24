import { Buffer } from 'node:buffer';
import { HOST_ERROR, HOST_FUNCTIONS, type HostFunction } from '../abi/host-functions.ts';
import { type HostArgument, type HostResult, hostError } from '../abi/host-result.ts';
import type { LoadedModule } from '../abi/lane-messages.ts';
import {
  CALL,
  CALL_DATA_AT,
  CALL_DATA_BYTES,
  CALL_STATE,
  callAt,
  LANE,
  laneAt,
  OPERATION,
  type SharedViews,
} from '../abi/shared-layout.ts';
import type { LanePool } from './lane-pool.ts';

export type HostCallOptions = {
  views: SharedViews;
  /** The function row, its arguments, and the slot of the execution that calls. */
  dispatch(row: HostFunction, args: HostArgument[], slot: number): HostResult | Promise<HostResult>;
  loadModule(id: number): Promise<LoadedModule>;
  /** Event and body that did not fit the slot. */
  largeInput(slot: number): { event: Uint8Array; body: Uint8Array };
  onError(error: unknown, operation: string): void;
  /** Called after every answer that did not come at once. */
  answered(): void;
};

/** The main thread's end of the blocking channel (the lane's end: workers/host-channel). */
export class HostCallPort {
  readonly #options: HostCallOptions;
  #pool: LanePool | null = null;

  constructor(options: HostCallOptions) {
    this.#options = options;
  }

  attach(pool: LanePool): void {
    this.#pool = pool;
  }

  /** Serves the call a lane has just made; answers later if the handler has to wait. */
  serve(lane: number): void {
    const pool = this.#pool;
    if (pool === null) throw new Error('the port has no lanes yet');
    const { all32, words } = this.#options.views;
    const header = callAt(lane) >> 2;
    const operation = all32[header + CALL.operation]!;
    const generation = pool.generationOf(lane);
    const answer = (result: HostResult): void => {
      // The thread that asked may have ended, and a new thread may use the call area by now.
      if (pool.generationOf(lane) === generation) this.#answer(pool, lane, result);
    };
    const failed = (error: unknown): void => {
      this.#options.onError(error, HOST_FUNCTIONS[operation]?.name ?? String(operation));
      answer(hostError(HOST_ERROR.internal));
    };
    try {
      if (operation === OPERATION.loadModule)
        return this.#loadModule(pool, lane, generation, all32[header + CALL.numbers]!);
      if (operation === OPERATION.fetchInput) {
        const input = this.#options.largeInput(all32[header + CALL.numbers]!);
        pool.post(lane, input);
        return answer({ code: 0 });
      }
      const row = HOST_FUNCTIONS[operation];
      if (row === undefined) throw new Error(`unknown operation ${operation}`);
      const args = this.#arguments(pool, lane, row);
      if (args === null) return answer(hostError(HOST_ERROR.invalid, 'a text argument is not valid UTF-8'));
      const slot = words[laneAt(lane) + LANE.current]! - 1;
      const result = this.#options.dispatch(row, args, slot);
      if (result instanceof Promise)
        result
          .then(answer)
          .catch(failed)
          .then(() => this.#options.answered());
      else answer(result);
    } catch (error) {
      failed(error);
    }
  }

  #loadModule(pool: LanePool, lane: number, generation: number, id: number): void {
    this.#options.loadModule(id).then(
      loaded => {
        if (pool.generationOf(lane) !== generation) return;
        pool.post(lane, loaded);
        this.#answer(pool, lane, { code: 0 });
      },
      (error: unknown) => {
        this.#options.onError(error, 'load_module');
        if (pool.generationOf(lane) === generation)
          this.#answer(
            pool,
            lane,
            hostError(HOST_ERROR.internal, error instanceof Error ? error.message : 'the module could not be loaded'),
          );
      },
    );
  }

  #arguments(pool: LanePool, lane: number, row: HostFunction): HostArgument[] | null {
    const { all32, bytes } = this.#options.views;
    const header = callAt(lane) >> 2;
    const total = all32[header + CALL.dataBytes]!;
    const from = callAt(lane) + CALL_DATA_AT;
    const data =
      all32[header + CALL.elsewhere] === 1
        ? Buffer.from(pool.receive(lane) as Uint8Array)
        : Buffer.from(bytes.slice(from, from + total).buffer);
    const args: HostArgument[] = [];
    let at = 0;
    for (let k = 0; k < row.parameters.length; k++) {
      const kind = row.parameters[k]!;
      const value = all32[header + CALL.numbers + 2 * k]!;
      if (kind === 'i32') args.push(value);
      else if (kind === 'i64') {
        const high = all32[header + CALL.numbers + 2 * k + 1]!;
        args.push((BigInt(high) << 32n) | BigInt(value >>> 0));
      } else if (kind === 'buf') args.push(value >>> 0);
      else {
        const part = data.subarray(at, at + value);
        at += value;
        if (kind === 'bytes') args.push(part);
        else {
          const text = decode(part);
          if (text === null) return null;
          args.push(text);
        }
      }
    }
    return args;
  }

  #answer(pool: LanePool, lane: number, result: HostResult): void {
    const { all32, bytes, words } = this.#options.views;
    const header = callAt(lane) >> 2;
    const { handedOver } = result;
    const data = handedOver ?? (typeof result.data === 'string' ? Buffer.from(result.data) : (result.data ?? EMPTY));
    const body = result.body ?? EMPTY;
    const total = data.length + body.length;
    const length = data.length;
    if (handedOver !== undefined && total > CALL_DATA_BYTES) {
      pool.post(lane, handedOver, [handedOver.buffer]);
      all32[header + CALL.elsewhere] = 1;
    } else if (total > CALL_DATA_BYTES) {
      const whole = new Uint8Array(total);
      whole.set(data);
      whole.set(body, data.length);
      pool.post(lane, whole, [whole.buffer]);
      all32[header + CALL.elsewhere] = 1;
    } else {
      const at = callAt(lane) + CALL_DATA_AT;
      bytes.set(data, at);
      bytes.set(body, at + data.length);
      all32[header + CALL.elsewhere] = 0;
    }
    all32[header + CALL.result] = result.code;
    all32[header + CALL.resultBytes] = length;
    all32[header + CALL.bodyBytes] = body.length;
    const word = laneAt(lane) + LANE.call;
    Atomics.store(words, word, CALL_STATE.idle);
    Atomics.notify(words, word, 1);
  }
}

const EMPTY = new Uint8Array(0);
const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

function decode(part: Uint8Array): string | null {
  try {
    return decoder.decode(part);
  } catch {
    return null;
  }
}
