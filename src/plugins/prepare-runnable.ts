import { ServiceError } from '../base/errors.ts';
import type { Finding } from './finding.ts';
import { RUNNABLE_FORMAT, type StartModule } from './gate/rewrite.ts';
import type { Inspection } from './inspect.ts';
import { inspectFile } from './inspect-thread.ts';
import type { Manifest } from './manifest.ts';
import type { ModuleStorage } from './module-storage.ts';
import type { Runnable } from './plugin-store.ts';
import type { StartOutcome } from './remembered-start.ts';
import type { TrialStart } from './trial-start.ts';

export type PrepareParts = {
  storage: ModuleStorage;
  trialCompile(uploaded: string, runnable: string): Promise<string | null>;
  trialStart: TrialStart;
  /** Whether starts are run once and remembered where they can be; left out: they are. */
  remembersStarts?: (() => boolean) | undefined;
};

/** A stored upload. `manifest`: from `plugin_describe` or an earlier inspection; null to read it from the module. */
export type StoredUpload = { key: string; sha256: string; manifest: Manifest | null };

/** The error for a module with refusals among its findings. */
export class ModuleRefused extends ServiceError {
  readonly findings: readonly Finding[];

  constructor(findings: readonly Finding[]) {
    const refused = findings.filter(f => f.level === 'refusal');
    super('module_refused', `the module is refused: ${refused[0]?.message ?? 'unknown reason'}`, {
      errors: refused.map(f => ({
        pointer: '/file',
        message: f.where === undefined ? f.message : `${f.where}: ${f.message}`,
      })),
      extra: { findings },
    });
    this.findings = findings;
  }
}

const compileRefusal = (message: string): Finding => ({ level: 'refusal', rule: 'compile', message });

/**
 * Runs the gate on a stored module, runs its start once where it has one, stores the rewritten module and compiles it on
 * trial.
 *
 * @returns what the gate found, and what runs
 * @throws ServiceError `module_refused` when the gate or the compiler refuses it
 */
export async function prepareRunnable(
  parts: PrepareParts,
  upload: StoredUpload,
): Promise<{ inspection: Inspection; runnable: Runnable }> {
  const { storage, trialCompile } = parts;
  const { key, manifest, sha256 } = upload;
  const order = { file: storage.uploadedPath(key), sha256, manifest };
  const isRemembered = parts.remembersStarts?.() ?? true;
  let inspection = await inspectFile({ ...order, start: isRemembered ? 'unknown' : 'repeated' });
  const { startModule } = inspection;
  try {
    if (startModule !== null) {
      const start = await runStart(parts, key, startModule, inspection.findings);
      inspection = await inspectFile({ ...order, start });
    }
  } finally {
    if (startModule !== null) await storage.removeStart(key);
  }
  const { findings, rewritten, rewrittenSha256 } = inspection;
  if (rewritten === null) throw new ModuleRefused(findings);
  await storage.writeRunnable(key, rewritten.bytes);
  const reason = await trialCompile(storage.uploadedPath(key), storage.runnablePath(key));
  if (reason !== null) throw new ModuleRefused([...findings, compileRefusal(reason)]);
  const { memoryPages, overwritten } = rewritten;
  return { inspection, runnable: { sha256: rewrittenSha256, memoryPages, overwritten, format: RUNNABLE_FORMAT } };
}

/** @throws ServiceError `module_refused` when it does not compile */
async function runStart(
  { storage, trialStart }: PrepareParts,
  key: string,
  { bytes, controlPages, memoryPages }: StartModule,
  findings: Finding[],
): Promise<StartOutcome> {
  const { image, start } = await storage.writeStart(key, bytes);
  const trial = await trialStart({ uploaded: storage.uploadedPath(key), start, image }, { controlPages, memoryPages });
  if (trial.kind === 'refused') throw new ModuleRefused([...findings, compileRefusal(trial.reason)]);
  return trial.kind === 'stopped' ? { stopped: trial.reason } : { file: trial.file, controlPages };
}
