import { eventRoutes } from '../api/events-api.ts';
import type { Route } from '../api/route.ts';
import { messageOf } from '../base/errors.ts';
import { LIMITS } from '../base/limits.ts';
import type { Log } from '../base/log.ts';
import type { Config } from '../config/load.ts';
import type { Database, Queryable } from '../db/database.ts';
import { EventDeliverer } from '../events/deliverer.ts';
import { EventFeed } from '../events/feed.ts';
import { EVENT_PUBLISHED, publishEvent, removeOldEvents } from '../events/publish.ts';
import { eventHandlers } from '../host/events.ts';
import { nameResolver } from '../host/guarded-agent.ts';
import { guardedCalls, isRefusedLiteral } from '../host/guarded-calls.ts';
import type { HostHandler } from '../host/host-functions.ts';
import { type JobQueue, kickJob, scheduledJob } from '../jobs.ts';
import type { SecretBox } from '../plugins/secret-box.ts';

export type Events = {
  handlers: Record<string, HostHandler>;
  jobs: Array<JobQueue<object>>;
  routes: Route[];
  /** Channels it wants to hear. */
  channels: readonly string[];
  /** A notification came, or may have been missed. */
  hear(): void;
  /** The host is about to end: whoever watches goes elsewhere. */
  endStreams(): void;
  close(): Promise<void>;
};

const DELIVER_QUEUE = 'event_deliver';
const SWEEP_SECONDS = 10;

/** Builds what tells the world of events of plugins. */
export function composeEvents(parts: {
  db: Database;
  config: Config;
  log: Log;
  secrets: SecretBox;
  enqueue(client: Queryable, queue: string, data: object): Promise<void>;
  wake(queue: string): void;
}): Events {
  const { config, db, log, secrets } = parts;
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
    async post(url, headers, body, signal) {
      const { header, status } = await calls.call(url, {
        method: 'POST',
        headers,
        body: Buffer.from(body),
        signal,
        bytesMax: 0,
      });
      return { status, retryAfter: header('retry-after') };
    },
    onError,
  });
  const feed = new EventFeed(db, error => onError(error, 'reading events for whoever watches'));
  return {
    handlers: eventHandlers(async event => {
      const isWanted = await db.withTransaction(async client => {
        const wanted = await publishEvent(client, event);
        if (wanted === true) await parts.enqueue(client, DELIVER_QUEUE, {});
        return wanted;
      });
      if (isWanted === true) parts.wake(DELIVER_QUEUE);
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
      scheduledJob('event_cleaning', '23 * * * *', 600, async () => void (await removeOldEvents(db))),
    ],
    routes: eventRoutes({
      db,
      secrets,
      feed,
      isRefused: url => isRefusedLiteral(url, privateRanges),
      async wakeDeliverer() {
        await parts.enqueue(db, DELIVER_QUEUE, {});
        parts.wake(DELIVER_QUEUE);
      },
    }),
    channels: [EVENT_PUBLISHED],
    hear: () => feed.look(),
    endStreams: () => feed.close(),
    async close() {
      feed.close();
      await deliverer.close();
      await calls.close();
    },
  };
}
