import type { Attention } from '../api/operation/attention-api.ts';
import { universityRoutes } from '../api/university/university-api.ts';
import { messageOf } from '../base/errors.ts';
import { LIMITS } from '../base/limits.ts';
import type { Log } from '../base/log.ts';
import { gauge } from '../base/metric.ts';
import { type Config, dataPath } from '../config/load.ts';
import { durationMs } from '../config/values.ts';
import type { Database } from '../db/database.ts';
import { scheduledJob } from '../jobs.ts';
import { type ImportRun, lastEndedImports, lastPulls, removeOldImports } from '../university/import-log.ts';
import { Imports, isUnderWay, localDay } from '../university/imports.ts';
import { NO_RELEASE } from '../university/pull.ts';
import { SCHEDULE } from '../university/starter.ts';
import type { Core } from './core.ts';
import type { Feature } from './feature.ts';

/** The importer as the configuration names it. */
export function importsOf(parts: { db: Database; config: Config; log: Pick<Log, 'info' | 'warn'> }): Imports {
  const v = parts.config.values;
  return new Imports({
    db: parts.db,
    log: parts.log,
    directory: dataPath(parts.config, 'university'),
    settings: {
      databaseUrl: v['database.url'],
      baseUrl: v['university_sync.base_url'],
      token: v['university_sync.token'],
      pageMs: durationMs(v['university_sync.page_timeout']),
      firstWaitMs: durationMs(v['university_sync.retry_wait']),
      brakePercent: v['university_sync.brake_percent'],
    },
    today: () => localDay(new Date()),
  });
}

/** The pull itself ends before. */
const PULL_SECONDS = LIMITS.universityPullMs / 1000 + 600;

/** What did not get in: of the last pull that ended, and of the last list of each type that was sent. */
async function failedImports(db: Database): Promise<Attention[]> {
  return (await lastEndedImports(db)).flatMap(run => (run.state === 'succeeded' ? [] : failuresOf(run)));
}

function failuresOf({ finishedAt, id, kind, problem, types }: ImportRun): Attention[] {
  const of = { plugin: null, since: finishedAt, import: id, ...(kind === 'batch' ? { type: types[0]?.type } : {}) };
  const stopped = types.filter(type => type.state === 'stopped');
  const failed = types.reduce((n, type) => n + type.failed, 0);
  const braked: Attention[] = stopped
    .slice(0, 1)
    .map(first => ({ ...of, kind: 'import_stopped', severity: 'bad', count: stopped.length, detail: first.problem }));
  // The entry of the brake names a pull that only the brake has stopped.
  if (braked.length > 0 && failed === 0) return braked;
  const detail = problem ?? types.find(type => type.state !== 'stopped' && type.problem !== null)?.problem ?? null;
  const broken = failed > 0 ? ('import_failed' as const) : ('import_broken' as const);
  return [...braked, { ...of, kind: broken, severity: 'warn', count: Math.max(1, failed), detail }];
}

/** Brings university data in: the importer, its routes, its jobs. */
export function composeUniversity(core: Core): Feature {
  const { config, db, log } = core;
  const v = config.values;
  const imports = importsOf(core);
  const everySeconds = Math.max(1, Math.round(durationMs(v['university_sync.interval']) / 1000));
  const jobs = [
    scheduledJob('import_cleaning', '41 3 * * *', 600, async () => {
      await removeOldImports(db, durationMs(v['retention.imports']));
    }),
    scheduledJob('university_dates', '7 * * * *', 600, async () => {
      const settled = await imports.settleDates();
      if (settled > 0) log.info({ records: settled }, 'positions and appointments began or ended with the day');
    }),
  ];
  if (v['university_sync.enabled'])
    jobs.push({
      ...scheduledJob('university_pull', { everySeconds }, PULL_SECONDS, async () => {
        const pull = await imports.beginPull({ name: SCHEDULE, actor: null }, NO_RELEASE).catch((error: unknown) => {
          // Another host is at it, or an administrator.
          if (isUnderWay(error)) return null;
          log.warn({ error: messageOf(error) }, 'a pull could not begin');
          throw error;
        });
        await pull?.done;
      }),
      pollSeconds: 1,
    });
  return {
    routes: universityRoutes({
      db,
      imports,
      source: {
        baseUrl: v['university_sync.base_url'],
        isEnabled: v['university_sync.enabled'],
        everySeconds,
        brakePercent: v['university_sync.brake_percent'],
      },
    }),
    jobs,
    metrics: async () => [
      gauge(
        'plugin_host_last_pull_timestamp_seconds',
        'When a pull of university data last ended in each state, in seconds since 1970.',
        // A source that is no longer pulled cannot be late.
        v['university_sync.enabled'] ? (await lastPulls(db)).map(({ at, state }) => [{ state }, at] as const) : [],
        'max',
      ),
      gauge(
        'plugin_host_pull_interval_seconds',
        'How often university data are pulled; none without pulls.',
        v['university_sync.enabled'] ? [[{}, everySeconds]] : [],
        'max',
      ),
    ],
    attention: () => failedImports(db),
    duties: () => (imports.isPulling ? ['university_pull'] : []),
    close: () => imports.close(),
  };
}
