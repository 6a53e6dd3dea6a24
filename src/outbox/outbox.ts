import { DrainLoop } from '../base/drain-loop.ts';
import { messageOf } from '../base/errors.ts';
import type { Database } from '../db/database.ts';
import { newMark, readMarks } from '../graph/graph.ts';
import { GraphError, type GraphStore } from '../graph/graph-store.ts';
import { tupleText } from '../graph/tuple.ts';
import type { Appended } from './append.ts';
import type { CycleResult, Deliverer } from './deliver.ts';
import type { DeliverQueue } from './deliver-job.ts';
import { DeliveryTurn } from './delivery-turn.ts';
import { SettledWaits } from './settled-waits.ts';
import { endPause, hasLine, isPaused, noteAway } from './stream.ts';

export type OutboxLog = {
  info(fields: Record<string, unknown>, text: string): void;
  warn(fields: Record<string, unknown>, text: string): void;
  error(fields: Record<string, unknown>, text: string): void;
};

export type OutboxParts = {
  db: Database;
  deliverer: Deliverer;
  queue: DeliverQueue;
  /** A store has everything and is written from now on, in the place of another one. */
  onStore(store: GraphStore, before: GraphStore | null, token: string): void;
  log: OutboxLog;
};

/** Written to learn whether a store takes writes; always the same. */
const PROBE = { ...newMark('probe'), subjectId: '1' };
/** How soon a store that is away, or another deliverer's line, is looked at again. */
const LOOK_AGAIN_MS = 1000;
/** How often the store is looked at while there is nothing to deliver. */
const LOOK_AT_STORE_MS = 2000;
/** How soon a host looks whether what was appended is delivered, by the host that delivered last or by the job that was requested. */
const LOOK_FOR_JOB_MS = 500;
/** How soon the host that runs the job tries again when another one looks at the stream. */
const LOCKED_AGAIN_MS = 50;
/** How soon a store that turned out to be another one, or another's, is looked at, and how often before it counts as away. */
const FENCED_AGAIN_MS = 20;
const FENCED_MAX = 5;
/** How soon a store that does not answer at the start is asked again. */
const PREPARE_AGAIN_MS = 300;

/**
 * Keeps the line moving: looks at it for every notification, for every time an entry waits for, and for every sweep, and delivers while it runs the
 * job of the queue. What wakes it is no more than a hint: the line itself says what is to do.
 */
export class Outbox {
  readonly #parts: OutboxParts;
  /** The store that is written now. */
  #store: GraphStore | null = null;
  /** One that takes its place when it has been filled. */
  #next: GraphStore | null = null;
  readonly #turn = new DeliveryTurn();
  /** Whether this host delivered last: it asks for a job at once, which spares the others a takeover. */
  #wasLast = true;
  #requestedAt = Number.NEGATIVE_INFINITY;
  readonly #loop: DrainLoop<true>;
  /** A look that does not wait for the time the loop sleeps. */
  #soon: NodeJS.Timeout | null = null;
  #closed = false;
  #away = '';
  /** Turns in a row that ended at a store with another epoch, or none. */
  #fenced = 0;
  /** Whether the store that is written is looked at because notifications were missed: it is announced again, filled or not. */
  #isUnsure = false;
  #notedAt = Number.NEGATIVE_INFINITY;
  /** Whether the database failed at the last turn. */
  #unread = false;
  readonly #waits: SettledWaits;

  constructor(parts: OutboxParts) {
    this.#parts = parts;
    this.#waits = new SettledWaits(parts.db);
    // The lock is that of each delivery (`Deliverer`).
    this.#loop = new DrainLoop<true>({
      begin: async () => true,
      pass: () => this.#pass(),
      end: async () => {},
      isLeft: async () => false,
      onError: error => parts.log.error({ error: messageOf(error) }, 'the outbox is not looked at any more'),
    });
  }

  /** Fills a store if it has to be, and writes it from then on. */
  useStore(store: GraphStore): void {
    // One that never came into use.
    if (this.#next !== null && this.#next !== this.#store) this.#next.close();
    this.#next = store;
    this.wake();
  }

  /** Writes no store any more. */
  leaveStore(): void {
    this.#store = null;
    this.#next = null;
    this.wake();
  }

  /** The store that is asked has not everything: another one has taken its place at its address, or it was emptied. */
  lookAtStore(): void {
    // One that is being prepared is tried again by its own clock.
    if (this.#next !== null || this.#store === null) return;
    this.#next = this.#store;
    this.wake();
  }

  /** Notifications were missed: the database may have been restored. `onStore` tells when the store may be asked again. */
  lookAgain(): void {
    this.#isUnsure = true;
    this.lookAtStore();
    this.wake();
  }

  /** Whether this host is the one that delivers. */
  get isAtWork(): boolean {
    return this.#turn.isOurs;
  }

  /** Something was appended, here or by another host. */
  appended(): void {
    if (this.#turn.isOurs || !this.#isAble()) this.wake();
    else if (!this.#wasLast) this.#lookSoon();
    else if (performance.now() - this.#requestedAt > LOOK_FOR_JOB_MS) this.#request();
  }

  /** Not waited for; the next look finds out whether the job has begun. */
  #request(): void {
    this.#requestedAt = performance.now();
    this.#parts.queue.request().catch((error: unknown) => {
      this.#parts.log.warn({ error: messageOf(error) }, 'a job that delivers could not be queued; it is tried again');
    });
    this.#lookSoon();
  }

  /**
   * The job: delivers what is there and what comes for three seconds.
   *
   * @throws Error why nothing could be delivered
   */
  async deliver(ended: AbortSignal): Promise<void> {
    if (this.#closed) return;
    this.#wasLast = true;
    this.#requestedAt = Number.NEGATIVE_INFINITY;
    const done = this.#turn.begin(ended);
    const wake = (): void => this.wake();
    ended.addEventListener('abort', wake);
    this.wake();
    // The library also aborts it when the job has ended.
    await done.finally(() => ended.removeEventListener('abort', wake));
  }

  /** There may be something to do. */
  wake(): void {
    this.#loop.wake();
  }

  #lookSoon(): void {
    if (this.#closed) return;
    this.#soon ??= setTimeout(() => {
      this.#soon = null;
      this.wake();
    }, LOOK_FOR_JOB_MS);
  }

  /** @returns when to look again, ms; null: when woken */
  async #pass(): Promise<number | null> {
    let next: number | null;
    try {
      next = await this.#work();
      this.#unread = false;
    } catch (error) {
      // The database is away; the line is still there when it comes back.
      if (!this.#unread)
        this.#parts.log.warn({ error: messageOf(error) }, 'the outbox could not be read; it is tried again');
      this.#unread = true;
      this.#turn.end(new Error(`the outbox could not be read: ${messageOf(error)}`));
      next = LOOK_AGAIN_MS;
    }
    this.#takeOrLeaveJobs();
    // A store that is restored while nothing is delivered is found soon, too.
    if (next === null && this.#store !== null) next = LOOK_AT_STORE_MS;
    return next === null ? null : Math.ceil(Math.min(next, this.#turn.leftMs()));
  }

  /** Whether this host has a store it can deliver to. */
  #isAble(): boolean {
    return this.#store !== null && this.#away === '';
  }

  /** A host that cannot deliver leaves the job to one that can. */
  #takeOrLeaveJobs(): void {
    if (this.#isAble() && !this.#closed) return this.#parts.queue.resume();
    this.#parts.queue.pause();
    this.#turn.end(new Error(`the graph store cannot be written: ${this.#away || 'this host has none now'}`));
  }

  #endTurn(): void {
    // Also a job that another host has asked for begins at once.
    if (this.#turn.isWarm) this.#request();
    else this.#parts.queue.wake();
    this.#turn.end(null);
  }

  /** @returns when to look again, in ms; null: when woken */
  async #work(): Promise<number | null> {
    for (;;) {
      if (this.#closed) return null;
      if (this.#next !== null) {
        // A filling takes longer than a job may.
        this.#turn.end(null);
        if (!(await this.#prepare(this.#next))) return PREPARE_AGAIN_MS;
      }
      const store = this.#store;
      if (store === null) return null;
      if (this.#away !== '' && !(await this.#isBack(store))) return LOOK_AGAIN_MS;
      if (this.#turn.leftMs() === 0) {
        this.#endTurn();
        return LOOK_FOR_JOB_MS;
      }
      const result = await this.#parts.deliverer.cycle(store, this.#turn.isOurs ? 'deliver' : 'look');
      if (result.kind === 'delivered') {
        this.#fenced = 0;
        this.#turn.delivered();
        this.#came(result.refused);
        // Also after a refusal: an entry that died lets go what waited behind it.
        continue;
      }
      if (result.kind === 'fenced') {
        this.#prepareAgain(store);
        if (++this.#fenced < FENCED_MAX) return FENCED_AGAIN_MS;
        this.#wentAway('it refuses what is written to it');
        return LOOK_AGAIN_MS;
      }
      this.#fenced = 0;
      return await this.#waitAfter(result);
    }
  }

  /** @returns when to look again, in ms; null: when woken */
  async #waitAfter(result: Exclude<CycleResult, { kind: 'delivered' | 'fenced' }>): Promise<number | null> {
    const { db, queue } = this.#parts;
    switch (result.kind) {
      case 'paused':
        this.#wentAway(result.error);
        return LOOK_AGAIN_MS;
      case 'idle':
        return result.nextMs === null ? null : Math.ceil(result.nextMs);
      case 'due':
        await queue.requestAgain();
        return LOOK_FOR_JOB_MS;
      case 'not_our_turn':
        if (!(await hasLine(db))) return null;
        // Another one delivers; or the stream pauses because a store was away that may be back by now.
        if (await isPaused(db)) this.#away = 'the stream pauses';
        return this.#turn.isOurs ? LOCKED_AGAIN_MS : LOOK_AGAIN_MS;
    }
  }

  async #prepare(store: GraphStore): Promise<boolean> {
    const started = performance.now();
    try {
      const { filled, rejected, restored, schemaRefused, token } = await this.#parts.deliverer.prepare(store);
      // Meanwhile it was given up, or another one has come.
      if (this.#next !== store) return false;
      const before = this.#store;
      this.#store = store;
      this.#next = null;
      if (restored)
        this.#parts.log.warn(
          {},
          'the graph store and the database are not of one history, as after a restore of one of them; the store is filled again',
        );
      const isAsked = before === store && !filled && !this.#isUnsure;
      this.#isUnsure = false;
      if (!isAsked) this.#parts.onStore(store, before === store ? null : before, token);
      // The filling was announced as other hosts' deliveries are; with a job what comes first is not left to one of them.
      if (!isAsked) this.#request();
      const ms = Math.round(performance.now() - started);
      if (filled) this.#parts.log.info({ ms }, 'the graph store was filled from the database');
      if (rejected.count > 0)
        this.#parts.log.error(
          { tuples: rejected.examples.map(tupleText), count: rejected.count },
          'the graph store refuses relationships of the database; they are left out',
        );
      if (schemaRefused !== '')
        this.#parts.log.error({ error: schemaRefused }, 'the graph store keeps another schema than this release needs');
      return true;
    } catch (error) {
      if (!(error instanceof GraphError)) throw error;
      this.#wentAway(error.message);
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
  #prepareAgain(store: GraphStore): void {
    if (this.#store === store) this.#next ??= store;
  }

  /** While the stream pauses: a store that takes a write ends the pause. A new one is filled first. */
  async #isBack(store: GraphStore): Promise<boolean> {
    try {
      await store.write([{ operation: 'touch', tuple: PROBE }]);
      if ((await readMarks(store, 'loaded')).length === 0) this.#prepareAgain(store);
    } catch (error) {
      if (!(error instanceof GraphError)) throw error;
      // Refused: a new store without a schema, or one that takes no writes from us, which a second look tells apart.
      if (error.kind === 'refused') this.#prepareAgain(store);
      return false;
    }
    await endPause(this.#parts.db);
    this.#came(0);
    return true;
  }

  #wentAway(error: string): void {
    if (this.#away === '')
      this.#parts.log.warn({ error }, 'the graph store does not answer; changes wait in the outbox');
    this.#away = error;
  }

  #came(refused: number): void {
    if (refused > 0) this.#parts.log.error({ refused }, 'the graph store refuses entries of the outbox');
    if (this.#away !== '') this.#parts.log.info({}, 'the graph store answers again');
    this.#away = '';
  }

  /** A delivery was announced, here or by another host. */
  delivered(): void {
    if (!this.#turn.isOurs) this.#wasLast = false;
    this.#waits.delivered();
  }

  /**
   * Waits until entries are in the store, or have died, or the time is up.
   *
   * @returns whether they are no longer in the line
   */
  settled(entries: Appended, waitMs: number): Promise<boolean> {
    return this.#waits.settled(entries, waitMs, () => this.#store !== null);
  }

  async close(): Promise<void> {
    this.#closed = true;
    if (this.#soon !== null) clearTimeout(this.#soon);
    this.#parts.queue.pause();
    await this.#loop.close();
    this.#turn.end(null);
    if (this.#next !== null && this.#next !== this.#store) this.#next.close();
  }
}
