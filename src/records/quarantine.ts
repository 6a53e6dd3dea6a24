import type { ExecutionOutcome } from '../abi/execution-outcome.ts';
import { type Actor, appendAudit } from '../audit/audit-log.ts';
import { LIMITS } from '../base/limits.ts';
import type { Database, Queryable } from '../db/database.ts';
import { findRows } from '../db/rows.ts';
import { notifyChanged } from '../plugins/plugin-store.ts';
import { type StrikeMessage, Strikes } from './strikes.ts';
import {
  isActive,
  readSuspension,
  reasonOf,
  type StoredSuspension,
  type Suspension,
  type SuspensionReason,
  storedDetails,
} from './suspension.ts';

/** Channel on which hosts tell each other that an administrator resumed a trigger or plugin, or changed its version. */
export const RESUMED = 'plugin_resumed';

/** The part of a plugin that suspensions need. */
export type SuspendablePlugin = { readonly id: string; readonly versionId: number };

/** The caller and the trigger of an execution that failed. */
type Failing = { pluginId: string; trigger: string; caller: string };
type Failed = { reason: SuspensionReason; failure: string; cause: string };

type Key = Pick<Suspension, 'pluginId' | 'trigger' | 'versionId' | 'caller'>;

const keyOf = (s: Key): string => `${s.pluginId}\0${s.trigger}\0${s.versionId}\0${s.caller ?? ''}`;

/**
 * Suspends a trigger whose executions trap or time out three times in a row within a minute: for 30 s, doubling up to
 * 10 minutes. Failures of one caller suspend it for that caller, on this host only. Failures of at least two callers
 * suspend it for all callers, on every host. A success resets the strikes; ten minutes without a strike after a
 * suspension reset its level. Versions that crashed the serving process are suspended here too (`suspects`).
 */
export class Quarantine {
  readonly #db: Database;
  readonly #onSuspended: (s: Suspension) => void;
  readonly #onError: (error: unknown) => void;
  readonly #tell: (message: StrikeMessage) => void;
  readonly #strikes = new Strikes();
  /** Suspensions for all callers, as stored in the table. */
  #active = new Map<string, Suspension>();
  /** Suspensions for one caller, which are kept only on this host, the latest at the end. */
  readonly #ofCallers = new Map<string, Suspension>();
  /** Suspensions whose row is not written yet; reading the table must not lose them. */
  readonly #writing = new Map<string, Suspension>();
  /** The reading that began last. */
  #loading: Promise<void> = Promise.resolve();
  readonly #pending = new Set<Promise<void>>();
  /** Plugins whose version has just changed, and when: what still ends of another version does not count. */
  readonly #changed = new Map<string, { versionId: number; atMs: number }>();

  /**
   * @param onSuspended called, for the log, with every suspension this host makes
   * @param onError called when a suspension cannot be stored
   * @param tell tells the other serving processes of this host, which call `hearStrike`
   */
  constructor(
    db: Database,
    onSuspended: (s: Suspension) => void,
    onError: (error: unknown) => void,
    tell: (message: StrikeMessage) => void,
  ) {
    this.#db = db;
    this.#onSuspended = onSuspended;
    this.#onError = onError;
    this.#tell = tell;
  }

  /** Reads the suspensions, at the start and when another host has changed them. One reading follows the other: the last one counts. */
  async load(): Promise<void> {
    this.#loading = this.#loading.catch(() => {}).then(() => this.#read());
    await this.#loading;
  }

  async #read(): Promise<void> {
    const rows = await findRows<StoredSuspension>(this.#db, 'SELECT * FROM plugin_quarantine');
    this.#active = new Map(rows.map(readSuspension).map(s => [keyOf(s), s]));
    for (const [key, s] of this.#writing) this.#active.set(key, s);
  }

  /** The suspension that applies to a request, if any. */
  find({ id: pluginId, versionId }: SuspendablePlugin, trigger: string, caller: string, nowMs: number) {
    if (this.#active.size === 0 && this.#ofCallers.size === 0) return undefined;
    for (const s of [
      this.#active.get(keyOf({ pluginId, trigger: '', versionId, caller: null })),
      this.#active.get(keyOf({ pluginId, trigger, versionId: 0, caller: null })),
      this.#ofCallers.get(keyOf({ pluginId, trigger, versionId: 0, caller })),
    ])
      if (s !== undefined && isActive(s, nowMs)) return s;
    return undefined;
  }

  /** The suspensions of a plugin, or of all (null); of those for one caller only the latest. */
  list(pluginId: string | null, nowMs: number): Suspension[] {
    const here = (s: Suspension): boolean => (pluginId === null || s.pluginId === pluginId) && isActive(s, nowMs);
    return [
      ...[...this.#active.values()].filter(here),
      ...[...this.#ofCallers.values()].filter(here).reverse().slice(0, LIMITS.listLimitMax),
    ];
  }

  /** Counts the outcome of an execution. */
  note(
    plugin: SuspendablePlugin,
    trigger: string,
    caller: string,
    o: Pick<ExecutionOutcome, 'kind' | 'failure'>,
    nowMs: number,
  ): void {
    if (this.#isReplaced(plugin, nowMs)) return;
    const of = { pluginId: plugin.id, trigger, caller };
    if (o.kind === 'ok') {
      this.#strikes.noteSuccess(plugin.id, trigger, caller, nowMs);
      if (this.#strikes.forget(plugin.id, trigger, caller)) this.#tell({ kind: 'strikes_forgotten', ...of });
      return;
    }
    const reason = reasonOf(o.kind);
    if (reason === undefined) return;
    // An execution that was under way when the suspension began does not count again.
    if (this.find(plugin, trigger, caller, nowMs) !== undefined) return;
    const failure = o.failure.split('\n')[0] ?? '';
    const how = { reason, failure, cause: `${reason}: ${failure}` };
    this.#failed(of, how, nowMs);
    const well = this.#strikes.countWell(plugin.id, trigger, nowMs);
    this.#tell({ kind: 'strike', ...of, ...how, atMs: nowMs, well });
  }

  /** Whether an execution is of a version that another one has just replaced. */
  #isReplaced({ id, versionId }: SuspendablePlugin, nowMs: number): boolean {
    const change = this.#changed.get(id);
    if (change === undefined) return false;
    // Afterwards none of them can still run. Were it for ever, a host that misses a change would count nothing.
    if (nowMs > change.atMs + LIMITS.quarantineWindowMs) this.#changed.delete(id);
    return change.versionId !== versionId && this.#changed.has(id);
  }

  /**
   * Counts what happened in another serving process of this host. All of them count the same, so each suspends by itself;
   * a suspension for all callers is then written more than once, with the same content. A process that knows of more
   * callers for whom the trigger works answers a strike with their number; strikes that come faster than the answer are
   * judged without it.
   */
  hearStrike(m: StrikeMessage): void {
    // All processes hear of it from the database.
    if (m.kind === 'trigger_resumed') return;
    if (m.kind === 'strikes_forgotten') this.#strikes.forget(m.pluginId, m.trigger, m.caller);
    else if (m.kind === 'callers_well') this.#strikes.hearWell(m.pluginId, m.trigger, m.well, m.atMs);
    else if (!this.#isSuspended(m)) {
      const { atMs, pluginId, trigger } = m;
      const well = this.#strikes.countWell(pluginId, trigger, atMs);
      if (well > m.well) this.#tell({ kind: 'callers_well', pluginId, trigger, well, atMs });
      this.#failed(m, m, atMs, m.well);
    }
  }

  #isSuspended({ atMs, caller, pluginId, trigger }: Extract<StrikeMessage, { kind: 'strike' }>): boolean {
    const of = { pluginId, trigger, versionId: 0 };
    const found = [this.#active.get(keyOf({ ...of, caller: null })), this.#ofCallers.get(keyOf({ ...of, caller }))];
    return found.some(s => s !== undefined && isActive(s, atMs));
  }

  /** Counts a trap or a timeout. @param well callers that went well lately in the process that tells; null for this one */
  #failed(
    { caller: by, pluginId, trigger }: Failing,
    { cause, failure, reason }: Failed,
    nowMs: number,
    well: number | null = null,
  ): void {
    const verdict = this.#strikes.add(pluginId, trigger, by, nowMs, well);
    if (verdict.kind === 'none') return;
    const caller = verdict.kind === 'caller' ? by : null;
    const callers = verdict.kind === 'all' ? verdict.callers : 1;
    const key = { pluginId, trigger, versionId: 0, caller };
    const before = (caller === null ? this.#active : this.#ofCallers).get(keyOf(key));
    const quiet = before?.until != null && before.until.getTime() + LIMITS.quarantineMs < nowMs;
    const level = before === undefined || quiet ? 0 : before.level + 1;
    const ms = Math.min(LIMITS.quarantineMs, LIMITS.quarantineFirstMs * 2 ** level);
    const why = { reason, failure, version: null, crashes: [], cause };
    const s = { ...key, since: new Date(nowMs), until: new Date(nowMs + ms), level, ...why, callers };
    if (caller !== null) return this.#suspendCaller(s);
    const written = this.suspend(s)
      .catch(this.#onError)
      .finally(() => this.#pending.delete(written));
    this.#pending.add(written);
  }

  #suspendCaller(s: Suspension): void {
    const key = keyOf(s);
    this.#ofCallers.delete(key);
    this.#ofCallers.set(key, s);
    if (this.#ofCallers.size > LIMITS.callersCountedMax) {
      const oldest = this.#ofCallers.keys().next();
      if (!oldest.done) this.#ofCallers.delete(oldest.value);
    }
    this.#onSuspended(s);
  }

  /** Suspends for all callers: at once on this host, on the others when the row is written. */
  async suspend(s: Suspension): Promise<void> {
    const key = keyOf(s);
    this.#active.set(key, s);
    this.#writing.set(key, s);
    this.#onSuspended(s);
    try {
      await this.#write(s);
    } finally {
      if (this.#writing.get(key) === s) this.#writing.delete(key);
    }
  }

  async #write(s: Suspension): Promise<void> {
    const details = JSON.stringify(storedDetails(s));
    await this.#db.withTransaction(async client => {
      await client.query(
        `INSERT INTO plugin_quarantine
           (plugin_id, trigger_name, version_id, since, until, level, cause, callers, reason, details)
         SELECT $1, $2, $3, $4, $5, $6, $7, $8, $9, $10 WHERE EXISTS (SELECT 1 FROM plugins WHERE id = $1)
         ON CONFLICT (plugin_id, trigger_name, version_id) DO UPDATE SET since = EXCLUDED.since, until = EXCLUDED.until,
           level = EXCLUDED.level, cause = EXCLUDED.cause, callers = EXCLUDED.callers, reason = EXCLUDED.reason,
           details = EXCLUDED.details`,
        [s.pluginId, s.trigger, s.versionId, s.since, s.until, s.level, s.cause, s.callers, s.reason, details],
      );
      await notifyChanged(client, s.pluginId);
    });
  }

  /** The suspension of a version after crashes, even if it has ended. */
  findOfVersion(pluginId: string, versionId: number): Suspension | undefined {
    return this.#active.get(keyOf({ pluginId, trigger: '', versionId, caller: null }));
  }

  /** Removes strikes and suspensions that are too old to count. */
  sweep(nowMs: number): void {
    this.#strikes.sweep(nowMs);
    for (const [key, s] of this.#ofCallers)
      if ((s.until?.getTime() ?? 0) + LIMITS.quarantineMs < nowMs) this.#ofCallers.delete(key);
  }

  /** Waits until all suspensions are written. */
  async close(): Promise<void> {
    await Promise.all(this.#pending);
  }

  /**
   * Lifts all suspensions of a trigger, or with an empty name those of the plugin's versions; false when there is none.
   */
  async resume(pluginId: string, trigger: string, by: Actor): Promise<boolean> {
    // A suspension that is still being written would reappear after the deletion.
    await this.close();
    const here = this.#lift(pluginId, trigger);
    this.#tell({ kind: 'trigger_resumed', pluginId, trigger });
    return await this.#db.withTransaction(async client => {
      const { rowCount } = await client.query(
        'DELETE FROM plugin_quarantine WHERE plugin_id = $1 AND trigger_name = $2',
        [pluginId, trigger],
      );
      await notifyChanged(client, pluginId);
      await client.query('SELECT pg_notify($1, $2)', [RESUMED, JSON.stringify([pluginId, trigger])]);
      const resumed = here || (rowCount ?? 0) > 0;
      if (resumed)
        await appendAudit(client, by, {
          action: trigger === '' ? 'plugin.resume' : 'trigger.resume',
          objectType: trigger === '' ? 'plugin' : 'trigger',
          objectId: trigger === '' ? pluginId : `${pluginId}/${trigger}`,
        });
      return resumed;
    });
  }

  /**
   * Lifts the suspensions of all triggers of a plugin: this version runs now, and not the one that failed. The version is
   * installed whether or not that can be stored; suspensions then end by themselves.
   */
  async changeVersion(pluginId: string, versionId: number, by: Actor): Promise<void> {
    await this.close();
    const here = this.#liftTriggers(pluginId, versionId);
    await this.#db
      .withTransaction(client => this.#deleteTriggers(client, pluginId, versionId, here, by))
      .catch(this.#onError);
  }

  async #deleteTriggers(
    client: Queryable,
    pluginId: string,
    versionId: number,
    lifted: readonly string[],
    by: Actor,
  ): Promise<void> {
    const rows = await findRows<StoredSuspension>(
      client,
      "DELETE FROM plugin_quarantine WHERE plugin_id = $1 AND trigger_name <> '' RETURNING *",
      [pluginId],
    );
    const stored = rows.map(readSuspension).filter(s => isActive(s, Date.now()));
    if (rows.length > 0) await notifyChanged(client, pluginId);
    // Other hosts may have suspended it for callers of theirs.
    await client.query('SELECT pg_notify($1, $2)', [RESUMED, JSON.stringify([pluginId, versionId])]);
    for (const trigger of new Set([...lifted, ...stored.map(s => s.trigger)])) {
      this.#tell({ kind: 'trigger_resumed', pluginId, trigger });
      const objectId = `${pluginId}/${trigger}`;
      await appendAudit(client, by, { action: 'trigger.resume', objectType: 'trigger', objectId });
    }
  }

  /** Applies that an administrator resumed a trigger or plugin, or changed its version, on this host or another. */
  hear(payload: string): void {
    const told: unknown = JSON.parse(payload);
    if (!Array.isArray(told)) return;
    const [pluginId, what]: unknown[] = told;
    if (typeof what === 'number') this.#liftTriggers(String(pluginId), what);
    else this.#lift(String(pluginId), String(what));
  }

  /** Removes suspensions from memory. @returns whether there were any */
  #lift(pluginId: string, trigger: string): boolean {
    this.#strikes.clear(pluginId, trigger);
    let any = false;
    for (const map of [this.#active, this.#ofCallers])
      for (const [key, s] of map)
        if (s.pluginId === pluginId && s.trigger === trigger) {
          map.delete(key);
          any = true;
        }
    return any;
  }

  /** @returns the triggers of the plugin that were suspended here */
  #liftTriggers(pluginId: string, versionId: number): string[] {
    this.#changed.set(pluginId, { versionId, atMs: Date.now() });
    this.#strikes.clearPlugin(pluginId);
    const all = [...this.#active.values(), ...this.#ofCallers.values()].filter(
      s => s.pluginId === pluginId && s.trigger !== '',
    );
    const lifted = new Set(all.filter(s => isActive(s, Date.now())).map(s => s.trigger));
    for (const trigger of new Set(all.map(s => s.trigger))) this.#lift(pluginId, trigger);
    return [...lifted];
  }
}
