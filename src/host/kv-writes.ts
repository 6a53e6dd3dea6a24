import { assertInTime, CallTooLate, Gatherer } from '../base/gatherer.ts';
import { type Database, isUnavailable } from '../db/database.ts';

/** Writes of the key-value store that come at the same time, from executions of one plugin, are one statement. */

const SET = {
  name: 'kv_set',
  text: `INSERT INTO plugin_kv (plugin_id, key, value, expires_at)
         VALUES ($1, $2, $3, CASE WHEN $4::int = 0 THEN NULL ELSE now() + make_interval(secs => $4::int) END)
         ON CONFLICT (plugin_id, key) DO UPDATE SET value = EXCLUDED.value, expires_at = EXCLUDED.expires_at`,
};
/** Rows are locked in the order in which they are given. */
const SET_TOGETHER = {
  name: 'kv_set_together',
  text: `INSERT INTO plugin_kv (plugin_id, key, value, expires_at)
         SELECT $1, key, value, CASE WHEN ttl = 0 THEN NULL ELSE now() + make_interval(secs => ttl) END
         FROM unnest($2::text[], $3::bytea[], $4::int[]) AS given (key, value, ttl)
         ON CONFLICT (plugin_id, key) DO UPDATE SET value = EXCLUDED.value, expires_at = EXCLUDED.expires_at`,
};
const DELETE = {
  name: 'kv_delete',
  text: 'DELETE FROM plugin_kv WHERE plugin_id = $1 AND key = $2 RETURNING expires_at IS NULL OR expires_at > now() AS live',
};
/** By key, because a row that another transaction changes meanwhile has another place then. */
const DELETE_TOGETHER = {
  name: 'kv_delete_together',
  text: `WITH locked AS MATERIALIZED (SELECT key FROM plugin_kv WHERE plugin_id = $1 AND key = ANY ($2::text[])
           ORDER BY key FOR UPDATE)
         DELETE FROM plugin_kv WHERE plugin_id = $1 AND key = ANY (ARRAY(SELECT key FROM locked))
         RETURNING key, expires_at IS NULL OR expires_at > now() AS live`,
};

const WRITES_MAX = 100;
const BYTES_MAX = 4 * 1024 * 1024;

/** A write to one key. `value` is null for a deletion; `resolve` gets whether the key had a value that was not expired. */
type Write = {
  key: string;
  value: Uint8Array | null;
  ttlSeconds: number;
  deadline: number;
  resolve(existed: boolean): void;
  reject(error: unknown): void;
};

/** The order of the column's collation "C": rows are locked in it, so that two hosts do not wait for each other. */
const byKeyBytes = (a: Write, b: Write): number => Buffer.compare(Buffer.from(a.key), Buffer.from(b.key));

/**
 * Whether the server itself says that it has refused a statement. Any other error leaves open whether it was done; so
 * does an error of the server's system (58) or an internal one (XX), which may come in the middle of a commit.
 */
const wasUndone = (error: unknown): boolean =>
  error instanceof Error &&
  'severity' in error &&
  'code' in error &&
  !/^(58|XX)/.test(String(error.code)) &&
  !isUnavailable(error);

export type KvWrites = {
  /** @param ttlSeconds 0 = no expiry @param deadline of the execution, in ms of `performance.now()` */
  set(pluginId: string, key: string, value: Uint8Array, ttlSeconds: number, deadline: number): Promise<void>;
  /** @returns whether the key had a value */
  delete(pluginId: string, key: string, deadline: number): Promise<boolean>;
};

/**
 * Gathers writes by plugin. A batch holds sets alone or deletions alone, and the writes of one key keep their order:
 * one batch of a plugin is under way at a time. A statement cannot fail for one row alone, so the writes of a statement
 * that the database has refused and undone are done one by one; after a lost connection none is repeated, because any
 * of them may have been done.
 */
export function makeKvWrites(db: Database): KvWrites {
  const one = async (pluginId: string, { deadline, key, ttlSeconds, value }: Write): Promise<boolean> => {
    assertInTime(deadline);
    if (value !== null) {
      await db.query({ ...SET, values: [pluginId, key, value, ttlSeconds] });
      return true;
    }
    const { rows } = await db.query<{ live: boolean }>({ ...DELETE, values: [pluginId, key] });
    return rows[0]?.live === true;
  };
  const oneByOne = async (pluginId: string, batch: Write[]): Promise<void> => {
    for (const write of batch) await one(pluginId, write).then(write.resolve, write.reject);
  };
  const together = async (pluginId: string, batch: Write[]): Promise<void> => {
    if (batch[0]!.value === null) {
      const { rows } = await db.query<{ key: string; live: boolean }>({
        ...DELETE_TOGETHER,
        values: [pluginId, batch.map(w => w.key)],
      });
      const live = new Map(rows.map(row => [row.key, row.live]));
      for (const write of batch) write.resolve(live.get(write.key) === true);
      return;
    }
    // The last of several sets of one key counts: no reader can tell that the others were not there for a moment.
    const last = [...new Map(batch.map(write => [write.key, write])).values()].sort(byKeyBytes);
    await db.query({
      ...SET_TOGETHER,
      values: [pluginId, last.map(w => w.key), last.map(w => w.value), last.map(w => w.ttlSeconds)],
    });
    for (const write of batch) write.resolve(true);
  };
  const run = async (pluginId: string, batch: Write[]): Promise<void> => {
    const now = performance.now();
    const inTime = batch.filter(write => write.deadline > now || void write.reject(new CallTooLate()));
    if (inTime.length <= 1) return oneByOne(pluginId, inTime);
    try {
      await together(pluginId, inTime);
    } catch (error) {
      if (wasUndone(error)) return oneByOne(pluginId, inTime);
      for (const write of inTime) write.reject(error);
    }
  };
  const writes = new Gatherer<Write>({
    batchesMax: 1,
    take: takeBatch,
    run,
    isOver: write => performance.now() >= write.deadline,
    drop: write => write.reject(new CallTooLate()),
  });
  const add = (pluginId: string, write: Omit<Write, 'resolve' | 'reject'>): Promise<boolean> =>
    new Promise((resolve, reject) => writes.add(pluginId, { ...write, resolve, reject }));
  return {
    async set(pluginId, key, value, ttlSeconds, deadline) {
      await add(pluginId, { key, value, ttlSeconds, deadline });
    },
    delete: (pluginId, key, deadline) => add(pluginId, { key, value: null, ttlSeconds: 0, deadline }),
  };
}

/**
 * The next batch: the oldest write and all of its kind that may go with it. A write stays behind when an older write of
 * its key does; deletions of one key are not in the same batch, because each answers whether there was a value.
 */
function takeBatch(waiting: Write[]): Write[] {
  const batch: Write[] = [];
  const rest: Write[] = [];
  const passed = new Set<string>();
  const isDeletion = waiting[0]?.value === null;
  let bytes = 0;
  for (const write of waiting) {
    const size = write.value?.length ?? 0;
    const fits = batch.length === 0 || (batch.length < WRITES_MAX && bytes + size <= BYTES_MAX);
    if ((write.value === null) === isDeletion && fits && !passed.has(write.key)) {
      batch.push(write);
      bytes += size;
      if (isDeletion) passed.add(write.key);
    } else {
      rest.push(write);
      passed.add(write.key);
    }
  }
  waiting.splice(0, waiting.length, ...rest);
  return batch;
}

/** Rows removed by one statement, so that no lock is held for long. */
const SWEPT_AT_ONCE = 5000;

/** Removes expired values in batches; returns how many. Reads do not see them before that either. */
export async function sweepExpired(db: Database): Promise<number> {
  for (let removed = 0; ; ) {
    const { rowCount } = await db.query(
      `DELETE FROM plugin_kv WHERE ctid = ANY (ARRAY
         (SELECT ctid FROM plugin_kv WHERE expires_at <= now() LIMIT $1 FOR UPDATE SKIP LOCKED))`,
      [SWEPT_AT_ONCE],
    );
    removed += rowCount ?? 0;
    if ((rowCount ?? 0) < SWEPT_AT_ONCE) return removed;
  }
}
