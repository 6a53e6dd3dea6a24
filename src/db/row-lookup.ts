import { Gatherer } from '../base/gatherer.ts';
import type { Queryable } from './database.ts';
import { findRows } from './rows.ts';

/** Lookups that one statement answers. */
const LOOKUPS_MAX = 200;
/** With two, one batch is collected while the database works on another. */
const BATCHES_MAX = 2;

type Lookup<Row> = { key: string; resolve(row: Row | undefined): void; reject(error: unknown): void };

export type RowLookupOptions<Row> = {
  /** Name of the prepared statement. */
  name: string;
  /** The statement; its one parameter is an array of values. */
  text: string;
  /** The key a row was looked up by; the row as `findRows` reads it. */
  keyOf(row: Row): string;
  /** The value of a key in the statement; without it, the key. */
  toValue?(key: string): unknown;
};

/** Finds rows by a value that no two rows share. Lookups of one event-loop turn are one statement. */
export class RowLookup<Row> {
  readonly #options: RowLookupOptions<Row>;
  readonly #gatherers = new WeakMap<Queryable, Gatherer<Lookup<Row>>>();

  constructor(options: RowLookupOptions<Row>) {
    this.#options = options;
  }

  find(db: Queryable, key: string): Promise<Row | undefined> {
    let gatherer = this.#gatherers.get(db);
    if (gatherer === undefined) {
      gatherer = this.#gather(db);
      this.#gatherers.set(db, gatherer);
    }
    const lookups = gatherer;
    return new Promise((resolve, reject) => lookups.add('', { key, resolve, reject }));
  }

  #gather(db: Queryable): Gatherer<Lookup<Row>> {
    const { keyOf, name, text, toValue = key => key } = this.#options;
    return new Gatherer<Lookup<Row>>({
      batchesMax: BATCHES_MAX,
      take: waiting => waiting.splice(0, LOOKUPS_MAX),
      isOver: () => false,
      drop() {},
      async run(_group, batch) {
        try {
          const keys = [...new Set(batch.map(l => l.key))];
          const rows = await findRows<Row>(db, { name, text, values: [keys.map(toValue)] });
          const found = new Map(rows.map(row => [keyOf(row), row]));
          for (const { key, resolve } of batch) resolve(found.get(key));
        } catch (error) {
          for (const { reject } of batch) reject(error);
        }
      },
    });
  }
}
