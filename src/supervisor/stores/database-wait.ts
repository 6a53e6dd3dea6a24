import { setTimeout as sleep } from 'node:timers/promises';
import { messageOf } from '../../base/errors.ts';
import { isUnavailable, makeClient } from '../../db/database.ts';

const AGAIN_MS = 500;

/** Why a database does not answer; null when it does, or refuses: what it refuses is said where it is needed. */
async function absence(url: string): Promise<string | null> {
  const client = makeClient(url);
  client.on('error', () => {});
  try {
    await client.connect();
    return null;
  } catch (error) {
    return isUnavailable(error) ? messageOf(error) : null;
  } finally {
    await client.end().catch(() => {});
  }
}

/**
 * Waits until a database answers: after a power failure its machine may come back later than this one.
 *
 * @param ms how long at most; what is still away then is said by who needs it
 * @param progress told once that the database is waited for
 * @param isOver whether the service is to stop meanwhile
 */
export async function waitForDatabase(
  url: string,
  ms: number,
  progress: (text: string) => void,
  isOver: () => boolean,
): Promise<void> {
  const until = performance.now() + ms;
  for (let isSaid = false; performance.now() < until && !isOver(); await sleep(AGAIN_MS)) {
    const why = await absence(url);
    if (why === null) return;
    if (!isSaid)
      progress(
        `the database at ${new URL(url).host} does not answer: ${why}; waiting up to ${Math.round(ms / 1000)} s for it (database.start_wait)`,
      );
    isSaid = true;
  }
}
