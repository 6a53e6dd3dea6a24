import fs from 'node:fs';
import { parentPort } from 'node:worker_threads';
import { inspectDescribed, inspectModule } from './inspect.ts';
import type { InspectedFile, InspectionAnswer, InspectionOrder } from './inspect-thread.ts';
import { sha256Of } from './module-storage.ts';

/** The thread of `inspectFile`: answers each order with one message. */
function inspect({ file, manifest, sha256 }: InspectionOrder): InspectedFile {
  const bytes = fs.readFileSync(file);
  if (sha256Of(bytes) !== sha256) throw new Error('the stored module differs from the upload');
  const inspection =
    manifest === null
      ? inspectModule(bytes)
      : { manifest, mustDescribe: false, memoryPages: null, ...inspectDescribed(bytes, manifest) };
  const rewritten = inspection.rewritten === null ? null : Uint8Array.from(inspection.rewritten);
  return { ...inspection, rewritten, rewrittenSha256: rewritten === null ? '' : sha256Of(rewritten) };
}

parentPort?.on('message', (order: InspectionOrder) => {
  let answer: InspectionAnswer;
  try {
    answer = { ok: true, inspected: inspect(order) };
  } catch (error) {
    answer = { ok: false, message: error instanceof Error ? error.message : String(error) };
  }
  const rewritten = answer.ok ? answer.inspected.rewritten : null;
  parentPort?.postMessage(answer, rewritten === null ? [] : [rewritten.buffer as ArrayBuffer]);
});
