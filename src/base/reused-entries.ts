/** How many entries are kept before those out of use are looked for. */
const KEPT_MIN = 64;

/**
 * Entries by key that go out of use and come back often, many times a second: an entry out of use stays until there are
 * many of them.
 *
 * A `Map` that an entry is added to and deleted from each time is slow, and fills the heap: V8 makes a new table
 * whenever few entries are left or the table is used up, and each old table points to the next one. Once one of them has
 * become old, all later ones and what they held survive every quick collection until the next full one
 * (docs/performance.md "The tail").
 */
export class ReusedEntries<Entry> {
  readonly #byKey = new Map<string, Entry>();
  readonly #isInUse: (entry: Entry) => boolean;
  #sizeMax = KEPT_MIN;

  constructor(isInUse: (entry: Entry) => boolean) {
    this.#isInUse = isInUse;
  }

  /** The entry of a key, in use or not. */
  get(key: string): Entry | undefined {
    return this.#byKey.get(key);
  }

  /** Adds the entry of a key that has none. */
  add(key: string, entry: Entry): void {
    if (this.#byKey.size >= this.#sizeMax) this.#removeUnused();
    this.#byKey.set(key, entry);
  }

  #removeUnused(): void {
    for (const [key, entry] of this.#byKey) if (!this.#isInUse(entry)) this.#byKey.delete(key);
    this.#sizeMax = Math.max(KEPT_MIN, 2 * this.#byKey.size);
  }

  /** The entries in use. */
  *inUse(): Generator<Entry> {
    for (const entry of this.#byKey.values()) if (this.#isInUse(entry)) yield entry;
  }
}
