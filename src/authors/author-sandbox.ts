import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import type { ExecutionOutcome } from '../abi/execution-outcome.ts';
import type { HostFunction } from '../abi/host-functions.ts';
import type { HostArgument, HostResult } from '../abi/host-result.ts';
import type { LoadedModule } from '../abi/lane-messages.ts';
import { OperatorError } from '../base/errors.ts';
import { Executor } from '../execution/execute.ts';
import { MemoryBudget } from '../execution/memory-budget.ts';
import { EVERY_SLOT } from '../execution/slot-leases.ts';
import { inspectModule } from '../plugins/inspect.ts';
import type { Manifest } from '../plugins/manifest.ts';
import { runningFrames } from './running-frames.ts';

/** One module in the sandbox of the service, with host functions of the caller's. `C` is what they get of an execution. */

export type SandboxOptions<C> = {
  /** Values of its configuration. */
  config: Record<string, string>;
  timeoutMs: number;
  /** What its executions draw instead of clocks and random numbers. */
  drawn?: Uint8Array;
  dispatch(row: HostFunction, args: HostArgument[], context: C): HostResult | Promise<HostResult>;
};

export type SandboxRun<C> = { event: string; body: Uint8Array | null; entry: number; context: C };

/** So long before its deadline an execution is looked at: one in an endless loop cannot say where it is. */
const LOOK_MS = 1500;

/** Folders of sandboxes that are not closed: a test need not close its host. */
const scratch = new Set<string>();

function removeScratch(directory: string): void {
  fs.rmSync(directory, { recursive: true, force: true });
  scratch.delete(directory);
  if (scratch.size === 0) process.off('exit', removeAll);
}

function removeAll(): void {
  for (const directory of scratch) removeScratch(directory);
}

function makeScratch(): string {
  if (scratch.size === 0) process.on('exit', removeAll);
  const directory = fs.mkdtempSync(path.join(os.tmpdir(), 'plugin-host-author-'));
  scratch.add(directory);
  return directory;
}

export class AuthorSandbox<C> {
  readonly manifest: Manifest;
  readonly #module: LoadedModule;
  readonly #executor: Executor<C>;
  readonly #timeoutMs: number;
  readonly #directory: string;
  /** Executions so far. */
  #count = 0;

  /** @throws OperatorError when the gate of the upload refuses the module */
  constructor(bytes: Uint8Array, { config, dispatch, drawn, timeoutMs }: SandboxOptions<C>) {
    const { findings, manifest, rewritten } = inspectModule(bytes);
    if (manifest === null || rewritten === null) throw new OperatorError(findings.map(f => f.message).join('\n'));
    this.manifest = manifest;
    this.#directory = makeScratch();
    this.#timeoutMs = timeoutMs;
    this.#module = {
      id: 1,
      versionId: 1,
      pluginId: manifest.id,
      module: new WebAssembly.Module(Uint8Array.from(rewritten.bytes)),
      memoryPages: rewritten.memoryPages,
      overwritten: rewritten.overwritten,
      config,
      ...(drawn === undefined ? {} : { drawn }),
    };
    this.#executor = new Executor<C>({
      lanes: 1,
      recycle: true,
      memory: new MemoryBudget(0, 1),
      slots: EVERY_SLOT,
      processes: 1,
      timeoutMs,
      cacheDirectory: this.#directory,
      noteFile: null,
      dispatch: (row, args, { context }) => dispatch(row, args, context),
      loadModule: () => Promise.resolve(this.#module),
      useModule() {},
      over() {},
      ended() {},
      onError() {},
    });
    this.#executor.start();
  }

  /** How many threads are ready to run executions. */
  get threads(): number {
    return this.#executor.lanesRunning;
  }

  /** Runs the module once. The failure of one that reaches its deadline has the lines where it was, where they are known. */
  async run(run: SandboxRun<C>): Promise<ExecutionOutcome> {
    let where: Promise<string[][]> | undefined;
    const timer =
      this.#timeoutMs <= LOOK_MS
        ? undefined
        : setTimeout(() => {
            where = runningFrames().catch(() => []);
          }, this.#timeoutMs - LOOK_MS);
    const outcome = await this.#execute(run).finally(() => clearTimeout(timer));
    const [frames = [], ...others] = (await where) ?? [];
    // Of several threads it is not known which one this execution has.
    if (outcome.kind !== 'deadline' || others.length > 0) return outcome;
    return { ...outcome, failure: [outcome.failure, ...frames.map(frame => `    ${frame}`)].join('\n') };
  }

  #execute({ body, context, entry, event }: SandboxRun<C>): Promise<ExecutionOutcome> {
    return new Promise(resolve =>
      this.#executor.execute({
        pluginId: this.manifest.id,
        moduleId: this.#module.id,
        entry,
        event,
        body,
        deadline: performance.now() + this.#timeoutMs,
        context,
        callers: [],
        // One caller has seven of the eight slots; those of a test are callers of their own.
        caller: `test ${this.#count++}`,
        // Its bytes lie in shared memory until this returns.
        done: o => resolve({ ...o, body: Uint8Array.from(o.body), output: Uint8Array.from(o.output) }),
      }),
    );
  }

  /** Ends the threads. */
  async close(): Promise<void> {
    await this.#executor.close();
    removeScratch(this.#directory);
  }
}
