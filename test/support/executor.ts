import type { ExecutionOutcome } from '../../src/abi/execution-outcome.ts';
import type { HostArgument, HostResult } from '../../src/abi/host-result.ts';
import type { LoadedModule } from '../../src/abi/lane-messages.ts';
import { ENTRY } from '../../src/abi/shared-layout.ts';
import { Executor } from '../../src/execution/execute.ts';
import { MemoryBudget } from '../../src/execution/memory-budget.ts';
import { EVERY_SLOT } from '../../src/execution/slot-leases.ts';
import { inspectModule } from '../../src/plugins/inspect.ts';

/** Answers the host calls that do not end in the lane itself. */
export type Dispatch = (name: string, args: HostArgument[], pluginId: string) => HostResult | Promise<HostResult>;

export type Lanes = {
  executor: Executor<null>;
  /** Makes a plugin known under an id. */
  load(pluginId: string, module: Uint8Array, config?: Readonly<Record<string, string>>): Promise<void>;
  /** Runs it once; the outcome's bytes are copied out of shared memory. @param callers plugins whose calls led to it */
  run(pluginId: string, body?: Uint8Array, callers?: readonly string[]): Promise<ExecutionOutcome>;
};

/**
 * The threads that run plugins, without a service around them: host calls are answered by the test.
 *
 * @param directory for the lane's stripped sources
 */
export function startLanes(
  directory: string,
  options: {
    lanes: number;
    dispatch?: Dispatch;
    memoryBudgetBytes?: number;
    timeoutMs?: number;
    dropWithinMs?: number;
  },
): Lanes {
  const modules = new Map<string, number>();
  const loaded = new Map<number, LoadedModule>();
  const timeoutMs = options.timeoutMs ?? 60_000;
  const executor = new Executor<null>({
    lanes: options.lanes,
    recycle: true,
    memory: new MemoryBudget(options.memoryBudgetBytes ?? 0, 1),
    slots: EVERY_SLOT,
    processes: 1,
    timeoutMs,
    ...(options.dropWithinMs === undefined ? {} : { dropWithinMs: options.dropWithinMs }),
    cacheDirectory: directory,
    noteFile: null,
    dispatch: (row, args, execution) => options.dispatch?.(row.name, args, execution.pluginId) ?? { code: -1 },
    loadModule(id) {
      const module = loaded.get(id);
      return module === undefined ? Promise.reject(new Error(`no module ${id}`)) : Promise.resolve(module);
    },
    useModule() {},
    over() {},
    ended() {},
    onError() {},
  });
  executor.start();
  return {
    executor,
    async load(pluginId, module, config = {}) {
      const { findings, rewritten } = inspectModule(module);
      if (rewritten === null) throw new Error(JSON.stringify(findings));
      const id = loaded.size + 1;
      modules.set(pluginId, id);
      loaded.set(id, {
        id,
        versionId: id,
        pluginId,
        module: await WebAssembly.compile(Uint8Array.from(rewritten.bytes)),
        memoryPages: rewritten.memoryPages,
        overwritten: rewritten.overwritten,
        config,
      });
    },
    run: (pluginId, body, callers = []) =>
      new Promise((resolve, reject) => {
        const moduleId = modules.get(pluginId);
        if (moduleId === undefined) return reject(new Error(`no plugin ${pluginId}`));
        executor.execute({
          pluginId,
          moduleId,
          entry: ENTRY.handle,
          event: '{}',
          body: body ?? null,
          deadline: performance.now() + timeoutMs,
          context: null,
          callers,
          caller: pluginId,
          done: outcome => resolve({ ...outcome, body: outcome.body.slice(), output: outcome.output.slice() }),
        });
      }),
  };
}
