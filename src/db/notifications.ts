import { randomUUID } from 'node:crypto';
import type pg from 'pg';
import { makeClient } from './database.ts';

/** Channel on which hosts of one database tell each other that a plugin changed; the payload is its id. */
export const PLUGIN_CHANGED = 'plugin_changed';

export type Listener = {
  /**
   * Resolves when this host has heard everything that was notified before the call: notifications arrive in the order of
   * their commits, so one of our own comes last. After a second it resolves all the same; a lost connection ends in
   * `onReconnected`, which takes everything for stale.
   */
  heard(): Promise<void>;
  close(): Promise<void>;
};

const HEARD_MS = 1000;

/**
 * Listens on channels for as long as the service runs and comes back after a lost connection.
 *
 * @param url connection string
 * @param channels names to LISTEN on
 * @param onNotification channel and payload
 * @param onReconnected called after every later connect: what was notified meanwhile is lost, so everything may be stale
 * @param onDeaf called every half second while there is no connection: what is remembered may be stale, too
 */
export async function listen(
  url: string,
  channels: readonly string[],
  onNotification: (channel: string, payload: string) => void,
  onReconnected: () => void,
  onDeaf: () => void,
): Promise<Listener> {
  let closed = false;
  let client: pg.Client | null = null;
  let timer: NodeJS.Timeout | null = null;
  const own = `heard_${randomUUID()}`;
  const waiting = new Map<string, () => void>();

  const connect = async (): Promise<void> => {
    const next = makeClient(url);
    next.on('notification', n => {
      if (n.channel === own) waiting.get(n.payload ?? '')?.();
      else onNotification(n.channel, n.payload ?? '');
    });
    const lost = (): void => {
      if (closed || client !== next) return;
      client = null;
      retry();
    };
    next.on('error', lost);
    next.on('end', lost);
    try {
      await next.connect();
      for (const channel of [own, ...channels]) await next.query(`LISTEN ${next.escapeIdentifier(channel)}`);
    } catch (error) {
      next.end().catch(() => {});
      throw error;
    }
    if (closed) return await next.end();
    client = next;
  };
  const retry = (): void => {
    if (timer !== null) return;
    timer = setTimeout(() => {
      timer = null;
      connect().then(onReconnected, () => {
        if (closed) return;
        onDeaf();
        retry();
      });
    }, 500);
  };
  await connect();
  let calls = 0;
  let sent: Promise<unknown> = Promise.resolve();
  return {
    async heard() {
      if (client === null) return;
      const mine = String(calls++);
      await new Promise<void>(resolve => {
        const late = setTimeout(resolve, HEARD_MS);
        waiting.set(mine, () => {
          clearTimeout(late);
          resolve();
        });
        // On the listening connection itself: no change waits for one of the pool. One after another, as it takes them.
        sent = sent
          .then(() => client?.query('SELECT pg_notify($1, $2)', [own, mine]))
          .catch(() => {
            clearTimeout(late);
            resolve();
          });
      });
      waiting.delete(mine);
    },
    async close() {
      closed = true;
      if (timer !== null) clearTimeout(timer);
      await client?.end();
    },
  };
}
