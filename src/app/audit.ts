import { auditRoutes } from '../api/operation/audit-api.ts';
import { removeOldAudit, sealAudit } from '../audit/audit-log.ts';
import { durationMs } from '../config/values.ts';
import { scheduledJob } from '../jobs.ts';
import type { Core } from './core.ts';
import type { Feature } from './feature.ts';

/** An entry that is older than this can be changed only by breaking a seal. */
const SEAL_MS = 60_000;

/** Reads the audit log, seals it, and removes what is older than `retention.audit`, if that is set. */
export function composeAudit(core: Core): Feature {
  const { config, db, log } = core;
  const kept = config.values['retention.audit'];
  const cleaning = scheduledJob('audit_cleaning', '53 3 * * *', 600, async () => {
    const removed = await removeOldAudit(db, durationMs(kept));
    if (removed > 0) log.info({ removed, older_than: kept }, 'entries of the audit log were removed');
  });
  return {
    routes: auditRoutes(core),
    jobs: kept === '' ? [] : [cleaning],
    repeated: [{ everyMs: SEAL_MS, what: 'sealing the audit log', run: () => sealAudit(db) }],
  };
}
