import fs from 'node:fs';
import path from 'node:path';
import { prepareLaneSource } from '../../src/execution/lane-source.ts';
import type { RewrittenModule } from '../../src/plugins/gate/rewrite.ts';
import { inspectModule } from '../../src/plugins/inspect.ts';
import { makeTrialStart } from '../../src/plugins/trial-start.ts';
import { ExecutionState } from '../../workers/execution-state.ts';
import { GuestMemory } from '../../workers/guest-memory.ts';
import { makeHostImports } from '../../workers/host-imports.ts';
import { PluginRuntime } from '../../workers/plugin-runtime.ts';
import { RuntimeCache } from '../../workers/runtime-cache.ts';
import { makeWasi } from '../../workers/wasi.ts';

/** What an upload makes of a module: its start is run once and remembered where that is possible. */
export async function rewrite(bytes: Uint8Array, directory: string): Promise<RewrittenModule> {
  const file = (name: string): string => path.join(directory, name);
  fs.writeFileSync(file('uploaded.wasm'), bytes);
  let inspection = inspectModule(bytes, 'unknown');
  const { startModule } = inspection;
  if (startModule !== null) {
    fs.writeFileSync(file('start.wasm'), startModule.bytes);
    const { controlPages, memoryPages } = startModule;
    const run = makeTrialStart(prepareLaneSource(directory, 'run-start'));
    const files = { uploaded: file('uploaded.wasm'), start: file('start.wasm'), image: file('image') };
    const trial = await run(files, { controlPages, memoryPages });
    if (trial.kind !== 'ended') throw new Error(trial.reason);
    inspection = inspectModule(bytes, { file: trial.file, controlPages });
  }
  if (inspection.rewritten === null) throw new Error(JSON.stringify(inspection.findings));
  return inspection.rewritten;
}

export type OneLaneOptions = {
  /** Whether random numbers and clocks give the same in every execution. */
  fixed: boolean;
  recycle: boolean;
};

/** Runs one plugin with the code of a lane, in this thread; host calls that leave the lane answer "not found". */
export class OneLane {
  readonly #cache = new RuntimeCache(Number.POSITIVE_INFINITY);
  readonly #runtime: PluginRuntime;
  readonly #state: ExecutionState;
  readonly #guest: GuestMemory;
  readonly #wasi;
  #answer = '';
  #drawn = 0;
  #drops = false;

  constructor({ bytes, memoryPages, overwritten }: RewrittenModule, options: OneLaneOptions) {
    const control = new WebAssembly.Memory({ initial: 1, maximum: 1 });
    this.#state = new ExecutionState(new Int32Array(control.buffer));
    this.#guest = new GuestMemory(this.#state.control);
    this.#wasi = makeWasi(this.#state, this.#guest, { remainingMs: () => 1000, sleeping() {} });
    const channel = {
      keepBody: (_headers: Uint8Array, body: Uint8Array) => {
        this.#answer = Buffer.from(body).toString();
        return null;
      },
      call: () => {
        if (!this.#drops) return -2;
        this.#state.ended = 'asked';
        return this.#state.first.drop();
      },
    };
    const shared = {
      plugin_host: makeHostImports(this.#state, this.#guest, channel),
      wasi_snapshot_preview1: options.fixed ? { ...this.#wasi.functions, ...this.#fixed() } : this.#wasi.functions,
      control,
      controlWords: this.#state.control,
    };
    const module = new WebAssembly.Module(Uint8Array.from(bytes));
    const loaded = { id: 1, versionId: 1, pluginId: 'p', module, memoryPages, overwritten, config: {} };
    this.#runtime = new PluginRuntime(loaded, shared, options.recycle);
    this.#cache.add(1, this.#runtime);
  }

  #fixed() {
    return {
      random_get: (at: number, length: number): number => {
        for (let k = 0; k < length; k++) {
          this.#drawn = (Math.imul(this.#drawn, 1664525) + 1013904223) | 0;
          this.#guest.bytes[(at >>> 0) + k] = this.#drawn >>> 24;
        }
        return 0;
      },
      clock_time_get: (_clock: number, _precision: bigint, at: number): number => {
        this.#guest.view.setBigUint64(at >>> 0, 1_700_000_000_000_000_000n, true);
        return 0;
      },
    };
  }

  /** One execution, whose memory stays as it is until `release`. @returns the answer, or why there is none */
  run(event: string, body = ''): string {
    const state = this.#state;
    state.reset();
    this.#wasi.reset();
    const bytes = Buffer.from(event);
    state.event.set(bytes, 0, bytes.length);
    state.body.set(Buffer.from(body), 0, Buffer.byteLength(body));
    state.pluginId = 'p';
    this.#answer = 'no answer';
    this.#drawn = 0;
    this.#cache.get(1);
    this.#cache.begin(this.#runtime);
    try {
      this.#runtime.run(this.#guest);
      return state.failure ?? this.#answer;
    } catch (error) {
      return `${error instanceof Error ? error.message : String(error)} ${state.failure ?? ''}`;
    }
  }

  /** Runs it up to its first host call, as a run that is dropped for it. @returns whether there was one */
  drop(event: string, body = ''): boolean {
    this.#drops = true;
    this.run(event, body);
    this.#drops = false;
    return this.#state.ended === 'asked';
  }

  /** The whole memory, which may be larger than the guest knows. */
  get memory(): Uint8Array {
    return this.#guest.bytes;
  }

  /** Size of the memory as the guest knows it. */
  get pages(): number {
    return this.#guest.pages;
  }

  /** @returns whether the memory is used again */
  release(clean: boolean): boolean {
    return this.#cache.release(this.#runtime, clean);
  }
}
