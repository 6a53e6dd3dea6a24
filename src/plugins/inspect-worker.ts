import fs from 'node:fs';
import { move, transferableSymbol, valueSymbol } from '../base/thread-pool.ts';
import { inspectDescribed, inspectModule } from './inspect.ts';
import type { InspectedFile, InspectionOrder } from './inspect-thread.ts';
import { sha256Of } from './module-storage.ts';

/** The thread of `inspectFile`: answers each order with one message. */
function inspect({ file, manifest, sha256, start }: InspectionOrder): InspectedFile {
  const bytes = fs.readFileSync(file);
  if (sha256Of(bytes) !== sha256) throw new Error('the stored module differs from the upload');
  const inspection = manifest === null ? inspectModule(bytes, start) : inspectDescribed(bytes, manifest, start);
  // A copy whose memory holds nothing else, so that it can be handed over.
  const own = <M extends { bytes: Uint8Array }>(module: M | null): M | null =>
    module === null ? null : { ...module, bytes: Uint8Array.from(module.bytes) };
  const rewritten = own(inspection.rewritten);
  return {
    ...inspection,
    rewritten,
    startModule: own(inspection.startModule),
    rewrittenSha256: rewritten === null ? '' : sha256Of(rewritten.bytes),
  };
}

/** One task of `inspectFile`, in its thread. The module made is handed over, not copied. */
export default function inspectInWorker(order: InspectionOrder): unknown {
  const inspected = inspect(order);
  const made = inspected.rewritten ?? inspected.startModule;
  if (made === null) return inspected;
  return move({ [transferableSymbol]: [made.bytes.buffer], [valueSymbol]: inspected });
}
