import os from 'node:os';
import type { Attention } from '../api/operation/attention-api.ts';
import { configRoutes } from '../api/operation/config-api.ts';
import { doctorRoutes } from '../api/operation/doctor-api.ts';
import { hostRoutes } from '../api/operation/hosts-api.ts';
import { jobRoutes } from '../api/operation/jobs-api.ts';
import { supportBundleRoutes } from '../api/operation/support-bundle-api.ts';
import { messageOf } from '../base/errors.ts';
import { gauge, type Metric } from '../base/metric.ts';
import { ownResidentBytes } from '../base/resident-bytes.ts';
import { serviceVersion } from '../base/version.ts';
import type { Config } from '../config/load.ts';
import type { Database } from '../db/database.ts';
import { countJobs } from '../db/job-tables.ts';
import type { Graph } from '../graph/graph.ts';
import { BEAT_MS, beat, endBeats, listProcesses, type ProcessLoad } from '../records/host-processes.ts';
import type { Core } from './core.ts';
import type { Check } from './doctor/check.ts';
import type { GraphPing } from './doctor/doctor.ts';
import type { Execution } from './execution.ts';
import type { Feature } from './feature.ts';
import type { Siblings } from './siblings.ts';
import { packSupport } from './support-parts.ts';

/** How long a result is given again. */
const DOCTOR_MS = 5000;

/** What `doctor` looks at, loaded when an administrator asks for it; one look at a time, however many ask. */
function lookAtEverything(config: Config, graph: GraphPing) {
  let looking: Promise<{ at: Date; checks: Check[] }> | null = null;
  const look = async () => {
    const { doctor } = await import('./doctor/doctor.ts');
    return { at: new Date(), checks: await doctor(config, graph) };
  };
  return () => {
    looking ??= look().finally(() => void setTimeout(() => (looking = null), DOCTOR_MS).unref());
    return looking;
  };
}

export type HostsParts = Pick<Execution, 'executor'> & {
  siblings: Siblings;
  /** The configuration of this host, not this process's share of it. */
  wholeConfig: Config;
  features: readonly Feature[];
  graph: Pick<Graph, 'ping'>;
  /** Open connections of clients. */
  connections(): number;
};

/** Processor time this process uses between two calls. */
function cpuMeter(): () => number {
  let [at, used] = [performance.now(), process.cpuUsage()];
  return () => {
    const [now, total] = [performance.now(), process.cpuUsage()];
    const share = (total.user + total.system - used.user - used.system) / 1000 / Math.max(1, now - at);
    [at, used] = [now, total];
    return Math.round(share * 1000) / 1000;
  };
}

async function hostCounts(db: Database): Promise<Array<readonly [{ state: string }, number]>> {
  const all = await listProcesses(db);
  const serving = new Set(all.filter(p => !p.isSilent).map(p => p.hostId));
  const silent = new Set(all.filter(p => !serving.has(p.hostId)).map(p => p.hostId));
  return [
    [{ state: 'serving' }, serving.size],
    [{ state: 'silent' }, silent.size],
  ];
}

/** Hosts of which no process writes its row any more. */
async function silentHosts(db: Database): Promise<Attention[]> {
  const all = await listProcesses(db);
  const serving = new Set(all.filter(p => !p.isSilent).map(p => p.hostId));
  const names = new Map(all.filter(p => !serving.has(p.hostId)).map(p => [p.hostId, p.hostName]));
  const detail = [...names.values()].join(', ');
  return names.size === 0
    ? []
    : [{ kind: 'host_silent', severity: 'bad', plugin: null, count: names.size, detail, since: null }];
}

/** A configuration that is not the one in force, or that the next start could not read. */
async function configAttention(siblings: Siblings): Promise<Attention[]> {
  const { changed = [], problem = null } = (await siblings.pendingConfig()) ?? {};
  const same = { plugin: null, since: null };
  if (problem !== null) return [{ ...same, kind: 'config_wrong', severity: 'bad', count: 1, detail: problem }];
  if (changed.length === 0) return [];
  return [{ ...same, kind: 'config_changed', severity: 'warn', count: changed.length, detail: changed.join(', ') }];
}

/** Jobs and hosts, as metrics. */
async function hostMetrics(db: Database): Promise<Metric[]> {
  const jobs = await countJobs(db);
  return [
    gauge(
      'plugin_host_jobs',
      'Jobs that are not done, and those that failed for the last time within a day.',
      jobs.map(({ count, queue, state }) => [{ queue, state }, count] as const),
      'max',
    ),
    gauge(
      'plugin_host_hosts',
      'Hosts of this database, by whether they have written their row within five seconds.',
      await hostCounts(db),
      'max',
    ),
  ];
}

/** Tells the other hosts that this process lives and what it does, and lists them all. */
export function composeHosts(
  core: Core,
  { connections, executor, features, graph, siblings, wholeConfig }: HostsParts,
): Feature {
  const { config, db, log } = core;
  const startedAt = new Date(Date.now() - process.uptime() * 1000);
  const cpu = cpuMeter();
  let draining = false;
  const load = (): ProcessLoad => ({
    executionsInFlight: executor.inFlight,
    lanes: executor.lanesRunning,
    connections: connections(),
    draining,
    residentBytes: ownResidentBytes(),
    cpu: cpu(),
  });
  const tell = (): Promise<void> =>
    beat(db, {
      hostId: siblings.hostId,
      pid: process.pid,
      hostName: os.hostname(),
      address: `${config.values['http.host']}:${core.port}`,
      version: serviceVersion(),
      startedAt,
      load: load(),
      duties: features.flatMap(f => f.duties?.() ?? []),
    });
  let told: Promise<void> = Promise.resolve();
  const tellNow = (): void => {
    told = tell().catch((error: unknown) =>
      log.warn({ error: messageOf(error) }, 'the row of this host could not be written yet'),
    );
  };
  return {
    routes: [
      ...[...hostRoutes({ db }), ...jobRoutes({ db })],
      ...configRoutes({ config: wholeConfig, pending: () => siblings.pendingConfig() }),
      ...doctorRoutes({ look: lookAtEverything(wholeConfig, () => graph.ping()) }),
      ...supportBundleRoutes({ pack: () => packSupport(wholeConfig, db) }),
    ],
    attention: async () => (await Promise.all([silentHosts(db), configAttention(siblings)])).flat(),
    repeated: [{ everyMs: BEAT_MS, what: 'writing the row of this host', run: tell }],
    metrics: () => hostMetrics(db),
    start: tellNow,
    leave() {
      draining = true;
      tellNow();
    },
    async close() {
      await told;
      // The database may be away; then the row is noticed to be silent.
      await endBeats(db, siblings.hostId, process.pid).catch(() => {});
    },
  };
}
