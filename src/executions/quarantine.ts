import type { ExecutionOutcome, OutcomeKind } from '../abi/execution-outcome.ts';
import { type Actor, appendAudit } from '../audit/audit-log.ts';
import type { Database } from '../db/database.ts';
import { LIMITS } from '../limits.ts';
import { notifyChanged } from '../plugins/plugin-store.ts';

/** A suspended trigger, or a whole plugin when `trigger` is empty. `until` null: until an administrator resumes it. */
export type Suspension = {
  pluginId: string;
  trigger: string;
  since: Date;
  until: Date | null;
  level: number;
  cause: string;
};

type SuspensionSql = {
  plugin_id: string;
  trigger_name: string;
  since: Date;
  until: Date | null;
  level: number;
  cause: string;
};

/** Clocks of hosts differ by less. */
const CLOCKS_DIFFER_MS = 60_000;

/** A suspension that begins in the future was written before the clock was set back: it is over. */
const isActive = (s: Suspension, nowMs: number): boolean =>
  s.until === null || (s.until.getTime() > nowMs && s.since.getTime() <= nowMs + CLOCKS_DIFFER_MS);

type Strikes = { times: number[]; level: number };

const CAUSES_QUARANTINE: ReadonlySet<OutcomeKind> = new Set(['trapped', 'deadline', 'crashed']);

const keyOf = (pluginId: string, trigger: string): string => `${pluginId}\0${trigger}`;

/**
 * Suspends a trigger whose executions trap or time out three times in a row within a minute: 30 s, doubling to 10
 * minutes (decisions.md 5). A success in between forgets the strikes; a whole quiet minute after a suspension forgets
 * its level.
 */
export class Quarantine {
  readonly #db: Database;
  readonly #onError: (error: unknown) => void;
  readonly #strikes = new Map<string, Strikes>();
  #active = new Map<string, Suspension>();
  /** Suspensions whose row is not written yet: reading the table must not lose them. */
  readonly #writing = new Map<string, Suspension>();

  readonly #pending = new Set<Promise<void>>();

  constructor(db: Database, onError: (error: unknown) => void) {
    this.#db = db;
    this.#onError = onError;
  }

  /** Reads what is suspended, at start and when another host has changed it. */
  async load(): Promise<void> {
    const { rows } = await this.#db.query<SuspensionSql>('SELECT * FROM plugin_quarantine');
    this.#active = new Map(
      rows.map(r => [
        keyOf(r.plugin_id, r.trigger_name),
        {
          pluginId: r.plugin_id,
          trigger: r.trigger_name,
          since: r.since,
          until: r.until,
          level: r.level,
          cause: r.cause,
        },
      ]),
    );
    for (const [key, s] of this.#writing) this.#active.set(key, s);
  }

  /** The suspension a request runs into, if any. */
  find(pluginId: string, trigger: string, nowMs: number): Suspension | undefined {
    if (this.#active.size === 0) return undefined;
    for (const t of ['', trigger]) {
      const s = this.#active.get(keyOf(pluginId, t));
      if (s !== undefined && isActive(s, nowMs)) return s;
    }
    return undefined;
  }

  list(pluginId: string, nowMs: number): Suspension[] {
    return [...this.#active.values()].filter(s => s.pluginId === pluginId && isActive(s, nowMs));
  }

  /** An execution of a trigger is over. */
  note(pluginId: string, trigger: string, o: Pick<ExecutionOutcome, 'kind' | 'failure'>, nowMs: number): void {
    if (o.kind === 'ok') this.#succeeded(pluginId, trigger);
    else if (CAUSES_QUARANTINE.has(o.kind))
      this.#failed(pluginId, trigger, `${o.kind}: ${o.failure.split('\n')[0] ?? ''}`, nowMs);
  }

  #succeeded(pluginId: string, trigger: string): void {
    if (this.#strikes.size > 0) {
      const strikes = this.#strikes.get(keyOf(pluginId, trigger));
      if (strikes !== undefined) strikes.times = [];
    }
  }

  /** Counts a trap or a timeout; suspends at the third in a row within a minute. */
  #failed(pluginId: string, trigger: string, cause: string, nowMs: number): void {
    // What was under way when the suspension began says nothing new.
    if (this.find(pluginId, trigger, nowMs) !== undefined) return;
    const key = keyOf(pluginId, trigger);
    const strikes = this.#strikes.get(key) ?? { times: [], level: 0 };
    this.#strikes.set(key, strikes);
    strikes.times = [...strikes.times.filter(t => t > nowMs - LIMITS.quarantineWindowMs), nowMs];
    if (strikes.times.length < LIMITS.quarantineStrikes) return;
    const before = this.#active.get(key);
    const quiet = before?.until != null && before.until.getTime() + LIMITS.quarantineMs < nowMs;
    const level = before === undefined || quiet ? 0 : before.level + 1;
    strikes.times = [];
    const ms = Math.min(LIMITS.quarantineMs, LIMITS.quarantineFirstMs * 2 ** level);
    const written = this.suspend({
      pluginId,
      trigger,
      since: new Date(nowMs),
      until: new Date(nowMs + ms),
      level,
      cause,
    })
      .catch(this.#onError)
      .finally(() => this.#pending.delete(written));
    this.#pending.add(written);
  }

  /** Suspends at once on this host, and on the others when the row is written. */
  async suspend(s: Suspension): Promise<void> {
    const key = keyOf(s.pluginId, s.trigger);
    this.#active.set(key, s);
    this.#writing.set(key, s);
    try {
      await this.#write(s);
    } finally {
      if (this.#writing.get(key) === s) this.#writing.delete(key);
    }
  }

  async #write(s: Suspension): Promise<void> {
    await this.#db.withTransaction(async client => {
      await client.query(
        `INSERT INTO plugin_quarantine (plugin_id, trigger_name, since, until, level, cause)
         SELECT $1, $2, $3, $4, $5, $6 WHERE EXISTS (SELECT 1 FROM plugins WHERE id = $1)
         ON CONFLICT (plugin_id, trigger_name) DO UPDATE SET since = EXCLUDED.since, until = EXCLUDED.until, level = EXCLUDED.level, cause = EXCLUDED.cause`,
        [s.pluginId, s.trigger, s.since, s.until, s.level, s.cause],
      );
      await notifyChanged(client, s.pluginId);
    });
  }

  /** Waits for suspensions that are being written. */
  async close(): Promise<void> {
    await Promise.all(this.#pending);
  }

  /** Lifts a suspension; false when there is none. */
  async resume(pluginId: string, trigger: string, by: Actor): Promise<boolean> {
    // A suspension that is being written just now would come back behind the deletion.
    await this.close();
    this.#active.delete(keyOf(pluginId, trigger));
    this.#strikes.delete(keyOf(pluginId, trigger));
    return await this.#db.withTransaction(async client => {
      const { rowCount } = await client.query(
        'DELETE FROM plugin_quarantine WHERE plugin_id = $1 AND trigger_name = $2',
        [pluginId, trigger],
      );
      await notifyChanged(client, pluginId);
      if ((rowCount ?? 0) > 0)
        await appendAudit(client, by, {
          action: trigger === '' ? 'plugin.resume' : 'trigger.resume',
          objectType: trigger === '' ? 'plugin' : 'trigger',
          objectId: trigger === '' ? pluginId : `${pluginId}/${trigger}`,
        });
      return (rowCount ?? 0) > 0;
    });
  }
}
