import type { Queryable } from './database.ts';

/** Rows removed by one statement: a table that is removed from stays usable meanwhile. */
export const REMOVED_AT_ONCE = 5000;

/**
 * Removes rows batch by batch until a batch is not full.
 *
 * @param statement removes at most the number of rows that is its last parameter
 * @returns how many rows
 */
export async function removeInBatches(db: Queryable, statement: string, values: readonly unknown[]): Promise<number> {
  for (let removed = 0; ; ) {
    const { rowCount } = await db.query(statement, [...values, REMOVED_AT_ONCE]);
    removed += rowCount ?? 0;
    if ((rowCount ?? 0) < REMOVED_AT_ONCE) return removed;
  }
}
