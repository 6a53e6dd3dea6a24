import type { Log } from '../base/log.ts';
import { every } from '../base/periodic.ts';
import type { Database } from '../db/database.ts';
import { sweepExpired } from '../host/kv.ts';
import { removeOldFailures } from '../identity/login-throttle.ts';
import { removeOldPluginLogins } from '../identity/plugin-sessions.ts';
import { removeEndedSessions } from '../identity/sessions.ts';
import type { PluginInstaller } from '../plugins/install.ts';
import type { ModuleStorage } from '../plugins/module-storage.ts';
import { removeUninstalled } from '../plugins/uninstalled.ts';
import type { ExecutionLog } from '../records/execution-log.ts';
import type { ExecutionRecords } from '../records/execution-records.ts';
import type { Quarantine } from '../records/quarantine.ts';

export type SweepParts = {
  db: Database;
  log: Log;
  records: ExecutionRecords;
  installer: PluginInstaller;
  storage: ModuleStorage;
  keepUninstalledMs: number;
  quarantine: Quarantine;
  executionLog: ExecutionLog;
};

const SWEEP_MS = 30_000;

/** Starts what removes old rows and files at intervals. @returns ends it, when what runs has ended */
export function startSweeps(parts: SweepParts): () => Promise<void> {
  const { db, executionLog, installer, keepUninstalledMs, log, quarantine, records, storage } = parts;
  const stops = [
    every(SWEEP_MS, log, 'forgetting old failures', async () => {
      quarantine.sweep(Date.now());
      executionLog.sweep();
    }),
    every(SWEEP_MS, log, 'removing expired values', () => sweepExpired(db)),
    every(SWEEP_MS * 20, log, 'removing old execution records', () => records.removeOld()),
    every(SWEEP_MS * 20, log, 'removing files of broken uploads', () => installer.removeOrphans()),
    every(SWEEP_MS, log, 'removing uninstalled plugins', () => removeUninstalled(db, storage, keepUninstalledMs)),
    every(SWEEP_MS * 10, log, 'removing ended sessions', () =>
      Promise.all([removeEndedSessions(db), removeOldFailures(db), removeOldPluginLogins(db)]),
    ),
  ];
  return async () => {
    for (const stop of stops) await stop();
  };
}
