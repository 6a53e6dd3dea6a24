import { setTimeout as sleep } from 'node:timers/promises';
import type pg from 'pg';
import { makeClient } from './database.ts';

export type HeldLock = { close(): Promise<void> };

const AGAIN_MS = 200;

async function takeLock(client: pg.Client, key: number): Promise<boolean> {
  const { rows } = await client.query<{ got: boolean }>('SELECT pg_try_advisory_lock($1) AS got', [key]);
  return rows[0]?.got === true;
}

/**
 * Holds a lock of the whole database for as long as the service runs: of all hosts one has it. A connection of its own holds
 * it, so that it is free when this process ends, however it ends.
 *
 * @param key number of the lock
 * @param on `held`: this host has it, also again after it was lost; `lost`: the connection is gone, and another host may have
 *   it by now; `refused`: once, when another host has it
 */
export function holdLock(url: string, key: number, on: { held(): void; lost(): void; refused(): void }): HeldLock {
  let closed = false;
  let client: pg.Client | null = null;
  let told = false;

  /** One connection, until it is gone. */
  const hold = async (): Promise<void> => {
    const own = makeClient(url);
    client = own;
    const gone = new Promise<void>(resolve => {
      own.on('error', () => resolve());
      own.on('end', () => resolve());
    });
    try {
      await own.connect();
      while (!closed && !(await takeLock(own, key))) {
        if (!told) on.refused();
        told = true;
        await sleep(AGAIN_MS);
      }
      if (closed) return;
      on.held();
      await gone;
      if (!closed) on.lost();
    } finally {
      await own.end().catch(() => {});
    }
  };
  const running = (async () => {
    while (!closed) {
      // The database is away: the next attempt finds out whether it is back.
      await hold().catch(() => {});
      if (!closed) await sleep(AGAIN_MS);
    }
  })();
  return {
    async close() {
      closed = true;
      await client?.end().catch(() => {});
      await running;
    },
  };
}

/**
 * Takes a lock of the whole database if nobody has it, on a connection of its own.
 *
 * @param onLost the connection is gone, and somebody else may have the lock by now
 * @returns null when somebody has it
 */
export async function tryLock(url: string, key: number, onLost: () => void): Promise<HeldLock | null> {
  const client = makeClient(url);
  let closed = false;
  const lost = (): void => {
    if (!closed) onLost();
    closed = true;
  };
  client.on('error', lost);
  client.on('end', lost);
  try {
    await client.connect();
    if (!(await takeLock(client, key))) {
      closed = true;
      await client.end();
      return null;
    }
  } catch (error) {
    closed = true;
    await client.end().catch(() => {});
    throw error;
  }
  return {
    async close() {
      closed = true;
      await client.end().catch(() => {});
    },
  };
}
