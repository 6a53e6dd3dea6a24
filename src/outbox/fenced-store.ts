import { randomUUID } from 'node:crypto';
import { LIMITS } from '../base/limits.ts';
import type { Queryable } from '../db/database.ts';
import { GraphError, type GraphStore, type GraphUpdate, type WriteCondition } from '../graph/graph-store.ts';
import type { Tuple } from '../graph/tuple.ts';
import type { OutboxEntry } from './plan.ts';
import { knowsEntry, type StreamPosition, type StreamState, saveOwner } from './stream.ts';

/** The calls of the graph store that a deliverer needs. */
export type DeliveryStore = Pick<
  GraphStore,
  'isOurs' | 'read' | 'pages' | 'revision' | 'write' | 'readSchema' | 'writeSchema'
>;

/** The store does not have our epoch or does not stand where the database says: it is prepared again before anything is written. */
export class FencedError extends Error {}

export const isRefusal = (error: unknown): error is GraphError =>
  error instanceof GraphError && error.kind === 'refused';

const FENCE = { resourceType: 'outbox_fence', resourceId: 'main', relation: 'epoch', subjectType: 'outbox_epoch' };
const POSITION = { ...FENCE, resourceId: 'position' };
/** Updates of one write besides those that move the position. */
export const MOVING_UPDATES_MAX = LIMITS.graphUpdatesMax - 2;

const fenceTuple = (epoch: number): Tuple => ({ ...FENCE, subjectId: String(epoch), subjectRelation: '' });
const positionTuple = (p: StreamPosition): Tuple => ({
  ...POSITION,
  subjectId: `${p.tick}/${p.entry}`,
  subjectRelation: '',
});

/** Position of a store that was filled from the mirror. */
export const filledPosition = (tick: number): StreamPosition => ({ tick, entry: `filled_${randomUUID()}` });

/** The position after a delivery. Its number is always a new one; entries that waited are behind the newest one. */
function positionAfter(before: StreamPosition | null, entries: readonly OutboxEntry[]): StreamPosition {
  const newest = entries.at(-1);
  const known = Number(/^\d+/.exec(before?.entry ?? '')?.[0] ?? 0);
  const entry = newest !== undefined && newest.id > known ? `${newest.id}_${newest.mark}` : before?.entry;
  return { tick: (before?.tick ?? 0) + 1, entry: entry ?? '' };
}

/** The newest revision of a store that was ever written by a deliverer. @throws GraphError */
export const newestRevision = (store: DeliveryStore): Promise<string> => store.revision(FENCE);

/** Where a store stands by what it holds of its position: null when nothing, and nowhere we know when it cannot be read. */
function positionOf(found: readonly Tuple[]): StreamPosition | null {
  if (found.length === 0) return null;
  const [tick = '', entry = ''] = found[0]?.subjectId.split('/') ?? [];
  if (found.length > 1 || !/^\d+$/.test(tick) || entry === '') return { tick: -1, entry: '' };
  return { tick: Number(tick), entry };
}

/** @throws GraphError */
export const readPosition = async (store: DeliveryStore): Promise<StreamPosition | null> =>
  positionOf(await store.read(POSITION));

/**
 * Whether store and database are of one history: the store has what the database was told it has, and nothing the database does not know.
 * A write whose answer was lost leaves the store ahead by entries that still wait in the line. A database restored from a backup does not know the
 * store's newest entry; a store restored alone has an earlier number.
 */
export async function isInStep(client: Queryable, stream: StreamState, store: StreamPosition | null): Promise<boolean> {
  if (store === null) return stream.position === null;
  const tick = stream.position?.tick ?? 0;
  if (stream.position?.entry === store.entry) return store.tick >= tick;
  return store.tick > tick && (await knowsEntry(client, store.entry));
}

/**
 * The right to write a store: every write carries the epoch of its deliverer and the position it expects as preconditions, so that the late write
 * of a deliverer that lost its turn is refused, and so is a write to a store that was restored meanwhile.
 */
export class StoreFence {
  /** Null until this deliverer has put its own into the store. */
  #epoch: number | null = null;
  #position: StreamPosition | null = null;
  /** The greatest number found when the store was taken over to be filled. */
  #foundTick = 0;

  /** Whether a deliverer that has its turn may write without taking over. */
  holds(stream: StreamState): boolean {
    return (
      this.#epoch !== null &&
      this.#epoch === stream.epoch &&
      this.#position?.tick === stream.position?.tick &&
      this.#position?.entry === stream.position?.entry
    );
  }

  /** Whether a write without an answer has arrived is unknown: with the next epoch it can no longer come late. */
  drop(): void {
    this.#epoch = null;
  }

  /**
   * Puts the epoch of this owner in the place of the one found; should another owner do it at the same time, one is refused.
   *
   * @param toFill whether the store is about to be filled: then it may stand anywhere
   * @throws FencedError when the store is not of the database's history
   */
  async takeOver(
    client: Queryable,
    store: DeliveryStore,
    stream: StreamState,
    owner: string,
    toFill = false,
  ): Promise<void> {
    this.#epoch = null;
    const positions = await store.read(POSITION);
    const found = positionOf(positions);
    if (!toFill && !(await isInStep(client, stream, found)))
      throw new FencedError('the store and the database are not of one history');
    const old = await store.read(FENCE);
    const epoch = Math.max(stream.epoch, ...old.map(t => Number(t.subjectId))) + 1;
    const conditions: WriteCondition[] =
      old.length === 0
        ? [{ exists: false, filter: FENCE }]
        : old.map(t => ({ exists: true, filter: { ...FENCE, subjectId: t.subjectId } }));
    await store.write(
      [
        ...old.map((tuple): GraphUpdate => ({ operation: 'delete', tuple })),
        ...(toFill ? positions : []).map((tuple): GraphUpdate => ({ operation: 'delete', tuple })),
        { operation: 'touch', tuple: fenceTuple(epoch) },
      ],
      [...conditions, ...(toFill ? [] : [atPosition(found)])],
    );
    const position = toFill ? null : found;
    // A lost session ends here, before anything is delivered.
    await saveOwner(client, owner, epoch, position);
    this.#epoch = epoch;
    this.#position = position;
    this.#foundTick = found?.tick ?? 0;
  }

  /** Writes what changes no position. Up to `graphUpdatesMax` updates are one atomic write. @throws FencedError, GraphError */
  async write(store: DeliveryStore, updates: readonly GraphUpdate[]): Promise<string> {
    let token = '';
    for (let i = 0; i < updates.length; i += LIMITS.graphUpdatesMax)
      token = await this.#write(store, updates.slice(i, i + LIMITS.graphUpdatesMax), []);
    return token;
  }

  /**
   * Writes what entries come to, and with the first write that the store has them; more than `MOVING_UPDATES_MAX` of one entry are several.
   *
   * @throws FencedError, GraphError
   */
  async deliver(
    store: DeliveryStore,
    updates: readonly GraphUpdate[],
    entries: readonly OutboxEntry[],
  ): Promise<{ token: string; position: StreamPosition }> {
    const position = positionAfter(this.#position, entries);
    let token = await this.#move(store, updates.slice(0, MOVING_UPDATES_MAX), position);
    if (updates.length > MOVING_UPDATES_MAX) token = await this.write(store, updates.slice(MOVING_UPDATES_MAX));
    return { token, position };
  }

  /** The last write of a filling: the store stands where the database will say. @throws FencedError, GraphError */
  async endFill(
    store: DeliveryStore,
    updates: readonly GraphUpdate[],
    stream: StreamState,
  ): Promise<{ token: string; position: StreamPosition }> {
    const position = filledPosition(Math.max(stream.position?.tick ?? 0, this.#foundTick) + 1);
    return { token: await this.#move(store, updates, position), position };
  }

  async #move(store: DeliveryStore, updates: readonly GraphUpdate[], to: StreamPosition): Promise<string> {
    const from = this.#position;
    const moves: GraphUpdate[] = [{ operation: 'touch', tuple: positionTuple(to) }];
    if (from !== null) moves.unshift({ operation: 'delete', tuple: positionTuple(from) });
    const token = await this.#write(store, [...updates, ...moves], [atPosition(from)]);
    this.#position = to;
    return token;
  }

  async #write(
    store: DeliveryStore,
    updates: readonly GraphUpdate[],
    conditions: readonly WriteCondition[],
  ): Promise<string> {
    const epoch = this.#epoch;
    if (epoch === null) throw new FencedError('this deliverer has no epoch');
    try {
      return await store.write(updates, [
        { exists: true, filter: { ...FENCE, subjectId: String(epoch) } },
        ...conditions,
      ]);
    } catch (error) {
      if (!isRefusal(error)) this.drop();
      throw error;
    }
  }

  /** A refusal is the entry's fault only while the store is the one we know, has our epoch and stands where we left it. @throws FencedError */
  async assertOurs(store: DeliveryStore): Promise<void> {
    // A store without a schema refuses every question.
    const readOrNone = (filter: typeof FENCE): Promise<Tuple[]> =>
      store.read(filter).catch((error: unknown) => {
        if (isRefusal(error)) return [];
        throw error;
      });
    const fences = await readOrNone(FENCE);
    const position = positionOf(await readOrNone(POSITION));
    const isHere = position?.tick === this.#position?.tick && position?.entry === this.#position?.entry;
    if (isHere && fences.some(t => t.subjectId === String(this.#epoch))) return;
    this.drop();
    throw new FencedError('the store has another epoch or position');
  }
}

const atPosition = (p: StreamPosition | null): WriteCondition =>
  p === null
    ? { exists: false, filter: POSITION }
    : { exists: true, filter: { ...POSITION, subjectId: positionTuple(p).subjectId } };
