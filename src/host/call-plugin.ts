import { Buffer } from 'node:buffer';
import type { ExecutionOutcome, OutcomeKind } from '../abi/execution-outcome.ts';
import { HOST_ERROR, type HostErrorCode } from '../abi/host-functions.ts';
import { type HostResult, hostError } from '../abi/host-result.ts';
import { LIMITS } from '../base/limits.ts';
import { authOf } from '../base/principal.ts';
import type { InstalledPlugin } from '../plugins/registry.ts';
import { HostCall, type HostHandler } from './host-functions.ts';

/**
 * Calls of one plugin by another (permission `plugins:call:<target>`, docs/abi.md `plugin_call`, docs/plugins.md
 * "Executions").
 */

/** An execution of the target, as the executor takes it. */
export type NestedExecution = {
  plugin: InstalledPlugin;
  event: string;
  body: Uint8Array;
  deadline: number;
  /** The plugins that wait for it, outermost first. */
  callers: readonly string[];
  caller: string;
  context: HostCall;
  done(outcome: ExecutionOutcome): void;
};

export type CallPluginParts = {
  find(id: string): InstalledPlugin | undefined;
  execute(execution: NestedExecution): void;
  /** Called for each ended call, for its record; only for the first few failed calls of one execution. */
  ended(context: HostCall, outcome: ExecutionOutcome): void;
};

const CODE: Record<Exclude<OutcomeKind, 'ok' | 'handler_error'>, [HostErrorCode, string]> = {
  trapped: [HOST_ERROR.internal, 'crashed'],
  exited: [HOST_ERROR.internal, 'crashed'],
  crashed: [HOST_ERROR.internal, 'crashed'],
  load_failed: [HOST_ERROR.internal, 'cannot be loaded'],
  invalid_response: [HOST_ERROR.internal, 'gave an invalid answer'],
  quota: [HOST_ERROR.internal, 'exceeded a quota'],
  memory_budget: [HOST_ERROR.unavailable, "was stopped because the host's memory budget was used up"],
  no_slot: [HOST_ERROR.unavailable, 'has no slot free'],
  queue_full: [HOST_ERROR.unavailable, 'has no slot free'],
  deadline: [HOST_ERROR.deadline, 'did not answer in time'],
  draining: [HOST_ERROR.unavailable, 'cannot be called: the host is shutting down'],
};

/** The result for the calling plugin. Copies the bytes, because an outcome is valid only until its callback returns. */
function resultOf(target: string, outcome: ExecutionOutcome): HostResult {
  if (outcome.kind === 'ok') {
    const data = Uint8Array.from(outcome.output);
    return { code: data.length, data };
  }
  if (outcome.kind === 'handler_error')
    return hostError(HOST_ERROR.internal, `plugin "${target}" reported: ${outcome.failure}`);
  const [code, text] = CODE[outcome.kind];
  return hostError(code, `plugin "${target}" ${text}`);
}

const FUNCTION = /^[\w.:/-]{1,128}$/;

export function callPluginHandlers(parts: CallPluginParts): Record<'plugin_call', HostHandler> {
  const failures = new WeakMap<HostCall, number>();
  /** Failed calls per execution: a plugin may repeat a call that fails. */
  const isRecorded = (caller: HostCall, { kind }: ExecutionOutcome): boolean => {
    if (kind === 'ok') return true;
    const before = failures.get(caller) ?? 0;
    failures.set(caller, before + 1);
    return before < LIMITS.callFailuresRecorded;
  };
  return {
    plugin_call(call, args) {
      const target = args.text(0);
      const name = args.text(1);
      if (!FUNCTION.test(name))
        return hostError(HOST_ERROR.invalid, 'the name of a function has 1 to 128 letters, digits, _ . : / and -');
      const callers = [...call.callers, call.plugin.id];
      if (callers.includes(target))
        return hostError(HOST_ERROR.conflict, `the call would close a cycle: ${[...callers, target].join(' -> ')}`);
      if (callers.length > LIMITS.callDepthMax)
        return hostError(
          HOST_ERROR.tooLarge,
          `the call is nested deeper than ${LIMITS.callDepthMax} (callDepthMax): ${callers.join(' -> ')}`,
        );
      const plugin = parts.find(target);
      if (plugin === undefined) return hostError(HOST_ERROR.notFound, `there is no plugin "${target}"`);
      if (!plugin.enabled) return hostError(HOST_ERROR.unavailable, `plugin "${target}" is disabled`);
      const leftMs = Math.max(0, Math.floor(call.deadline - performance.now()));
      const context = new HostCall({
        plugin,
        requestId: call.requestId,
        traceId: call.traceId,
        span: call.span,
        trigger: `call:${name}`,
        kind: 'call',
        principal: call.principal,
        caller: call.caller,
        deadline: call.deadline,
        callers,
        message: call.message,
      });
      return new Promise(resolve =>
        parts.execute({
          plugin,
          event: `{"kind":"call","trigger":${JSON.stringify(name)},"request_id":"${call.requestId}","deadline_ms":${leftMs},"call":{"from":"${call.plugin.id}","function":${JSON.stringify(name)},"auth":${JSON.stringify(authOf(call.principal))}}}`,
          body: Buffer.from(args.bytes(2)),
          deadline: call.deadline,
          callers,
          caller: call.caller,
          context,
          done(outcome) {
            if (isRecorded(call, outcome)) parts.ended(context, outcome);
            resolve(resultOf(target, outcome));
          },
        }),
      );
    },
  };
}
