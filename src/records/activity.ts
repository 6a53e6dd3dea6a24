import type { OutcomeKind } from '../abi/execution-outcome.ts';
import type { Database, Queryable } from '../db/database.ts';

/**
 * Counts executions over time, by plugin, for the dashboard of the administration pages. Each serving process adds up what
 * ended, and adds it to rows of a minute and of a quarter of an hour, which all hosts share.
 */

/** Upper bounds of the buckets of durations, in ms; a last bucket holds what took longer. Each is half as long again as the one before. */
const BOUNDS_MS = [
  0.5, 0.75, 1, 1.5, 2, 3, 5, 7.5, 10, 15, 20, 30, 50, 75, 100, 150, 200, 300, 500, 750, 1000, 1500, 2000, 3000, 5000,
] as const;

/** The steps rows are kept in, in seconds, and for how long. */
const STEPS = [
  { step: 60, keptHours: 26 },
  { step: 900, keptHours: 8 * 24 },
] as const;
export type ActivityStep = (typeof STEPS)[number]['step'];

/** Plugins counted apart between two writes; more are counted in the sum of all alone, so that memory stays bounded. */
const PLUGINS_MAX = 5000;

/** How often it is written. What ended meanwhile counts for the middle of that time. */
export const ACTIVITY_FLUSH_MS = 10_000;

/** The row that counts all plugins. */
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

/** What a step holds, as the database adds it up: numbers of one point in time, or of one plugin. */
export type ActivitySum = { requests: number; failed: number; runMs: number; taken: readonly number[] };
export type ActivityPoint = ActivitySum & { at: Date };

/** Adds up what ended, until it is written. */
export class Activity {
  readonly #db: Database;
  #all = new Counted();
  #byPlugin = new Map<string, Counted>();
  #writing: Promise<void> = Promise.resolve();

  constructor(db: Database) {
    this.#db = db;
  }

  /** @param plugin id of the plugin; empty where it is not known any more */
  add(plugin: string, ended: Ended): void {
    this.#all.add(ended);
    if (plugin === ALL) return;
    let counted = this.#byPlugin.get(plugin);
    if (counted === undefined) {
      if (this.#byPlugin.size >= PLUGINS_MAX) return;
      counted = new Counted();
      this.#byPlugin.set(plugin, counted);
    }
    counted.add(ended);
  }

  /** Writes what was counted since the last time. What cannot be written is lost: these are numbers of a chart. */
  async flush(): Promise<void> {
    this.#writing = this.#writing.catch(() => {}).then(() => this.#write());
    await this.#writing;
  }

  async #write(): Promise<void> {
    if (this.#all.requests === 0) return;
    const rows = [[ALL, this.#all] as const, ...[...this.#byPlugin].sort(([a], [b]) => (a < b ? -1 : 1))];
    this.#all = new Counted();
    this.#byPlugin = new Map();
    // In one order, so that two hosts that write at once do not wait for each other in a circle.
    await this.#db.query(
      `INSERT INTO activity (plugin_id, step, at, requests, failed, run_ms, taken)
       SELECT w.plugin_id, s.step, to_timestamp(floor((extract(epoch FROM now()) - $7) / s.step) * s.step), w.requests, w.failed, w.run_ms,
         (SELECT array_agg(n::integer ORDER BY k) FROM unnest(string_to_array(w.taken, ',')) WITH ORDINALITY AS t (n, k))
       FROM unnest($1::text[], $2::bigint[], $3::bigint[], $4::float8[], $5::text[]) AS w (plugin_id, requests, failed, run_ms, taken),
         unnest($6::int[]) AS s (step)
       ORDER BY w.plugin_id, s.step
       ON CONFLICT (plugin_id, step, at) DO UPDATE SET requests = activity.requests + excluded.requests,
         failed = activity.failed + excluded.failed, run_ms = activity.run_ms + excluded.run_ms,
         taken = (SELECT array_agg(a + b ORDER BY k) FROM unnest(activity.taken, excluded.taken) WITH ORDINALITY AS t (a, b, k))`,
      [
        rows.map(([plugin]) => plugin),
        rows.map(([, c]) => c.requests),
        rows.map(([, c]) => c.failed),
        rows.map(([, c]) => c.runMs),
        rows.map(([, c]) => c.taken.join(',')),
        STEPS.map(s => s.step),
        ACTIVITY_FLUSH_MS / 2000,
      ],
    );
  }
}

type SumSql = { requests: string; failed: string; run_ms: number; taken: string[] };

const toSum = (r: SumSql): ActivitySum => ({
  requests: Number(r.requests),
  failed: Number(r.failed),
  runMs: r.run_ms,
  taken: r.taken.map(Number),
});

/**
 * What was counted, oldest first. Steps in which nothing ended are left out.
 *
 * @param plugin null for all plugins
 */
export async function readActivity(
  db: Queryable,
  plugin: string | null,
  step: ActivityStep,
  since: Date,
): Promise<ActivityPoint[]> {
  const { rows } = await db.query<SumSql & { at: Date }>(
    `SELECT at, requests, failed, run_ms, taken FROM activity
     WHERE plugin_id = $1 AND step = $2 AND at >= $3 ORDER BY at`,
    [plugin ?? ALL, step, since],
  );
  return rows.map(r => ({ at: r.at, ...toSum(r) }));
}

/** The plugins with the most executions since a time, each with its sum. */
export async function busiestPlugins(
  db: Queryable,
  step: ActivityStep,
  since: Date,
  limit: number,
): Promise<Array<{ plugin: string; sum: ActivitySum }>> {
  const { rows } = await db.query<SumSql & { plugin_id: string }>(
    `WITH busy AS (
       SELECT plugin_id, sum(requests) AS requests, sum(failed) AS failed, sum(run_ms) AS run_ms FROM activity
       WHERE step = $1 AND at >= $2 AND plugin_id <> $3 GROUP BY plugin_id ORDER BY requests DESC, plugin_id LIMIT $4)
     SELECT b.*, (SELECT array_agg(n ORDER BY k) FROM (
         SELECT sum(t.n) AS n, t.k FROM activity a, unnest(a.taken) WITH ORDINALITY AS t (n, k)
         WHERE a.plugin_id = b.plugin_id AND a.step = $1 AND a.at >= $2 GROUP BY t.k) AS added) AS taken
     FROM busy b ORDER BY b.requests DESC, b.plugin_id`,
    [step, since, ALL, limit],
  );
  return rows.map(r => ({ plugin: r.plugin_id, sum: toSum(r) }));
}

/** Failed executions of plugins since a time, by plugin; plugins without one are left out. */
export async function countFailed(
  db: Queryable,
  plugins: readonly string[],
  since: Date,
): Promise<Map<string, number>> {
  const { rows } = await db.query<{ plugin_id: string; failed: number }>(
    `SELECT plugin_id, sum(failed)::float8 AS failed FROM activity
     WHERE plugin_id = ANY ($1) AND step = 900 AND at >= $2 GROUP BY plugin_id HAVING sum(failed) > 0`,
    [plugins, since],
  );
  return new Map(rows.map(r => [r.plugin_id, r.failed]));
}

/** Removes the numbers of a plugin; part of a transaction. */
export async function removeActivityOf(client: Queryable, plugin: string): Promise<void> {
  await client.query('DELETE FROM activity WHERE plugin_id = $1', [plugin]);
}

/** Removes rows that are over; returns how many. */
export async function removeOldActivity(db: Queryable): Promise<number> {
  let removed = 0;
  for (const { keptHours, step } of STEPS) {
    const { rowCount } = await db.query(
      'DELETE FROM activity WHERE step = $1 AND at < now() - make_interval(hours => $2)',
      [step, keptHours],
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
      // What took longer than the last bound has no upper one.
      return high === undefined ? low : low + ((rank - below) / n) * (high - low);
    }
    below += n;
  }
  return BOUNDS_MS.at(-1) ?? 0;
}
