import type { Database } from '../db/database.ts';
import { type JobQueue, scheduledJob } from '../jobs.ts';
import { OUTBOX_APPENDED } from './append.ts';
import { removeOldEntries } from './stream.ts';

/**
 * Every minute, on one of the hosts: the deliverer looks at the line, even if a notification was lost, and entries that are
 * long done are removed.
 */
export function outboxSweepJob(db: Database): JobQueue<object> {
  return scheduledJob('outbox_sweep', '* * * * *', 60, async () => {
    await db.query('SELECT pg_notify($1, $2)', [OUTBOX_APPENDED, '']);
    await removeOldEntries(db);
  });
}
