import type pg from 'pg';
import { makeClient } from './database.ts';

export type HeldLock = { close(): Promise<void> };

const AGAIN_MS = 200;

/**
 * Holds a lock of the whole database for as long as the service runs: of all hosts one has it. A connection of its own holds
 * it, so that it is free when this process ends, however it ends.
 *
 * @param key number of the lock
 * @param on `held`: this host has it, also again after it was lost;
 *   `lost`: when it had it and the connection is gone: another host may have it by now
 *   `refused`: once when another host has it
 */
export function holdLock(url: string, key: number, on: { held(): void; lost(): void; refused(): void }): HeldLock {
  let closed = false;
  let client: pg.Client | null = null;
  let timer: NodeJS.Timeout | null = null;
  let told = false;

  const again = (): void => {
    if (!closed && timer === null)
      timer = setTimeout(() => {
        timer = null;
        void attempt();
      }, AGAIN_MS);
  };
  const attempt = async (): Promise<void> => {
    const next = makeClient(url);
    let held = false;
    const gone = (): void => {
      if (client === next) client = null;
      if (held && !closed) on.lost();
      held = false;
      again();
    };
    next.on('error', gone);
    next.on('end', gone);
    try {
      await next.connect();
      for (;;) {
        const { rows } = await next.query<{ got: boolean }>('SELECT pg_try_advisory_lock($1) AS got', [key]);
        if (closed || rows[0]?.got === true) break;
        if (!told) on.refused();
        told = true;
        await new Promise(resolve => setTimeout(resolve, AGAIN_MS));
      }
      if (closed) return await next.end();
      client = next;
      held = true;
      on.held();
    } catch {
      next.end().catch(() => {});
      again();
    }
  };
  const first = attempt();
  return {
    async close() {
      closed = true;
      if (timer !== null) clearTimeout(timer);
      await first;
      await client?.end();
    },
  };
}
