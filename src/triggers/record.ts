import type { ExecutionOutcome } from '../abi/execution-outcome.ts';
import type { PolicyVerdict } from '../authz/policies.ts';
import { type Principal, principalText } from '../base/principal.ts';
import type { HostCall } from '../host/host-functions.ts';
import type { TriggerExchange } from '../http/message.ts';
import { configFieldsOf } from '../plugins/manifest.ts';
import type { InstalledPlugin, InstalledTrigger } from '../plugins/registry.ts';
import type { ExecutionRecords } from '../records/execution-records.ts';
import { Recording } from '../records/recording.ts';

/** The principal, the policy verdict and the status of the answer. */
type Answered = { status: number; principal: Principal | null; verdict: PolicyVerdict | null };

function common(x: TriggerExchange, { plugin, trigger }: InstalledTrigger, { principal, status, verdict }: Answered) {
  return {
    requestId: x.requestId,
    traceId: x.traceId,
    pluginId: plugin.id,
    version: plugin.version,
    trigger: trigger.name,
    principal: principalText(principal),
    status,
    decision: verdict,
  };
}

const measured = (o: ExecutionOutcome, nowMs: number) => ({
  outcome: o.kind,
  startedAt: new Date(nowMs - o.queueWaitMs - o.runMs),
  queueWaitMs: o.queueWaitMs,
  runMs: o.runMs,
  hostCalls: o.hostCalls,
  peakPages: o.peakPages,
  failure: o.failure,
  log: o.log,
});

/** Appends the record of an ended execution (docs/plugins.md "Records"). */
export function appendExecution(
  records: ExecutionRecords,
  x: TriggerExchange,
  t: InstalledTrigger,
  a: Answered & { outcome: ExecutionOutcome; recording: Recording | null },
  nowMs: number,
): void {
  const record = { ...common(x, t, a), ...measured(a.outcome, nowMs) };
  records.append(record, a.recording?.ended(a.outcome, a.status));
}

/** The recording of an execution that is about to begin. */
export const recordingOf = (
  { plugin, trigger }: { plugin: InstalledPlugin; trigger: { name: string } },
  event: string,
  body: Uint8Array | null,
): Recording =>
  new Recording({
    plugin,
    trigger: trigger.name,
    secretFields: configFieldsOf(plugin.manifest)
      .filter(f => f.sensitive)
      .map(f => f.name),
    event,
    body,
  });

const commonOfCall = ({ plugin, principal, requestId, traceId, trigger }: HostCall) => ({
  requestId,
  traceId,
  pluginId: plugin?.id ?? '',
  version: plugin?.version ?? '',
  trigger,
  principal: principalText(principal),
  // There is no HTTP response.
  status: 0,
});

/**
 * Appends the record of an execution for another plugin or for a message; of successful ones only a few per second.
 *
 * @param decision the policy decision; null without a policy
 */
export function appendCall(
  records: ExecutionRecords,
  call: HostCall,
  o: ExecutionOutcome,
  decision: object | null,
  nowMs: number,
): void {
  if (call.plugin === null) return;
  if (o.kind === 'ok' && !o.log.some(l => l.level === 3) && !records.wants(call.plugin, nowMs)) return;
  records.append({ ...commonOfCall(call), decision, ...measured(o, nowMs) }, call.recording?.ended(o, 0));
}

/** Appends the record of a refused command, at most a few per second. */
export function appendCommandRefusal(
  records: ExecutionRecords,
  call: HostCall,
  failure: string,
  decision: object,
  nowMs: number,
): void {
  if (call.plugin !== null && records.wants(call.plugin, nowMs))
    records.append({ ...commonOfCall(call), ...unrun(failure, nowMs), decision });
}

const unrun = (failure: string, nowMs: number) => ({
  outcome: 'refused' as const,
  startedAt: new Date(nowMs),
  queueWaitMs: 0,
  runMs: 0,
  hostCalls: 0,
  peakPages: 0,
  failure,
  log: [],
});

/** Appends the record of a caller that a policy refused, with the reason, at most a few per second. */
export function appendRefusal(
  records: ExecutionRecords,
  x: TriggerExchange,
  t: InstalledTrigger,
  a: Answered & { verdict: PolicyVerdict },
  nowMs: number,
): void {
  if (!records.wants(t.settings, nowMs)) return;
  records.append({
    ...common(x, t, a),
    ...unrun(a.verdict.reason, nowMs),
  });
}
