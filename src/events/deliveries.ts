import { LIMITS } from '../base/limits.ts';
import type { Queryable } from '../db/database.ts';
import { findRows } from '../db/rows.ts';
import type { StoredEvent } from './event.ts';

export const DELIVERY_STATES = ['waiting', 'delivered', 'dead'] as const;
export type DeliveryState = (typeof DELIVERY_STATES)[number];

/** Where something is to be delivered: what one plugin publishes, to one subscriber, in order. */
export type Line = { subscriptionId: number; pluginId: string };

/** Adds a delivery of an event for every subscriber that wants it, inside the caller's transaction. @returns how many */
export async function appendDeliveries(
  client: Queryable,
  eventId: number,
  e: { pluginId: string; type: string },
): Promise<number> {
  const { rowCount } = await client.query(
    `INSERT INTO event_deliveries (subscription_id, event_id, plugin_id)
     SELECT s.id, $1, $2 FROM event_subscriptions s
     WHERE s.enabled AND (s.plugins = '{}' OR $2 = ANY (s.plugins)) AND (s.types = '{}' OR $3 = ANY (s.types))`,
    [eventId, e.pluginId, e.type],
  );
  return rowCount ?? 0;
}

/**
 * All lines on which something waits, with how long until the first event of each may go, in ms. Goes from line to line through the index,
 * however much waits on each. A wait that is longer than any is was begun before the clock was set back: it is over.
 */
export async function listLines(db: Queryable): Promise<Array<Line & { dueMs: number }>> {
  return await findRows<Line & { dueMs: number }>(
    db,
    `WITH RECURSIVE heads AS (
       (SELECT subscription_id, plugin_id, next_at FROM event_deliveries WHERE state = 'waiting'
        ORDER BY subscription_id, plugin_id, event_id LIMIT 1)
       UNION ALL
       SELECT n.* FROM heads h CROSS JOIN LATERAL (
         SELECT d.subscription_id, d.plugin_id, d.next_at FROM event_deliveries d
         WHERE d.state = 'waiting' AND (d.subscription_id, d.plugin_id) > (h.subscription_id, h.plugin_id)
         ORDER BY d.subscription_id, d.plugin_id, d.event_id LIMIT 1) n)
     SELECT h.subscription_id, h.plugin_id,
       CASE WHEN h.next_at > now() + make_interval(secs => $1::float8 / 1000) THEN 0
            ELSE (extract(epoch FROM h.next_at - now()) * 1000)::float8 END AS due_ms
     FROM heads h JOIN event_subscriptions s ON s.id = h.subscription_id AND s.enabled ORDER BY h.next_at`,
    [LIMITS.eventRetryMsMax],
  );
}

/** The first events of a line, with how often each was tried. */
export async function listWaiting(
  db: Queryable,
  line: Line,
  limit: number,
): Promise<Array<{ event: StoredEvent; attempts: number }>> {
  const rows = await findRows<StoredEvent & { attempts: number }>(
    db,
    `SELECT e.*, d.attempts FROM event_deliveries d JOIN events e ON e.id = d.event_id
     WHERE d.subscription_id = $1 AND d.plugin_id = $2 AND d.state = 'waiting' ORDER BY d.event_id LIMIT $3`,
    [line.subscriptionId, line.pluginId, limit],
  );
  return rows.map(({ attempts, ...event }) => ({ event, attempts }));
}

export async function setDelivered(
  db: Queryable,
  subscriptionId: number,
  eventId: number,
  status: number,
): Promise<void> {
  await db.query(
    `UPDATE event_deliveries SET state = 'delivered', attempts = attempts + 1, last_status = $3, last_error = '', ended_at = now()
     WHERE subscription_id = $1 AND event_id = $2`,
    [subscriptionId, eventId, status],
  );
}

/** An attempt failed. @param afterMs until the next one; null: there is none */
export async function setFailed(
  db: Queryable,
  subscriptionId: number,
  eventId: number,
  of: { status: number | null; why: string; afterMs: number | null },
): Promise<void> {
  await db.query(
    `UPDATE event_deliveries SET attempts = attempts + 1, last_status = $3, last_error = $4,
       state = CASE WHEN $5::float8 IS NULL THEN 'dead' ELSE state END,
       ended_at = CASE WHEN $5::float8 IS NULL THEN now() END,
       next_at = now() + make_interval(secs => coalesce($5::float8, 0) / 1000)
     WHERE subscription_id = $1 AND event_id = $2`,
    [subscriptionId, eventId, of.status, of.why.slice(0, 500), of.afterMs],
  );
}

/** What a subscriber has not taken for so long is dead with the event before it: it has had the same time. @returns how many */
export async function setOldDead(db: Queryable, line: Line, ageMs: number): Promise<number> {
  const { rowCount } = await db.query(
    `UPDATE event_deliveries d SET state = 'dead', ended_at = now(), last_error = 'the events before it were not taken for too long'
     FROM events e WHERE e.id = d.event_id AND d.subscription_id = $1 AND d.plugin_id = $2 AND d.state = 'waiting'
       AND e.at < now() - make_interval(secs => $3::float8 / 1000)`,
    [line.subscriptionId, line.pluginId, ageMs],
  );
  return rowCount ?? 0;
}

/** Dead deliveries wait again, one or all; lines that wait for their time go on at once. @returns how many */
export async function retryDeliveries(
  client: Queryable,
  subscriptionId: number,
  eventId: string | null,
): Promise<number> {
  const { rowCount } = await client.query(
    `UPDATE event_deliveries d SET state = 'waiting', attempts = 0, next_at = now(), ended_at = NULL FROM events e
     WHERE d.subscription_id = $1 AND e.id = d.event_id AND ($2::uuid IS NULL OR e.event_id = $2)
       AND (d.state = 'dead' OR (d.state = 'waiting' AND d.next_at > now()))`,
    [subscriptionId, eventId],
  );
  return rowCount ?? 0;
}

export type Delivery = {
  id: number;
  event: StoredEvent;
  state: DeliveryState;
  attempts: number;
  nextAt: Date;
  lastStatus: number | null;
  lastError: string;
  endedAt: Date | null;
};

/** Deliveries to a subscriber, the newest event first. */
export async function listDeliveries(
  db: Queryable,
  subscriptionId: number,
  state: DeliveryState | null,
  before: number,
  limit: number,
): Promise<Delivery[]> {
  const rows = await findRows<StoredEvent & Omit<Delivery, 'event'>>(
    db,
    `SELECT e.*, d.state, d.attempts, d.next_at, d.last_status, d.last_error, d.ended_at
     FROM event_deliveries d JOIN events e ON e.id = d.event_id
     WHERE d.subscription_id = $1 AND ($2::text IS NULL OR d.state = $2) AND d.event_id < $3 ORDER BY d.event_id DESC LIMIT $4`,
    [subscriptionId, state, before, limit],
  );
  return rows.map(({ attempts, endedAt, lastError, lastStatus, nextAt, state, ...event }) => ({
    ...{ id: event.id, event, state, attempts, nextAt, lastStatus, lastError, endedAt },
  }));
}

/** How many deliveries of each state there are, by subscriber. */
export async function countDeliveries(
  db: Queryable,
  ids: readonly number[],
): Promise<Map<number, Record<DeliveryState, number>>> {
  const rows = await findRows<Record<DeliveryState | 'subscriptionId', number>>(
    db,
    `SELECT subscription_id, count(*) FILTER (WHERE state = 'waiting')::int AS waiting,
       count(*) FILTER (WHERE state = 'delivered')::int AS delivered, count(*) FILTER (WHERE state = 'dead')::int AS dead
     FROM event_deliveries WHERE subscription_id = ANY ($1) GROUP BY subscription_id`,
    [ids],
  );
  return new Map(rows.map(({ subscriptionId, ...counts }) => [subscriptionId, counts]));
}

/** Deliveries that wait, those that died within a day, and for how many seconds the oldest has waited; for metrics. */
export async function countOpenDeliveries(
  db: Queryable,
): Promise<{ waiting: number; dead: number; oldestSeconds: number }> {
  const { rows } = await db.query<{ waiting: number; dead: number; oldest: number | null }>(
    `SELECT (SELECT count(*)::int FROM event_deliveries WHERE state = 'dead' AND ended_at > now() - interval '1 day') AS dead,
       count(*)::int AS waiting, extract(epoch FROM now() - min(e.at))::float8 AS oldest
     FROM event_deliveries d JOIN events e ON e.id = d.event_id WHERE d.state = 'waiting'`,
  );
  const { dead = 0, oldest = 0, waiting = 0 } = rows[0] ?? {};
  return { dead, waiting, oldestSeconds: oldest ?? 0 };
}

/** Deliveries that were given up and wait for a replay. */
export async function countDeadDeliveries(db: Queryable): Promise<number> {
  const { rows } = await db.query<{ n: number }>(
    "SELECT count(*)::int AS n FROM event_deliveries WHERE state = 'dead'",
  );
  return rows[0]?.n ?? 0;
}
