import type { GraphUpdate } from '../graph/graph-store.ts';
import { matchesFilter, type Tuple, type TupleFilter, tupleKey } from '../graph/tuple.ts';

/** An entry of the line as it is delivered. */
export type OutboxEntry = {
  id: number;
  operation: 'TOUCH' | 'DELETE' | 'DELETE_BY_OBJECT' | 'DELETE_BY_SUBJECT' | 'REPLACE';
  tuples: readonly Tuple[];
  filter: TupleFilter | null;
  /** Tuples that the filter named when the entry was queued; null when that is not known. */
  removed: readonly Tuple[] | null;
  keys: readonly string[];
  attempts: number;
  /** Tells it from an entry of the same number in another history of the database. */
  mark: string;
  /** How long it waits for its next attempt, ms; 0 when it does not. */
  parkedMs: number;
};

/**
 * The entries that may go now, in their order: an entry in backoff makes what it names busy, and what shares something busy
 * waits behind it (docs/outbox.md "Order").
 *
 * @param busy what earlier parts of the line made busy; grows
 */
export function takeDue(entries: readonly OutboxEntry[], max: number, busy: Set<string> = new Set()): OutboxEntry[] {
  const due: OutboxEntry[] = [];
  for (const entry of entries) {
    if (entry.parkedMs > 0 || entry.keys.some(k => busy.has(k))) for (const k of entry.keys) busy.add(k);
    else if (due.push(entry) >= max) break;
  }
  return due;
}

/**
 * What a row of entries comes to, each tuple once: later ones overrule earlier ones. An entry is taken whole or not at all.
 *
 * @param entries in their order
 * @param found by entry: the tuples its filter names in the store
 * @param max updates of one write
 * @returns the updates, and how many entries they are; more than `max` only when the first alone has more
 */
export function netUpdates(
  entries: readonly OutboxEntry[],
  found: ReadonlyMap<number, readonly Tuple[]>,
  max: number,
): { updates: GraphUpdate[]; taken: number } {
  const net = new Map<string, GraphUpdate>();
  let taken = 0;
  for (const entry of entries) {
    const named = found.get(entry.id) ?? [];
    if (taken > 0 && net.size + named.length + entry.tuples.length > max) break;
    if (entry.filter !== null) {
      for (const tuple of named) net.set(tupleKey(tuple), { operation: 'delete', tuple });
      for (const [key, { tuple }] of net)
        if (matchesFilter(entry.filter, tuple)) net.set(key, { operation: 'delete', tuple });
    }
    const operation = entry.operation === 'DELETE' ? 'delete' : 'touch';
    for (const tuple of entry.tuples) net.set(tupleKey(tuple), { operation, tuple });
    taken++;
  }
  // Should they not fit one write: rights are taken before they are given.
  const updates = [...net.values()].sort((a, b) =>
    a.operation < b.operation ? -1 : a.operation > b.operation ? 1 : 0,
  );
  return { updates, taken };
}
