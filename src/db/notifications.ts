import type pg from 'pg';
import { makeClient } from './database.ts';

/** Channel on which hosts of one database tell each other that a plugin changed; the payload is its id. */
export const PLUGIN_CHANGED = 'plugin_changed';

export type Listener = { close(): Promise<void> };

/**
 * Listens on channels for as long as the service runs and comes back after a lost connection.
 *
 * @param url connection string
 * @param channels names to LISTEN on
 * @param onNotification channel and payload
 * @param onReconnected called after every later connect: what was notified meanwhile is lost, so everything may be stale
 */
export async function listen(
  url: string,
  channels: readonly string[],
  onNotification: (channel: string, payload: string) => void,
  onReconnected: () => void,
): Promise<Listener> {
  let closed = false;
  let client: pg.Client | null = null;
  let timer: NodeJS.Timeout | null = null;

  const connect = async (): Promise<void> => {
    const next = makeClient(url);
    next.on('notification', n => onNotification(n.channel, n.payload ?? ''));
    const lost = (): void => {
      if (closed || client !== next) return;
      client = null;
      retry();
    };
    next.on('error', lost);
    next.on('end', lost);
    await next.connect();
    client = next;
    for (const channel of channels) await next.query(`LISTEN ${next.escapeIdentifier(channel)}`);
  };
  const retry = (): void => {
    timer = setTimeout(() => {
      connect().then(onReconnected, () => {
        if (!closed) retry();
      });
    }, 500);
  };
  await connect();
  return {
    async close() {
      closed = true;
      if (timer !== null) clearTimeout(timer);
      await client?.end();
    },
  };
}
