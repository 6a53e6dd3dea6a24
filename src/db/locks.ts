import type { Queryable } from './database.ts';

/**
 * Every advisory lock of the database, by what it is held for. Of all hosts one holds it, for a transaction or for as long as its session lasts
 * (`held-lock`). A number is never given to something else: a host of another release may hold it.
 */
export const LOCKS = {
  migration: 7_391_042,
  /** The first administrator is added, and the last one kept. */
  adminSetup: 7_391_043,
  /** Attempts of one caller are counted one at a time. */
  login: 7_391_044,
  /** Changes of the graph; also taken by the SQL functions that append to the outbox. */
  graph: 7_391_045,
  /** The host whose embedded graph store is used. */
  embeddedGraph: 7_391_046,
  /** One import writes at a time: what a record means is computed from those around it. */
  universityImport: 7_391_047,
  universityPull: 7_391_048,
  /** One lock for each channel of messages. */
  messageSending: { TELEGRAM: 7_391_050, VK: 7_391_051 },
  messagePolling: { TELEGRAM: 7_391_052, VK: 7_391_053 },
  eventDelivery: 7_391_054,
} as const;

/** Kinds of things of which each one is locked by its name. */
export type NamedLock = 'events' | 'chat' | 'module';

/** Waits for a lock, and holds it to the end of the caller's transaction. */
export async function lockForTransaction(client: Queryable, lock: number): Promise<void> {
  await client.query('SELECT pg_advisory_xact_lock($1)', [lock]);
}

/** Takes the lock of one of many callers: others do not wait, except those whose names have the same hash. */
export async function lockCallerForTransaction(client: Queryable, lock: number, caller: string): Promise<void> {
  await client.query('SELECT pg_advisory_xact_lock($1, hashtext($2))', [lock, caller]);
}

/** Takes the lock of one thing of a kind. */
export async function lockNamedForTransaction(client: Queryable, kind: NamedLock, what: string): Promise<void> {
  await client.query('SELECT pg_advisory_xact_lock(hashtextextended($1, 0))', [`${kind} ${what}`]);
}

/** Does not wait. @returns whether the caller's transaction holds it now */
export async function tryLockNamedForTransaction(client: Queryable, kind: NamedLock, what: string): Promise<boolean> {
  const { rows } = await client.query<{ got: boolean }>(
    'SELECT pg_try_advisory_xact_lock(hashtextextended($1, 0)) AS got',
    [`${kind} ${what}`],
  );
  return rows[0]?.got === true;
}
