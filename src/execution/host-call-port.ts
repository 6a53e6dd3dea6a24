import type { Buffer } from 'node:buffer';
import { decode } from '../abi/call-area.ts';
import type { LargeInput } from '../abi/cell-codec.ts';
import { HOST_ERROR, HOST_FUNCTIONS, type HostFunction } from '../abi/host-functions.ts';
import { type HostArgument, type HostResult, hostError } from '../abi/host-result.ts';
import type { LoadedModule } from '../abi/lane-messages.ts';
import { OPERATION } from '../abi/shared-layout.ts';
import type { LanePool } from './lane-pool.ts';

export type HostCallOptions = {
  /** The function row, its arguments, and the cell of the execution that calls. */
  dispatch(row: HostFunction, args: HostArgument[], cell: number): HostResult | Promise<HostResult>;
  loadModule(id: number): Promise<LoadedModule>;
  /** Event and body that did not fit the cell. */
  largeInput(cell: number): LargeInput;
  onError(error: unknown, operation: string): void;
  /** Called after every answer that did not come at once. */
  answered(): void;
};

const NOT_UTF8 = hostError(HOST_ERROR.invalid, 'a text argument is not valid UTF-8');

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
    const area = pool.callAreaOf(lane);
    const { operation } = area;
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
      if (operation === OPERATION.loadModule) return this.#loadModule(pool, lane, generation, area.number);
      if (operation === OPERATION.fetchInput) {
        pool.post(lane, this.#options.largeInput(area.number));
        return answer({ code: 0 });
      }
      const row = HOST_FUNCTIONS[operation];
      if (row === undefined) throw new Error(`unknown operation ${operation}`);
      const args = area.readArguments(row, () => pool.receive(lane) as Uint8Array);
      if (args === null) return answer(NOT_UTF8);
      const result = this.#options.dispatch(row, args, pool.cellOf(lane));
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

  /**
   * Does the first read of an execution, whose run was dropped for it.
   *
   * @param operation index of the function in HOST_FUNCTIONS
   * @param text its one argument, in UTF-8
   * @param answer called once, with an error where the read failed
   */
  readFirst(cell: number, operation: number, text: Buffer, answer: (result: HostResult) => void): void {
    const row = HOST_FUNCTIONS[operation];
    const failed = (error: unknown): void => {
      this.#options.onError(error, row?.name ?? String(operation));
      answer(hostError(HOST_ERROR.internal));
    };
    if (row === undefined) return failed(new Error(`unknown operation ${operation}`));
    const argument = decode(text);
    if (argument === null) return answer(NOT_UTF8);
    try {
      const result = this.#options.dispatch(row, [argument], cell);
      if (result instanceof Promise) result.then(answer, failed).catch(error => this.#options.onError(error, row.name));
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
        if (pool.generationOf(lane) !== generation) return;
        const reason = error instanceof Error ? error.message : 'the module could not be loaded';
        this.#answer(pool, lane, hostError(HOST_ERROR.internal, reason));
      },
    );
  }

  #answer(pool: LanePool, lane: number, result: HostResult): void {
    const area = pool.callAreaOf(lane);
    const large = area.writeAnswer(result);
    if (large !== null) pool.post(lane, large.message, large.transfer);
    area.release();
  }
}
