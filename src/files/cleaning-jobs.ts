import { z } from 'zod';
import type { JobQueue } from '../jobs.ts';
import { type Cleaned, type CleaningParts, cleanFiles, removeOrphans } from './cleaning.ts';

const nothing = z.object({}).nullable().default(null);

/** Both run on one host at a time, whichever takes the job; what one run does not do, the next one does. */
const scheduled = (name: string, schedule: string, seconds: number, run: () => Promise<void>): JobQueue<object> => ({
  name,
  parse: data => nothing.parse(data) ?? {},
  run,
  gaveUp: () => Promise.resolve(),
  attemptsMax: 1,
  firstDelaySeconds: 1,
  delaySecondsMax: 1,
  seconds,
  schedule,
  pollSeconds: 20,
});

/**
 * Cleaning of files: every minute what has expired or was deleted, every hour what belongs to nothing.
 *
 * @param report told what was done, when there was anything
 */
export function fileCleaningJobs(
  parts: CleaningParts,
  report: (done: Partial<Cleaned> & { orphans?: number }) => void,
): Array<JobQueue<object>> {
  return [
    scheduled('file_cleaning', '* * * * *', 600, async () => {
      const cleaned = await cleanFiles(parts);
      if (cleaned.deleted + cleaned.removed + cleaned.forgotten > 0) report(cleaned);
    }),
    scheduled('file_orphans', '17 * * * *', 3000, async () => {
      const orphans = await removeOrphans(parts, Date.now());
      if (orphans > 0) report({ orphans });
    }),
  ];
}
