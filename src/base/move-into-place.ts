import fsp from 'node:fs/promises';
import path from 'node:path';

async function sync(at: string): Promise<void> {
  const handle = await fsp.open(at, 'r');
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

/**
 * Renames a written file, replacing a file of that name. Syncs its bytes to disk before the rename, and the directory
 * after it.
 */
export async function moveIntoPlace(from: string, to: string): Promise<void> {
  await sync(from);
  await fsp.rename(from, to);
  await sync(path.dirname(to));
}
