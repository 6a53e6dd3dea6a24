import { messageOf } from '../base/errors.ts';
import { dataPath } from '../config/load.ts';
import { Executor } from '../execution/execute.ts';
import { MemoryBudget } from '../execution/memory-budget.ts';
import { EVERY_SLOT } from '../execution/slot-leases.ts';
import { type HostCall, type HostHandler, makeDispatch } from '../host/host-functions.ts';
import type { Core } from './core.ts';
import type { Feature } from './feature.ts';
import type { Plugins } from './plugins.ts';
import type { Records } from './records.ts';
import type { Siblings } from './siblings.ts';

export type Execution = Feature & { executor: Executor<HostCall>; memory: MemoryBudget };

export type ExecutionParts = Pick<Plugins, 'registry'> &
  Pick<Records, 'executionLog'> & {
    hostFunctions: Record<string, HostHandler>;
    /** File in which lanes note the plugin version they run, or null. */
    noteFile: string | null;
    siblings: Siblings;
  };

/** Starts the threads that run plugins. */
export function composeExecution({ config, log }: Core, parts: ExecutionParts): Execution {
  const v = config.values;
  const { executionLog, noteFile, registry, siblings } = parts;
  const { processes, slots } = siblings;
  const memory = new MemoryBudget(v['execution.memory_budget_mb'] * 1024 * 1024, processes);
  const dispatch = makeDispatch(parts.hostFunctions);
  const executor = new Executor<HostCall>({
    lanes: v['execution.lanes'],
    recycle: v['execution.memory'] === 'recycled',
    memory,
    slots: slots ?? EVERY_SLOT,
    processes,
    timeoutMs: v['execution.timeout_ms'],
    cacheDirectory: dataPath(config, 'cache'),
    noteFile,
    addedHeaders: v['http.plugin_headers'].map(name => name.toLowerCase()),
    dispatch: (row, args, execution) => dispatch(row, args, execution.context),
    loadModule: id => registry.loadModule(id),
    useModule: id => registry.useModule(id),
    over: (call, outcome) => executionLog.note(call, outcome),
    ended: (call, how) => call.end(how),
    onError: (error, operation) =>
      log.error(
        { error: messageOf(error), operation },
        operation === 'lane' ? 'a plugin thread ended' : 'a host call failed',
      ),
  });
  slots?.attach(executor, id => registry.takesPartInCalls(id));
  registry.onModulesRemoved = () => executor.giveUpMemory();
  // Threads take longest to start: they load while the plugins are read.
  executor.start();
  return {
    executor,
    memory,
    async close() {
      slots?.close();
      await executor.close();
    },
  };
}
