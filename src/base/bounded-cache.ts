import { LRUCache } from 'lru-cache';

export type CacheOptions<K, V> = {
  /** Entries at most; the one used longest ago goes first. */
  max: number;
  /** Weight of all entries together at most, and of one. */
  weightMax?: number;
  weightOf?(value: V): number;
  /** How long an entry counts, by the clock `now`; without it, for ever. */
  ttlMs?: number;
  now?(): number;
  /** Told of every entry that goes, also of one that is replaced. */
  dropped?(value: V, key: K): void;
};

/** Something remembered, with a bound. */
export type BoundedCache<K extends string | number, V extends object> = LRUCache<K, V>;

export function boundedCache<K extends string | number, V extends object>(o: CacheOptions<K, V>): BoundedCache<K, V> {
  return new LRUCache<K, V>({
    max: o.max,
    ...(o.weightMax === undefined ? {} : { maxSize: o.weightMax, sizeCalculation: v => o.weightOf?.(v) ?? 1 }),
    // The clock is asked each time; otherwise the library sets a timer for every answer of it.
    ...(o.ttlMs === undefined ? {} : { ttl: o.ttlMs, ttlResolution: 0 }),
    ...(o.now === undefined ? {} : { perf: { now: o.now } }),
    ...(o.dropped === undefined ? {} : { dispose: o.dropped }),
  });
}
