import { once } from 'node:events';
import fs from 'node:fs';
import path from 'node:path';
import { tooLarge } from '../../base/errors.ts';
import type { BodySource } from '../../http/message.ts';

/**
 * Keeps a body in a file while something is made of it, so that it needs no memory.
 *
 * @param directory where it lies for the time
 * @param limit of the body, by the name an error tells
 * @param use is given the file when all of it is there
 * @throws ServiceError `body_too_large`
 */
export async function receiveBody<T>(
  body: BodySource,
  directory: string,
  limit: { name: string; bytes: number },
  use: (file: string) => Promise<T>,
): Promise<T> {
  const file = path.join(directory, `body-${crypto.randomUUID()}`);
  const out = fs.createWriteStream(file, { flags: 'wx', mode: 0o600, highWaterMark: 1024 * 1024 });
  const failed = new Promise<never>((_, reject) => out.once('error', reject));
  failed.catch(() => {});
  let size = 0;
  try {
    await Promise.race([
      failed,
      body.pump(chunk => {
        size += chunk.length;
        if (size > limit.bytes) throw tooLarge(limit.bytes, limit.name);
        // The chunk is good for the time of this call.
        return out.write(Buffer.from(chunk)) ? null : Promise.race([failed, once(out, 'drain').then(() => {})]);
      }),
    ]);
    out.end();
    await Promise.race([failed, once(out, 'close')]);
    return await use(file);
  } finally {
    // A stream that is still opening its file would make it again.
    if (!out.closed) {
      out.destroy();
      await once(out, 'close').catch(() => {});
    }
    fs.rmSync(file, { force: true });
  }
}
