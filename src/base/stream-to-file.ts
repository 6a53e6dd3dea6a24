import fsp from 'node:fs/promises';
import type { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';

/**
 * Writes a stream to a new file. When it rejects, nothing is writing any more, so that the caller can remove the file: a stream of
 * `fs.createWriteStream` that ends early may make its file later, since it opens in the background.
 *
 * @param file readable and writable by its owner alone
 * @param onChunk sees each chunk before it is written; what it throws ends the work
 * @throws Error `EEXIST` when the file is there already, what the stream failed of, what `onChunk` threw
 */
export async function streamToFile(source: Readable, file: string, onChunk: (chunk: Buffer) => void): Promise<void> {
  await pipeline(source, async (chunks: AsyncIterable<Buffer>) => {
    const handle = await fsp.open(file, 'wx', 0o600);
    try {
      for await (const chunk of chunks) {
        onChunk(chunk);
        await handle.writeFile(chunk);
      }
    } finally {
      await handle.close();
    }
  });
}
