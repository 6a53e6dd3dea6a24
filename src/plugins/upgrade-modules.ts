import { availableParallelism } from 'node:os';
import { messageOf, ServiceError } from '../base/errors.ts';
import type { Database } from '../db/database.ts';
import { RUNNABLE_FORMAT } from './gate/rewrite.ts';
import { inspectFile } from './inspect-thread.ts';
import { listOutdated, setRunnable, type VersionRow } from './plugin-store.ts';
import { type PrepareParts, prepareRunnable } from './prepare-runnable.ts';

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
  const file = parts.storage.uploadedPath(wasmKey);
  const inspection = await inspectFile({ file, sha256, manifest });
  try {
    const made = await prepareRunnable(parts, wasmKey, inspection, runnable.memoryPages);
    await setRunnable(parts.db, version.id, made, version.findings);
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
