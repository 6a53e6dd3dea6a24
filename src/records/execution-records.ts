import type { LogLine, OutcomeKind } from '../abi/execution-outcome.ts';
import { LIMITS } from '../base/limits.ts';
import { readPrincipal, userText } from '../base/principal.ts';
import { storableText } from '../base/storable-text.ts';
import { type Database, isUnavailable, type Queryable } from '../db/database.ts';
import { removeInBatches } from '../db/remove-in-batches.ts';
import { findRow, findRows, loadRow } from '../db/rows.ts';
import type { EndedRecording } from './recording.ts';
import { RecordingAllowance } from './recording-allowance.ts';

/** What is stored of an execution (docs/plugins.md "Records"), or of a caller that a policy refused: `refused`. */
export type ExecutionRecord = {
  requestId: string;
  /** Trace id of the caller's trace context, or empty. */
  traceId: string;
  pluginId: string;
  version: string;
  trigger: string;
  principal: string;
  outcome: OutcomeKind | 'refused';
  status: number;
  startedAt: Date;
  queueWaitMs: number;
  runMs: number;
  hostCalls: number;
  peakPages: number;
  failure: string;
  log: LogLine[];
  /** The policy verdict with all graph checks it made; null without a policy. */
  decision: object | null;
  /** The recording, as JSON, with which it can run again; null where it was not recorded. */
  recording: Buffer | null;
};

export type StoredRecord = Omit<ExecutionRecord, 'recording'> & { id: number };

/** A record as a list shows it, without what is long. */
export type ListedRecord = Omit<StoredRecord, 'log' | 'decision'> & { logLines: number };

export type RecordFilter = {
  plugin?: string;
  /** `failed`: every outcome but `ok` and `refused`. */
  outcome?: string;
  trigger?: string;
  /** `user:<id>`, `service:<id>` or `public`. */
  principal?: string;
  since?: Date;
  until?: Date;
  requestId?: string;
  traceId?: string;
};

const isFailure = (outcome: string): boolean => outcome !== 'ok' && outcome !== 'refused';

/** Whether a filter of a list takes a record. */
export const takesRecord = (f: RecordFilter, r: ListedRecord): boolean =>
  (f.plugin === undefined || f.plugin === r.pluginId) &&
  (f.outcome === undefined || f.outcome === r.outcome || (f.outcome === 'failed' && isFailure(r.outcome))) &&
  (f.trigger === undefined || f.trigger === r.trigger) &&
  (f.principal === undefined || f.principal === r.principal);

const FLUSH_MS = 250;
const BATCH = 500;
const RETRY_MS = 2000;
/**
 * Records kept in memory while the database is unavailable; beyond that the oldest are dropped, and their number is
 * logged.
 */
const BACKLOG_MAX = 10_000;
/** Records that may wait while recordings are still kept. */
const RECORDING_BACKLOG_MAX = 200;

const COLUMNS = `id, request_id, trace_id, plugin_id, version, trigger_name AS trigger, principal, outcome, status, started_at,
  queue_wait_ms, run_ms, host_calls, peak_pages, failure`;
/** Logs and decisions may have many KB, and stay in the database. */
const LISTED = `${COLUMNS}, jsonb_array_length(log) AS log_lines`;
const STORED = `${COLUMNS}, log, decision`;
const WITHOUT_LOG = `${COLUMNS}, decision`;

/** Conditions of a filter, as SQL with its values. Only what is given stands there, so that an index fits it. */
function conditions(f: RecordFilter): { where: string[]; values: unknown[] } {
  const where: string[] = [];
  const values: unknown[] = [];
  const add = (condition: string, value: unknown): void => {
    if (value !== undefined) where.push(condition.replace('?', `$${values.push(value)}`));
  };
  add('plugin_id = ?', f.plugin);
  if (f.outcome === 'failed') where.push("outcome NOT IN ('ok', 'refused')");
  else add('outcome = ?', f.outcome);
  add('trigger_name = ?', f.trigger);
  add('principal = ?', f.principal);
  add('started_at >= ?', f.since);
  add('started_at < ?', f.until);
  add('request_id = ?', f.requestId);
  add('trace_id = ?', f.traceId);
  return { where, values };
}

/**
 * Writes execution records in batches, after the response. Failures and executions that logged an error are always
 * recorded; of the other successes, the first few of each trigger per second.
 */
export class ExecutionRecords {
  readonly #db: Database;
  readonly #onError: (error: unknown, lost: number) => void;
  #backlog: ExecutionRecord[] = [];
  #timer: NodeJS.Timeout | null = null;
  #writing: Promise<void> = Promise.resolve();
  #second = 0;
  #lost = 0;
  readonly #successes = new Map<object, number>();
  #successesOfAll = 0;
  readonly #allowance = new RecordingAllowance();
  readonly #logged = new Map<string, { hour: number; bytes: number }>();

  constructor(db: Database, onError: (error: unknown, lost: number) => void) {
    this.#db = db;
    this.#onError = onError;
  }

  /**
   * Whether to record a success that has no other reason to be recorded: a few per second are sampled.
   *
   * @param trigger object that represents the trigger; always the same one
   * @param nowMs since the epoch
   */
  wants(trigger: object, nowMs: number): boolean {
    const second = Math.floor(nowMs / 1000);
    if (second !== this.#second) {
      this.#second = second;
      this.#successes.clear();
      this.#successesOfAll = 0;
    }
    const n = this.#successes.get(trigger) ?? 0;
    if (n >= LIMITS.recordedSuccessesPerSecond || this.#successesOfAll >= LIMITS.recordedSuccessesOfAllPerSecond)
      return false;
    this.#successes.set(trigger, n + 1);
    this.#successesOfAll++;
    return true;
  }

  /** @param recording packed only when it is kept: a plugin has an allowance for each hour */
  append(record: Omit<ExecutionRecord, 'recording'>, recording: EndedRecording | null = null): void {
    if (this.#backlog.length >= BACKLOG_MAX) {
      this.#lost++;
      return;
    }
    const isKept =
      recording !== null &&
      recording.bytes <= LIMITS.recordingBytesMax &&
      this.#backlog.length <= RECORDING_BACKLOG_MAX &&
      this.#allowance.take(record.pluginId, record.startedAt, recording.bytes);
    this.#backlog.push({
      ...record,
      log: this.#withinHour(record),
      recording: isKept ? this.#packed(recording) : null,
    });
    this.#timer ??= setTimeout(() => this.#flushSoon(), FLUSH_MS);
  }

  /** What a caller has sent fails no execution: then there is a record without a recording. */
  #packed(recording: EndedRecording): Buffer | null {
    try {
      return recording.pack();
    } catch (error) {
      this.#onError(error, 0);
      return null;
    }
  }

  /**
   * Log lines of a plugin beyond its hourly allowance are dropped, and the record says so (docs/plugins.md "Records").
   */
  #withinHour(record: Omit<ExecutionRecord, 'recording'>): LogLine[] {
    if (record.log.length === 0) return record.log;
    const hour = Math.floor(record.startedAt.getTime() / 3_600_000);
    const used = this.#logged.get(record.pluginId);
    const before = used?.hour === hour ? used.bytes : 0;
    const bytes = record.log.reduce((sum, l) => sum + l.text.length + 16, 0);
    if (before + bytes > LIMITS.logBytesPerPluginHour)
      return [
        {
          level: 2,
          text: `log dropped: the plugin has used up its ${LIMITS.logBytesPerPluginHour} bytes of this hour`,
        },
      ];
    this.#logged.set(record.pluginId, { hour, bytes: before + bytes });
    return record.log;
  }

  #flushSoon(): void {
    this.#timer = null;
    this.#writing = this.#writing.then(() => this.#write());
  }

  async #write(): Promise<void> {
    while (this.#backlog.length > 0) {
      const batch = this.#backlog.splice(0, BATCH);
      try {
        await insert(this.#db, batch);
      } catch (error) {
        if (mayPass(error)) return this.#putBack(batch, error);
        // The database refuses one of the records; the others must not wait for it.
        if (!(await this.#writeOneByOne(batch))) return;
      }
    }
    if (this.#lost > 0)
      this.#onError(
        new Error('execution records were dropped: the database is slower than the executions'),
        this.#lost,
      );
    this.#lost = 0;
  }

  /** @returns false when the rest was put back */
  async #writeOneByOne(batch: ExecutionRecord[]): Promise<boolean> {
    for (const [k, one] of batch.entries()) {
      try {
        await insert(this.#db, [one]);
      } catch (error) {
        if (mayPass(error)) {
          this.#putBack(batch.slice(k), error);
          return false;
        }
        this.#onError(error, 1);
      }
    }
    return true;
  }

  #putBack(batch: ExecutionRecord[], error: unknown): void {
    this.#backlog = [...batch, ...this.#backlog];
    const over = Math.max(0, this.#backlog.length - BACKLOG_MAX);
    this.#backlog.splice(0, over);
    this.#onError(error, over);
    this.#timer ??= setTimeout(() => this.#flushSoon(), RETRY_MS);
  }

  /** Writes the waiting records now: at the end of the service, and before a read that must see recent records. */
  async flush(): Promise<void> {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#flushSoon();
    await this.#writing;
  }

  async close(): Promise<void> {
    await this.flush();
    if (this.#timer !== null) clearTimeout(this.#timer);
  }

  /** Lists records of all plugins, newest first. */
  async list(f: RecordFilter, before: number, limit: number): Promise<ListedRecord[]> {
    await this.flush();
    const { values, where } = conditions(f);
    const below = `$${values.push(before)}`;
    return await findRows<ListedRecord>(
      this.#db,
      `SELECT ${LISTED} FROM execution_records WHERE ${[`id < ${below}`, ...where].join(' AND ')}
       ORDER BY id DESC LIMIT $${values.push(limit)}`,
      values,
    );
  }

  async find(pluginId: string, id: number): Promise<StoredRecord | undefined> {
    const where = 'plugin_id = $1 AND id = $2';
    return await findRow<StoredRecord>(this.#db, `SELECT ${STORED} FROM execution_records WHERE ${where}`, [
      pluginId,
      id,
    ]);
  }

  /**
   * Drops the parts of the records that are over, a week or a month at a time, and makes the next ones. Row by row go those that are in
   * no part. Then removes old recordings.
   *
   * @returns how many parts were dropped, and how many rows were removed
   */
  async removeOld(ageMs: number): Promise<{ parts: number; rows: number }> {
    const { parts } = await loadRow<{ parts: number }>(
      this.#db,
      "SELECT execution_records_keep($1 * interval '1 ms') AS parts",
      [ageMs],
    );
    const rows = await removeInBatches(
      this.#db,
      `DELETE FROM execution_records_other WHERE id IN
         (SELECT id FROM execution_records_other WHERE started_at < now() - $1 * interval '1 ms' LIMIT $2)`,
      [ageMs],
    );
    await removeRecordings(this.#db, ageMs);
    return { parts, rows };
  }
}

/**
 * Users are held as a foreign key would hold them: an erasure under way is waited for, and one that follows finds these
 * records. What is written for a user who is no more has no name, like the records `eraseCaller` has changed.
 */
async function insert(db: Database, batch: ExecutionRecord[]): Promise<void> {
  const column = <T>(of: (r: ExecutionRecord) => T): T[] => batch.map(of);
  await db.query(
    `INSERT INTO execution_records (request_id, plugin_id, version, trigger_name, principal, outcome, status, started_at,
       queue_wait_ms, run_ms, host_calls, peak_pages, failure, log, trace_id, decision, recording)
     WITH held AS MATERIALIZED (
       SELECT 'user:' || id AS principal FROM global_users WHERE id = ANY($18::bigint[]) ORDER BY id FOR KEY SHARE
     )
     SELECT request_id, plugin_id, version, trigger_name, CASE WHEN is_erased THEN 'erased' ELSE principal END, outcome,
       status, started_at, queue_wait_ms, run_ms, host_calls, peak_pages, failure,
       CASE WHEN is_erased THEN '[]' ELSE log END, trace_id, CASE WHEN is_erased THEN NULL ELSE decision END,
       CASE WHEN is_erased THEN NULL ELSE recording END
     FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::int[], $8::timestamptz[],
       $9::real[], $10::real[], $11::int[], $12::int[], $13::text[], $14::jsonb[], $15::text[], $16::jsonb[], $17::bytea[])
       AS r (request_id, plugin_id, version, trigger_name, principal, outcome, status, started_at, queue_wait_ms, run_ms,
         host_calls, peak_pages, failure, log, trace_id, decision, recording)
     CROSS JOIN LATERAL (
       SELECT principal LIKE 'user:%' AND principal NOT IN (SELECT h.principal FROM held h) AS is_erased
     ) e`,
    [
      column(r => r.requestId),
      column(r => r.pluginId),
      column(r => r.version),
      column(r => r.trigger),
      column(r => r.principal),
      column(r => r.outcome),
      column(r => r.status),
      column(r => r.startedAt),
      column(r => r.queueWaitMs),
      column(r => r.runMs),
      column(r => r.hostCalls),
      column(r => r.peakPages),
      column(r => storableText(r.failure)),
      column(r => JSON.stringify(r.log.map(l => ({ level: l.level, text: storableText(l.text) })))),
      column(r => r.traceId),
      column(r => (r.decision === null ? null : JSON.stringify(r.decision).replaceAll('\\u0000', '\\ufffd'))),
      column(r => r.recording),
      usersOf(batch),
    ],
  );
}

/** Whether the database takes the same records later: it is away, or has no room (class 53). */
const mayPass = (error: unknown): boolean =>
  isUnavailable(error) || (error instanceof Error && 'code' in error && /^53...$/.test(String(error.code)));

function usersOf(batch: readonly ExecutionRecord[]): number[] {
  const principals = batch.map(r => readPrincipal(r.principal));
  return [...new Set(principals.flatMap(p => (p?.kind === 'user' ? p.userId : [])))];
}

/** Numbers of records behind one, the oldest first. */
export async function recordIdsAfter(db: Queryable, after: number, limit: number): Promise<number[]> {
  const statement = 'SELECT id FROM execution_records WHERE id > $1 ORDER BY id LIMIT $2';
  return (await findRows<{ id: number }>(db, statement, [after, limit])).map(r => r.id);
}

/** Records of these numbers, the oldest first. */
export async function listRecordsByIds(db: Queryable, ids: readonly number[]): Promise<ListedRecord[]> {
  return await findRows<ListedRecord>(db, `SELECT ${LISTED} FROM execution_records WHERE id = ANY ($1) ORDER BY id`, [
    ids,
  ]);
}

/** Number of the last record; 0 when there is none. */
export async function lastRecordId(db: Queryable): Promise<number> {
  return (await findRow<{ id: number }>(db, 'SELECT id FROM execution_records ORDER BY id DESC LIMIT 1'))?.id ?? 0;
}

/** The executions that failed last, without what their plugins logged. */
export async function listRecentFailures(db: Database, limit: number): Promise<Array<Omit<StoredRecord, 'log'>>> {
  return await findRows<Omit<StoredRecord, 'log'>>(
    db,
    `SELECT ${WITHOUT_LOG} FROM execution_records WHERE outcome NOT IN ('ok', 'refused') ORDER BY started_at DESC LIMIT $1`,
    [limit],
  );
}

/** The plugins that ran last, the latest first. */
export async function listRecentlyRun(db: Database, limit: number): Promise<string[]> {
  const { rows } = await db.query<{ id: string }>({
    name: 'executions.recent',
    text: `SELECT p.id FROM plugins p
      CROSS JOIN LATERAL (SELECT id FROM execution_records WHERE plugin_id = p.id ORDER BY id DESC LIMIT 1) e
      ORDER BY e.id DESC LIMIT $1`,
    values: [limit],
  });
  return rows.map(r => r.id);
}

/** Executions a user has caused, without what their plugins logged. */
export async function listExecutionsOf(
  db: Queryable,
  userId: number,
  limit: number,
): Promise<Array<Omit<StoredRecord, 'log'>>> {
  return await findRows<Omit<StoredRecord, 'log'>>(
    db,
    `SELECT ${WITHOUT_LOG} FROM execution_records WHERE principal = $1 ORDER BY id DESC LIMIT $2`,
    [userText(userId), limit],
  );
}

/** Takes a user out of the records of executions, with what plugins logged for the user. @returns how many */
export async function eraseCaller(client: Queryable, userId: number): Promise<number> {
  const { rowCount } = await client.query(
    `UPDATE execution_records SET principal = 'erased', log = '[]', decision = NULL, recording = NULL WHERE principal = $1`,
    [userText(userId)],
  );
  return rowCount ?? 0;
}

/**
 * Takes recordings out of records that are old enough to go, which stay until their whole part goes, and the oldest
 * recordings of plugins that have more than their share.
 *
 * @returns how many
 */
export async function removeRecordings(db: Queryable, ageMs: number): Promise<number> {
  return await removeInBatches(
    db,
    `UPDATE execution_records r SET recording = NULL
     FROM (SELECT e.id, e.started_at FROM execution_records e
           JOIN (SELECT id, started_at, row_number() OVER newest AS nth, sum(octet_length(recording)) OVER newest AS bytes
                 FROM execution_records WHERE recording IS NOT NULL
                 WINDOW newest AS (PARTITION BY plugin_id ORDER BY id DESC)) k USING (id, started_at)
           WHERE k.nth > $1 OR k.bytes > $2 OR k.started_at < now() - $3 * interval '1 ms'
           -- A person may be erased meanwhile, and another host does the same.
           ORDER BY e.id LIMIT $4 FOR UPDATE OF e SKIP LOCKED) o
     WHERE r.id = o.id AND r.started_at = o.started_at`,
    [LIMITS.recordingsPerPlugin, LIMITS.recordingBytesPerPlugin, ageMs],
  );
}
