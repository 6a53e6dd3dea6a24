import { ENTRY } from '../abi/shared-layout.ts';
import type { Executor } from '../execution/execute.ts';
import { HostCall } from '../host/host-functions.ts';
import type { Runnable } from '../plugins/plugin-store.ts';
import { refusal } from '../plugins/prepare-runnable.ts';
import type { PluginRegistry } from '../plugins/registry.ts';

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
            else
              reject(
                refusal([
                  { level: 'refusal', rule: 'manifest', message: `plugin_describe failed: ${o.kind} ${o.failure}` },
                ]),
              );
          },
        });
      });
    } finally {
      takeBack();
    }
  };
}
