import { randomInt } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import type pg from 'pg';
import { cutConnection, makeClient } from './database.ts';
import { lockForTransaction } from './locks.ts';

export type HeldLock = { close(): Promise<void> };

const AGAIN_MS = 200;

/** How often the holder of a lock sends a heartbeat. */
const BEAT_MS = 1000;
/**
 * A holder without an answer for this time gives the lock up, before the server does. A process that was paused notices
 * this only when it continues, so work that must not be done twice has a fence of its own.
 */
const UNANSWERED_MS = 3000;
/**
 * The server ends the session of a holder that is silent for this time: it was paused, or its network failed without a
 * close.
 */
const SILENT_MS = 5000;
/** A connection that does not end in this time is cut. */
const END_MS = 1000;

/**
 * Opens the connection of a lock and sends heartbeats from the start, so that no query waits for a network that has
 * failed.
 *
 * @returns a function that stops the heartbeats
 * @throws Error when the database cannot be reached
 */
async function connect(client: pg.Client): Promise<() => void> {
  await client.connect();
  const stopHeartbeats = sendHeartbeats(client);
  try {
    // https://www.postgresql.org/docs/current/runtime-config-client.html#GUC-IDLE-SESSION-TIMEOUT
    await client.query(`SET idle_session_timeout = ${SILENT_MS}`);
  } catch (error) {
    stopHeartbeats();
    throw error;
  }
  return stopHeartbeats;
}

/**
 * Sends heartbeats on the connection of a lock and cuts it when they are not answered. @returns a function that stops
 * them
 */
function sendHeartbeats(client: pg.Client): () => void {
  let answeredAt = performance.now();
  const timer = setInterval(() => {
    const sentAt = performance.now();
    if (sentAt - answeredAt > UNANSWERED_MS) return cutConnection(client);
    client.query('SELECT 1').then(
      () => {
        answeredAt = sentAt;
      },
      () => {},
    );
  }, BEAT_MS);
  return () => clearInterval(timer);
}

async function end(client: pg.Client): Promise<void> {
  const cut = setTimeout(() => cutConnection(client), END_MS);
  await client.end().catch(() => {});
  clearTimeout(cut);
}

/** A number that names a host while its processes run. */
export const makeHostId = (): number => randomInt(2 ** 31 - 1);

/**
 * Takes a lock that the processes of one host share: the database knows it by two numbers, and a session may have it
 * while no session of another host has.
 */
async function takeLockOfHost(client: pg.Client, key: number, host: number): Promise<boolean> {
  await client.query('BEGIN');
  try {
    // One session at a time looks who has it.
    await lockForTransaction(client, key);
    // https://www.postgresql.org/docs/current/view-pg-locks.html: a lock of two numbers has objsubid 2.
    const { rows } = await client.query(
      `SELECT 1 FROM pg_locks
       WHERE locktype = 'advisory' AND objsubid = 2 AND classid::bigint = $1 AND objid::bigint <> $2
         AND database = (SELECT oid FROM pg_database WHERE datname = current_database()) LIMIT 1`,
      [key, host],
    );
    if (rows.length > 0) return false;
    await client.query('SELECT pg_advisory_lock_shared($1::int, $2::int)', [key, host]);
    return true;
  } finally {
    await client.query('COMMIT');
  }
}

async function takeLock(client: pg.Client, key: number): Promise<boolean> {
  const { rows } = await client.query<{ got: boolean }>('SELECT pg_try_advisory_lock($1) AS got', [key]);
  return rows[0]?.got === true;
}

/**
 * Holds an advisory lock of the database while the service runs; one host at a time has it, with all its serving
 * processes. A separate connection holds it, so the lock is released when this process ends in any way, and five seconds
 * after the last heartbeat reached the database.
 *
 * @param key number of the lock
 * @param host names the host (`makeHostId`)
 * @param on `held`: this host has the lock, or has it again; `lost`: the connection is closed, and another host may
 *   have the lock by now; `refused`: once, when another host has it
 */
export function holdLockOfHost(
  url: string,
  key: number,
  host: number,
  on: { held(): void; lost(): void; refused(): void },
): HeldLock {
  let closed = false;
  let client: pg.Client | null = null;
  let told = false;

  /** One connection, until it is gone. */
  const hold = async (): Promise<void> => {
    const own = makeClient(url);
    client = own;
    let stopHeartbeats = (): void => {};
    const gone = new Promise<void>(resolve => {
      own.on('error', () => resolve());
      own.on('end', () => resolve());
    });
    try {
      stopHeartbeats = await connect(own);
      while (!closed && !(await takeLockOfHost(own, key, host))) {
        if (!told) on.refused();
        told = true;
        await sleep(AGAIN_MS);
      }
      if (closed) return;
      on.held();
      await gone;
      if (!closed) on.lost();
    } finally {
      stopHeartbeats();
      await end(own);
    }
  };
  const running = (async () => {
    while (!closed) {
      // The database is unavailable; the next attempt tries again.
      await hold().catch(() => {});
      if (!closed) await sleep(AGAIN_MS);
    }
  })();
  return {
    async close() {
      closed = true;
      if (client !== null) await end(client);
      await running;
    },
  };
}

/**
 * Takes an advisory lock of the database on a separate connection, unless another host has it.
 *
 * @param onLost called when the connection is closed; another host may have the lock by now
 * @returns null when another host has it
 * @throws Error when the database cannot be reached
 */
export async function tryLock(url: string, key: number, onLost: () => void): Promise<HeldLock | null> {
  const client = makeClient(url);
  let closed = false;
  let stopHeartbeats = (): void => {};
  const lost = (): void => {
    stopHeartbeats();
    if (!closed) onLost();
    closed = true;
  };
  client.on('error', lost);
  client.on('end', lost);
  try {
    stopHeartbeats = await connect(client);
    if (!(await takeLock(client, key))) {
      closed = true;
      stopHeartbeats();
      await end(client);
      return null;
    }
  } catch (error) {
    closed = true;
    stopHeartbeats();
    await end(client);
    throw error;
  }
  return {
    async close() {
      closed = true;
      stopHeartbeats();
      await end(client);
    },
  };
}
