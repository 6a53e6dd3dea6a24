import { type JobQueue, scheduledJob } from '../jobs.ts';
import { type Cleaned, type CleaningParts, cleanFiles, removeOrphans } from './cleaning.ts';

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
    scheduledJob('file_cleaning', '* * * * *', 600, async () => {
      const cleaned = await cleanFiles(parts);
      if (cleaned.deleted + cleaned.removed + cleaned.forgotten > 0) report(cleaned);
    }),
    scheduledJob('file_orphans', '17 * * * *', 3000, async () => {
      const orphans = await removeOrphans(parts, Date.now());
      if (orphans > 0) report({ orphans });
    }),
  ];
}
