import type { OutcomeKind } from '../abi/execution-outcome.ts';
import type { Database, Queryable } from '../db/database.ts';
import { findRows } from '../db/rows.ts';

/**
 * Counts executions over time, by plugin and trigger, for the dashboard of the administration pages. Each serving process adds
 * up what ended, and adds it to rows of a minute, of a quarter of an hour and of an hour, which all hosts share.
 */

/** Upper bounds of the buckets of durations, in ms; a last bucket holds what took longer. Each is half as long again as the one before. */
const BOUNDS_MS = [
  0.5, 0.75, 1, 1.5, 2, 3, 5, 7.5, 10, 15, 20, 30, 50, 75, 100, 150, 200, 300, 500, 750, 1000, 1500, 2000, 3000, 5000,
] as const;

/** The steps rows are kept in, in seconds. */
const STEPS = [60, 900, 3600] as const;
export type ActivityStep = (typeof STEPS)[number];
/** Hours for which the smaller steps are kept: a little longer than the windows that show them. */
const KEPT_HOURS = { 60: 2, 900: 8 * 24 } as const;

/** Plugins counted apart between two writes; more are counted in the sum of all alone, so that memory stays bounded. */
const PLUGINS_MAX = 5000;
/** Triggers of a plugin counted apart; names of functions are the callers' to choose. More are counted in its sum alone. */
const TRIGGERS_MAX = 100;

/** How often it is written. What ended meanwhile counts for the middle of that time. */
export const ACTIVITY_FLUSH_MS = 10_000;

/** In place of a trigger the sum of its plugin; in place of a plugin as well the sum of all. */
const ALL = '';

type Ended = { kind: OutcomeKind; status: number; queueWaitMs: number; runMs: number };

class Counted {
  requests = 0;
  failed = 0;
  runMs = 0;
  readonly taken = new Float64Array(BOUNDS_MS.length + 1);

  add({ kind, queueWaitMs, runMs, status }: Ended): void {
    this.requests++;
    if (kind !== 'ok' || status >= 500) this.failed++;
    this.runMs += runMs;
    const ms = queueWaitMs + runMs;
    let low = 0;
    let high: number = BOUNDS_MS.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (ms > BOUNDS_MS[middle]!) low = middle + 1;
      else high = middle;
    }
    this.taken[low]!++;
  }
}

/** What a step holds, as the database adds it up: numbers of one point in time, of one plugin, or of one trigger. */
export type ActivitySum = { requests: number; failed: number; runMs: number; taken: readonly number[] };
export type ActivityPoint = ActivitySum & { at: Date };

/** Adds up what ended, until it is written. */
export class Activity {
  readonly #db: Database;
  #all = new Counted();
  #byPlugin = new Map<string, Map<string, Counted>>();
  #writing: Promise<void> = Promise.resolve();

  constructor(db: Database) {
    this.#db = db;
  }

  /**
   * @param plugin id of the plugin; empty where it is not known any more
   * @param trigger its trigger, command or function
   */
  add(plugin: string, trigger: string, ended: Ended): void {
    this.#all.add(ended);
    if (plugin === ALL) return;
    let ofPlugin = this.#byPlugin.get(plugin);
    if (ofPlugin === undefined) {
      if (this.#byPlugin.size >= PLUGINS_MAX) return;
      ofPlugin = new Map();
      this.#byPlugin.set(plugin, ofPlugin);
    }
    for (const name of trigger === ALL ? [ALL] : [ALL, trigger]) {
      let counted = ofPlugin.get(name);
      if (counted === undefined) {
        // One more for the sum.
        if (ofPlugin.size > TRIGGERS_MAX) continue;
        counted = new Counted();
        ofPlugin.set(name, counted);
      }
      counted.add(ended);
    }
  }

  /** Writes what was counted since the last time. What cannot be written is lost: these are numbers of a chart. */
  async flush(): Promise<void> {
    this.#writing = this.#writing.catch(() => {}).then(() => this.#write());
    await this.#writing;
  }

  async #write(): Promise<void> {
    if (this.#all.requests === 0) return;
    const rows = [
      { plugin: ALL, trigger: ALL, counted: this.#all },
      ...[...this.#byPlugin].flatMap(([plugin, triggers]) =>
        [...triggers].map(([trigger, counted]) => ({ plugin, trigger, counted })),
      ),
    ];
    this.#all = new Counted();
    this.#byPlugin = new Map();
    // In one order, so that two hosts that write at once do not wait for each other in a circle.
    await this.#db.query(
      `INSERT INTO trigger_activity (plugin_id, trigger_name, step, at, requests, failed, run_ms, taken)
       SELECT w.plugin_id, w.trigger_name, s.step, to_timestamp(floor((extract(epoch FROM now()) - $8) / s.step) * s.step), w.requests,
         w.failed, w.run_ms, (SELECT array_agg(n::integer ORDER BY k) FROM unnest(string_to_array(w.taken, ',')) WITH ORDINALITY AS t (n, k))
       FROM unnest($1::text[], $2::text[], $3::bigint[], $4::bigint[], $5::float8[], $6::text[])
           AS w (plugin_id, trigger_name, requests, failed, run_ms, taken),
         unnest($7::int[]) AS s (step)
       ORDER BY w.plugin_id, w.trigger_name, s.step
       ON CONFLICT (plugin_id, step, at, trigger_name) DO UPDATE SET requests = trigger_activity.requests + excluded.requests,
         failed = trigger_activity.failed + excluded.failed, run_ms = trigger_activity.run_ms + excluded.run_ms,
         taken = (SELECT array_agg(a + b ORDER BY k)
           FROM unnest(trigger_activity.taken, excluded.taken) WITH ORDINALITY AS t (a, b, k))`,
      [
        rows.map(r => r.plugin),
        rows.map(r => r.trigger),
        rows.map(r => r.counted.requests),
        rows.map(r => r.counted.failed),
        rows.map(r => r.counted.runMs),
        rows.map(r => r.counted.taken.join(',')),
        STEPS,
        ACTIVITY_FLUSH_MS / 2000,
      ],
    );
  }
}

/** The executions that are meant: those of all plugins, of one, or of one trigger of it. */
export type ActivityOf = { plugin: string | null; trigger?: string | undefined };

/** The sums of the buckets of rows `a`, as a column. */
const takenOf = (rows: string): string => `(SELECT array_agg(n ORDER BY k) FROM (
  SELECT sum(t.n)::float8 AS n, t.k FROM trigger_activity a, unnest(a.taken) WITH ORDINALITY AS t (n, k)
  WHERE ${rows} GROUP BY t.k) AS added) AS taken`;

/** Counts by step, oldest first. Steps in which nothing ended are left out. */
export async function readActivity(
  db: Queryable,
  { plugin, trigger }: ActivityOf,
  step: ActivityStep,
  since: Date,
): Promise<ActivityPoint[]> {
  return await findRows<ActivityPoint>(
    db,
    `SELECT at, requests, failed, run_ms, taken FROM trigger_activity
     WHERE plugin_id = $1 AND step = $2 AND at >= $3 AND trigger_name = $4 ORDER BY at`,
    [plugin ?? ALL, step, since, trigger ?? ALL],
  );
}

/** Rows of an hour order the plugins of a long window: rows of a quarter of an hour are four times as many. */
const orderedBy = (step: ActivityStep): ActivityStep => (step === 60 ? 60 : 3600);

/** The plugins with the most executions since a time, each with its sum. */
export async function busiestPlugins(
  db: Queryable,
  step: ActivityStep,
  since: Date,
  limit: number,
): Promise<Array<{ plugin: string; sum: ActivitySum }>> {
  const rows = await findRows<ActivitySum & { pluginId: string }>(
    db,
    `WITH busiest AS (
       SELECT plugin_id FROM trigger_activity
       WHERE step = $5 AND at > $2::timestamptz - make_interval(secs => $5) AND plugin_id <> $3 AND trigger_name = $3
       GROUP BY plugin_id ORDER BY sum(requests) DESC, plugin_id LIMIT $4),
     b AS (
       SELECT plugin_id, sum(requests)::bigint AS requests, sum(failed)::bigint AS failed, sum(run_ms) AS run_ms FROM trigger_activity
       WHERE plugin_id IN (SELECT plugin_id FROM busiest) AND step = $1 AND at >= $2 AND trigger_name = $3 GROUP BY plugin_id)
     SELECT b.*, ${takenOf('a.plugin_id = b.plugin_id AND a.step = $1 AND a.at >= $2 AND a.trigger_name = $3')}
     FROM b ORDER BY b.requests DESC, b.plugin_id`,
    [step, since, ALL, limit, orderedBy(step)],
  );
  return rows.map(({ pluginId, ...sum }) => ({ plugin: pluginId, sum }));
}

/** The triggers of a plugin with the most executions since a time, each with its sum. */
export async function busiestTriggers(
  db: Queryable,
  plugin: string,
  step: ActivityStep,
  since: Date,
  limit: number,
): Promise<Array<{ trigger: string; sum: ActivitySum }>> {
  const rows = await findRows<ActivitySum & { triggerName: string }>(
    db,
    `WITH b AS (
       SELECT trigger_name, sum(requests)::bigint AS requests, sum(failed)::bigint AS failed, sum(run_ms) AS run_ms FROM trigger_activity
       WHERE plugin_id = $1 AND step = $2 AND at >= $3 AND trigger_name <> '' GROUP BY trigger_name
       ORDER BY requests DESC, trigger_name LIMIT $4)
     SELECT b.*, ${takenOf('a.plugin_id = $1 AND a.step = $2 AND a.at >= $3 AND a.trigger_name = b.trigger_name')}
     FROM b ORDER BY b.requests DESC, b.trigger_name`,
    [plugin, step, since, limit],
  );
  return rows.map(({ triggerName, ...sum }) => ({ trigger: triggerName, sum }));
}

/** Failed executions of plugins since a time, by plugin; plugins without one are left out. */
export async function countFailed(
  db: Queryable,
  plugins: readonly string[],
  since: Date,
): Promise<Map<string, number>> {
  const { rows } = await db.query<{ plugin_id: string; failed: number }>(
    `SELECT plugin_id, sum(failed)::float8 AS failed FROM trigger_activity
     WHERE plugin_id = ANY ($1) AND step = 900 AND at >= $2 AND trigger_name = '' GROUP BY plugin_id HAVING sum(failed) > 0`,
    [plugins, since],
  );
  return new Map(rows.map(r => [r.plugin_id, r.failed]));
}

/** Removes the numbers of a plugin; part of a transaction. */
export async function removeActivityOf(client: Queryable, plugin: string): Promise<void> {
  await client.query('DELETE FROM trigger_activity WHERE plugin_id = $1', [plugin]);
}

/**
 * Removes rows that are over.
 *
 * @param hoursKeptMs how long rows of an hour are kept
 * @returns how many were removed
 */
export async function removeOldActivity(db: Queryable, hoursKeptMs: number): Promise<number> {
  let removed = 0;
  for (const step of STEPS) {
    const ms = step === 3600 ? hoursKeptMs : KEPT_HOURS[step] * 3_600_000;
    const { rowCount } = await db.query(
      "DELETE FROM trigger_activity WHERE step = $1 AND at < now() - $2 * interval '1 ms'",
      [step, ms],
    );
    removed += rowCount ?? 0;
  }
  return removed;
}

/** Sums of several points. */
export function addUp(points: readonly ActivitySum[]): ActivitySum {
  const taken = Array.from({ length: BOUNDS_MS.length + 1 }, (_, k) =>
    points.reduce((n, p) => n + (p.taken[k] ?? 0), 0),
  );
  const total = (of: 'requests' | 'failed' | 'runMs'): number => points.reduce((n, p) => n + p[of], 0);
  return { requests: total('requests'), failed: total('failed'), runMs: total('runMs'), taken };
}

/**
 * How long executions took at most, for a share of them: about, because a bucket knows only its bounds.
 *
 * @param share for example 0.95
 * @returns ms; null without an execution
 */
export function quantile(taken: readonly number[], share: number): number | null {
  const count = taken.reduce((sum, n) => sum + n, 0);
  if (count === 0) return null;
  const rank = share * count;
  let below = 0;
  for (const [k, n] of taken.entries()) {
    if (below + n >= rank && n > 0) {
      const low = k === 0 ? 0 : (BOUNDS_MS[k - 1] ?? 0);
      const high = BOUNDS_MS[k];
      // Durations beyond the last bound have no upper one.
      return high === undefined ? low : low + ((rank - below) / n) * (high - low);
    }
    below += n;
  }
  return BOUNDS_MS.at(-1) ?? 0;
}
