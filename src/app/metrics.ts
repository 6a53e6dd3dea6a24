import { monitorEventLoopDelay } from 'node:perf_hooks';
import { setTimeout as sleep } from 'node:timers/promises';
import { messageOf } from '../base/errors.ts';
import { counter, gauge, type Metric } from '../base/metric.ts';
import { ownResidentBytes } from '../base/resident-bytes.ts';
import type { Core } from './core.ts';
import type { Feature } from './feature.ts';

const LOOP_RESOLUTION_MS = 20;
/** A feature that takes longer, because its database hangs, is left out: the supervisor waits for two seconds. */
const FEATURE_MS = 500;
const loop = monitorEventLoopDelay({ resolution: LOOP_RESOLUTION_MS });

/** How much longer than planned an interval took, in seconds. @param intervalNs whole, as Node records it */
export const latenessOf = (intervalNs: number): number => Math.max(0, intervalNs / 1e9 - LOOP_RESOLUTION_MS / 1000);

const lateness = (percentile: number): number => latenessOf(loop.percentile(percentile));

/** What is measured of the process itself and of its connections to the database. */
function processMetrics({ db }: Pick<Core, 'db'>): Metric[] {
  const { system, user } = process.cpuUsage();
  const { idleCount, totalCount, waitingCount } = db.pool;
  const delays = [
    [{ percentile: '50' }, lateness(50)],
    [{ percentile: '99' }, lateness(99)],
  ] as const;
  const metrics = [
    counter('plugin_host_cpu_seconds_total', 'Processor time of the serving processes.', (system + user) / 1e6),
    gauge('plugin_host_resident_memory_bytes', 'Resident memory of the serving processes.', ownResidentBytes()),
    gauge(
      'plugin_host_event_loop_delay_seconds',
      'How late the event loop was since the last scrape; of several processes the latest.',
      delays,
      'max',
    ),
    gauge('plugin_host_database_connections', 'Connections to the database, and requests that wait for one.', [
      [{ state: 'used' }, totalCount - idleCount],
      [{ state: 'idle' }, idleCount],
      [{ state: 'waiting' }, waitingCount],
    ]),
  ];
  loop.reset();
  return metrics;
}

/** Everything that is counted and measured. A feature that fails is left out: the others are needed most then. */
export async function metricsOf(
  core: Pick<Core, 'db' | 'log'>,
  features: ReadonlyArray<Pick<Feature, 'metrics'>>,
): Promise<Metric[]> {
  loop.enable();
  const found = await Promise.all(
    features.map(async feature => {
      if (feature.metrics === undefined) return [];
      try {
        const late = sleep(FEATURE_MS, null, { ref: false });
        const metrics = await Promise.race([feature.metrics(), late]);
        if (metrics === null) throw new Error(`no answer within ${FEATURE_MS} ms`);
        return metrics;
      } catch (error) {
        core.log.warn({ error: messageOf(error) }, 'some metrics could not be read');
        return [];
      }
    }),
  );
  return [...processMetrics(core), ...found.flat()];
}
