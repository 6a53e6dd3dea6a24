import { setTimeout as sleep } from 'node:timers/promises';
import type { ExecutionOutcome } from '../abi/execution-outcome.ts';
import type { Route } from '../api/contract/route.ts';
import { assertLimits } from '../base/limits.ts';
import type { Log } from '../base/log.ts';
import type { Metric } from '../base/metric.ts';
import { runPeriodically } from '../base/periodic.ts';
import type { Config } from '../config/load.ts';
import type { Executor } from '../execution/execute.ts';
import type { MemoryBudget } from '../execution/memory-budget.ts';
import type { HostCall, HostHandler } from '../host/host-functions.ts';
import type { Server } from '../http/server.ts';
import type { FrontendInstaller } from '../plugins/frontend-install.ts';
import type { PluginInstaller } from '../plugins/install.ts';
import type { PluginRegistry } from '../plugins/registry.ts';
import type { StrikeMessage } from '../records/strikes.ts';
import { type Suspect, suspendSuspects } from '../records/suspects.ts';
import { composeAudit } from './audit.ts';
import { type Authz, composeAuthz } from './authz.ts';
import { type Core, openCore } from './core.ts';
import { composeEvents } from './events.ts';
import { composeExecution, type Execution } from './execution.ts';
import { attentionOf, type Feature, listenersOf } from './feature.ts';
import { composeFiles } from './files.ts';
import { composeFrontEnd, type FrontEnd } from './front-end.ts';
import { composeFrontends } from './frontends.ts';
import { composeHosts } from './hosts.ts';
import { composeIdentity } from './identity.ts';
import { composeInstallation, type Trials } from './installation.ts';
import { composeMail } from './mail.ts';
import { composeMessengers } from './messengers.ts';
import { metricsOf } from './metrics.ts';
import { composePluginIo } from './plugin-io.ts';
import { composePlugins } from './plugins.ts';
import { composeRecords } from './records.ts';
import { confirmSecretKey } from './secrets.ts';
import { settle } from './settle.ts';
import { alone, type Siblings, shareOf } from './siblings.ts';
import { composeUniversity } from './university.ts';

export type ServiceOptions = {
  config: Config;
  log: Log;
  setupToken: string;
  /** File in which lanes note the plugin version they run, or null. */
  noteFile: string | null;
  /** Versions that were running whenever the serving process crashed; they are suspended. */
  suspects: readonly Suspect[];
  /** Directory of the built administration pages; null where they are not built. */
  pages: string | null;
  /** What has to be installed before the service listens. */
  prepare?(installer: PluginInstaller, registry: PluginRegistry): Promise<void>;
  /** Told which embedded graph store is asked now. */
  graphInUse?(endpoint: string): void;
  /** The other serving processes of this host; left out: there are none. */
  siblings?: Siblings;
  /** Another process serves on the port meanwhile: clients come to this one when it takes over. */
  replaces?: boolean;
  /** Set by `plugin dev` alone. */
  development?: Development;
};

/** What an author's own service does differently: it is alone, trusts the one plugin it runs, and shows each execution. */
export type Development = {
  /** Stand in for the processes that try an upload. */
  trials: Trials;
  executed(call: HostCall, outcome: ExecutionOutcome): void;
  /** Address of what listens before the service; null before it is known. */
  base(): string | null;
};

export type Service = {
  readonly server: Server;
  /** All rows of the API; triggers are handled separately. */
  readonly routes: readonly Route[];
  readonly installer: PluginInstaller;
  readonly frontends: FrontendInstaller;
  readonly registry: PluginRegistry;
  readonly executor: Executor<HostCall>;
  /** Whether there is no administrator yet (docs/identity.md "Setup mode"). */
  inSetupMode(): Promise<boolean>;
  readonly authz: Authz;
  /** An embedded graph store came up, empty. */
  useEmbeddedGraph(endpoint: string): void;
  readonly memory: MemoryBudget;
  /** What all features count and measure. */
  metrics(): Promise<Metric[]>;
  /** Resolves when this process acts on what was changed before the call. */
  heard(): Promise<boolean>;
  /** Another process counted a failed execution, or forgot those of a caller. */
  hearStrike(message: StrikeMessage): void;
  /** Resolves when what follows the start is done. */
  settled(): Promise<void>;
  /** This process takes the place of another one: new connections come to it. */
  takeOver(): void;
  /**
   * Another process has taken this one's place on the port: takes no new connections, and answers on those that are open until their
   * clients have closed them.
   */
  handOver(): Promise<void>;
  /**
   * Ends everything in order: no new requests, running executions finish, records are written.
   *
   * @param graceMs longest time for what is under way
   * @param delayMs for how long requests are still taken, while the service says that it is draining
   */
  stop(graceMs: number, delayMs?: number): Promise<void>;
};

/** The job queue; it ends after the features whose jobs it runs, and before those the jobs need. */
const jobsFeature = ({ jobs }: Core, features: readonly Feature[]): Feature => ({
  start: () => jobs.start(features.flatMap(f => f.jobs ?? [])),
  close: () => jobs.close(),
});

/** Starts what features repeat. @returns ends the service, once, and backwards */
function makeStop(
  core: Core,
  features: readonly Feature[],
  frontEnd: FrontEnd,
  { executor }: Execution,
): Service['stop'] {
  const repeated = features.flatMap(f => f.repeated ?? []);
  const ends = repeated.map(r => runPeriodically(r.everyMs, core.log, r.what, r.run));
  const underWay = () => ({ executions: executor.inFlight, connections: frontEnd.connections() });
  const stop = async (graceMs: number, delayMs: number): Promise<void> => {
    if (delayMs > 0) {
      for (const feature of features) feature.leave?.();
      core.log.info({ delay_ms: delayMs, ...underWay() }, 'draining: requests are still taken');
      frontEnd.leave(delayMs);
      await sleep(delayMs);
    }
    frontEnd.drain();
    for (const feature of features) feature.drain?.();
    core.log.info(underWay(), 'draining: what is under way ends');
    const grace = sleep(graceMs, 'late' as const, { ref: false });
    const ended = await Promise.race([Promise.all([executor.drain(), frontEnd.server.answered()]), grace]);
    if (ended === 'late') core.log.warn({ grace_ms: graceMs, ...underWay() }, 'what is still under way is cut off');
    frontEnd.close();
    for (const end of ends) await end();
    for (const feature of features.toReversed()) await feature.close?.();
    await core.close();
  };
  let stopped: Promise<void> | null = null;
  return (graceMs, delayMs = 0) => {
    stopped ??= stop(graceMs, delayMs);
    return stopped;
  };
}

/** Builds every feature once, in dependency order, and starts the service. */
export async function startService(options: ServiceOptions): Promise<Service> {
  assertLimits();
  const { log, siblings = alone() } = options;
  const config = shareOf(options.config, siblings.processes);
  const core = await openCore(config, log, options.development ?? null);
  const features: Feature[] = [];
  const add = <F extends Feature>(feature: F): F => {
    features.push(feature);
    return feature;
  };

  const records = add(composeRecords(core, siblings));
  const plugins = add(composePlugins(core));
  const identity = add(composeIdentity(core, { ...plugins, setupToken: options.setupToken, pages: options.pages }));
  const inUse = (endpoint: string): void => options.graphInUse?.(endpoint);
  const authz = add(composeAuthz(core, { ...plugins, ...records, inUse, hostId: siblings.hostId }));
  const files = add(await composeFiles(core, { ...plugins, ...identity }));
  add(composeMail(core));
  add(jobsFeature(core, features));
  // The executor is built from the host functions, some of which execute.
  const execute: Execution['execute'] = e => execution.execute(e);
  add(composePluginIo(core, { ...plugins, ...records, execute }));
  const { commandAccess, graph, schema } = authz;
  const talks = { ...plugins, ...records, ...identity, files: files.files, graph, access: commandAccess, execute };
  add(composeMessengers(core, talks));
  add(composeEvents(core));
  const hostFunctions: Record<string, HostHandler> = Object.assign({}, ...features.map(f => f.hostFunctions));
  const { development: { executed, trials } = {}, noteFile } = options;
  const runs = { hostFunctions, noteFile, siblings, executed };
  const execution = add(composeExecution(core, { ...plugins, ...records, ...runs }));
  const uploads = { ...plugins, ...records, ...execution, schema, trials };
  const { frontends, installer } = add(await composeInstallation(core, uploads));
  add(composeUniversity(core));
  add(composeFrontends(core, { ...plugins, ...identity, fileOrigins: files.origins }));
  add(composeAudit(core));
  const connections = (): number => frontEnd.connections();
  add(composeHosts(core, { ...execution, siblings, features, connections, graph, wholeConfig: options.config }));

  const onGap = (): void => core.db.distrustConnections();
  await core.changes.start({ url: config.values['database.url'], ...listenersOf(features), onGap, log });
  await confirmSecretKey(core.db, core.secretKey);
  await suspendSuspects(core.db, records.quarantine, options.suspects);
  await options.prepare?.(installer, plugins.registry);
  const routes = features.flatMap(f => f.routes ?? []);
  const frontEnd: FrontEnd = await composeFrontEnd(core, {
    ...{ ...plugins, ...records, ...identity, ...authz, ...execution, storeHealth: files.storeHealth },
    ...{ routes, siblings, replaces: options.replaces === true, attention: () => attentionOf(features) },
  });
  for (const feature of features) feature.start?.();
  return {
    server: frontEnd.server,
    routes: frontEnd.routes,
    ...{ installer, frontends, registry: plugins.registry },
    executor: execution.executor,
    authz,
    memory: execution.memory,
    metrics: () => metricsOf(core, [...features, frontEnd]),
    heard: () => core.changes.heard(),
    useEmbeddedGraph: endpoint => authz.useEmbedded(endpoint),
    hearStrike: message => records.quarantine.hearStrike(message),
    settled: () => settle(() => execution.executor.lanesRunning >= config.values['execution.lanes']),
    takeOver: () => frontEnd.takeOver(),
    handOver() {
      for (const feature of features) feature.drain?.();
      return frontEnd.handOver();
    },
    inSetupMode: () => identity.guards.inSetupMode(),
    stop: makeStop(core, features, frontEnd, execution),
  };
}
