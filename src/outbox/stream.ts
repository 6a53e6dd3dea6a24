import { z } from 'zod';
import { LIMITS } from '../base/limits.ts';
import type { Queryable } from '../db/database.ts';
import { removeInBatches } from '../db/remove-in-batches.ts';
import { findRow, findRows } from '../db/rows.ts';
import type { Tuple, TupleFilter } from '../graph/tuple.ts';
import type { OutboxEntry } from './plan.ts';

/** Channel on which the deliverer tells every host what reached the store. */
export const OUTBOX_DELIVERED = 'authz_delivered';

/** Names in a notification, which holds 8000 bytes at most (PostgreSQL, NOTIFY). */
const NOTICE_BYTES_MAX = 7000;
/** An owner that did nothing for so long while something waits is taken over from. */
const SILENT = "interval '1 second'";
/** A deliverer whose transaction says nothing for so long is cut off by the database, and another host takes over. */
const CUT_OFF_MS = 3000;

/** Who delivers, and how far; the row is locked for as long as a host works on the line. */
export type StreamState = {
  owner: string | null;
  epoch: number;
  failures: number;
  /** Mark of the store that is delivered to; null before the first. */
  store: string | null;
  /** The position the store was last told; null before the first delivery. */
  position: StreamPosition | null;
};

/** Where a store stands in the history of the outbox: the number of its last write, and the newest entry it has as `<id>_<mark>`. */
export type StreamPosition = { tick: number; entry: string };

/** What reached the store: the token of its revision, and whose study groups changed; null: perhaps those of all users. */
export type Delivered = { token: string; users: string[] | null };

const tupleColumns = z.object({
  resource_type: z.string(),
  resource_id: z.string(),
  relation: z.string(),
  subject_type: z.string(),
  subject_id: z.string(),
  subject_relation: z.string().default(''),
});
const payload = z.object({
  tuples: z.array(tupleColumns).default([]),
  filter: tupleColumns.partial().optional(),
  removed: z.array(tupleColumns).optional(),
});

function tupleOfRow(row: z.input<typeof tupleColumns>): Tuple {
  return {
    resourceType: row.resource_type,
    resourceId: row.resource_id,
    relation: row.relation,
    subjectType: row.subject_type,
    subjectId: row.subject_id,
    subjectRelation: row.subject_relation ?? '',
  };
}

function filterOfRow(f: NonNullable<z.infer<typeof payload>['filter']>): TupleFilter {
  const resource = {
    ...(f.resource_type === undefined ? {} : { resourceType: f.resource_type }),
    ...(f.resource_id === undefined ? {} : { resourceId: f.resource_id }),
    ...(f.relation === undefined ? {} : { relation: f.relation }),
  };
  if (f.subject_type === undefined) return resource;
  return {
    ...resource,
    subjectType: f.subject_type,
    ...(f.subject_id === undefined ? {} : { subjectId: f.subject_id }),
  };
}

/** An entry as it is stored. */
type StoredEntry = Omit<OutboxEntry, 'tuples' | 'filter' | 'removed'> & { payload: unknown };

function readEntry({ payload: stored, ...entry }: StoredEntry): OutboxEntry {
  const { filter: f, removed, tuples } = payload.parse(stored);
  return {
    ...entry,
    tuples: tuples.map(tupleOfRow),
    filter: f === undefined ? null : filterOfRow(f),
    removed: removed?.map(tupleOfRow) ?? null,
  };
}

/** What is read of the row, and how long the caller's transaction may say nothing: a host that is cut off keeps the others from delivering no longer. */
const LOCKED = `owner, epoch, failures, store, tick, position,
  set_config('idle_in_transaction_session_timeout', '${CUT_OFF_MS}', true)`;

/**
 * Locks the stream for the caller's transaction. To `look` leaves alone a host that delivers: until it did nothing for a while by its own entry, where
 * a time that lies ahead was written before the clock was set back, and protects no host. To `deliver` is for the host that runs the job, so for one
 * at a time; both do nothing while the stream pauses or is locked. To `hold` waits for the lock, and has it also while the stream pauses.
 *
 * @returns null when it is not the caller's turn
 */
export async function lockStream(
  client: Queryable,
  owner: string,
  to: 'look' | 'deliver' | 'hold',
): Promise<StreamState | null> {
  const row = await findRow<Omit<StreamState, 'position'> & { tick: number; position: string | null }>(
    client,
    to === 'hold'
      ? `SELECT ${LOCKED} FROM authz_stream FOR UPDATE`
      : `SELECT ${LOCKED} FROM authz_stream
         WHERE wait_left(paused_until, authz_backoff(failures)) = interval '0'
           AND ($2 OR owner IS NULL OR owner = $1 OR worked_at IS NULL
             OR worked_at NOT BETWEEN clock_timestamp() - ${SILENT} AND clock_timestamp())
         FOR UPDATE SKIP LOCKED`,
    to === 'hold' ? [] : [owner, to === 'deliver'],
  );
  if (row === undefined) return null;
  const { epoch, failures, owner: present, position, store, tick } = row;
  return { owner: present, epoch, failures, store, position: position === null ? null : { tick, entry: position } };
}

/** Keeps a transaction that waits for the store from counting as one of a host that is cut off. */
export async function keepAlive<T>(client: Queryable, work: () => Promise<T>): Promise<T> {
  // A client is asked one thing at a time.
  let asked: Promise<unknown> | null = null;
  const timer = setInterval(() => {
    asked ??= client
      .query('SELECT 1')
      .catch(() => {})
      .finally(() => (asked = null));
  }, CUT_OFF_MS / 3);
  try {
    return await work();
  } finally {
    clearInterval(timer);
    await asked;
  }
}

/** Whether an entry by its `<id>_<mark>` is one of this database. */
export async function knowsEntry(db: Queryable, entry: string): Promise<boolean> {
  const [, id, mark] = /^(\d{1,18})_([0-9a-f-]{36})$/.exec(entry) ?? [];
  if (id === undefined) return false;
  const { rowCount } = await db.query('SELECT FROM authz_outbox WHERE id = $1 AND mark::text = $2', [id, mark]);
  return rowCount === 1;
}

/** A part of the line, in order: entries behind an id. */
export async function readLine(client: Queryable, afterId: number): Promise<OutboxEntry[]> {
  const rows = await findRows<StoredEntry>(
    client,
    `SELECT id, operation, payload, keys, attempts, mark,
       extract(epoch FROM wait_left(locked_until, authz_backoff(attempts)))::float8 * 1000 AS parked_ms
     FROM authz_outbox WHERE processed_at IS NULL AND dead_at IS NULL AND id > $2 ORDER BY id LIMIT $1`,
    [LIMITS.outboxWindow, afterId],
  );
  return rows.map(readEntry);
}

/** Whether anything waits. */
export async function hasLine(db: Queryable): Promise<boolean> {
  const { rows } = await db.query<{ waits: boolean }>(
    'SELECT EXISTS (SELECT FROM authz_outbox WHERE processed_at IS NULL AND dead_at IS NULL) AS waits',
  );
  return rows[0]?.waits ?? false;
}

/** Whether every entry of a range has been delivered, or has died. */
export async function areSettled(db: Queryable, firstId: number, lastId: number): Promise<boolean> {
  const { rows } = await db.query<{ settled: boolean }>(
    `SELECT NOT EXISTS (SELECT FROM authz_outbox WHERE id BETWEEN $1 AND $2 AND processed_at IS NULL AND dead_at IS NULL) AS settled`,
    [firstId, lastId],
  );
  return rows[0]?.settled ?? false;
}

/** The objects that the line names, as `type:id`. */
export async function readPendingKeys(db: Queryable): Promise<Set<string>> {
  const { rows } = await db.query<{ key: string }>(
    'SELECT DISTINCT unnest(keys) AS key FROM authz_outbox WHERE processed_at IS NULL AND dead_at IS NULL',
  );
  return new Set(rows.map(r => r.key));
}

/** @param position where the owner found the store; null leaves what is written */
export async function saveOwner(
  client: Queryable,
  owner: string,
  epoch: number,
  position: StreamPosition | null,
): Promise<void> {
  await client.query(
    `UPDATE authz_stream SET owner = $1, epoch = $2, worked_at = clock_timestamp(), tick = coalesce($3, tick),
       position = coalesce($4, position)`,
    [owner, epoch, position?.tick ?? null, position?.entry ?? null],
  );
}

/** From now on this store is delivered to. */
export async function saveStore(client: Queryable, store: string): Promise<void> {
  await client.query('UPDATE authz_stream SET store = $1', [store]);
}

/** The entries are in the store: says so here and to all hosts, as part of the caller's transaction. */
export async function markDelivered(
  client: Queryable,
  entries: readonly OutboxEntry[],
  delivered: Delivered,
  position: StreamPosition | null,
): Promise<void> {
  const ids = entries.map(e => e.id);
  await client.query(
    'UPDATE authz_outbox SET processed_at = clock_timestamp(), last_error = NULL, locked_until = NULL WHERE id = ANY ($1)',
    [ids],
  );
  await noteDelivered(client, ids.at(-1) ?? 0, delivered, position);
}

/** A store was filled from the mirror, which holds what every entry up to an id meant. */
export async function markFilled(
  client: Queryable,
  lastId: number,
  token: string,
  position: StreamPosition,
): Promise<void> {
  await client.query(
    `UPDATE authz_outbox SET processed_at = clock_timestamp(), last_error = NULL, locked_until = NULL
     WHERE processed_at IS NULL AND dead_at IS NULL AND id <= $1`,
    [lastId],
  );
  await noteDelivered(client, lastId, { token, users: null }, position);
}

async function noteDelivered(
  client: Queryable,
  lastId: number,
  { token, users }: Delivered,
  position: StreamPosition | null,
): Promise<void> {
  // An operation that changed nothing leaves no token.
  await client.query(
    `UPDATE authz_stream SET last_token = CASE WHEN $1 = '' THEN last_token ELSE $1 END,
       last_token_at = CASE WHEN $1 = '' THEN last_token_at ELSE clock_timestamp() END,
       last_id = greatest(last_id, $2), worked_at = clock_timestamp(), failures = 0, paused_until = NULL, paused_since = NULL,
       last_error = NULL, tick = coalesce($3, tick), position = coalesce($4, position)`,
    [token, lastId, position?.tick ?? null, position?.entry ?? null],
  );
  const notice = JSON.stringify({ token, users });
  const short = Buffer.byteLength(notice) > NOTICE_BYTES_MAX ? JSON.stringify({ token, users: null }) : notice;
  await client.query('SELECT pg_notify($1, $2)', [OUTBOX_DELIVERED, short]);
}

const notice = z.object({ token: z.string(), users: z.array(z.string()).nullable() });

/** A value that cannot be read, as another release may write it, means that everything may have changed. */
export function parseDelivered(text: string): Delivered {
  try {
    return notice.parse(JSON.parse(text));
  } catch {
    return { token: '', users: null };
  }
}

/** The store will not take this entry: it waits for its next attempt, and after the last one it is dead. */
export async function markRefused(client: Queryable, id: number, error: string): Promise<void> {
  await client.query(
    `UPDATE authz_outbox SET attempts = attempts + 1, last_error = $2,
       locked_until = clock_timestamp() + authz_backoff(attempts + 1),
       dead_at = CASE WHEN attempts + 1 >= $3 THEN clock_timestamp() END
     WHERE id = $1`,
    [id, error.slice(0, 500), LIMITS.outboxAttemptsMax],
  );
}

/** The store is away: the whole stream pauses, and no entry is to blame. The head shows the reason. */
export async function pauseStream(client: Queryable, head: OutboxEntry | undefined, error: string): Promise<void> {
  const text = error.slice(0, 500);
  await client.query(
    `UPDATE authz_stream SET failures = failures + 1, last_error = $1, worked_at = clock_timestamp(),
       paused_until = clock_timestamp() + authz_backoff(failures + 1), paused_since = coalesce(paused_since, clock_timestamp())`,
    [text],
  );
  if (head !== undefined) await client.query('UPDATE authz_outbox SET last_error = $2 WHERE id = $1', [head.id, text]);
}

export async function isPaused(db: Queryable): Promise<boolean> {
  const { rows } = await db.query<{ paused: boolean }>(
    "SELECT wait_left(paused_until, authz_backoff(failures)) > interval '0' AS paused FROM authz_stream",
  );
  return rows[0]?.paused ?? false;
}

/**
 * A host cannot reach its store and has nothing it could deliver to. Others may go on, so nothing pauses; while none of them does, the reason is
 * shown as that of the stream.
 */
export async function noteAway(db: Queryable, error: string): Promise<void> {
  await db.query(
    `UPDATE authz_stream SET last_error = $1, paused_since = coalesce(paused_since, clock_timestamp())
     WHERE worked_at IS NULL OR worked_at NOT BETWEEN clock_timestamp() - ${SILENT} AND clock_timestamp()`,
    [error.slice(0, 500)],
  );
}

/** The store is back, before the pause is over. */
export async function endPause(db: Queryable): Promise<void> {
  await db.query(
    'UPDATE authz_stream SET paused_until = NULL, paused_since = NULL, last_error = NULL WHERE paused_since IS NOT NULL OR paused_until IS NOT NULL',
  );
}

/** @returns the last id it goes on under, 0 when nothing is left to deliver, null when there is no such dead entry */
export const requeue = async (client: Queryable, id: number, by: string): Promise<number | null> => {
  const { rows } = await client.query<{ id: string | null }>('SELECT authz_requeue($1, $2) AS id', [id, by]);
  const last = rows[0]?.id ?? null;
  return last === null ? null : Number(last);
};

/** Discards a dead entry. False when there is no such dead entry. */
export async function discard(client: Queryable, id: number, by: string): Promise<boolean> {
  const { rowCount } = await client.query(
    `UPDATE authz_outbox SET resolution = 'discarded', resolved_at = now(), resolved_by = $2
     WHERE id = $1 AND dead_at IS NOT NULL AND resolution IS NULL`,
    [id, by],
  );
  return rowCount === 1;
}

/** Entries that are done are kept for a while; dead ones until an administrator resolves them. */
export async function removeOldEntries(db: Queryable): Promise<void> {
  for (const over of [
    'processed_at < now() - make_interval(days => $1)',
    'dead_at IS NOT NULL AND resolved_at < now() - make_interval(days => $1)',
  ])
    await removeInBatches(
      db,
      `DELETE FROM authz_outbox WHERE id IN (SELECT id FROM authz_outbox WHERE ${over} LIMIT $2)`,
      [LIMITS.outboxDays],
    );
}
