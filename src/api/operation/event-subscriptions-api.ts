import { z } from 'zod';
import { appendAudit } from '../../audit/audit-log.ts';
import { ServiceError } from '../../base/errors.ts';
import { LIMITS } from '../../base/limits.ts';
import type { Database } from '../../db/database.ts';
import {
  countDeliveries,
  DELIVERY_STATES,
  type Delivery,
  type DeliveryState,
  listDeliveries,
  retryDeliveries,
} from '../../events/deliveries.ts';
import {
  addSubscription,
  changeSubscription,
  findSubscription,
  listSubscriptions,
  removeSubscription,
  type Subscription,
  withoutQuery,
} from '../../events/subscriptions.ts';
import type { SecretBox } from '../../secrets/secret-box.ts';
import { actorOf, type Caller, mayUse } from '../contract/caller.ts';
import { resource } from '../contract/contract.ts';
import { type Handle, serve } from '../contract/endpoint.ts';
import { id, time } from '../contract/fields.ts';
import { loadPage, pageOf } from '../contract/paging.ts';
import { idParam } from '../contract/params.ts';
import { list as listWith, oneOf, page } from '../contract/query.ts';
import { replyWriter } from '../contract/reply-writer.ts';
import type { Route } from '../contract/route.ts';

export type EventSubscriptionsParts = {
  db: Database;
  secrets: SecretBox;
  /** Whether an address can never be reached: a literal one that is not public and in no range the operator allows. */
  isRefused(url: string): boolean;
  /** There is something to deliver. */
  wakeDeliverer(): Promise<void>;
  /** Sends a test event; undefined when the subscription is switched off. */
  test(subscription: number): Promise<{ status: number | null; problem: string | null } | undefined>;
};

const address = z
  .string()
  .max(2000)
  .refine(text => {
    if (!URL.canParse(text)) return false;
    const { hash, password, protocol, username } = new URL(text);
    return (protocol === 'https:' || protocol === 'http:') && hash + password + username === '';
  }, 'must be an address like https://subscriber.example.org/events, without a name, a password and #')
  .describe('Where events are sent to: an http or https address without a name, a password and #');
const names = z.array(z.string().min(1).max(128)).max(100);
const fields = {
  name: z.string().min(1).max(200),
  url: address,
  types: names.describe('Types of events; empty for all'),
  plugins: names.describe('Plugins whose events are sent; empty for all'),
  enabled: z.boolean(),
};
const newSubscription = z.strictObject({
  ...fields,
  types: fields.types.default([]),
  plugins: fields.plugins.default([]),
  enabled: fields.enabled.default(true),
});
const subscriptionChange = z
  .strictObject({
    ...fields,
    new_secret: z.boolean().describe('Make another secret; another url does so as well'),
  })
  .partial()
  .transform(({ new_secret, ...rest }) => ({
    newSecret: new_secret === true,
    // Members that were left out are left out again.
    change: Object.fromEntries(Object.entries(rest).filter(([, v]) => v !== undefined)),
  }));

const count = z.int().nonnegative();
const subscription = z
  .object({
    id,
    name: z.string(),
    url: z.string().describe('Without its query to callers who may not change it'),
    types: z.array(z.string()).readonly(),
    plugins: z.array(z.string()).readonly(),
    enabled: z.boolean(),
    disabled_why: z.string().describe('Why the service switched it off; empty where it did not'),
    deliveries: z.object({ waiting: count, delivered: count, dead: count }).describe('How many, by state'),
    created_at: time,
    updated_at: time,
  })
  .meta({ id: 'EventSubscription' });
const secret = z.string().describe('Signs what is sent (Standard Webhooks); it is never shown again');

const delivery = z
  .object({
    event_id: z.uuid(),
    number: id.describe('Number of the event'),
    plugin_id: z.string(),
    type: z.string(),
    state: z.enum(DELIVERY_STATES),
    attempts: count,
    next_attempt_at: time.nullable().describe('While it waits'),
    last_status: z.int().nullable().describe('Status the subscriber answered last; null when it did not answer'),
    last_error: z.string(),
    ended_at: time.nullable(),
  })
  .meta({ id: 'EventDelivery' });

const path = '/api/admin/events/subscriptions';
const params = { id: idParam('subscription') };
const READ = { guard: 'admin', key: ['read', 'operate'] } as const;
const CHANGE = { guard: 'admin_recent', key: ['operate'] } as const;
const example = { name: 'timetable', url: 'https://subscriber.example.org/events', types: ['timetable.changed'] };

/** Subscribers to events, and how far their deliveries are (docs/events.md). */
export const eventSubscriptions = resource(
  'Event subscriptions',
  'Webhooks that get events, and how far their deliveries are.',
  {
    list: {
      method: 'GET',
      path,
      ...READ,
      summary: 'List event subscriptions',
      query: page,
      replies: { 200: pageOf(subscription) },
    },
    create: {
      method: 'POST',
      path,
      ...CHANGE,
      summary: 'Subscribe an address to events',
      body: newSubscription,
      idempotency: 'secret',
      replies: { 201: subscription.extend({ secret }) },
      refusals: ['conflict'],
      example: { body: example },
    },
    get: {
      method: 'GET',
      path: `${path}/:id`,
      ...READ,
      summary: 'Read an event subscription',
      params,
      replies: { 200: subscription },
    },
    change: {
      method: 'PATCH',
      path: `${path}/:id`,
      ...CHANGE,
      summary: 'Change an event subscription',
      description: 'Members that are left out keep their values. Another url, or new_secret, makes another secret.',
      params,
      body: subscriptionChange,
      replies: { 200: subscription.extend({ secret: secret.optional() }) },
      example: { body: { enabled: true, new_secret: true } },
    },
    remove: {
      method: 'DELETE',
      path: `${path}/:id`,
      ...CHANGE,
      summary: 'Remove an event subscription, with what waits for it',
      params,
      replies: { 204: null },
    },
    deliveries: {
      method: 'GET',
      path: `${path}/:id/deliveries`,
      ...READ,
      summary: 'List deliveries to a subscriber',
      params,
      query: listWith({ state: oneOf(DELIVERY_STATES, 'Only deliveries in this state') }),
      replies: { 200: pageOf(delivery) },
    },
    retry: {
      method: 'POST',
      path: `${path}/:id/retry`,
      guard: 'admin',
      key: ['operate'],
      summary: 'Try dead deliveries again, and those that wait at once',
      params,
      query: z.strictObject({
        event: z.uuid('must be the id of an event').describe('Only the delivery of this event').optional(),
      }),
      replies: { 200: z.object({ retried: count }) },
    },
    test: {
      method: 'POST',
      path: `${path}/:id/test`,
      guard: 'admin',
      key: ['operate'],
      skipChangeBarrier: true,
      summary: 'Send a test event to a subscriber',
      description:
        'A signed event of type plugin_host.test goes out at once, whatever waits. What the subscriber makes of it changes no delivery.',
      params,
      replies: {
        200: z
          .object({
            ok: z.boolean(),
            latency_ms: count,
            status: z.int().nullable().describe('Status the subscriber answered; null when it was not reached'),
            problem: z.string().nullable().describe('Why it counts as failed'),
          })
          .meta({ id: 'EventTrial' }),
      },
      refusals: ['conflict'],
    },
  },
);

type Endpoints = typeof eventSubscriptions;
type Parts = EventSubscriptionsParts;

/** Who may only look does not see the query of an address, which may hold a secret of the subscriber's. */
const shownTo = <T extends { url: string }>(caller: Caller, json: T): T =>
  mayUse(caller, 'operate') ? json : { ...json, url: withoutQuery(json.url) };

const list: Handle<Endpoints['list'], Parts> = async ({ db }, { caller, query }) => {
  const load = (before: number, limit: number) => listSubscriptions(db, before, limit);
  const { items, next_cursor } = await loadPage(query, load, s => s);
  const counts = await countDeliveries(
    db,
    items.map(s => s.id),
  );
  return {
    status: 200,
    json: { items: items.map(s => shownTo(caller, subscriptionJson(s, counts.get(s.id)))), next_cursor },
  };
};

const create: Handle<Endpoints['create'], Parts> = async (parts, { body, caller, request }) => {
  const { db, secrets } = parts;
  const wanted = await body();
  assertReachable(parts, wanted.url);
  const all = await listSubscriptions(db, Number.MAX_SAFE_INTEGER, LIMITS.eventSubscriptionsMax);
  if (all.length >= LIMITS.eventSubscriptionsMax)
    throw new ServiceError(
      'conflict',
      `there are ${all.length} subscriptions; ${LIMITS.eventSubscriptionsMax} may be (eventSubscriptionsMax)`,
    );
  const added = await db.withTransaction(client => addSubscription(client, secrets, wanted, actorOf(caller, request)));
  return { status: 201, json: { ...subscriptionJson(added.subscription), secret: added.secret } };
};

const get: Handle<Endpoints['get'], Parts> = async ({ db }, { caller, params }) => {
  const found = await load(db, params.id);
  const json = subscriptionJson(found, (await countDeliveries(db, [found.id])).get(found.id));
  return { status: 200, json: shownTo(caller, json) };
};

const change: Handle<Endpoints['change'], Parts> = async (parts, { body, caller, params: { id }, request }) => {
  const { db, secrets } = parts;
  const { change: wanted, newSecret } = await body();
  assertReachable(parts, typeof wanted.url === 'string' ? wanted.url : undefined);
  const changed = await db.withTransaction(client =>
    changeSubscription(client, secrets, id, wanted, newSecret, actorOf(caller, request)),
  );
  if (changed === undefined) throw unknownSubscription(id);
  await parts.wakeDeliverer();
  const counts = (await countDeliveries(db, [id])).get(id);
  const { secret, subscription } = changed;
  const json = { ...subscriptionJson(subscription, counts), ...(secret === null ? {} : { secret }) };
  return { status: 200, json };
};

const remove: Handle<Endpoints['remove'], Parts> = async ({ db }, { caller, params: { id }, request }) => {
  if (!(await db.withTransaction(client => removeSubscription(client, id, actorOf(caller, request)))))
    throw unknownSubscription(id);
  return { status: 204 };
};

const deliveries: Handle<Endpoints['deliveries'], Parts> = async ({ db }, { params, query }) => {
  const { id } = await load(db, params.id);
  const page = (before: number, limit: number) => listDeliveries(db, id, query.state ?? null, before, limit);
  return { status: 200, json: await loadPage(query, page, deliveryJson) };
};

const retry: Handle<Endpoints['retry'], Parts> = async (parts, { caller, params, query, request }) => {
  const event = query.event ?? null;
  const { id } = await load(parts.db, params.id);
  const retried = await parts.db.withTransaction(async client => {
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
  await parts.wakeDeliverer();
  return { status: 200, json: { retried } };
};

const test: Handle<Endpoints['test'], Parts> = async (parts, { caller, params, request }) => {
  const { id } = await load(parts.db, params.id);
  const began = performance.now();
  const answered = await parts.test(id);
  if (answered === undefined)
    throw new ServiceError('conflict', `subscription ${id} is switched off; enable it to send it anything`);
  const { problem, status } = answered;
  await appendAudit(parts.db, actorOf(caller, request), {
    action: 'event.test',
    objectType: 'event_subscription',
    objectId: String(id),
    after: { status, problem },
  });
  return {
    status: 200,
    json: { ok: problem === null, latency_ms: Math.round(performance.now() - began), status, problem },
  };
};

export const eventSubscriptionRoutes = (parts: EventSubscriptionsParts): Route[] =>
  serve(eventSubscriptions, parts, { list, create, get, change, remove, deliveries, retry, test });

/** @throws ServiceError `validation_failed` */
function assertReachable(parts: EventSubscriptionsParts, url: string | undefined): void {
  if (url === undefined || !parts.isRefused(url)) return;
  const { hostname } = new URL(url);
  const message = `${hostname} is not a public address; an operator may allow its range (events.private_ranges)`;
  throw new ServiceError('validation_failed', message, { errors: [{ pointer: '/url', message, code: 'not_public' }] });
}

async function load(db: Database, id: number): Promise<Subscription> {
  const found = await findSubscription(db, id);
  if (found === undefined) throw unknownSubscription(id);
  return found;
}

const unknownSubscription = (id: number): ServiceError =>
  new ServiceError('not_found', `there is no subscription "${id}"`);

const NOTHING: Record<DeliveryState, number> = { waiting: 0, delivered: 0, dead: 0 };

const writeSubscription = replyWriter(subscription);
const subscriptionJson = (s: Subscription, deliveries: Record<DeliveryState, number> = NOTHING) =>
  writeSubscription({ ...s, deliveries });

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
