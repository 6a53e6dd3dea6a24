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

/** Gives a written file its name: its bytes are on disk before, and the name is after. Replaces what had the name. */
export async function moveIntoPlace(from: string, to: string): Promise<void> {
  await sync(from);
  await fsp.rename(from, to);
  await sync(path.dirname(to));
}
