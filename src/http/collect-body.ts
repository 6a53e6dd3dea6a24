import { Buffer } from 'node:buffer';
import { tooLarge } from '../base/errors.ts';
import { REQUEST_LIMITS } from '../base/request-limits.ts';
import type { IntakeShare } from './intake.ts';
import type { TakeChunk } from './message.ts';
import { SpoolFile } from './spool-file.ts';

/** Largest body, by the name an error tells. */
export type BodyLimit = { name: string; bytes: number };

/** Where the bytes come from, with back pressure. */
type Source = { pump(take: TakeChunk): Promise<void>; fail(error: Error): void };

/**
 * Collects a body in memory, beyond `bodyMemoryBytesMax` in a file: most of the bodies a host has begun to receive at a moment may never
 * be whole. The bytes count against the share until it is released, which is for the caller to do: they are in use.
 *
 * @throws ServiceError `body_too_large`, `request_timeout`, `unavailable` with the limit's name, or when the client goes away
 */
export async function collectBody(source: Source, share: IntakeShare, limit: BodyLimit): Promise<Buffer> {
  let chunks: Buffer[] = [];
  let size = 0;
  let spool: SpoolFile | null = null;
  share.watch(error => source.fail(error));
  try {
    await source.pump(chunk => {
      size += chunk.length;
      if (size > limit.bytes) throw tooLarge(limit.bytes, limit.name);
      share.take(chunk.length);
      // The chunk is good for the time of this call.
      const kept = Buffer.from(chunk);
      if (spool === null && size <= REQUEST_LIMITS.bodyMemoryBytesMax) {
        chunks.push(kept);
        return null;
      }
      if (spool === null) {
        spool = new SpoolFile(share.directory);
        for (const before of chunks) spool.add(before);
        chunks = [];
      }
      return spool.add(kept);
    });
    share.unwatch();
    const file = spool as SpoolFile | null;
    return file === null ? Buffer.concat(chunks, size) : await file.read(size);
  } finally {
    share.unwatch();
    await (spool as SpoolFile | null)?.remove();
  }
}
