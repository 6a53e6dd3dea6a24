import { performance } from 'node:perf_hooks';
import type { ExecutionOutcome } from '../abi/execution-outcome.ts';
import { withoutSandbox } from '../abi/response-headers.ts';
import { ENTRY } from '../abi/shared-layout.ts';
import type { Policies, PolicyVerdict } from '../authz/policies.ts';
import { decideAccess, effectiveAccess } from '../authz/trigger-access.ts';
import { callerKey } from '../base/caller-key.ts';
import { errorCodeOf, notCurrent, ServiceError, STATUS_OF } from '../base/errors.ts';
import { authOf } from '../base/principal.ts';
import { traced } from '../base/tracing.ts';
import type { PluginOrigins } from '../config/plugin-origins.ts';
import type { ChangeStatus } from '../db/notifications.ts';
import type { Execution } from '../execution/execute.ts';
import { HostCall } from '../host/host-functions.ts';
import { asPrivate } from '../http/header-block.ts';
import { isFromOrigins, type TriggerExchange } from '../http/message.ts';
import { type Authenticated, countsAt, credentialOf, mayCall, type Principals } from '../identity/principals.ts';
import type { InstalledTrigger, PluginRegistry } from '../plugins/registry.ts';
import type { ExecutionRecords } from '../records/execution-records.ts';
import type { Quarantine } from '../records/quarantine.ts';
import type { Recording } from '../records/recording.ts';
import type { Suspension } from '../records/suspension.ts';
import { corsHeaders, isPreflight, preflightHeaders, refusalHeaders } from './cors.ts';
import { outcomeReply } from './outcome-reply.ts';
import { appendExecution, appendRefusal, recordingOf } from './record.ts';
import { refuseUnknown } from './refuse-unknown.ts';
import { httpEvent } from './trigger-event.ts';

export const TRIGGER_PREFIX = '/api/triggers/http/';
const NO_CALLERS: readonly string[] = [];

export type TriggerParts = {
  /** While this host does not know the changes of other hosts, only public triggers are served. */
  changes: ChangeStatus;
  registry: PluginRegistry;
  /** Origins of plugins; null when all share the origin of the service. */
  origins: PluginOrigins | null;
  quarantine: Quarantine;
  principals: Principals;
  policies: Policies;
  /** Matches an `Authorization` header with a token or key of this host (`hostBearerOf`). */
  hostBearer: RegExp;
  /** Whether users may log in with an identity provider. */
  hasLogin: boolean;
  records: ExecutionRecords;
  execute(execution: Execution<HostCall>): void;
  timeoutMs: number;
  bodyBytesMax: number;
};

/** The requested trigger, with its parameters and CORS headers. */
type Found = {
  target: InstalledTrigger;
  path: string;
  params: Record<string, string>;
  cors: CorsHeaders;
  /** The plugin whose own origin was requested; null for the origin of the service. */
  place: string | null;
};
type CorsHeaders = ReadonlyArray<readonly [string, string]>;
type Body = Uint8Array | Error;
/** A caller with access: the principal, the key it is counted under, and the policy verdict, if there is a policy. */
type Admitted = { principal: Authenticated | null; caller: string; verdict: PolicyVerdict | null };

/**
 * Handles one request to a plugin's HTTP trigger, from top to bottom: find the trigger, identify the caller, decide
 * access, start the deadline, execute, reply (docs/access.md "The decision", docs/access.md "Browsers", docs/plugins.md
 * "Executions").
 *
 * @returns a promise only if the database or the graph must be asked, or a body is received
 * @throws ServiceError for every refusal before the execution; the calling function sends it
 */
export function handleTrigger(parts: TriggerParts, x: TriggerExchange): undefined | Promise<void> {
  const found = find(parts, x);
  if (found === null) return undefined;
  const admitted = decide(parts, x, found);
  return admitted instanceof Promise ? enterLater(parts, x, found, admitted) : enter(parts, x, found, admitted);
}

/** 1. Finds the trigger; a disabled one looks like one that does not exist. Null: an answer was already sent. */
function find(parts: TriggerParts, x: TriggerExchange): Found | null {
  const slash = x.path.indexOf('/', TRIGGER_PREFIX.length);
  const pluginId = x.path.slice(TRIGGER_PREFIX.length, slash < 0 ? undefined : slash);
  const path = slash < 0 ? '' : x.path.slice(slash);
  const plugin = parts.registry.find(pluginId);
  if (plugin === undefined || !plugin.enabled)
    throw new ServiceError('not_found', `there is no plugin "${pluginId}" with HTTP triggers here`);
  const place = parts.origins === null ? null : parts.origins.pluginAt(x.headers.host);
  if (place !== null && place !== pluginId)
    throw new ServiceError('not_found', 'this origin belongs to another plugin');
  if (parts.origins !== null && place === null && x.method === 'GET' && x.headers['sec-fetch-mode'] === 'navigate') {
    const query = x.query === '' ? '' : `?${x.query}`;
    x.replyFlat(307, '', '', [['Location', `${parts.origins.originOf(pluginId)}${x.path}${query}`]]);
    return null;
  }
  if (x.headers['service-worker'] !== undefined)
    throw new ServiceError(
      'forbidden',
      'the answer of a trigger cannot be used as a service worker; put the script into the frontend of the plugin',
    );
  if (isPreflight(x.method, x.headers)) {
    x.replyFlat(204, '', '', preflightHeaders(plugin, path, x.headers));
    return null;
  }
  const match = plugin.routes.match(x.method, path);
  if (match.kind === 'none')
    throw new ServiceError('not_found', `plugin "${pluginId}" has no trigger at "${path || '/'}"`).with(
      refusalHeaders(plugin, x.headers.origin),
    );
  if (match.kind === 'method') {
    const allow = match.allow.join(', ');
    throw new ServiceError('method_not_allowed', `${x.method} is not handled here; allowed: ${allow}`, {
      headers: [['Allow', allow]],
    }).with(refusalHeaders(plugin, x.headers.origin));
  }
  const { params, target } = match;
  x.span?.describe(`${x.method} ${TRIGGER_PREFIX}${pluginId}${target.trigger.path}`, {
    'http.route': `${TRIGGER_PREFIX}${pluginId}${target.trigger.path}`,
    'plugin_host.plugin': pluginId,
    'plugin_host.trigger': target.trigger.name,
  });
  if (!target.settings.enabled)
    throw new ServiceError('not_found', `plugin "${pluginId}" has no trigger at this path`).with(
      refusalHeaders(plugin, x.headers.origin),
    );
  return { target, path, params, cors: corsHeaders(target, x.headers.origin), place };
}

/** Identifies the caller and decides access. */
function decide(parts: TriggerParts, x: TriggerExchange, found: Found): Admitted | null | Promise<Admitted | null> {
  const work = (): Admitted | null | Promise<Admitted | null> => {
    const principal = authenticate(parts, x, found);
    if (principal instanceof Promise) return principal.then(p => admit(parts, x, found, p));
    return admit(parts, x, found, principal);
  };
  return x.span === null ? work() : traced(x.span.child('access decision'), errorCodeOf, work);
}

/** 2. Identifies the caller, except on a public trigger. Null: no valid credential. */
function authenticate(
  parts: TriggerParts,
  x: TriggerExchange,
  { cors, target: { settings } }: Found,
): Authenticated | null | Promise<Authenticated | null> {
  if (effectiveAccess(settings) === 'public') return null;
  if (parts.changes.isCurrent()) return identify(parts, x);
  return parts.changes.becomesCurrent().then(current => {
    if (!current) throw notCurrent(cors);
    return identify(parts, x);
  });
}

function identify(parts: TriggerParts, x: TriggerExchange): Authenticated | null | Promise<Authenticated | null> {
  const credential = credentialOf(x.headers);
  if (credential === null) return null;
  const now = Date.now();
  return parts.principals.peek(credential, now) ?? parts.principals.verify(credential, now);
}

/** 3. Decides access. Null: an answer was already sent. */
function admit(
  parts: TriggerParts,
  x: TriggerExchange,
  found: Found,
  identified: Authenticated | null,
): Admitted | null | Promise<Admitted | null> {
  const { cors, place, target } = found;
  const principal = identified !== null && countsAt(identified, place) ? identified : null;
  const { plugin, settings, trigger } = target;
  const decision = decideAccess(settings, principal?.kind ?? 'none');
  if (decision.kind === 'refuse' && decision.reason === 'no_credential') {
    refuseUnknown(x, cors, place, parts.hasLogin);
    return null;
  }
  if (decision.kind === 'refuse') throw forbidden(refusalText(principal), cors);
  if (principal !== null && !mayCall(principal, plugin.id, trigger.name))
    throw forbidden(`this service key has no scope for trigger "${trigger.name}" of plugin "${plugin.id}"`, cors);
  if (principal?.kind === 'user' && principal.via === 'session' && !comesFromHere(x, target))
    throw forbidden('a request with a session cookie must come from this site or from an origin of the plugin', cors);
  const caller = callerKey(principal, x.remoteAddr);
  const suspended = parts.quarantine.find(plugin, trigger.name, caller, Date.now());
  if (suspended !== undefined) throw suspendedError(suspended, cors);
  if (decision.kind === 'allow' || principal === null) return { principal, caller, verdict: null };
  const verdict = parts.policies.decide(settings.policyExpression, principal);
  if (verdict instanceof Promise) return verdict.then(v => applyVerdict(parts, x, found, principal, v));
  return applyVerdict(parts, x, found, principal, verdict);
}

/** Applies the policy verdict: admits the caller, or refuses and appends a record. */
function applyVerdict(
  parts: TriggerParts,
  x: TriggerExchange,
  { cors, target }: Found,
  principal: Authenticated,
  verdict: PolicyVerdict,
): Admitted {
  if (verdict.kind === 'allowed') return { principal, caller: callerKey(principal, x.remoteAddr), verdict };
  const error =
    verdict.kind === 'unavailable'
      ? new ServiceError('unavailable', `access cannot be decided right now: ${verdict.reason}`, {
          headers: [['Retry-After', '1'], ...cors.map(([n, v]): [string, string] => [n, v])],
        })
      : forbidden('the policy of this trigger does not let you in', cors);
  appendRefusal(parts.records, x, target, { status: STATUS_OF[error.code], principal, verdict }, Date.now());
  throw error;
}

/** 4. Receives the body, then runs. */
function enter(
  parts: TriggerParts,
  x: TriggerExchange,
  found: Found,
  admitted: Admitted | null,
): undefined | Promise<void> {
  if (admitted === null) return undefined;
  if (x.hasBody) return bodyOf(parts, x).then(body => runWithBody(parts, x, body));
  run(parts, x, found, admitted, null);
  return undefined;
}

const bodyOf = (parts: TriggerParts, x: TriggerExchange): Promise<Body> =>
  new Promise(resolve => x.collectBody(parts.bodyBytesMax, resolve));

/** Goes on while access is decided asynchronously. Receives the body from the start, or its first bytes are lost. */
async function enterLater(
  parts: TriggerParts,
  x: TriggerExchange,
  found: Found,
  asked: Promise<Admitted | null>,
): Promise<void> {
  const body = x.hasBody ? bodyOf(parts, x) : null;
  const admitted = await asked;
  // A client that has disconnected meanwhile gets no execution.
  if (admitted === null || !x.open) return x.dropBody();
  if (body === null) run(parts, x, found, admitted, null);
  else await runWithBody(parts, x, await body);
}

/** Decides access again: while the body arrived, the plugin may have changed, or the credential been revoked. */
async function runWithBody(parts: TriggerParts, x: TriggerExchange, body: Body): Promise<void> {
  const found = find(parts, x);
  if (found === null) return;
  // A page on another origin reads it only with these headers.
  if (body instanceof ServiceError) throw body.with(found.cors);
  if (body instanceof Error) throw body;
  const admitted = await decide(parts, x, found);
  if (admitted !== null && x.open) run(parts, x, found, admitted, body);
  else x.dropBody();
}

/** 5. Starts the deadline, executes, replies. The time to receive the body does not count. */
function run(parts: TriggerParts, x: TriggerExchange, found: Found, admitted: Admitted, body: Uint8Array | null): void {
  const { params, path, target } = found;
  const { plugin, trigger } = target;
  const { headers, method, query, remoteAddr, requestId } = x;
  const { caller } = admitted;
  const deadline = performance.now() + parts.timeoutMs;
  const event = httpEvent(trigger, requestId, parts.timeoutMs, {
    method,
    path,
    query,
    headers,
    remoteAddr,
    params,
    auth: authOf(admitted.principal),
    hostBearer: parts.hostBearer,
  });
  const recording = target.settings.record ? recordingOf(target, event, body) : null;
  parts.execute({
    pluginId: plugin.id,
    moduleId: plugin.moduleId,
    entry: ENTRY.handle,
    callers: NO_CALLERS,
    caller,
    event,
    body,
    deadline,
    isRecorded: recording !== null,
    context: new HostCall({
      plugin,
      requestId,
      traceId: x.traceId,
      span: x.span,
      trigger: trigger.name,
      kind: 'http',
      principal: admitted.principal,
      caller,
      deadline,
      callers: NO_CALLERS,
      message: null,
      recording,
    }),
    done: outcome => finish(parts, x, found, admitted, outcome, recording),
  });
}

/** CSRF rule of docs/identity.md "Requests of browsers": a cookie counts only from the service's or plugin's pages. */
function comesFromHere(x: TriggerExchange, target: InstalledTrigger): boolean {
  if (x.method === 'GET' || x.method === 'HEAD') return true;
  return isFromOrigins(x.headers, target.origins);
}

const refusalText = (principal: Authenticated | null): string =>
  `this trigger does not accept ${principal?.kind === 'service' ? 'service keys' : 'user sessions and tokens'}`;

function forbidden(detail: string, cors: CorsHeaders): ServiceError {
  return new ServiceError('forbidden', detail, { headers: cors.map(([n, v]): [string, string] => [n, v]) });
}

function suspendedError({ caller, trigger, until }: Suspension, cors: CorsHeaders): ServiceError {
  const seconds = until === null ? 600 : Math.max(1, Math.ceil((until.getTime() - Date.now()) / 1000));
  const what = trigger === '' ? 'this plugin crashed the service' : 'this trigger failed repeatedly';
  const whom = caller === null ? '' : ' for this caller, whose requests made it fail,';
  const detail = `${what} and is suspended${whom} ${until === null ? 'until an administrator resumes it' : `for ${seconds} s`}`;
  return new ServiceError('quarantined', detail, {
    headers: [['Retry-After', String(seconds)], ...cors.map(([n, v]): [string, string] => [n, v])],
  });
}

/** Ends a request after its execution: answers, counts strikes, appends the record. */
function finish(
  parts: TriggerParts,
  x: TriggerExchange,
  { cors, place, target: t }: Found,
  { caller, principal, verdict }: Admitted,
  o: ExecutionOutcome,
  recording: Recording | null,
): void {
  const { plugin, trigger } = t;
  let status: number;
  if (o.kind === 'ok') {
    status = o.status === 0 ? 204 : o.status;
    const headers = plugin.htmlTrusted || place !== null ? withoutSandbox(o.headers) : o.headers;
    x.replyFlat(status, principal === null ? headers : asPrivate(headers), o.body, cors);
  } else {
    const refusal = outcomeReply(o, parts.timeoutMs, cors);
    status = refusal.status;
    x.replyError(refusal.error);
  }
  const now = Date.now();
  parts.quarantine.note(plugin, trigger.name, caller, o, now);
  if (o.kind === 'ok') {
    const keep = o.log.some(l => l.level === 3) || parts.records.wants(t, now);
    if (!keep) return;
  }
  appendExecution(parts.records, x, t, { outcome: o, status, principal, verdict, recording }, now);
}
