import { accessRoutes } from '../api/access-api.ts';
import { auditRoutes } from '../api/audit-api.ts';
import { commandRoutes } from '../api/commands-api.ts';
import { executionRoutes } from '../api/executions-api.ts';
import { HEALTH_PATHS, healthRoutes } from '../api/health-api.ts';
import { endJsonThread } from '../api/json-thread.ts';
import { outboxRoutes } from '../api/outbox-api.ts';
import { pluginRoutes } from '../api/plugins-api.ts';
import { policyRoutes } from '../api/policies-api.ts';
import { relationshipRoutes } from '../api/relationships-api.ts';
import { roleRoutes } from '../api/roles-api.ts';
import type { Route } from '../api/route.ts';
import { makeRouter } from '../api/router.ts';
import { triggerRoutes } from '../api/triggers-api.ts';
import { uninstalledRoutes } from '../api/uninstalled-api.ts';
import { fullDiskOf, lackOfSpace } from '../base/disk-space.ts';
import { messageOf, ServiceError } from '../base/errors.ts';
import { assertLimits } from '../base/limits.ts';
import type { Log } from '../base/log.ts';
import { type Config, dataPath, publicBaseOf } from '../config/load.ts';
import { PluginOrigins } from '../config/plugin-origins.ts';
import { durationMs } from '../config/values.ts';
import { isUnavailable, openDatabase } from '../db/database.ts';
import { migrate } from '../db/migrate.ts';
import { ChangeListener, PLUGIN_CHANGED } from '../db/notifications.ts';
import { roleWeakness } from '../db/service-role.ts';
import { Executor } from '../execution/execute.ts';
import { type HostCall, makeDispatch } from '../host/host-functions.ts';
import { kvHandlers } from '../host/kv.ts';
import { makeClientAddress } from '../http/client-address.ts';
import { type Server, startServer } from '../http/server.ts';
import { IDENTITY_CHANGED, parseIdentityChange } from '../identity/identity-changes.ts';
import { Jobs } from '../jobs.ts';
import { outboxSweepJob } from '../outbox/sweep-job.ts';
import { FrontendInstaller } from '../plugins/frontend-install.ts';
import { endIdleThreads } from '../plugins/inspect-thread.ts';
import type { PluginInstaller } from '../plugins/install.ts';
import { openModuleStorage } from '../plugins/module-storage.ts';
import { PluginRegistry } from '../plugins/registry.ts';
import { makeSecretBox } from '../plugins/secret-box.ts';
import { ExecutionLog } from '../records/execution-log.ts';
import { ExecutionRecords } from '../records/execution-records.ts';
import { Quarantine, RESUMED } from '../records/quarantine.ts';
import { type Suspect, suspendSuspects } from '../records/suspects.ts';
import { handleTrigger, TRIGGER_PREFIX } from '../triggers/handle-trigger.ts';
import { type Authz, composeAuthz } from './authz.ts';
import { composeFiles } from './files.ts';
import { composeFrontends } from './frontends.ts';
import { composeIdentity } from './identity.ts';
import { composeInstaller } from './installer.ts';
import { composeConnections, composeIntake } from './intake.ts';
import { composeMail } from './mail.ts';
import { composePluginIo } from './plugin-io.ts';
import { confirmSecretKey, keyPlaceOf, openSecretKey } from './secrets.ts';
import { startSweeps } from './sweeps.ts';
import { composeUniversity } from './university.ts';

export type ServiceOptions = {
  config: Config;
  log: Log;
  setupToken: string;
  /** File in which lanes note the plugin version they run, or null. */
  noteFile: string | null;
  /** Versions that were running whenever the serving process crashed; they are suspended. */
  suspects: readonly Suspect[];
  /** What has to be installed before the service listens. */
  prepare?(installer: PluginInstaller, registry: PluginRegistry): Promise<void>;
  /** Told which embedded graph store is asked now. */
  graphInUse?(endpoint: string): void;
};

export type Service = {
  readonly server: Server;
  /** Every row of the API beside the triggers. */
  readonly routes: readonly Route[];
  readonly installer: PluginInstaller;
  readonly registry: PluginRegistry;
  readonly executor: Executor<HostCall>;
  /** Whether there is no administrator yet (service.md 3.3). */
  inSetupMode(): Promise<boolean>;
  readonly authz: Authz;
  /** An embedded graph store came up, empty. */
  useEmbeddedGraph(endpoint: string): void;
  /** Ends everything in order: no new requests, running executions finish, records are written. */
  stop(graceMs: number): Promise<void>;
};

/** Builds every object once, in dependency order, and starts the service. The only place that knows everything. */
export async function startService(options: ServiceOptions): Promise<Service> {
  assertLimits();
  const { config, log } = options;
  const v = config.values;
  let state: 'starting' | 'ready' | 'draining' = 'starting';

  const db = openDatabase(v['database.url'], v['database.pool_size'], error =>
    log.warn({ error: error.message }, 'a database connection was lost'),
  );
  const applied = await migrate(db);
  if (applied.length > 0) log.info({ applied }, 'database migrated');
  const weakness = await roleWeakness(db);
  if (weakness !== null) log.warn({}, weakness);
  const storage = openModuleStorage(dataPath(config, 'modules'));
  const secretKey = await openSecretKey(db, keyPlaceOf(config));
  const secrets = makeSecretBox(secretKey);
  const pattern = v['plugins.origin'];
  const origins = pattern === '' ? null : new PluginOrigins(pattern, () => registry.ids());
  const registry = new PluginRegistry(db, secrets, storage, id => origins?.originOf(id) ?? null);
  const executionLog = new ExecutionLog(log, v['log.plugins']);
  const quarantine = new Quarantine(db, executionLog.suspended, executionLog.notStored);
  const records = new ExecutionRecords(db, (error, lost) =>
    log.warn({ error: messageOf(error), lost }, 'execution records could not be written yet'),
  );
  /** Address users see; the port is known once we listen. */
  let port = v['http.port'];
  const publicBase = (): string => publicBaseOf(config, port);
  const files = await composeFiles({ db, config, log, secretKey, publicBase });
  const changes = new ChangeListener();
  const authz = composeAuthz({ db, config, log, changes, inUse: endpoint => options.graphInUse?.(endpoint) });
  const pluginIo = composePluginIo({
    ...{ db, config, log, registry, quarantine, records, secrets },
    files: files.files,
    graph: authz.graph,
    access: authz.commandAccess,
    execute: e => executor.execute(e),
    enqueue: (client, queue, data) => jobs.enqueue(client, queue, data),
    wake: queue => jobs.wake(queue),
  });
  const dispatch = makeDispatch({ ...kvHandlers(db), ...files.handlers, ...pluginIo.handlers });
  const executor = new Executor<HostCall>({
    lanes: v['execution.lanes'],
    recycle: v['execution.memory'] === 'recycled',
    memoryBudgetBytes: v['execution.memory_budget_mb'] * 1024 * 1024,
    timeoutMs: v['execution.timeout_ms'],
    cacheDirectory: dataPath(config, 'cache'),
    noteFile: options.noteFile,
    addedHeaders: v['http.plugin_headers'].map(name => name.toLowerCase()),
    dispatch: (row, args, execution) => dispatch(row, args, execution.context),
    loadModule: id => registry.loadModule(id),
    over: (call, outcome) => executionLog.note(call, outcome),
    ended: (call, how) => call.end(how),
    onError: (error, operation) =>
      log.error(
        { error: messageOf(error), operation },
        operation === 'lane' ? 'a plugin thread ended' : 'a host call failed',
      ),
  });

  // Threads take longest to start: they load while the plugins are read.
  executor.start();
  const installer = await composeInstaller({
    ...{ db, storage, registry, secrets, executor, log },
    schema: authz.schema,
    timeoutMs: v['execution.timeout_ms'],
  });
  const identity = composeIdentity({
    ...{ db, config, log, secretKey, secrets, publicBase, changes, registry, origins },
    setupToken: options.setupToken,
  });
  const { guards, principals } = identity;
  const cannotRead = (plugin: string, error: unknown): void =>
    log.error({ plugin, error: messageOf(error) }, 'a plugin cannot be read; it does not run here');
  await changes.start({
    url: v['database.url'],
    channels: [PLUGIN_CHANGED, RESUMED, IDENTITY_CHANGED, ...authz.channels, ...pluginIo.channels],
    async apply(channel, payload) {
      if (pluginIo.channels.includes(channel)) return pluginIo.hear();
      if (channel === RESUMED) return quarantine.hear(payload);
      if (channel === IDENTITY_CHANGED) {
        const change = parseIdentityChange(payload);
        principals.changed(change);
        if (change === null || change.what === 'user') authz.contexts.invalidateUser(change?.id ?? null);
        return;
      }
      if (channel !== PLUGIN_CHANGED) return authz.hear(channel, payload);
      authz.commands.invalidateCommandPolicy(null);
      const reloaded = registry.reload(payload).catch((error: unknown) => {
        if (isUnavailable(error)) throw error;
        // Going on with the version of before could go on with what was revoked.
        registry.drop(payload);
        cannotRead(payload, error);
      });
      await Promise.all([reloaded, quarantine.load()]);
    },
    async readAll() {
      principals.changed(null);
      pluginIo.hear();
      await Promise.all([registry.loadAll(cannotRead), quarantine.load(), authz.readAll()]);
    },
    onGap: () => db.distrustConnections(),
    log,
  });
  await confirmSecretKey(db, secretKey);
  await suspendSuspects(db, quarantine, options.suspects);

  const mail = composeMail({ config, log, db, adminUrl: () => `${publicBase()}/admin/` });
  const university = composeUniversity({ db, config, log });
  const jobs = new Jobs(db, [mail.job, outboxSweepJob(db), ...files.jobs, ...pluginIo.jobs, ...university.jobs], log);

  const keepUninstalledMs = durationMs(v['plugins.keep_uninstalled']);
  const frontends = composeFrontends({
    storage,
    registry,
    principals,
    guards,
    hasLogin: identity.hasLogin,
    pluginOrigins: origins,
    origins: () => [...files.origins, new URL(publicBase()).origin],
  });
  const rows: Route[] = [
    ...healthRoutes({
      state: () => state,
      changes,
      check: async () => void (await db.query('SELECT 1')),
      lackOfSpace: () => lackOfSpace(dataPath(config), v['data.min_free_mb']),
    }),
    ...pluginRoutes({
      db,
      installer,
      frontends: new FrontendInstaller({ db, storage, registry }),
      registry,
      quarantine,
      schema: authz.schema,
      moduleBytesMax: v['http.max_module'],
      frontendBytesMax: v['http.max_frontend'],
    }),
    ...uninstalledRoutes({ db, keepMs: keepUninstalledMs }),
    ...pluginIo.routes({ principals, checkUser: request => guards.check({ guard: 'user' }, request) }),
    ...triggerRoutes({ db, registry, quarantine, schema: authz.schema }),
    ...commandRoutes({ db, registry, schema: authz.schema }),
    ...policyRoutes({ db, ...authz }),
    ...accessRoutes({ db, registry, quarantine, ...authz }),
    ...relationshipRoutes({ db, ...authz }),
    ...outboxRoutes({ db, ...authz }),
    ...roleRoutes({ db, registry, ...authz }),
    ...executionRoutes({ records }),
    ...files.routes({ registry, principals }),
    ...frontends.routes,
    ...identity.routes({ enqueue: (client, queue, data) => jobs.enqueue(client, queue, data) }),
    ...auditRoutes({ db }),
    ...university.routes,
  ];
  const routes = makeRouter(rows, guards, changes);
  const triggerParts = {
    changes,
    hasLogin: identity.hasLogin,
    registry,
    origins,
    quarantine,
    principals,
    hostBearer: identity.hostBearer,
    records,
    policies: authz.policies,
    execute: executor.execute.bind(executor),
    timeoutMs: v['execution.timeout_ms'],
    bodyBytesMax: v['http.max_body'],
  };
  await options.prepare?.(installer, registry);
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
      await routes(x);
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
  port = server.port;
  if (!server.bounded)
    log.warn({}, 'the receive buffers of connections could not be bounded: a fast upload may hold up others');
  state = 'ready';
  jobs.start();
  pluginIo.start();
  authz.start();
  const sweepParts = { db, log, records, installer, storage, keepUninstalledMs, quarantine, executionLog };
  const stopSweeps = startSweeps(sweepParts);

  const stop = async (graceMs: number): Promise<void> => {
    state = 'draining';
    server.stopListening();
    pluginIo.endStreams();
    const grace = new Promise<void>(resolve => setTimeout(resolve, graceMs).unref());
    await Promise.race([Promise.all([executor.drain(), server.answered()]), grace]);
    server.close();
    intake.close();
    await executor.close();
    await stopSweeps();
    // What a job waits for ends first.
    await university.close();
    await pluginIo.close();
    await jobs.close();
    files.close();
    await frontends.close();
    mail.close();
    await authz.close();
    await changes.close();
    await quarantine.close();
    await records.close();
    await identity.close();
    await endIdleThreads();
    await endJsonThread();
    await db.close();
  };
  let stopped: Promise<void> | null = null;
  return {
    server,
    routes: rows,
    installer,
    registry,
    executor,
    authz,
    useEmbeddedGraph: endpoint => authz.useEmbedded(endpoint),
    inSetupMode: () => guards.inSetupMode(),
    stop(graceMs) {
      stopped ??= stop(graceMs);
      return stopped;
    },
  };
}
