import { setTimeout as sleep } from 'node:timers/promises';
import type { Route } from '../api/contract/route.ts';
import { makeRouter } from '../api/contract/router.ts';
import { docsRoutes } from '../api/document/docs-api.ts';
import { type Attention, attentionRoutes } from '../api/operation/attention-api.ts';
import { failedChecks, HEALTH_PATHS, type HealthCheck, healthRoutes } from '../api/operation/health-api.ts';
import { AddressRanges } from '../base/address-ranges.ts';
import { fullDiskOf } from '../base/disk-space.ts';
import { messageOf, ServiceError } from '../base/errors.ts';
import type { Log } from '../base/log.ts';
import { gauge, type Metric } from '../base/metric.ts';
import { Seldom } from '../base/seldom.ts';
import { serviceVersion } from '../base/version.ts';
import { type Config, isHttpsOnly, publicBaseOf } from '../config/load.ts';
import { durationMs } from '../config/values.ts';
import { AnswerCounts } from '../http/answer-counts.ts';
import { makeClientAddress } from '../http/client-address.ts';
import type { Connections } from '../http/connections.ts';
import { takeOverShare } from '../http/door.ts';
import type { Exchange } from '../http/exchange.ts';
import { type Server, type ServerParts, startServer } from '../http/server.ts';
import { steerConnections } from '../http/steer-connections.ts';
import { checkTlsFiles, type TlsFiles } from '../http/tls-files.ts';
import { handleTrigger, TRIGGER_PREFIX } from '../triggers/handle-trigger.ts';
import type { Authz } from './authz.ts';
import type { Core } from './core.ts';
import type { Execution } from './execution.ts';
import type { ComposedFiles } from './files.ts';
import { watchHealth } from './health.ts';
import type { Identity } from './identity.ts';
import { composeConnections, composeIntake } from './intake.ts';
import type { Plugins } from './plugins.ts';
import type { Records } from './records.ts';
import type { Siblings } from './siblings.ts';

export type FrontEnd = {
  server: Server;
  /** All rows of the API; triggers are handled separately. */
  routes: readonly Route[];
  /** Open connections of clients. */
  connections(): number;
  metrics(): Metric[];
  /** Says "draining" from now on, answers all requests, and closes each connection behind its answer within a time. */
  leave(ms: number): void;
  /** Requests of the API are answered 503 from now on; no new connections. */
  drain(): void;
  /** Leads new connections to this process, which began to listen last. */
  takeOver(): void;
  /**
   * Leads new connections to the process that began to listen last, and closes each of its own behind its next answer. Resolves when all are
   * closed, which the library does with idle ones after ten seconds.
   */
  handOver(): Promise<void>;
  close(): void;
};

export type FrontEndParts = Pick<Plugins, 'registry' | 'origins'> &
  Pick<Records, 'records' | 'quarantine'> &
  Pick<Identity, 'guards' | 'hasLogin' | 'hostBearer' | 'principals'> &
  Pick<Authz, 'graph' | 'policies'> &
  Pick<Execution, 'execute'> &
  Pick<ComposedFiles, 'storeHealth'> & {
    routes: readonly Route[];
    /** Collects the things of features that wait for an administrator. */
    attention(): Promise<readonly Attention[]>;
    siblings: Siblings;
    /** Another process listens on the port meanwhile, and new connections go there until `takeOver`. */
    replaces: boolean;
  };

function logUnknown(log: Log, error: unknown, x: Exchange): void {
  log.error(
    {
      error: messageOf(error),
      stack: error instanceof Error ? error.stack : undefined,
      request_id: x.requestId,
      ...(x.traceId === '' ? {} : { trace_id: x.traceId }),
      path: x.path,
    },
    fullDiskOf(error) === null ? 'request failed' : `${fullDiskOf(error)} is full`,
  );
}

const ANSWERS_CUT = 'connections are closed whose clients do not take their answers: too much waits for them';

/** What the server tells the log. */
function toldTo(log: Log): Pick<ServerParts, 'onUnknownError' | 'onAnswersCut'> {
  const seldom = new Seldom();
  return {
    onUnknownError: (error, x) => logUnknown(log, error, x),
    onAnswersCut: () => seldom.line('answers', more => log.warn(more, ANSWERS_CUT)),
  };
}

const takeOverMsOf = ({ values }: Config): number => durationMs(values['serving.take_over']);
/** In how many steps new connections are led to the process that takes over. */
const TAKE_OVER_STEPS = 24;

/** @param ms within which all clients come; 0: at once */
async function takeOver(server: Server, newest: number, ms: number): Promise<void> {
  for (let step = 0; ms > 0 && step < TAKE_OVER_STEPS; step++) {
    if (!steerConnections(server.port, newest, takeOverShare(step / TAKE_OVER_STEPS))) return;
    await sleep(ms / TAKE_OVER_STEPS);
  }
  steerConnections(server.port, newest);
}

/** How often a process that hands its clients over looks whether they have left. */
const HAND_OVER_LOOK_MS = 20;
/** When connections that were being made before they were led elsewhere have come, and how long they are waited for. */
const HAND_OVER_QUIET_MS = 200;
const HAND_OVER_QUIET_MS_MAX = 2000;

/** @param newest number of the socket of the process that takes over (`steer-connections`) */
async function handOver(server: Server, connections: Connections, newest: number, ms: number): Promise<void> {
  server.closeDoor(ms, connections.open);
  await sleep(ms);
  if (steerConnections(server.port, newest)) {
    const until = performance.now() + HAND_OVER_QUIET_MS_MAX;
    for (let taken = -1; taken !== connections.taken && performance.now() < until; ) {
      taken = connections.taken;
      await sleep(HAND_OVER_QUIET_MS);
    }
  }
  server.stopListening();
  while (connections.open > 0) await sleep(HAND_OVER_LOOK_MS);
}

const EXPIRES_SOON_MS = 14 * 24 * 3_600_000;

/** The files of the certificate, looked at; null without TLS. @throws OperatorError that names what cannot be used */
function tlsOf({ values: v }: Config, log: Log): TlsFiles | null {
  const files = { cert: v['http.tls.cert'], key: v['http.tls.key'] };
  if (files.cert === '') return null;
  const expiresAt = checkTlsFiles(files);
  if (expiresAt.getTime() < Date.now() + EXPIRES_SOON_MS)
    log.warn({ expires_at: expiresAt, file: files.cert }, 'the certificate has expired or expires within 14 days');
  return files;
}

const ABOUT = { version: serviceVersion(), startedAt: new Date(Date.now() - process.uptime() * 1000) };
const NOT_BOUNDED = 'the receive buffers of connections could not be bounded: a fast upload may hold up others';
const NOT_KEPT = 'the answer of a request with an Idempotency-Key could not be kept';

const metricsOf = (connections: Connections, counts: AnswerCounts | null, health: () => Metric[]): Metric[] => [
  ...health(),
  gauge('plugin_host_connections', 'Open connections of clients.', connections.open),
  ...(counts?.metrics() ?? []),
];

/** Traces of requests, and whose trace context counts for them. */
function tracingOf({ config, tracing }: Core) {
  const trusted = new AddressRanges(config.values['tracing.trust']);
  return { tracing, trustsTraceOf: (peer: string) => trusted.includes(peer) };
}

/** The waits of a change before it is answered. */
const barrierOf = ({ changes }: Core, siblings: Siblings) => ({
  isCurrent: () => changes.isCurrent(),
  becomesCurrent: () => changes.becomesCurrent(),
  heard: async () => (await Promise.all([changes.heard(), siblings.heard()])).every(came => came),
});

/** What the checks of `/readyz` find wrong. */
const attentionOf = async (checks: readonly HealthCheck[]): Promise<Attention[]> =>
  (await failedChecks(checks)).map(({ name, needed, problem }) => ({
    kind: 'check_failed',
    plugin: null,
    severity: needed ? 'bad' : 'warn',
    count: 1,
    check: name,
    detail: problem,
    since: null,
  }));

/** Listens. From here on the service answers. @throws Error when the port is taken */
export async function composeFrontEnd(core: Core, parts: FrontEndParts): Promise<FrontEnd> {
  const { changes, config, db, log, secretKey } = core;
  const { guards, origins } = parts;
  const v = config.values;
  let state: 'starting' | 'ready' | 'draining' = 'starting';
  let isRefusing = false;
  const { checks, health } = watchHealth(core, parts);
  const routes = [
    ...healthRoutes({ state: () => state, checks, guards, about: ABOUT }),
    ...attentionRoutes({ look: async () => (await Promise.all([attentionOf(checks), parts.attention()])).flat() }),
    ...[...docsRoutes(), ...parts.routes],
  ];
  const route = makeRouter(
    { db, secretKey, report: error => log.warn({ error: messageOf(error) }, NOT_KEPT) },
    routes,
    guards,
    barrierOf(core, parts.siblings),
  );
  const triggerParts = {
    ...parts,
    changes,
    timeoutMs: v['execution.timeout_ms'],
    bodyBytesMax: v['http.max_body'],
  };
  const [intake, counts] = [composeIntake(config), v['metrics.port'] === 0 ? null : new AnswerCounts()];
  const connections = composeConnections(config, log, parts.siblings.processes);
  const server = await startServer(v['http.host'], v['http.port'], {
    triggerPrefix: TRIGGER_PREFIX,
    clientAddress: makeClientAddress(v['http.trusted_proxies']),
    intake,
    connections,
    tls: tlsOf(config, log),
    counts,
    ...tracingOf(core),
    isHttpsOnly: isHttpsOnly(publicBaseOf(config, v['http.port'])),
    handleTrigger: x => handleTrigger(triggerParts, x),
    async handleRoute(x) {
      if (isRefusing && !HEALTH_PATHS.has(x.path))
        throw new ServiceError('draining', 'the host is shutting down', { headers: [['Retry-After', '2']] });
      origins?.checkPath(x.headers.host, x.path);
      await route(x);
    },
    ...toldTo(log),
  });
  core.port = server.port;
  if (parts.replaces) steerConnections(server.port, parts.siblings.processes, 0);
  if (!server.bounded) log.warn({ reason: server.unboundedBecause }, NOT_BOUNDED);
  state = 'ready';
  return {
    server,
    routes,
    connections: () => connections.open,
    metrics: () => metricsOf(connections, counts, health),
    takeOver: () => void takeOver(server, parts.siblings.processes, takeOverMsOf(config)),
    handOver: () => handOver(server, connections, parts.siblings.processes, takeOverMsOf(config)),
    leave(ms) {
      state = 'draining';
      server.closeDoor(ms, connections.open);
    },
    drain() {
      state = 'draining';
      isRefusing = true;
      server.stopListening();
    },
    close() {
      server.close();
      intake.close();
    },
  };
}
