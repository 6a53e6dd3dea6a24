import type { Attention } from '../api/operation/attention-api.ts';
import { eventRoutes } from '../api/operation/events-api.ts';
import { messageOf } from '../base/errors.ts';
import { assertInTime } from '../base/gatherer.ts';
import { LIMITS } from '../base/limits.ts';
import { gauge, type Metric } from '../base/metric.ts';
import { durationMs } from '../config/values.ts';
import type { Database, Queryable } from '../db/database.ts';
import { EventDeliverer } from '../events/deliverer.ts';
import { countDeadDeliveries, countOpenDeliveries } from '../events/deliveries.ts';
import { eventFeed } from '../events/event-feed.ts';
import { EVENT_PUBLISHED, type NewEvent, publishEvent, removeOldEvents } from '../events/publish.ts';
import { eventHandlers } from '../host/events.ts';
import { nameResolver } from '../host/guarded-agent.ts';
import { guardedCalls, isRefusedLiteral } from '../host/guarded-calls.ts';
import { kickJob, scheduledJob } from '../jobs.ts';
import type { Core } from './core.ts';
import type { Feature } from './feature.ts';

const DELIVER_QUEUE = 'event_deliver';
const SWEEP_SECONDS = 10;

/** Stores an event, with the job that delivers it. @returns whether it is wanted @throws CallTooLate behind the deadline */
const publish = (
  db: Database,
  event: NewEvent,
  deadline: number,
  enqueue: (client: Queryable) => Promise<void>,
): Promise<boolean> =>
  db.withTransaction(async client => {
    const isWanted = (await publishEvent(client, event)) === true;
    if (isWanted) await enqueue(client);
    assertInTime(deadline);
    return isWanted;
  });

async function metricsOf(db: Database): Promise<Metric[]> {
  const { dead, oldestSeconds, waiting } = await countOpenDeliveries(db);
  return [
    gauge(
      'plugin_host_event_deliveries',
      'Deliveries of events that wait, and those given up within a day.',
      [
        [{ state: 'waiting' }, waiting],
        [{ state: 'dead' }, dead],
      ],
      'max',
    ),
    gauge(
      'plugin_host_event_delivery_oldest_seconds',
      'How long the oldest delivery of an event has waited.',
      oldestSeconds,
      'max',
    ),
  ];
}

async function undelivered(db: Database): Promise<Attention[]> {
  const count = await countDeadDeliveries(db);
  return count === 0
    ? []
    : [{ kind: 'events_undelivered', severity: 'bad', plugin: null, count, detail: null, since: null }];
}

/** Tells subscribers of events of plugins. */
export function composeEvents({ config, db, jobs, log, secrets, tracing }: Core): Feature {
  const onError = (error: unknown, what: string): void => log.warn({ error: messageOf(error) }, `${what} failed`);
  const privateRanges = config.values['events.private_ranges'];
  const calls = guardedCalls({
    privateRanges,
    rangesKey: 'events.private_ranges',
    configured: [],
    resolve: nameResolver(config.values['network.name_servers'], true),
    callMs: LIMITS.eventCallMs,
  });
  const deliverer = new EventDeliverer({
    db,
    databaseUrl: config.values['database.url'],
    secrets,
    tracing,
    async post(url, headers, body, signal) {
      const request = { method: 'POST', headers, body: Buffer.from(body), signal, bytesMax: 0 } as const;
      const { header, status } = await calls.call(url, request);
      return { status, retryAfter: header('retry-after') };
    },
    onError,
  });
  const feed = eventFeed(db, error => onError(error, 'reading events for watching administrators'));
  return {
    hostFunctions: eventHandlers(async (event, deadline) => {
      const enqueue = (client: Queryable) => jobs.enqueue(client, DELIVER_QUEUE, {});
      if (await publish(db, event, deadline, enqueue)) jobs.wake(DELIVER_QUEUE);
    }),
    jobs: [
      kickJob(
        DELIVER_QUEUE,
        () => ({}),
        () => deliverer.kick(),
      ),
      // What a host that ended has left.
      {
        ...scheduledJob('event_sweep', { everySeconds: SWEEP_SECONDS }, 60, async () => deliverer.kick()),
        pollSeconds: SWEEP_SECONDS,
      },
      scheduledJob('event_cleaning', '23 * * * *', 600, async () => {
        await removeOldEvents(db, durationMs(config.values['retention.events']));
      }),
    ],
    routes: eventRoutes({
      db,
      secrets,
      feed,
      test: id => deliverer.test(id),
      isRefused: url => isRefusedLiteral(url, privateRanges),
      async wakeDeliverer() {
        await jobs.enqueue(db, DELIVER_QUEUE, {});
        jobs.wake(DELIVER_QUEUE);
      },
    }),
    attention: () => undelivered(db),
    metrics: () => metricsOf(db),
    channels: { [EVENT_PUBLISHED]: () => feed.look() },
    duties: () => (deliverer.isAtWork ? ['event_delivery'] : []),
    ...{ readAll: () => feed.look(), drain: () => feed.close() },
    async close() {
      feed.close();
      await deliverer.close();
      await calls.close();
    },
  };
}
