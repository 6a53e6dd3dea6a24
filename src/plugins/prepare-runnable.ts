import { ServiceError } from '../base/errors.ts';
import { RUNNABLE_FORMAT } from './gate/rewrite.ts';
import type { Finding } from './inspect.ts';
import type { InspectedFile } from './inspect-thread.ts';
import type { ModuleStorage } from './module-storage.ts';
import type { Runnable } from './plugin-store.ts';

export type PrepareParts = {
  storage: ModuleStorage;
  trialCompile(uploaded: string, runnable: string): Promise<string | null>;
};

/** The error for a module with refusals among its findings. */
export function refusal(findings: Finding[]): ServiceError {
  const refused = findings.filter(f => f.level === 'refusal');
  return new ServiceError('module_refused', `the module is refused: ${refused[0]?.message ?? 'unknown reason'}`, {
    errors: refused.map(f => ({
      pointer: '/file',
      message: f.where === undefined ? f.message : `${f.where}: ${f.message}`,
    })),
    extra: { findings },
  });
}

/**
 * Stores the rewritten module and compiles it on trial.
 *
 * @throws ServiceError `module_refused` when the gate or the compiler refuses it
 */
export async function prepareRunnable(
  { storage, trialCompile }: PrepareParts,
  key: string,
  { findings, rewritten, rewrittenSha256 }: InspectedFile,
  memoryPages: { min: number; max: number },
): Promise<Runnable> {
  if (rewritten === null || findings.some(f => f.level === 'refusal')) throw refusal(findings);
  await storage.writeRunnable(key, rewritten);
  const reason = await trialCompile(storage.uploadedPath(key), storage.runnablePath(key));
  if (reason !== null) throw refusal([...findings, { level: 'refusal', rule: 'compile', message: reason }]);
  return { sha256: rewrittenSha256, memoryPages, format: RUNNABLE_FORMAT };
}
