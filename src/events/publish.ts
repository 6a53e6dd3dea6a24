import type { Queryable } from '../db/database.ts';
import { lockNamedForTransaction } from '../db/locks.ts';
import { removeInBatches } from '../db/remove-in-batches.ts';
import { findRow, findRows, loadRow } from '../db/rows.ts';
import { appendDeliveries } from './deliveries.ts';
import type { StoredEvent } from './event.ts';

/** Events of plugins as CloudEvents 1.0 (docs/events.md). */

/** Channel on which hosts of one database hear of events; the payload is the number of one. */
export const EVENT_PUBLISHED = 'event_published';

export type NewEvent = {
  pluginId: string;
  type: string;
  data: string;
  requestId: string;
  traceparent: string;
  onceKey: string | null;
};

/**
 * Stores an event with a delivery for every subscriber that wants it, inside the caller's transaction. Those of one plugin get their numbers in
 * the order of their commits.
 *
 * @returns whether a subscriber is to be told; null for one that was published before
 */
export async function publishEvent(client: Queryable, e: NewEvent): Promise<boolean | null> {
  await lockNamedForTransaction(client, 'events', e.pluginId);
  const { rows } = await client.query<{ id: string }>(
    `INSERT INTO events (plugin_id, type, data, request_id, traceparent, once_key) VALUES ($1, $2, $3, $4, $5, $6)
     ON CONFLICT (once_key) DO NOTHING RETURNING id`,
    [e.pluginId, e.type, e.data, e.requestId, e.traceparent, e.onceKey],
  );
  const id = rows[0]?.id;
  if (id === undefined) return null;
  const deliveries = await appendDeliveries(client, Number(id), e);
  await client.query('SELECT pg_notify($1, $2)', [EVENT_PUBLISHED, id]);
  return deliveries > 0;
}

export type EventFilter = { pluginId?: string; type?: string };

/** Events, the newest first. */
export async function listEvents(db: Queryable, f: EventFilter, before: number, limit: number): Promise<StoredEvent[]> {
  return await findRows<StoredEvent>(
    db,
    `SELECT * FROM events WHERE id < $1 AND ($2::text IS NULL OR plugin_id = $2) AND ($3::text IS NULL OR type = $3)
     ORDER BY id DESC LIMIT $4`,
    [before, f.pluginId ?? null, f.type ?? null, limit],
  );
}

/** @param eventId the id under which subscribers get it */
export async function findEvent(db: Queryable, eventId: string): Promise<StoredEvent | undefined> {
  return await findRow<StoredEvent>(db, 'SELECT * FROM events WHERE event_id = $1', [eventId]);
}

/** Numbers of events behind one, the oldest first. */
export async function eventIdsAfter(db: Queryable, after: number, limit: number): Promise<number[]> {
  const rows = await findRows<{ id: number }>(db, 'SELECT id FROM events WHERE id > $1 ORDER BY id LIMIT $2', [
    after,
    limit,
  ]);
  return rows.map(r => r.id);
}

/** Events of these numbers, the oldest first. */
export async function listEventsByIds(db: Queryable, ids: readonly number[]): Promise<StoredEvent[]> {
  return await findRows<StoredEvent>(db, 'SELECT * FROM events WHERE id = ANY ($1) ORDER BY id', [ids]);
}

/** Number of the last event; 0 when there is none. */
export async function lastEventId(db: Queryable): Promise<number> {
  return (await loadRow<{ id: number | null }>(db, 'SELECT max(id) AS id FROM events')).id ?? 0;
}

/** Old events are forgotten, when no subscriber waits for them any more. @returns how many */
export async function removeOldEvents(db: Queryable, ageMs: number): Promise<number> {
  return await removeInBatches(
    db,
    `DELETE FROM events WHERE id IN
       (SELECT id FROM events e WHERE at < now() - $1 * interval '1 ms'
          AND NOT EXISTS (SELECT 1 FROM event_deliveries d WHERE d.event_id = e.id AND d.state = 'waiting') LIMIT $2)`,
    [ageMs],
  );
}
