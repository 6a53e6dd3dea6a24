import type { ExecutionOutcome, OutcomeKind } from '../abi/execution-outcome.ts';
import { ENTRY } from '../abi/shared-layout.ts';
import type { ServiceError } from '../base/errors.ts';
import type { Executor } from '../execution/execute.ts';
import { HostCall } from '../host/host-functions.ts';
import type { Runnable } from '../plugins/plugin-store.ts';
import { ModuleRefused } from '../plugins/prepare-runnable.ts';
import type { PluginRegistry } from '../plugins/registry.ts';
import { outcomeReply } from '../triggers/outcome-reply.ts';

/** Ends of an execution that are no fault of its module. */
const HOST_ENDS: ReadonlySet<OutcomeKind> = new Set([
  'no_slot',
  'queue_full',
  'memory_budget',
  'draining',
  'load_failed',
]);

/** Why a module did not describe itself: a refusal of it, or what this host lacks now. */
function reasonOf(o: ExecutionOutcome, timeoutMs: number): ServiceError {
  if (HOST_ENDS.has(o.kind)) return outcomeReply(o, timeoutMs, []).error;
  if (o.kind === 'deadline')
    return new ModuleRefused([
      { level: 'refusal', rule: 'time', message: `plugin_describe took longer than ${timeoutMs} ms` },
    ]);
  return new ModuleRefused([
    { level: 'refusal', rule: 'manifest', message: `plugin_describe failed: ${o.kind} ${o.failure}` },
  ]);
}

/** Runs `plugin_describe` of a module that is not installed: no plugin, so no permission at all (docs/abi.md "Manifest"). */
export function makeDescribe(registry: PluginRegistry, executor: Executor<HostCall>, timeoutMs: number) {
  return async (key: string, runnable: Runnable): Promise<string> => {
    const deadline = performance.now() + timeoutMs;
    const [moduleId, takeBack] = registry.lend(key, runnable);
    try {
      return await new Promise((resolve, reject) => {
        executor.execute({
          pluginId: `describe ${key}`,
          moduleId,
          entry: ENTRY.describe,
          event: '{}',
          body: null,
          callers: [],
          caller: 'upload',
          deadline,
          context: new HostCall({
            plugin: null,
            requestId: key,
            trigger: '',
            kind: 'call',
            principal: null,
            caller: 'upload',
            deadline,
            callers: [],
            message: null,
          }),
          done(o) {
            const text = Buffer.from(o.output).toString();
            if (o.kind === 'ok') resolve(text);
            else reject(reasonOf(o, timeoutMs));
          },
        });
      });
    } finally {
      takeBack();
    }
  };
}
