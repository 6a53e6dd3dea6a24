import { availableParallelism } from 'node:os';
import { messageOf, ServiceError } from '../base/errors.ts';
import { type Database, isUnavailable, type Queryable } from '../db/database.ts';
import { lockNamedForTransaction } from '../db/locks.ts';
import { RUNNABLE_FORMAT } from './gate/rewrite.ts';
import { findVersion, listOutdated, setRunnable, type VersionRow } from './plugin-store.ts';
import { ModuleRefused, type PrepareParts, prepareRunnable } from './prepare-runnable.ts';
import { START_RULE } from './remembered-start.ts';
import { digestsOf } from './share-modules.ts';

/** Each holds a connection of the pool meanwhile, which is small where there are many serving processes. */
const AT_ONCE = 2;
/** Rule of the finding that a newer gate refuses a module. */
const NEWER_GATE_RULE = 'newer-gate';

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
  const again: VersionRow[] = [];
  const work = async (): Promise<void> => {
    for (const version of next) {
      try {
        report(version, await upgradeOne(parts, version));
      } catch (error) {
        if (mayPass(error)) again.push(version);
        else report(version, messageOf(error));
      }
    }
  };
  await Promise.all(Array.from({ length: Math.min(availableParallelism(), AT_ONCE) }, work));
  // What was too much at once, alone.
  for (const version of again) report(version, await upgradeOne(parts, version).catch(messageOf));
}

/** Whether the host or its database was at fault, and not the module. */
const mayPass = (error: unknown): boolean =>
  isUnavailable(error) || (error instanceof ServiceError && error.code === 'unavailable');

/**
 * Rewrites the module of a version for this release's format. When several hosts start together, one does it and the others wait: what a
 * start leaves may differ each time.
 *
 * @returns null, or why the gate refuses the version now
 */
async function upgradeOne(parts: PrepareParts & { db: Database }, listed: VersionRow): Promise<string | null> {
  await parts.storage.bringUploaded(listed.wasmKey, listed.sha256);
  return await parts.db.withTransaction(async client => {
    await lockNamedForTransaction(client, 'module', listed.wasmKey);
    const version = await findVersion(client, listed.id);
    if (version === undefined || version.runnable.format === RUNNABLE_FORMAT) return version?.runnable.refused ?? null;
    return await rewriteStored(parts, client, version);
  });
}

async function rewriteStored(parts: PrepareParts, client: Queryable, version: VersionRow): Promise<string | null> {
  const { manifest, runnable, sha256, wasmKey } = version;
  try {
    const made = await prepareRunnable(parts, { key: wasmKey, sha256, manifest });
    // The others were found at the upload; only the start is looked at again, and a refusal of before has passed.
    const kept = version.findings.filter(f => f.rule !== START_RULE && f.rule !== NEWER_GATE_RULE);
    const findings = [...kept, ...made.inspection.findings.filter(f => f.rule === START_RULE)];
    await parts.storage.share(client, wasmKey, digestsOf({ ...version, runnable: made.runnable }));
    await setRunnable(client, version.id, made.runnable, findings);
    return null;
  } catch (error) {
    if (!(error instanceof ModuleRefused)) throw error;
    // It was read once already, on a host that had the time and the memory.
    if (error.findings.some(f => f.rule === 'time' || f.rule === 'memory'))
      throw new ServiceError('unavailable', error.message, { cause: error });
    const reason = error.message;
    await setRunnable(client, version.id, { ...runnable, format: RUNNABLE_FORMAT, refused: reason }, [
      ...version.findings,
      { level: 'refusal', rule: NEWER_GATE_RULE, message: reason },
    ]);
    return reason;
  }
}
