import { z } from 'zod';
import { appendAudit } from '../audit/audit-log.ts';
import { ServiceError } from '../base/errors.ts';
import { LIMITS } from '../base/limits.ts';
import type { Database } from '../db/database.ts';
import {
  countDeliveries,
  DELIVERY_STATES,
  type Delivery,
  type DeliveryState,
  listDeliveries,
  retryDeliveries,
} from '../events/deliveries.ts';
import type { StoredEvent } from '../events/event.ts';
import type { EventFeed } from '../events/feed.ts';
import { type EventFilter, listEvents } from '../events/publish.ts';
import {
  addSubscription,
  changeSubscription,
  findSubscription,
  listSubscriptions,
  removeSubscription,
  type Subscription,
} from '../events/subscriptions.ts';
import { jsonReply, NO_STORE, type Request } from '../http/message.ts';
import type { SecretBox } from '../plugins/secret-box.ts';
import { parseBody } from './body.ts';
import { actorOf, pageOf, pageReply, pathIdOf, queryOf, type Route } from './route.ts';

export type EventsApiParts = {
  db: Database;
  secrets: SecretBox;
  feed: EventFeed;
  /** Whether an address can never be reached: a literal one that is not public and in no range the operator allows. */
  isRefused(url: string): boolean;
  /** There is something to deliver. */
  wakeDeliverer(): Promise<void>;
};

const address = z
  .string()
  .max(2000)
  .refine(text => {
    if (!URL.canParse(text)) return false;
    const { hash, password, protocol, username } = new URL(text);
    return (protocol === 'https:' || protocol === 'http:') && hash + password + username === '';
  }, 'must be an address like https://subscriber.example.org/events, without a name, a password and #');
const names = z.array(z.string().min(1).max(128)).max(100);
const fields = {
  name: z.string().min(1, 'must not be empty').max(200),
  url: address,
  types: names,
  plugins: names,
  enabled: z.boolean(),
};
const newBody = z.strictObject({
  ...fields,
  types: names.default([]),
  plugins: names.default([]),
  enabled: fields.enabled.default(true),
});
const changeBody = z
  .strictObject({ ...fields, new_secret: z.boolean() })
  .partial()
  .transform(({ new_secret, ...rest }) => ({
    newSecret: new_secret === true,
    // Members that were left out are left out again.
    change: Object.fromEntries(Object.entries(rest).filter(([, v]) => v !== undefined)),
  }));

const PATH = '/api/admin/events/subscriptions';
const NOTHING: Record<DeliveryState, number> = { waiting: 0, delivered: 0, dead: 0 };

const subscriptionJson = (s: Subscription, counts: Record<DeliveryState, number> = NOTHING) => ({
  id: s.id,
  name: s.name,
  url: s.url,
  types: s.types,
  plugins: s.plugins,
  enabled: s.enabled,
  disabled_why: s.disabledWhy,
  deliveries: counts,
  created_at: s.createdAt,
  updated_at: s.updatedAt,
});

/** `data` as it was published, also where its numbers are larger than JavaScript's. */
const rawJson = (e: StoredEvent): string =>
  `${JSON.stringify({
    id: e.eventId,
    number: e.id,
    plugin_id: e.pluginId,
    type: e.type,
    request_id: e.requestId,
    at: e.at,
  }).slice(0, -1)},"data":${e.data}}`;

const deliveryJson = (d: Delivery) => ({
  event_id: d.event.eventId,
  number: d.id,
  plugin_id: d.event.pluginId,
  type: d.event.type,
  state: d.state,
  attempts: d.attempts,
  next_attempt_at: d.state === 'waiting' ? d.nextAt : null,
  last_status: d.lastStatus,
  last_error: d.lastError,
  ended_at: d.endedAt,
});

/** Events for administrators: who is told of them, how far that is, and all of them as they come (docs/events.md). */
export function eventRoutes(parts: EventsApiParts): Route[] {
  const { db, feed, secrets, wakeDeliverer } = parts;
  const checkReachable = (url: string | undefined): void => {
    if (url === undefined || !parts.isRefused(url)) return;
    const { hostname } = new URL(url);
    const message = `${hostname} is not a public address; an operator may allow its range (events.private_ranges)`;
    throw new ServiceError('validation_failed', message, { errors: [{ pointer: '/url', message }] });
  };
  const unknown = (request: Request): ServiceError =>
    new ServiceError('not_found', `there is no subscription ${JSON.stringify(request.params.id)}`);
  const load = async (request: Request): Promise<Subscription> => {
    const found = await findSubscription(db, pathIdOf(request, 'id') ?? 0);
    if (found === undefined) throw unknown(request);
    return found;
  };
  const filterOf = (query: ReadonlyMap<string, string>): EventFilter => {
    const [pluginId, type] = [query.get('plugin'), query.get('type')];
    return { ...(pluginId === undefined ? {} : { pluginId }), ...(type === undefined ? {} : { type }) };
  };

  return [
    {
      method: 'GET',
      path: '/api/admin/events',
      guard: 'admin',
      key: ['read', 'operate'],
      async handle({ request }) {
        const query = queryOf(request, ['limit', 'cursor', 'plugin', 'type']);
        const load = (before: number, limit: number) => listEvents(db, filterOf(query), before, limit);
        const page = await pageOf(query, load, rawJson);
        const body = `{"items":[${page.items.join(',')}],"next_cursor":${JSON.stringify(page.next_cursor)}}`;
        return { status: 200, headers: [['Content-Type', 'application/json; charset=utf-8']], body };
      },
    },
    {
      method: 'GET',
      path: '/api/admin/events/stream',
      guard: 'admin',
      key: ['read', 'operate'],
      handle({ isStillAllowed, request }) {
        const query = queryOf(request, ['plugin', 'type', 'after']);
        const last = request.headers['last-event-id'] ?? query.get('after');
        if (last !== undefined && !/^\d{1,15}$/.test(last))
          throw new ServiceError('validation_failed', 'after must be the number of an event', {
            errors: [{ pointer: 'query:after', message: 'must be the number of an event' }],
          });
        if (feed.watchers >= LIMITS.eventWatchersMax)
          throw new ServiceError(
            'unavailable',
            `${feed.watchers} streams are open here; ${LIMITS.eventWatchersMax} may be (eventWatchersMax)`,
            { headers: [['Retry-After', '10']] },
          );
        return {
          status: 200,
          headers: [['Content-Type', 'text/event-stream'], NO_STORE, ['X-Accel-Buffering', 'no']],
          body: {
            endless: true,
            open: () => feed.watch(filterOf(query), last === undefined ? null : Number(last), isStillAllowed),
          },
        };
      },
    },
    {
      method: 'GET',
      path: PATH,
      guard: 'admin',
      key: ['read', 'operate'],
      async handle({ request }) {
        const query = queryOf(request, ['limit', 'cursor']);
        const { items, next_cursor } = await pageOf(
          query,
          (before, limit) => listSubscriptions(db, before, limit),
          s => s,
        );
        const found = items as Subscription[];
        const counts = await countDeliveries(
          db,
          found.map(s => s.id),
        );
        return jsonReply(200, { items: found.map(s => subscriptionJson(s, counts.get(s.id))), next_cursor });
      },
    },
    {
      method: 'POST',
      path: PATH,
      guard: 'admin_recent',
      key: ['operate'],
      async handle({ caller, json, request }) {
        const body = parseBody(newBody, await json());
        checkReachable(body.url);
        const all = await listSubscriptions(db, Number.MAX_SAFE_INTEGER, LIMITS.eventSubscriptionsMax);
        if (all.length >= LIMITS.eventSubscriptionsMax)
          throw new ServiceError(
            'conflict',
            `there are ${all.length} subscriptions; ${LIMITS.eventSubscriptionsMax} may be (eventSubscriptionsMax)`,
          );
        const added = await db.withTransaction(client =>
          addSubscription(client, secrets, body, actorOf(caller, request)),
        );
        return jsonReply(201, { ...subscriptionJson(added.subscription), secret: added.secret });
      },
    },
    {
      method: 'GET',
      path: `${PATH}/:id`,
      guard: 'admin',
      key: ['read', 'operate'],
      async handle({ request }) {
        const s = await load(request);
        return jsonReply(200, subscriptionJson(s, (await countDeliveries(db, [s.id])).get(s.id)));
      },
    },
    {
      method: 'PATCH',
      path: `${PATH}/:id`,
      guard: 'admin_recent',
      key: ['operate'],
      async handle({ caller, json, request }) {
        const { change, newSecret } = parseBody(changeBody, await json());
        checkReachable(typeof change.url === 'string' ? change.url : undefined);
        const id = pathIdOf(request, 'id') ?? 0;
        const changed = await db.withTransaction(client =>
          changeSubscription(client, secrets, id, change, newSecret, actorOf(caller, request)),
        );
        if (changed === undefined) throw unknown(request);
        await wakeDeliverer();
        const counts = (await countDeliveries(db, [id])).get(id);
        const { secret, subscription } = changed;
        return jsonReply(200, { ...subscriptionJson(subscription, counts), ...(secret === null ? {} : { secret }) });
      },
    },
    {
      method: 'DELETE',
      path: `${PATH}/:id`,
      guard: 'admin_recent',
      key: ['operate'],
      async handle({ caller, request }) {
        const id = pathIdOf(request, 'id') ?? 0;
        if (!(await db.withTransaction(client => removeSubscription(client, id, actorOf(caller, request)))))
          throw unknown(request);
        return { status: 204, headers: [], body: '' };
      },
    },
    {
      method: 'GET',
      path: `${PATH}/:id/deliveries`,
      guard: 'admin',
      key: ['read', 'operate'],
      async handle({ request }) {
        const query = queryOf(request, ['limit', 'cursor', 'state']);
        const state = stateOf(query.get('state'));
        const { id } = await load(request);
        return await pageReply(query, (before, limit) => listDeliveries(db, id, state, before, limit), deliveryJson);
      },
    },
    {
      method: 'POST',
      path: `${PATH}/:id/retry`,
      guard: 'admin',
      key: ['operate'],
      async handle({ caller, request }) {
        const query = queryOf(request, ['event']);
        const event = query.get('event') ?? null;
        if (event !== null && !z.uuid().safeParse(event).success)
          throw new ServiceError('validation_failed', 'event must be the id of an event', {
            errors: [{ pointer: 'query:event', message: 'must be the id of an event' }],
          });
        const { id } = await load(request);
        const retried = await db.withTransaction(async client => {
          const count = await retryDeliveries(client, id, event);
          if (count > 0)
            await appendAudit(client, actorOf(caller, request), {
              action: 'event.retry',
              objectType: 'event_subscription',
              objectId: String(id),
              after: { event, count },
            });
          return count;
        });
        await wakeDeliverer();
        return jsonReply(200, { retried });
      },
    },
  ];
}

function stateOf(raw: string | undefined): DeliveryState | null {
  if (raw === undefined) return null;
  const state = DELIVERY_STATES.find(s => s === raw);
  if (state !== undefined) return state;
  const message = `must be one of ${DELIVERY_STATES.join(', ')}`;
  throw new ServiceError('validation_failed', `state ${message}`, { errors: [{ pointer: 'query:state', message }] });
}
