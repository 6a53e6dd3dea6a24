import { docsRoutes } from '../api/docs-api.ts';
import { HEALTH_PATHS, healthRoutes } from '../api/health-api.ts';
import type { Route } from '../api/route.ts';
import { makeRouter } from '../api/router.ts';
import { fullDiskOf, lackOfSpace } from '../base/disk-space.ts';
import { messageOf, ServiceError } from '../base/errors.ts';
import { dataPath } from '../config/load.ts';
import { makeClientAddress } from '../http/client-address.ts';
import { type Server, startServer } from '../http/server.ts';
import { handleTrigger, TRIGGER_PREFIX } from '../triggers/handle-trigger.ts';
import type { Authz } from './authz.ts';
import type { Core } from './core.ts';
import type { Execution } from './execution.ts';
import type { Identity } from './identity.ts';
import { composeConnections, composeIntake } from './intake.ts';
import type { Plugins } from './plugins.ts';
import type { Records } from './records.ts';

export type FrontEnd = {
  server: Server;
  /** All rows of the API; triggers are handled separately. */
  routes: readonly Route[];
  /** Requests of the API are answered 503 from now on; no new connections. */
  drain(): void;
  close(): void;
};

export type FrontEndParts = Pick<Plugins, 'registry' | 'origins'> &
  Pick<Records, 'records' | 'quarantine'> &
  Pick<Identity, 'guards' | 'hasLogin' | 'hostBearer' | 'principals'> &
  Pick<Authz, 'policies'> &
  Pick<Execution, 'executor'> & { routes: readonly Route[] };

/** Listens. From here on the service answers. @throws Error when the port is taken */
export async function composeFrontEnd(core: Core, parts: FrontEndParts): Promise<FrontEnd> {
  const { changes, config, db, log, secretKey } = core;
  const { executor, guards, origins } = parts;
  const v = config.values;
  let state: 'starting' | 'ready' | 'draining' = 'starting';
  const routes = [
    ...healthRoutes({
      state: () => state,
      changes,
      check: async () => void (await db.query('SELECT 1')),
      lackOfSpace: () => lackOfSpace(dataPath(config), v['data.min_free_mb']),
    }),
    ...docsRoutes(),
    ...parts.routes,
  ];
  const report = (error: unknown): void =>
    log.warn({ error: messageOf(error) }, 'the answer of a request with an Idempotency-Key could not be kept');
  const route = makeRouter({ db, secretKey, report }, routes, guards, changes);
  const triggerParts = {
    ...parts,
    changes,
    execute: executor.execute.bind(executor),
    timeoutMs: v['execution.timeout_ms'],
    bodyBytesMax: v['http.max_body'],
  };
  const intake = composeIntake(config);
  const server = await startServer(v['http.host'], v['http.port'], {
    triggerPrefix: TRIGGER_PREFIX,
    clientAddress: makeClientAddress(v['http.trusted_proxies']),
    intake,
    connections: composeConnections(config, log),
    handleTrigger: x => handleTrigger(triggerParts, x),
    async handleRoute(x) {
      if (state === 'draining' && !HEALTH_PATHS.has(x.path))
        throw new ServiceError('draining', 'the host is shutting down', { headers: [['Retry-After', '2']] });
      origins?.checkPath(x.headers.host, x.path);
      await route(x);
    },
    onUnknownError: (error, x) =>
      log.error(
        {
          error: messageOf(error),
          stack: error instanceof Error ? error.stack : undefined,
          request_id: x.requestId,
          ...(x.traceId === '' ? {} : { trace_id: x.traceId }),
          path: x.path,
        },
        fullDiskOf(error) === null ? 'request failed' : `${fullDiskOf(error)} is full`,
      ),
  });
  core.port = server.port;
  if (!server.bounded)
    log.warn(
      { reason: server.unboundedBecause },
      'the receive buffers of connections could not be bounded: a fast upload may hold up others',
    );
  state = 'ready';
  return {
    server,
    routes,
    drain() {
      state = 'draining';
      server.stopListening();
    },
    close() {
      server.close();
      intake.close();
    },
  };
}
