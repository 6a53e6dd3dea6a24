import type { Database } from './db/database.ts';
import type { ExecutionRecords } from './executions/execution-records.ts';
import { sweepExpired } from './host/kv.ts';
import { removeOldFailures } from './identity/login-throttle.ts';
import { removeEndedSessions } from './identity/sessions.ts';
import type { Log } from './log.ts';
import { every } from './periodic.ts';
import type { PluginInstaller } from './plugins/install.ts';

export type SweepParts = { db: Database; log: Log; records: ExecutionRecords; installer: PluginInstaller };

const SWEEP_MS = 30_000;

/** Starts what removes old rows and files at intervals. @returns ends it, when what runs has ended */
export function startSweeps({ db, installer, log, records }: SweepParts): () => Promise<void> {
  const stops = [
    every(SWEEP_MS, log, 'removing expired values', () => sweepExpired(db)),
    every(SWEEP_MS * 20, log, 'removing old execution records', () => records.removeOld()),
    every(SWEEP_MS * 20, log, 'removing files of broken uploads', () => installer.removeOrphans()),
    every(SWEEP_MS * 10, log, 'removing ended sessions', () =>
      Promise.all([removeEndedSessions(db), removeOldFailures(db)]),
    ),
  ];
  return async () => {
    for (const stop of stops) await stop();
  };
}
