import { setTimeout as sleep } from 'node:timers/promises';
import type { Actor } from '../audit/audit-log.ts';
import type { Database, Queryable } from '../db/database.ts';
import { findRow } from '../db/rows.ts';
import type { GraphSchema } from '../graph/graph-schema.ts';
import { type JobQueue, scheduledJob } from '../jobs.ts';
import type { Deliverer } from './deliver.ts';
import { type Drift, findDrift, ReplacedStoreError, repairDrift } from './drift.ts';
import type { DeliveryStore } from './fenced-store.ts';

/** What the newest comparison found. */
export type ComparisonResult = { at: Date; missing: number; extra: number; repaired: boolean };

const KEPT_DAYS = 90;
const NIGHTLY = '29 3 * * *';
/** Minutes for 100,000,000 relationships (docs/operating.md "How large it may get"); a slow disk gets more. */
const SECONDS_MAX = 2 * 3600;

/** How often a comparison begins again with the store that has replaced the one it read, and how soon. */
const REPLACED_MAX = 5;
const REPLACED_MS = 200;

type Parts = { db: Database; graph: { readonly store: DeliveryStore }; schema: GraphSchema; deliverer: Deliverer };

/** Compares the graph store with the database, once at a time on a host: it reads both whole. Each result is kept. */
export class GraphComparison {
  readonly #parts: Parts;
  #isUnderWay = false;

  constructor(parts: Parts) {
    this.#parts = parts;
  }

  /**
   * @param repairedBy who has the store mended; null only compares
   * @returns null when a comparison is under way on this host
   * @throws GraphError when the store does not answer
   */
  async run(repairedBy: Actor | null): Promise<Drift | null> {
    if (this.#isUnderWay) return null;
    this.#isUnderWay = true;
    try {
      const found = await this.#compare(repairedBy);
      await keep(this.#parts.db, found);
      return found;
    } finally {
      this.#isUnderWay = false;
    }
  }

  /** The embedded store is replaced when it has grown; then the new one is compared. */
  async #compare(repairedBy: Actor | null): Promise<Drift> {
    const { graph } = this.#parts;
    for (let left = REPLACED_MAX; ; left--)
      try {
        if (repairedBy === null) return await findDrift(this.#parts, graph.store);
        return await repairDrift(this.#parts, graph.store, repairedBy);
      } catch (error) {
        if (!(error instanceof ReplacedStoreError) || left === 0) throw error;
        await sleep(REPLACED_MS);
      }
  }
}

async function keep(db: Queryable, { compared, extra, missing, repaired }: Drift): Promise<void> {
  await db.query('INSERT INTO graph_comparisons (compared, missing, extra, repaired) VALUES ($1, $2, $3, $4)', [
    compared,
    missing.length,
    extra.length,
    repaired,
  ]);
  await db.query('DELETE FROM graph_comparisons WHERE at < now() - make_interval(days => $1)', [KEPT_DAYS]);
}

/** What the newest comparison found; null when none was made. */
export async function findNewestComparison(db: Queryable): Promise<ComparisonResult | null> {
  const newest = await findRow<ComparisonResult>(
    db,
    'SELECT at, missing, extra, repaired FROM graph_comparisons ORDER BY id DESC LIMIT 1',
  );
  return newest ?? null;
}

/** Once a night, on one of the hosts. What differs is not mended: administrators decide that. */
export const graphComparisonJob = (comparison: GraphComparison): JobQueue<object> =>
  scheduledJob('graph_comparison', NIGHTLY, SECONDS_MAX, async () => {
    await comparison.run(null);
  });
