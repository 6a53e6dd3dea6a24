import { LRUCache } from 'lru-cache';

export type CacheOptions<K, V> = {
  /** Largest number of entries; the least recently used one is removed first. */
  max: number;
  /** Largest weight of all entries together, and the weight of one entry. */
  weightMax?: number;
  weightOf?(value: V): number;
  /** How long an entry is valid, by the clock `now`; without it, entries do not expire. */
  ttlMs?: number;
  now?(): number;
  /** Called for every entry that is removed or replaced. */
  dropped?(value: V, key: K): void;
};

/** A cache with a largest size. */
export type BoundedCache<K extends string | number, V extends object> = LRUCache<K, V>;

export function boundedCache<K extends string | number, V extends object>(o: CacheOptions<K, V>): BoundedCache<K, V> {
  return new LRUCache<K, V>({
    max: o.max,
    ...(o.weightMax === undefined ? {} : { maxSize: o.weightMax, sizeCalculation: v => o.weightOf?.(v) ?? 1 }),
    // Reads the clock on each access; otherwise the library sets a timer each time it has read the clock.
    ...(o.ttlMs === undefined ? {} : { ttl: o.ttlMs, ttlResolution: 0 }),
    ...(o.now === undefined ? {} : { perf: { now: o.now } }),
    ...(o.dropped === undefined ? {} : { dispose: o.dropped }),
  });
}
