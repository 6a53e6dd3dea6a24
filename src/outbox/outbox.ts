import { DrainLoop } from '../base/drain-loop.ts';
import { messageOf } from '../base/errors.ts';
import type { Database } from '../db/database.ts';
import type { GraphStore } from '../graph/graph-store.ts';
import type { Appended } from './append.ts';
import type { CycleResult, Deliverer } from './deliver.ts';
import type { DeliverQueue } from './deliver-job.ts';
import { DeliverRequests, LOOK_FOR_JOB_MS } from './deliver-requests.ts';
import { DeliveryTurn } from './delivery-turn.ts';
import { SettledWaits } from './settled-waits.ts';
import { hasLine, isPaused } from './stream.ts';
import { type OutboxLog, WrittenStore, type WrittenStoreParts } from './written-store.ts';

export type OutboxParts = {
  db: Database;
  deliverer: Deliverer;
  queue: DeliverQueue;
  /** See `WrittenStoreParts`. */
  onStore: WrittenStoreParts['onStore'];
  log: OutboxLog;
};

/** How soon another deliverer's line, or a store or database that is away, is looked at again. */
const LOOK_AGAIN_MS = 1000;
/** How often the store is looked at while there is nothing to deliver. */
const LOOK_AT_STORE_MS = 2000;
/** How soon the host that runs the job tries again when another one looks at the stream. */
const LOCKED_AGAIN_MS = 50;

/**
 * Keeps the line moving: looks at it for every notification, for every time an entry waits for, and for every sweep, and delivers while it runs the
 * job of the queue. What wakes it is no more than a hint: the line itself says what is to do.
 */
export class Outbox {
  readonly #parts: OutboxParts;
  readonly #store: WrittenStore;
  readonly #turn = new DeliveryTurn();
  readonly #requests: DeliverRequests;
  readonly #waits: SettledWaits;
  readonly #loop: DrainLoop<true>;
  #closed = false;
  /** Whether the database failed at the last turn. */
  #unread = false;

  constructor(parts: OutboxParts) {
    const { db, deliverer, log, queue } = parts;
    this.#parts = parts;
    this.#waits = new SettledWaits(db);
    this.#requests = new DeliverRequests(
      queue,
      () => this.wake(),
      error => log.warn({ error }, 'a job that delivers could not be queued; it is tried again'),
    );
    const onStore: WrittenStoreParts['onStore'] = (...args) => {
      parts.onStore(...args);
      // The filling was announced as other hosts' deliveries are; with a job what comes first is not left to one of them.
      this.#requests.request();
    };
    this.#store = new WrittenStore({ db, deliverer, onStore, log });
    // The lock is that of each delivery (`Deliverer`).
    this.#loop = new DrainLoop<true>({
      begin: async () => true,
      pass: () => this.#pass(),
      end: async () => {},
      isLeft: async () => false,
      onError: error => log.error({ error: messageOf(error) }, 'the outbox is not looked at any more'),
    });
  }

  /** Fills a store if it has to be, and writes it from then on. */
  useStore(store: GraphStore): void {
    this.#store.use(store);
    this.wake();
  }

  /** Writes no store any more. */
  leaveStore(): void {
    this.#store.leave();
    this.wake();
  }

  /** The store that is asked has not everything: another one has taken its place at its address, or it was emptied. */
  lookAtStore(): void {
    if (this.#store.doubt()) this.wake();
  }

  /** Notifications were missed: the database may have been restored. `onStore` tells when the store may be asked again. */
  lookAgain(): void {
    this.#store.doubtAll();
    this.wake();
  }

  /** Whether this host is the one that delivers. */
  get isAtWork(): boolean {
    return this.#turn.isOurs;
  }

  /** Something was appended, here or by another host. */
  appended(): void {
    if (this.#turn.isOurs || !this.#store.isAble) this.wake();
    else this.#requests.appended();
  }

  /** A delivery was announced, here or by another host. */
  delivered(): void {
    if (!this.#turn.isOurs) this.#requests.anotherDelivered();
    this.#waits.delivered();
  }

  /**
   * The job: delivers what is there and what comes for three seconds.
   *
   * @throws Error why nothing could be delivered
   */
  async deliver(ended: AbortSignal): Promise<void> {
    if (this.#closed) return;
    this.#requests.began();
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
    if (next === null && this.#store.current !== null) next = LOOK_AT_STORE_MS;
    return next === null ? null : Math.ceil(Math.min(next, this.#turn.leftMs()));
  }

  /** A host that cannot deliver leaves the job to one that can. */
  #takeOrLeaveJobs(): void {
    if (this.#store.isAble && !this.#closed) return this.#parts.queue.resume();
    this.#parts.queue.pause();
    this.#turn.end(new Error(`the graph store cannot be written: ${this.#store.problem}`));
  }

  #endTurn(): void {
    // Also a job that another host has asked for begins at once.
    if (this.#turn.isWarm) this.#requests.request();
    else this.#parts.queue.wake();
    this.#turn.end(null);
  }

  /** @returns when to look again, in ms; null: when woken */
  async #work(): Promise<number | null> {
    for (;;) {
      if (this.#closed) return null;
      if (this.#store.isWaiting) this.#turn.end(null);
      const store = await this.#store.ready();
      if (store === null || typeof store === 'number') return store;
      if (this.#turn.leftMs() === 0) {
        this.#endTurn();
        return LOOK_FOR_JOB_MS;
      }
      const result = await this.#parts.deliverer.cycle(store, this.#turn.isOurs ? 'deliver' : 'look');
      if (result.kind === 'fenced') return this.#store.fenced(store);
      this.#store.unfenced();
      if (result.kind !== 'delivered') return await this.#waitAfter(result);
      this.#turn.delivered();
      // Also after a refusal: an entry that died lets go what waited behind it.
      this.#store.came(result.refused);
    }
  }

  /** @returns when to look again, in ms; null: when woken */
  async #waitAfter(result: Exclude<CycleResult, { kind: 'delivered' | 'fenced' }>): Promise<number | null> {
    const { db, queue } = this.#parts;
    switch (result.kind) {
      case 'paused':
        this.#store.wentAway(result.error);
        return LOOK_AGAIN_MS;
      case 'idle':
        return result.nextMs === null ? null : Math.ceil(result.nextMs);
      case 'due':
        await queue.requestAgain();
        return LOOK_FOR_JOB_MS;
      case 'not_our_turn':
        if (!(await hasLine(db))) return null;
        // Another one delivers; or the stream pauses because a store was away that may be back by now.
        if (await isPaused(db)) this.#store.pauses();
        return this.#turn.isOurs ? LOCKED_AGAIN_MS : LOOK_AGAIN_MS;
    }
  }

  /**
   * Waits until entries are in the store, or have died, or the time is up.
   *
   * @returns whether they are no longer in the line
   */
  settled(entries: Appended, waitMs: number): Promise<boolean> {
    return this.#waits.settled(entries, waitMs, () => this.#store.current !== null);
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.#requests.close();
    this.#parts.queue.pause();
    await this.#loop.close();
    this.#turn.end(null);
    this.#store.close();
  }
}
