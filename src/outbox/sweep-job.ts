import { z } from 'zod';
import type { Database } from '../db/database.ts';
import type { JobQueue } from '../jobs.ts';
import { OUTBOX_APPENDED } from './append.ts';
import { removeOldEntries } from './stream.ts';

const nothing = z.object({}).nullable().default(null);

/**
 * Every minute, on one of the hosts: whoever delivers looks at the line, whatever notification was lost, and entries that are
 * long done are removed.
 */
export function outboxSweepJob(db: Database): JobQueue<object> {
  return {
    name: 'outbox_sweep',
    parse: data => nothing.parse(data) ?? {},
    async run() {
      await db.query('SELECT pg_notify($1, $2)', [OUTBOX_APPENDED, '']);
      await removeOldEntries(db);
    },
    gaveUp: () => Promise.resolve(),
    attemptsMax: 1,
    firstDelaySeconds: 1,
    delaySecondsMax: 1,
    seconds: 60,
    schedule: '* * * * *',
    pollSeconds: 20,
  };
}
