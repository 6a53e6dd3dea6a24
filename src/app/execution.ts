import type { ExecutionOutcome } from '../abi/execution-outcome.ts';
import { messageOf } from '../base/errors.ts';
import { counter, gauge, type Metric } from '../base/metric.ts';
import { dataPath } from '../config/load.ts';
import { Executor } from '../execution/execute.ts';
import { MemoryBudget } from '../execution/memory-budget.ts';
import { EVERY_SLOT } from '../execution/slot-leases.ts';
import { type HostCall, type HostHandler, makeDispatch } from '../host/host-functions.ts';
import { ExecutionCounts } from '../records/execution-counts.ts';
import type { Core } from './core.ts';
import type { Feature } from './feature.ts';
import type { Plugins } from './plugins.ts';
import type { Records } from './records.ts';
import type { Siblings } from './siblings.ts';
import { tracedExecutions } from './traced-executions.ts';

export type Execution = Feature & {
  executor: Executor<HostCall>;
  /** Admits one execution; with tracing it gets a span. */
  execute: Executor<HostCall>['execute'];
  memory: MemoryBudget;
};

export type ExecutionParts = Pick<Plugins, 'registry'> &
  Pick<Records, 'executionLog' | 'activity'> & {
    hostFunctions: Record<string, HostHandler>;
    /** File in which lanes note the plugin version they run, or null. */
    noteFile: string | null;
    siblings: Siblings;
    /** Called for each execution that has ended. */
    executed?: ((call: HostCall, outcome: ExecutionOutcome) => void) | undefined;
  };

const hostCallCounts = (calls: ReadonlyMap<string, number>): Metric =>
  counter(
    'plugin_host_host_calls_total',
    'Calls of host functions by plugins.',
    [...calls].map(([name, count]) => [{ function: name }, count]),
  );

/** Starts the threads that run plugins. */
export function composeExecution({ config, log, tracing }: Core, parts: ExecutionParts): Execution {
  const v = config.values;
  const { activity, executed, executionLog, noteFile, registry, siblings } = parts;
  const { processes, slots } = siblings;
  const budget = v['execution.memory_budget_mb'] * 1024 * 1024;
  const memory = new MemoryBudget(budget, processes);
  const dispatch = makeDispatch(parts.hostFunctions);
  // Counting is switched off where nothing reads the counts.
  const counts = v['metrics.port'] === 0 ? null : new ExecutionCounts();
  const calls = counts === null ? null : new Map<string, number>();
  const spans = tracing === null ? null : tracedExecutions(tracing);
  const executor = new Executor<HostCall>({
    lanes: v['execution.lanes'],
    recycle: v['execution.memory'] === 'recycled',
    memory,
    slots: slots ?? EVERY_SLOT,
    processes,
    timeoutMs: v['execution.timeout_ms'],
    cacheDirectory: dataPath(config, 'cache'),
    noteFile,
    dispatch(row, args, execution) {
      calls?.set(row.name, (calls.get(row.name) ?? 0) + 1);
      const call = execution.context;
      if (spans === null && call.recording === null) return dispatch(row, args, call);
      const answer = () => dispatch(row, args, call);
      const traced = spans === null ? answer : () => spans.ofHostCall(row.name, call, answer);
      return call.recording === null ? traced() : call.recording.answer(row.name, args, traced);
    },
    loadModule: id => registry.loadModule(id),
    useModule: id => registry.useModule(id),
    over: (call, outcome) => {
      executionLog.note(call, outcome);
      activity.add(call.plugin?.id ?? '', call.trigger, outcome);
      counts?.add(call.plugin?.id ?? '', call.trigger, outcome);
      executed?.(call, outcome);
    },
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
    execute: e => executor.execute(spans === null ? e : spans.ofExecution(e)),
    memory,
    metrics: () => [
      ...(counts?.metrics() ?? []),
      hostCallCounts(calls ?? new Map()),
      gauge('plugin_host_executions_in_flight', 'Executions that run or wait for a slot.', executor.inFlight),
      gauge('plugin_host_lanes', 'Threads that run plugins.', executor.lanesRunning),
      gauge(
        'plugin_host_memory_budget_bytes',
        'Memory the serving processes may use together; 0: unbounded.',
        budget,
        'max',
      ),
      gauge('plugin_host_plugins', 'Installed plugins.', registry.size, 'max'),
    ],
    async close() {
      slots?.close();
      await executor.close();
    },
  };
}
