import type { Database } from '../db/database.ts';
import { type JobQueue, scheduledJob } from '../jobs.ts';
import { removeOldEntries } from './stream.ts';

/** Every minute, on one of the hosts: entries that are long done are removed. */
export const outboxSweepJob = (db: Database): JobQueue<object> =>
  scheduledJob('outbox_sweep', '* * * * *', 60, () => removeOldEntries(db));
