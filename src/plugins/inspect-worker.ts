import fs from 'node:fs';
import { move, transferableSymbol, valueSymbol } from '../base/thread-pool.ts';
import { inspectDescribed, inspectModule } from './inspect.ts';
import type { InspectedFile, InspectionOrder } from './inspect-thread.ts';
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

/** One task of `inspectFile`, in its thread. The rewritten module is handed over, not copied. */
export default function inspectInWorker(order: InspectionOrder): unknown {
  const inspected = inspect(order);
  const { rewritten } = inspected;
  if (rewritten === null) return inspected;
  return move({ [transferableSymbol]: [rewritten.buffer], [valueSymbol]: inspected });
}
