import fsp from 'node:fs/promises';
import type { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';

/**
 * Writes a stream to a new file. When the promise rejects, writing has stopped, so the caller can remove the file. A
 * stream of
 * `fs.createWriteStream` does not promise that: it opens its file in the background, possibly after it was destroyed.
 *
 * @param file readable and writable by its owner alone
 * @param onChunk called with each chunk before it is written; an error it throws stops the writing
 * @throws Error `EEXIST` when the file exists, the error of the stream, or the error `onChunk` threw
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
