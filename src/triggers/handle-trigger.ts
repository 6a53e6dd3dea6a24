import type { ExecutionOutcome } from '../abi/execution-outcome.ts';
import { ENTRY } from '../abi/shared-layout.ts';
import { ServiceError, tooLarge } from '../errors.ts';
import type { Execution } from '../execution/execute.ts';
import type { ExecutionRecords } from '../executions/execution-records.ts';
import type { Quarantine } from '../executions/quarantine.ts';
import type { HostCall } from '../host/host-functions.ts';
import type { TriggerExchange } from '../message.ts';
import type { InstalledTrigger, PluginRegistry } from '../plugins/registry.ts';
import { corsHeaders, isPreflight, preflightHeaders } from './cors.ts';
import { refusalOf } from './outcome-reply.ts';
import { decideAccess } from './trigger-access.ts';
import { httpEvent } from './trigger-event.ts';

export const TRIGGER_PREFIX = '/api/triggers/http/';
const LOGIN_PATH = '/api/auth/idp/start';
const CAUSES_QUARANTINE: ReadonlySet<string> = new Set(['trapped', 'deadline', 'crashed']);

export type TriggerParts = {
  registry: PluginRegistry;
  quarantine: Quarantine;
  records: ExecutionRecords;
  execute(execution: Execution<HostCall>): void;
  timeoutMs: number;
  bodyBytesMax: number;
  /** Time for a body to arrive. */
  bodyMsMax: number;
};

/** A request that may run: its trigger, parameters and CORS headers. */
type Admitted = { target: InstalledTrigger; path: string; params: Record<string, string>; cors: CorsHeaders };
type CorsHeaders = ReadonlyArray<readonly [string, string]>;

/**
 * One request to a plugin's HTTP trigger, from top to bottom: find the trigger, ask who calls and whether they may, start
 * the deadline, execute, reply (service.md 4.1, 5.2; decisions.md 4 and 5).
 *
 * @throws ServiceError for every refusal before the execution; the caller of this function answers it
 */
export function handleTrigger(parts: TriggerParts, x: TriggerExchange): void {
  const admitted = admit(parts, x);
  if (admitted === null) return;
  if (!x.hasBody) {
    run(parts, x, admitted, null);
    return;
  }
  x.collectBody(parts.bodyBytesMax, parts.bodyMsMax, body => {
    try {
      if (!(body instanceof Uint8Array)) throw bodyRefusal(body, parts);
      // While the body came in, the plugin may have been disabled, its access changed or its version switched.
      const now = admit(parts, x);
      if (now !== null) run(parts, x, now, body);
    } catch (error) {
      if (!(error instanceof ServiceError)) throw error;
      x.replyError(error);
    }
  });
}

/** Which trigger, and may the caller? Null when the answer has been given already. */
function admit(parts: TriggerParts, x: TriggerExchange): Admitted | null {
  const slash = x.path.indexOf('/', TRIGGER_PREFIX.length);
  const pluginId = x.path.slice(TRIGGER_PREFIX.length, slash < 0 ? undefined : slash);
  const path = slash < 0 ? '' : x.path.slice(slash);

  // 1. Which trigger? A disabled plugin or trigger looks like one that does not exist.
  const plugin = parts.registry.find(pluginId);
  if (plugin === undefined || !plugin.enabled)
    throw new ServiceError('not_found', `there is no plugin "${pluginId}" with HTTP triggers here`);
  if (isPreflight(x.method, x.headers)) {
    x.replyFlat(204, '', '', preflightHeaders(plugin, path, x.headers));
    return null;
  }
  const match = plugin.routes.match(x.method, path);
  if (match.kind === 'none')
    throw new ServiceError('not_found', `plugin "${pluginId}" has no trigger at "${path || '/'}"`);
  if (match.kind === 'method') {
    const allow = match.allow.join(', ');
    throw new ServiceError('method_not_allowed', `${x.method} is not handled here; allowed: ${allow}`, {
      headers: [['Allow', allow]],
    });
  }
  const { params, target } = match;
  const cors = corsHeaders(target, x.headers.origin);

  // 2. Who calls, and may they?
  const decision = decideAccess(target.settings, 'none');
  if (decision.kind !== 'allow') {
    refuseAccess(x, target, decision.kind === 'refuse' && decision.reason === 'disabled', cors);
    return null;
  }
  const suspended = parts.quarantine.find(pluginId, target.trigger.name, Date.now());
  if (suspended !== undefined) throw suspendedError(suspended.until, cors);
  return { target, path, params, cors };
}

/** Starts the deadline, executes, replies. The body is part of the request, not of the execution. */
function run(
  parts: TriggerParts,
  x: TriggerExchange,
  { cors, params, path, target }: Admitted,
  body: Uint8Array | null,
): void {
  const { plugin, trigger } = target;
  const { headers, method, query, remoteAddr, requestId } = x;
  parts.execute({
    pluginId: plugin.id,
    moduleId: plugin.moduleId,
    entry: ENTRY.handle,
    event: httpEvent(trigger, requestId, parts.timeoutMs, {
      method,
      path,
      query,
      headers,
      remoteAddr,
      params,
      auth: null,
    }),
    body,
    deadline: performance.now() + parts.timeoutMs,
    context: { plugin, requestId, trigger: trigger.name },
    done: outcome => finish(parts, x, target, outcome, cors),
  });
}

function bodyRefusal(why: 'too_large' | 'too_slow', parts: TriggerParts): ServiceError {
  if (why === 'too_large') return tooLarge(parts.bodyBytesMax, 'http.max_body');
  return new ServiceError('request_timeout', `the body did not arrive within ${parts.bodyMsMax} ms`);
}

/** No way in: a browser that navigates is sent to the login, everybody else gets 401 (service.md 5.3.5, 7). */
function refuseAccess(
  x: TriggerExchange,
  t: InstalledTrigger,
  disabled: boolean,
  cors: ReadonlyArray<readonly [string, string]>,
): void {
  if (disabled) throw new ServiceError('not_found', `plugin "${t.plugin.id}" has no trigger at this path`);
  if (isNavigation(x)) {
    const back = encodeURIComponent(x.query === '' ? x.path : `${x.path}?${x.query}`);
    return x.replyFlat(302, '', '', [
      ['Location', `${LOGIN_PATH}?return_to=${back}`],
      ['Cache-Control', 'no-store'],
      ...cors,
    ]);
  }
  throw new ServiceError('unauthorized', 'this trigger needs a login or a token', {
    headers: [['WWW-Authenticate', 'Bearer realm="plugin-host"'], ...cors.map(([n, v]): [string, string] => [n, v])],
  });
}

/** decisions.md 4: `Sec-Fetch-Mode: navigate`, or without that header an Accept that names text/html first. */
function isNavigation(x: TriggerExchange): boolean {
  if (x.method !== 'GET') return false;
  const mode = x.headers['sec-fetch-mode'];
  if (mode !== undefined) return mode === 'navigate';
  return /^\s*text\/html\b/i.test(x.headers.accept ?? '');
}

function suspendedError(until: Date | null, cors: ReadonlyArray<readonly [string, string]>): ServiceError {
  const seconds = until === null ? 600 : Math.max(1, Math.ceil((until.getTime() - Date.now()) / 1000));
  const detail =
    until === null
      ? 'this plugin is suspended until an administrator resumes it'
      : `this trigger failed repeatedly and is suspended for ${seconds} s`;
  return new ServiceError('quarantined', detail, {
    headers: [['Retry-After', String(seconds)], ...cors.map(([n, v]): [string, string] => [n, v])],
  });
}

/** The execution is over: answers, counts strikes, leaves a record. */
function finish(
  parts: TriggerParts,
  x: TriggerExchange,
  t: InstalledTrigger,
  o: ExecutionOutcome,
  cors: ReadonlyArray<readonly [string, string]>,
): void {
  const { plugin, trigger } = t;
  let status: number;
  if (o.kind === 'ok') {
    status = o.status === 0 ? 204 : o.status;
    x.replyFlat(status, o.headers, o.body, cors);
  } else {
    const refusal = refusalOf(o, parts.timeoutMs, cors);
    status = refusal.status;
    x.replyError(refusal.error);
  }
  const now = Date.now();
  if (o.kind === 'ok') {
    parts.quarantine.succeeded(plugin.id, trigger.name);
    const keep = o.log.some(l => l.level === 3) || parts.records.wants(plugin.id, trigger.name, now);
    if (!keep) return;
  } else if (CAUSES_QUARANTINE.has(o.kind)) {
    parts.quarantine.failed(plugin.id, trigger.name, `${o.kind}: ${o.failure.split('\n')[0] ?? ''}`, now);
  }
  parts.records.append({
    requestId: x.requestId,
    traceId: x.traceId,
    pluginId: plugin.id,
    version: plugin.version,
    trigger: trigger.name,
    principal: 'public',
    outcome: o.kind,
    status,
    startedAt: new Date(now - o.queueWaitMs - o.runMs),
    queueWaitMs: o.queueWaitMs,
    runMs: o.runMs,
    hostCalls: o.hostCalls,
    peakPages: o.peakPages,
    failure: o.failure,
    log: o.log,
  });
}
