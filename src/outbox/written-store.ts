import type { Database } from '../db/database.ts';
import { newMark, readMarks } from '../graph/graph.ts';
import { GraphError, type GraphStore } from '../graph/graph-store.ts';
import { tupleText } from '../graph/tuple.ts';
import type { Deliverer } from './deliver.ts';
import { endPause, noteAway } from './stream.ts';

export type OutboxLog = {
  info(fields: Record<string, unknown>, text: string): void;
  warn(fields: Record<string, unknown>, text: string): void;
  error(fields: Record<string, unknown>, text: string): void;
};

export type WrittenStoreParts = {
  db: Database;
  deliverer: Deliverer;
  /**
   * A store has everything and is written from now on.
   *
   * @param before the store whose place it takes; null when it is the same one, or the first
   */
  onStore(store: GraphStore, before: GraphStore | null, token: string): void;
  log: OutboxLog;
};

/** Written to learn whether a store takes writes; always the same. */
const PROBE = { ...newMark('probe'), subjectId: '1' };
/** How soon a store that is away is looked at again. */
const LOOK_AGAIN_MS = 1000;
/** How soon a store that cannot be filled is tried again. */
const PREPARE_AGAIN_MS = 300;
/** How soon a store that turned out to be another one, or another's, is looked at, and how often before it counts as away. */
const FENCED_AGAIN_MS = 20;
const FENCED_MAX = 5;

/** The graph store that changes are written to: filled before its first use, and looked at again while it is away. */
export class WrittenStore {
  readonly #parts: WrittenStoreParts;
  #current: GraphStore | null = null;
  /** To be filled if it has to be; then it takes the place of the current one. The current one itself where that is in doubt. */
  #next: GraphStore | null = null;
  /** Why the current one cannot be written; empty when it can. */
  #away = '';
  /** Deliveries in a row that ended at a store with another epoch, or none. */
  #fenced = 0;
  /** Whether notifications were missed: the store is announced once more, filled or not. */
  #isUnsure = false;
  #notedAt = Number.NEGATIVE_INFINITY;

  constructor(parts: WrittenStoreParts) {
    this.#parts = parts;
  }

  get current(): GraphStore | null {
    return this.#current;
  }

  /** Whether a store waits to be looked at, which takes longer than a job may if it has to be filled. */
  get isWaiting(): boolean {
    return this.#next !== null;
  }

  /** Whether this host has a store it can deliver to. */
  get isAble(): boolean {
    return this.#current !== null && this.#away === '';
  }

  /** Why it cannot deliver. */
  get problem(): string {
    return this.#away || 'this host has none now';
  }

  /** Writes another store, once that has everything. */
  use(store: GraphStore): void {
    this.#closeUnused();
    this.#next = store;
  }

  /** Writes no store any more. */
  leave(): void {
    this.#current = null;
    this.#next = null;
  }

  /** The current store may have been emptied, or replaced at its address. @returns whether it has to be looked at now */
  doubt(): boolean {
    // One that waits already is tried again by its own clock.
    if (this.#next !== null || this.#current === null) return false;
    this.#next = this.#current;
    return true;
  }

  /** Notifications were missed: the database may have been restored. */
  doubtAll(): void {
    this.#isUnsure = true;
    this.doubt();
  }

  /** @returns the store to write now; or when to look again, ms; null: there is no store until one is named */
  async ready(): Promise<GraphStore | number | null> {
    if (this.#next !== null && !(await this.#prepare(this.#next))) return PREPARE_AGAIN_MS;
    const store = this.#current;
    if (store !== null && this.#away !== '' && !(await this.#isBack(store))) return LOOK_AGAIN_MS;
    return store;
  }

  /** A delivery was refused by the fence of the store: it is another store, or another host has filled it. @returns when to look again, ms */
  fenced(store: GraphStore): number {
    this.#doubtOf(store);
    if (++this.#fenced < FENCED_MAX) return FENCED_AGAIN_MS;
    this.wentAway('it refuses what is written to it');
    return LOOK_AGAIN_MS;
  }

  /** The store took a delivery, or there was nothing to deliver. */
  unfenced(): void {
    this.#fenced = 0;
  }

  wentAway(error: string): void {
    if (this.#away === '')
      this.#parts.log.warn({ error }, 'the graph store does not answer; changes wait in the outbox');
    this.#away = error;
  }

  /** Another host has found it away; it may be back by now. */
  pauses(): void {
    this.#away = 'the stream pauses';
  }

  /** @param refused entries that it refused for good */
  came(refused: number): void {
    if (refused > 0) this.#parts.log.error({ refused }, 'the graph store refuses entries of the outbox');
    if (this.#away !== '') this.#parts.log.info({}, 'the graph store answers again');
    this.#away = '';
  }

  async #prepare(store: GraphStore): Promise<boolean> {
    const { deliverer, log, onStore } = this.#parts;
    const started = performance.now();
    try {
      const { filled, rejected, restored, schemaRefused, token } = await deliverer.prepare(store);
      // Meanwhile it was given up, or another one has come.
      if (this.#next !== store) return false;
      const before = this.#current;
      this.#current = store;
      this.#next = null;
      if (restored)
        log.warn(
          {},
          'the graph store and the database are not of one history, as after a restore of one of them; the store is filled again',
        );
      const isKnown = before === store && !filled && !this.#isUnsure;
      this.#isUnsure = false;
      if (!isKnown) onStore(store, before === store ? null : before, token);
      const ms = Math.round(performance.now() - started);
      if (filled) log.info({ ms }, 'the graph store was filled from the database');
      if (rejected.count > 0)
        log.error(
          { tuples: rejected.examples.map(tupleText), count: rejected.count },
          'the graph store refuses relationships of the database; they are left out',
        );
      if (schemaRefused !== '')
        log.error({ error: schemaRefused }, 'the graph store keeps another schema than this release needs');
      return true;
    } catch (error) {
      if (!(error instanceof GraphError)) throw error;
      this.wentAway(error.message);
      await this.#noteAway(error.message);
      return false;
    }
  }

  /** Administrators see why nothing is delivered. */
  async #noteAway(error: string): Promise<void> {
    if (performance.now() - this.#notedAt < LOOK_AGAIN_MS) return;
    this.#notedAt = performance.now();
    await noteAway(this.#parts.db, error);
  }

  /** Unless it was given up meanwhile. */
  #doubtOf(store: GraphStore): void {
    if (this.#current === store) this.#next ??= store;
  }

  /** While the stream pauses: a store that takes a write ends the pause. A new one is filled first. */
  async #isBack(store: GraphStore): Promise<boolean> {
    try {
      await store.write([{ operation: 'touch', tuple: PROBE }]);
      if ((await readMarks(store, 'loaded')).length === 0) this.#doubtOf(store);
    } catch (error) {
      if (!(error instanceof GraphError)) throw error;
      // Refused: a new store without a schema, or one that takes no writes from us, which a second look tells apart.
      if (error.kind === 'refused') this.#doubtOf(store);
      return false;
    }
    await endPause(this.#parts.db);
    this.came(0);
    return true;
  }

  /** One that never came into use. */
  #closeUnused(): void {
    if (this.#next !== null && this.#next !== this.#current) this.#next.close();
  }

  close(): void {
    this.#closeUnused();
  }
}
