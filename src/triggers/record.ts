import type { ExecutionOutcome } from '../abi/execution-outcome.ts';
import type { PolicyVerdict } from '../authz/policies.ts';
import type { ExecutionRecords } from '../executions/execution-records.ts';
import type { Principal } from '../identity/principals.ts';
import type { TriggerExchange } from '../message.ts';
import type { InstalledTrigger } from '../plugins/registry.ts';

/** Who asked, what the policy said, and what was answered. */
type Answered = { status: number; principal: Principal | null; verdict: PolicyVerdict | null };

function common(x: TriggerExchange, { plugin, trigger }: InstalledTrigger, { principal, status, verdict }: Answered) {
  return {
    requestId: x.requestId,
    traceId: x.traceId,
    pluginId: plugin.id,
    version: plugin.version,
    trigger: trigger.name,
    principal: recordedPrincipal(principal),
    status,
    decision: verdict,
  };
}

function recordedPrincipal(p: Principal | null): string {
  if (p === null) return 'public';
  return p.kind === 'user' ? `user:${p.userId}` : `service:${p.keyId}`;
}

/** Appends the record of an execution that is over (decisions.md 5). */
export function appendExecution(
  records: ExecutionRecords,
  x: TriggerExchange,
  t: InstalledTrigger,
  a: Answered & { outcome: ExecutionOutcome },
  nowMs: number,
): void {
  const o = a.outcome;
  records.append({
    ...common(x, t, a),
    outcome: o.kind,
    startedAt: new Date(nowMs - o.queueWaitMs - o.runMs),
    queueWaitMs: o.queueWaitMs,
    runMs: o.runMs,
    hostCalls: o.hostCalls,
    peakPages: o.peakPages,
    failure: o.failure,
    log: o.log,
  });
}

/** A caller whom a policy turned away leaves a record too, a few in a second: it says why. */
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
    outcome: 'refused',
    startedAt: new Date(nowMs),
    queueWaitMs: 0,
    runMs: 0,
    hostCalls: 0,
    peakPages: 0,
    failure: a.verdict.reason,
    log: [],
  });
}
