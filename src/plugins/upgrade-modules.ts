import { availableParallelism } from 'node:os';
import { messageOf, ServiceError } from '../base/errors.ts';
import type { Database } from '../db/database.ts';
import type { Finding } from './finding.ts';
import { RUNNABLE_FORMAT } from './gate/rewrite.ts';
import { listOutdated, setRunnable, type VersionRow } from './plugin-store.ts';
import { type PrepareParts, prepareRunnable } from './prepare-runnable.ts';
import { START_RULE } from './remembered-start.ts';

/**
 * Runs the present gate on the uploads of stored modules that an older gate accepted. A module that is refused now
 * stays stored with the reason and is not run.
 *
 * @param report called with each version: done, or why it was refused
 */
export async function upgradeModules(
  parts: PrepareParts & { db: Database },
  report: (version: VersionRow, problem: string | null) => void,
): Promise<void> {
  const next = (await listOutdated(parts.db, RUNNABLE_FORMAT)).values();
  const work = async (): Promise<void> => {
    for (const version of next) report(version, await upgradeOne(parts, version).catch(messageOf));
  };
  await Promise.all(Array.from({ length: availableParallelism() }, work));
}

/** @returns null, or why the gate refuses the version now */
async function upgradeOne(parts: PrepareParts & { db: Database }, version: VersionRow): Promise<string | null> {
  const { manifest, runnable, sha256, wasmKey } = version;
  try {
    const made = await prepareRunnable(parts, { key: wasmKey, sha256, manifest });
    // The others were found at the upload; only the start is looked at again.
    const isStart = (f: Finding): boolean => f.rule === START_RULE;
    const findings = [...version.findings.filter(f => !isStart(f)), ...made.inspection.findings.filter(isStart)];
    await setRunnable(parts.db, version.id, made.runnable, findings);
    return null;
  } catch (error) {
    if (!(error instanceof ServiceError) || error.code !== 'module_refused') throw error;
    const reason = error.message;
    await setRunnable(parts.db, version.id, { ...runnable, format: RUNNABLE_FORMAT, refused: reason }, [
      ...version.findings,
      { level: 'refusal', rule: 'newer-gate', message: reason },
    ]);
    return reason;
  }
}
