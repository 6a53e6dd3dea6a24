import { type Actor, appendAudit } from '../audit/audit-log.ts';
import type { Database, Queryable } from '../db/database.ts';
import { findRow, findRows, loadRow } from '../db/rows.ts';
import type { GraphChange } from './append.ts';
import { discard, requeue } from './stream.ts';

export const ENTRY_STATES = ['pending', 'processed', 'dead', 'requeued', 'discarded'] as const;

/** An entry as administrators see it (docs/outbox.md "Entries"). */
export type OutboxRow = {
  id: number;
  operation: GraphChange['operation'];
  state: (typeof ENTRY_STATES)[number];
  payload: Record<string, unknown>;
  keys: string[];
  attempts: number;
  lastError: string | null;
  createdAt: Date;
  processedAt: Date | null;
  lockedUntil: Date | null;
  deadAt: Date | null;
  resolution: 'requeued' | 'discarded' | null;
  resolvedBy: string | null;
  requeueOf: number | null;
};

/** How far the line is. */
export type OutboxState = {
  pending: number;
  /** How many of them have failed before, and are tried again later. */
  backingOff: number;
  dead: number;
  /** Age of what waits longest; null when nothing waits. */
  oldestPendingSeconds: number | null;
  /** From commit to the store, of what was delivered in the last five minutes; null when nothing was. */
  lagMs: { p50: number; p99: number } | null;
  lastError: string | null;
  lastId: number;
};

/** Why nothing is delivered, whatever an entry itself met: the graph store does not answer. */
export type StreamPause = {
  since: Date;
  /** Delivery is tried again then at the latest; null: all the time. */
  until: Date | null;
  reason: string;
};

/** Null while the stream is not paused. */
export async function findPause(db: Queryable): Promise<StreamPause | null> {
  const { rows } = await db.query<{ since: Date | null; until: Date | null; last_error: string | null }>(
    `SELECT paused_since AS since, last_error,
       CASE WHEN wait_left(paused_until, authz_backoff(failures)) > interval '0' THEN paused_until END AS until FROM authz_stream`,
  );
  const since = rows[0]?.since ?? null;
  if (since === null) return null;
  return { since, until: rows[0]?.until ?? null, reason: rows[0]?.last_error ?? '' };
}

const STATE = `CASE WHEN processed_at IS NOT NULL THEN 'processed' WHEN dead_at IS NULL THEN 'pending' ELSE coalesce(resolution, 'dead') END`;

/** As the partial indexes say it. */
const OF_STATE: Record<OutboxRow['state'], string> = {
  pending: 'processed_at IS NULL AND dead_at IS NULL',
  processed: 'processed_at IS NOT NULL',
  dead: 'dead_at IS NOT NULL AND resolution IS NULL',
  requeued: "resolution = 'requeued'",
  discarded: "resolution = 'discarded'",
};

/** Newest first. */
export async function listEntries(
  db: Queryable,
  filter: { state: OutboxRow['state'] | undefined; key: string | undefined },
  before: number,
  limit: number,
): Promise<OutboxRow[]> {
  return await findRows<OutboxRow>(
    db,
    `SELECT *, ${STATE} AS state FROM authz_outbox
     WHERE id < $1 AND ${filter.state === undefined ? 'true' : OF_STATE[filter.state]} AND ($3::text IS NULL OR $3 = ANY (keys))
     ORDER BY id DESC LIMIT $2`,
    [before, limit, filter.key ?? null],
  );
}

export async function findEntry(db: Queryable, id: number): Promise<OutboxRow | undefined> {
  return await findRow<OutboxRow>(db, `SELECT *, ${STATE} AS state FROM authz_outbox WHERE id = $1`, [id]);
}

const hundredths = (ms: number): number => Math.round(ms * 100) / 100;

/** Entries that wait and entries that are dead, and for how many seconds the oldest has waited; for metrics. */
export async function outboxCounts(db: Queryable): Promise<{ pending: number; dead: number; oldestSeconds: number }> {
  return await loadRow<{ pending: number; dead: number; oldestSeconds: number }>(
    db,
    `SELECT count(*) AS pending,
       coalesce(extract(epoch FROM clock_timestamp() - min(created_at)), 0)::float8 AS oldest_seconds,
       (SELECT count(*) FROM authz_outbox WHERE ${OF_STATE.dead}) AS dead
     FROM authz_outbox WHERE ${OF_STATE.pending}`,
  );
}

export async function outboxState(db: Queryable): Promise<OutboxState> {
  const { p50, p99, ...state } = await loadRow<Omit<OutboxState, 'lagMs'> & Record<'p50' | 'p99', number | null>>(
    db,
    `SELECT s.last_error, s.last_id,
       (SELECT count(*) FROM authz_outbox WHERE processed_at IS NULL AND dead_at IS NULL) AS pending,
       (SELECT count(*) FROM authz_outbox WHERE processed_at IS NULL AND dead_at IS NULL AND attempts > 0) AS backing_off,
       (SELECT count(*) FROM authz_outbox WHERE dead_at IS NOT NULL AND resolution IS NULL) AS dead,
       (SELECT extract(epoch FROM clock_timestamp() - min(created_at))::float8 FROM authz_outbox WHERE processed_at IS NULL AND dead_at IS NULL) AS oldest_pending_seconds,
       l.p50, l.p99
     FROM authz_stream s,
       (SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY ms) AS p50, percentile_cont(0.99) WITHIN GROUP (ORDER BY ms) AS p99
        FROM (SELECT extract(epoch FROM processed_at - created_at)::float8 * 1000 AS ms FROM authz_outbox
              WHERE processed_at > clock_timestamp() - interval '5 minutes' LIMIT 100000) d) l`,
  );
  return { ...state, lagMs: p50 === null || p99 === null ? null : { p50: hundredths(p50), p99: hundredths(p99) } };
}

/**
 * Puts what a dead entry would mean now to the tail of the line (docs/outbox.md "Failures").
 *
 * @returns the id it goes on under, 0 when nothing is left to deliver, null when the entry is not dead
 */
export async function retryEntry(db: Database, id: number, by: Actor): Promise<number | null> {
  return await db.withTransaction(async client => {
    const entry = await findEntry(client, id);
    if (entry?.state !== 'dead') return null;
    await appendAudit(client, by, { action: 'outbox.retry', objectType: 'outbox', objectId: String(id) });
    // Last, like every change of the graph: all others wait from here to the commit.
    return await requeue(client, id, by.name);
  });
}

/** @returns false when the entry is not dead */
export async function discardEntry(db: Database, id: number, by: Actor): Promise<boolean> {
  return await db.withTransaction(async client => {
    if (!(await discard(client, id, by.name))) return false;
    await appendAudit(client, by, { action: 'outbox.discard', objectType: 'outbox', objectId: String(id) });
    return true;
  });
}
