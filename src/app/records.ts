import { activityRoutes } from '../api/operation/activity-api.ts';
import type { Attention } from '../api/operation/attention-api.ts';
import { executionRoutes, recordJson } from '../api/operation/executions-api.ts';
import { suspensionRoutes } from '../api/plugins/suspensions-api.ts';
import { messageOf } from '../base/errors.ts';
import { gauge } from '../base/metric.ts';
import { Seldom } from '../base/seldom.ts';
import { durationMs } from '../config/values.ts';
import { PLUGIN_CHANGED } from '../db/notifications.ts';
import { ACTIVITY_FLUSH_MS, Activity, removeOldActivity } from '../records/activity.ts';
import { executionFeed } from '../records/execution-feed.ts';
import { ExecutionLog } from '../records/execution-log.ts';
import { ExecutionRecords } from '../records/execution-records.ts';
import { removeOldRequests } from '../records/idempotent-requests.ts';
import { Quarantine, RESUMED } from '../records/quarantine.ts';
import type { Core } from './core.ts';
import type { Feature } from './feature.ts';
import type { Siblings } from './siblings.ts';

/** What is remembered of executions: records, log lines, suspensions, numbers over time. */
export type Records = Feature & {
  records: ExecutionRecords;
  executionLog: ExecutionLog;
  quarantine: Quarantine;
  activity: Activity;
};

/** Suspended triggers that are named to an administrator. */
const NAMED = 5;
const NOT_WRITTEN = 'execution records could not be written yet';

function suspendedNow(quarantine: Quarantine): Array<readonly [{ for: string }, number]> {
  const all = quarantine.list(null, Date.now());
  const ofOne = all.filter(s => s.caller !== null).length;
  return [
    [{ for: 'all' }, all.length - ofOne],
    [{ for: 'one_caller' }, ofOne],
  ];
}

function suspendedAttention(quarantine: Quarantine): Attention[] {
  const suspended = quarantine.list(null, Date.now());
  if (suspended.length === 0) return [];
  const names = new Set(suspended.map(s => (s.trigger === '' ? s.pluginId : `${s.pluginId} · ${s.trigger}`)));
  const isForAll = suspended.some(s => s.caller === null);
  const detail = [...names].slice(0, NAMED).join(', ');
  const plugins = new Set(suspended.map(s => s.pluginId));
  const plugin = plugins.size === 1 ? (suspended[0]?.pluginId ?? null) : null;
  return [{ kind: 'suspended', severity: isForAll ? 'bad' : 'warn', plugin, count: names.size, detail, since: null }];
}

export function composeRecords({ config, db, log }: Core, siblings: Siblings): Records {
  const executionLog = new ExecutionLog(log, config.values['log.plugins']);
  const quarantine = new Quarantine(db, executionLog.suspended, executionLog.notStored, message =>
    siblings.tell(message),
  );
  const seldom = new Seldom();
  const records = new ExecutionRecords(db, (error, lost) => {
    const warn = (more: object): void => log.warn({ error: messageOf(error), lost, ...more }, NOT_WRITTEN);
    if (lost > 0) warn({});
    else seldom.line('', warn);
  });
  const activity = new Activity(db);
  const feed = executionFeed(db, recordJson, error =>
    seldom.line('feed', more =>
      log.warn({ error: messageOf(error), ...more }, 'reading executions for watching administrators'),
    ),
  );
  return {
    records,
    activity,
    executionLog,
    quarantine,
    routes: [
      ...executionRoutes({ db, records, feed }),
      ...suspensionRoutes({ quarantine }),
      ...activityRoutes({ db, flush: () => activity.flush() }),
    ],
    channels: { [RESUMED]: payload => quarantine.hear(payload), [PLUGIN_CHANGED]: () => quarantine.load() },
    readAll: () => quarantine.load(),
    metrics: () => [
      gauge(
        'plugin_host_suspensions',
        'Plugins and triggers that are suspended now, for all callers or for one of them.',
        suspendedNow(quarantine),
        'max',
      ),
    ],
    attention: async () => suspendedAttention(quarantine),
    repeated: [
      {
        everyMs: 30_000,
        what: 'forgetting old failures',
        async run() {
          quarantine.sweep(Date.now());
          executionLog.sweep();
        },
      },
      {
        everyMs: 600_000,
        what: 'removing old execution records',
        run: () => records.removeOld(durationMs(config.values['retention.executions'])),
      },
      { everyMs: ACTIVITY_FLUSH_MS, what: 'counting executions over time', run: () => activity.flush() },
      {
        everyMs: 600_000,
        what: 'removing old numbers of executions',
        run: () => removeOldActivity(db, durationMs(config.values['retention.activity'])),
      },
      { everyMs: 600_000, what: 'removing old answers of repeated requests', run: () => removeOldRequests(db) },
    ],
    drain: () => feed.close(),
    async close() {
      feed.close();
      await activity.flush().catch(() => {});
      await quarantine.close();
      await records.close();
    },
  };
}
