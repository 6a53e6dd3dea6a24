import { randomUUID } from 'node:crypto';
import { messageOf } from '../base/errors.ts';
import { LIMITS } from '../base/limits.ts';
import type { Tracing } from '../base/tracing.ts';
import type { Database, Queryable } from '../db/database.ts';
import { newMark, readMarks } from '../graph/graph.ts';
import { type GraphSchema, isSameSchema } from '../graph/graph-schema.ts';
import { GraphError, type GraphUpdate } from '../graph/graph-store.ts';
import { type Tuple, tupleKey } from '../graph/tuple.ts';
import {
  type DeliveryStore,
  FencedError,
  isInStep,
  isRefusal,
  MOVING_UPDATES_MAX,
  readPosition,
  StoreFence,
} from './fenced-store.ts';
import { readMirror } from './mirror.ts';
import { netUpdates, type OutboxEntry, takeDue } from './plan.ts';
import { RejectedTuples } from './rejected-tuples.ts';
import {
  type Delivered,
  keepAlive,
  lockStream,
  markDelivered,
  markFilled,
  markRefused,
  pauseStream,
  readLine,
  type StreamState,
  saveStore,
} from './stream.ts';

type Delivery = { kind: 'delivered'; entries: number; refused: number };

/** Outcome of one turn of the deliverer. */
export type CycleResult =
  | Delivery
  /** Nothing may go now; the first that waits for its time has it in `nextMs`. */
  | { kind: 'idle'; nextMs: number | null }
  /** Something may go now, and this turn was not to deliver. */
  | { kind: 'due' }
  /** Another one delivers, or the stream pauses. */
  | { kind: 'not_our_turn' }
  /** The store is away, and the stream pauses. */
  | { kind: 'paused'; error: string }
  /** The store does not have our epoch: another host took over, or it is a new store. Prepare it. */
  | { kind: 'fenced' };

const READS_AT_ONCE = 16;
/** How often at most a deliverer with nothing to deliver looks where the store stands. */
const LOOK_MS = 1500;

/** Outcome of preparing a store. */
export type Prepared = {
  /** Whether it was filled now. */
  filled: boolean;
  /** Whether it was full, and of another history: the store or the database was restored from a backup. */
  restored: boolean;
  /** The mark of the filling; empty without one. */
  token: string;
  /** Why a store that has a schema does not take ours; empty when it does. */
  schemaRefused: string;
  /** Tuples that the store refuses: a mistake of ours. */
  rejected: RejectedTuples;
};

type LeaveToWrite = (store: DeliveryStore) => Promise<(updates: readonly GraphUpdate[]) => Promise<string>>;

/**
 * Brings entries of the outbox into the graph store, in the order of cause and effect. One at a time holds the stream's row;
 * every write carries the epoch of its deliverer as a precondition, so that a late one of a deliverer that lost its turn is
 * refused by the store (docs/outbox.md "The fence").
 */
export class Deliverer {
  readonly #db: Database;
  readonly #schema: GraphSchema;
  readonly #tracing: Tracing | null;
  readonly #owner = randomUUID();
  readonly #fence = new StoreFence();
  /** Mark of the store this deliverer has prepared. */
  #mark: string | null = null;
  #lookedAt = Number.NEGATIVE_INFINITY;

  /** @param tracing each delivery gets a span; null for none */
  constructor(db: Database, schema: GraphSchema, tracing: Tracing | null = null) {
    this.#db = db;
    this.#tracing = tracing;
    this.#schema = schema;
  }

  /**
   * One turn: delivers what may go.
   *
   * @param to `look`: delivers nothing, and leaves the host alone that does
   * @throws Error of the database alone; what the store says is part of the result
   */
  async cycle(store: DeliveryStore, to: 'deliver' | 'look' = 'deliver'): Promise<CycleResult> {
    return await this.#db.withTransaction(async client => {
      const stream = await lockStream(client, this.#owner, to);
      if (stream === null) return { kind: 'not_our_turn' };
      // Another host has filled another store since: ours must learn what it missed first.
      if (stream.store !== this.#mark) return { kind: 'fenced' };
      const { due, nextMs } = await readDue(client);
      if (due.length === 0)
        return (await this.#isInPlace(client, store, stream)) ? { kind: 'idle', nextMs } : { kind: 'fenced' };
      if (to === 'look') return { kind: 'due' };
      const span = this.#tracing?.start('outbox delivery', 'client', null, { 'plugin_host.entries_due': due.length });
      try {
        const result = await keepAlive(client, async () => {
          await this.#ensureTurn(client, store, stream);
          return await this.#deliver(client, store, due);
        });
        span?.end({ 'plugin_host.entries': result.entries, 'plugin_host.entries_refused': result.refused });
        return result;
      } catch (error) {
        span?.end({}, messageOf(error));
        return await this.#failed(client, due[0], error);
      }
    });
  }

  async #ensureTurn(client: Queryable, store: DeliveryStore, stream: StreamState): Promise<void> {
    if (stream.owner === this.#owner && this.#fence.holds(stream)) return;
    await this.#fence.takeOver(client, store, stream, this.#owner);
  }

  /** A store that was restored while nothing is delivered is found before the next delivery. */
  async #isInPlace(client: Queryable, store: DeliveryStore, stream: StreamState): Promise<boolean> {
    if (performance.now() - this.#lookedAt < LOOK_MS) return true;
    this.#lookedAt = performance.now();
    try {
      return await keepAlive(client, async () => await isInStep(client, stream, await readPosition(store)));
    } catch (error) {
      if (!(error instanceof GraphError)) throw error;
      // One that is away is found so by the next question or delivery; one without a schema is a new one.
      return error.kind === 'unavailable';
    }
  }

  /**
   * Gives a store its schema, and everything when it has not been filled or is of another history; does nothing to
   * one that has what the database says.
   *
   * @throws GraphError
   */
  async prepare(store: DeliveryStore): Promise<Prepared> {
    return await this.#db.withTransaction(async client => {
      const stream = await lockStream(client, this.#owner, 'hold');
      if (stream === null) throw new Error('the row of the stream is gone');
      return await keepAlive(client, () => this.#prepareLocked(client, store, stream));
    });
  }

  async #prepareLocked(client: Queryable, store: DeliveryStore, stream: StreamState): Promise<Prepared> {
    const schemaRefused = await this.#writeSchema(store);
    const marks = await readMarks(store, 'loaded');
    const known = marks.find(mark => stream.store === null || stream.store === mark.subjectId);
    if (known !== undefined && (await isInStep(client, stream, await readPosition(store)))) {
      if (stream.store === null) await saveStore(client, known.subjectId);
      this.#mark = known.subjectId;
      return { filled: false, restored: false, token: '', schemaRefused, rejected: new RejectedTuples() };
    }
    const filled = await this.#fill(client, store, stream, marks);
    return { filled: true, restored: known !== undefined, schemaRefused, ...filled };
  }

  /** A store that refuses ours, because it would lose data, keeps its own, and goes on answering. */
  async #writeSchema(store: DeliveryStore): Promise<string> {
    const current = await store.readSchema();
    if (current !== null && isSameSchema(current, this.#schema.text)) return '';
    try {
      await store.writeSchema(this.#schema.text);
      return '';
    } catch (error) {
      if (current !== null && isRefusal(error)) return error.message;
      throw error;
    }
  }

  /** From the mirror, as of one moment; what is committed later is delivered behind it. */
  async #fill(
    client: Queryable,
    store: DeliveryStore,
    stream: StreamState,
    outdated: readonly Tuple[],
  ): Promise<Pick<Prepared, 'token' | 'rejected'>> {
    await this.#fence.takeOver(client, store, stream, this.#owner, true);
    const begun = await readMarks(store, 'filling');
    const mark = begun[0] ?? newMark('filling');
    await this.#fence.write(store, [
      ...outdated.map((tuple): GraphUpdate => ({ operation: 'delete', tuple })),
      { operation: 'touch', tuple: mark },
    ]);
    // An earlier attempt may have ended before this.
    if (outdated.length > 0 || begun.length > 0) await this.#removeExtra(store);
    const rejected = new RejectedTuples();
    const lastId = await readMirror(this.#db, LIMITS.graphUpdatesMax, tuples =>
      this.#fillWith(store, tuples, rejected),
    );
    const loaded = newMark('loaded');
    const { position, token } = await this.#fence.endFill(
      store,
      [
        { operation: 'delete', tuple: mark },
        { operation: 'touch', tuple: loaded },
      ],
      stream,
    );
    await saveStore(client, loaded.subjectId);
    this.#mark = loaded.subjectId;
    // Into a store that an earlier attempt had filled in part, deletions that were committed since must still be delivered.
    await markFilled(client, begun.length === 0 && outdated.length === 0 ? lastId : 0, token, position);
    return { token, rejected };
  }

  /** A store that was not delivered to for a while has what was taken back since. */
  async #removeExtra(store: DeliveryStore): Promise<void> {
    const wanted = new Set<string>();
    await readMirror(this.#db, LIMITS.graphUpdatesMax, async tuples => {
      for (const tuple of tuples) wanted.add(tupleKey(tuple));
    });
    for (const type of this.#schema.types.values()) {
      if (type.relations.size === 0) continue;
      const extra = (await store.read({ resourceType: type.name })).filter(t => !wanted.has(tupleKey(t)));
      if (extra.length > 0)
        await this.#fence.write(
          store,
          extra.map(tuple => ({ operation: 'delete', tuple })),
        );
    }
  }

  /** Tuples that the store refuses, because of a mistake of ours, are left out: all others need not wait for them. */
  async #fillWith(store: DeliveryStore, all: readonly Tuple[], rejected: RejectedTuples): Promise<void> {
    const tuples = all.filter(tuple => !rejected.isHopeless(tuple));
    if (tuples.length === 0) return;
    try {
      await this.#fence.write(
        store,
        tuples.map(tuple => ({ operation: 'touch', tuple })),
      );
    } catch (error) {
      if (!isRefusal(error)) throw error;
      await this.#fence.assertOurs(store);
      if (tuples.length === 1) for (const tuple of tuples) rejected.add(tuple);
      else {
        const half = Math.ceil(tuples.length / 2);
        await this.#fillWith(store, tuples.slice(0, half), rejected);
        await this.#fillWith(store, tuples.slice(half), rejected);
      }
    }
  }

  /**
   * Works with the stream locked and the store at rest; for confirming and repairing differences.
   *
   * @param work may ask for leave to write a store; `mark` is that of the store that is delivered to
   * @throws GraphError
   */
  async withRest<T>(work: (client: Queryable, writeTo: LeaveToWrite, mark: string | null) => Promise<T>): Promise<T> {
    return await this.#db.withTransaction(async client => {
      const stream = await lockStream(client, this.#owner, 'hold');
      if (stream === null) throw new Error('the row of the stream is gone');
      const writeTo: LeaveToWrite = async store => {
        await this.#ensureTurn(client, store, stream).catch((error: unknown) => {
          if (!(error instanceof FencedError)) throw error;
          throw new GraphError('unavailable', `${error.message}; the store is filled again in a moment`, error);
        });
        return updates => this.#fence.write(store, updates);
      };
      return await keepAlive(client, () => work(client, writeTo, stream.store));
    });
  }

  async #deliver(client: Queryable, store: DeliveryStore, due: readonly OutboxEntry[]): Promise<Delivery> {
    try {
      return { kind: 'delivered', entries: await this.#deliverTogether(client, store, due), refused: 0 };
    } catch (error) {
      if (!isRefusal(error)) throw error;
      await this.#fence.assertOurs(store);
    }
    // One of them is refused, which spoils the whole write: each goes alone, and what follows the culprit waits.
    const blocked = new Set<string>();
    let entries = 0;
    let refused = 0;
    for (const entry of due) {
      if (entry.keys.some(k => blocked.has(k))) {
        for (const key of entry.keys) blocked.add(key);
        continue;
      }
      try {
        entries += await this.#deliverTogether(client, store, [entry]);
      } catch (error) {
        if (!isRefusal(error)) throw error;
        await this.#fence.assertOurs(store);
        await markRefused(client, entry.id, error.message);
        for (const key of entry.keys) blocked.add(key);
        refused++;
      }
    }
    return { kind: 'delivered', entries, refused };
  }

  /** One atomic write, as many whole entries as fit it. @returns how many */
  async #deliverTogether(client: Queryable, store: DeliveryStore, entries: readonly OutboxEntry[]): Promise<number> {
    const found = await readNamed(store, entries);
    const { taken, updates } = netUpdates(entries, found, MOVING_UPDATES_MAX);
    const done = entries.slice(0, taken);
    // A write that changes nothing is left out.
    const { position, token } =
      updates.length === 0 ? { position: null, token: '' } : await this.#fence.deliver(store, updates, done);
    // What was removed may have been removed by a write whose answer was lost: nothing is left that says of whom.
    const delivered = updates.length === 0 ? { token, users: null } : deliveredOf(token, updates);
    await markDelivered(client, done, delivered, position);
    this.#lookedAt = performance.now();
    return taken;
  }

  async #failed(client: Queryable, head: OutboxEntry | undefined, error: unknown): Promise<CycleResult> {
    // Refused before anything was delivered: the store has no schema yet, was restored, or another host took over at the same moment.
    if (error instanceof FencedError || isRefusal(error)) return { kind: 'fenced' };
    if (!(error instanceof GraphError)) throw error;
    await pauseStream(client, head, error.message);
    return { kind: 'paused', error: error.message };
  }
}

/** Entries of the line that may go now; scanned beyond those that wait. */
async function readDue(client: Queryable): Promise<{ due: OutboxEntry[]; nextMs: number | null }> {
  const busy = new Set<string>();
  const due: OutboxEntry[] = [];
  // Told by the same statement: what was asked later might have become due in between, with nothing waiting for it.
  let nextMs: number | null = null;
  for (let afterId = 0; ; ) {
    const part = await readLine(client, afterId);
    due.push(...takeDue(part, LIMITS.outboxBatch - due.length, busy));
    for (const { parkedMs } of part) if (parkedMs > 0) nextMs = Math.min(nextMs ?? parkedMs, parkedMs);
    if (due.length >= LIMITS.outboxBatch || part.length < LIMITS.outboxWindow) return { due, nextMs };
    afterId = part.at(-1)?.id ?? 0;
  }
}

/** What the filters name in the store now, by entry. One that is ours holds what was written; it is not searched, which takes it long. */
async function readNamed(
  store: DeliveryStore,
  entries: readonly OutboxEntry[],
): Promise<Map<number, readonly Tuple[]>> {
  const found = new Map<number, readonly Tuple[]>();
  const isKnown = (e: OutboxEntry): boolean => store.isOurs && e.removed !== null;
  for (const e of entries) if (e.removed !== null && isKnown(e)) found.set(e.id, e.removed);
  const queue = entries.filter(e => e.filter !== null && !isKnown(e));
  const reader = async (): Promise<void> => {
    for (let e = queue.pop(); e !== undefined; e = queue.pop()) found.set(e.id, await store.read(e.filter ?? {}));
  };
  await Promise.all(Array.from({ length: Math.min(READS_AT_ONCE, queue.length) }, reader));
  return found;
}

/** The users whose groups changed: what is remembered of them is no longer true. */
function deliveredOf(token: string, updates: readonly GraphUpdate[]): Delivered {
  const users = new Set<string>();
  for (const { tuple } of updates)
    if (tuple.subjectType === 'user' && tuple.resourceType === 'study_group') users.add(tuple.subjectId);
  return { token, users: [...users] };
}
