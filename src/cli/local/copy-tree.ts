import fs from 'node:fs/promises';
import path from 'node:path';
import { isMissing } from '../../base/file-problem.ts';

/**
 * Copies the plain files below a folder, whatever is written and removed there meanwhile: a file that goes away is
 * left out. A file is cloned where the file system can; links are not followed.
 *
 * @param isWanted by the name of a file or folder
 * @throws Error when something cannot be read or written
 */
export async function copyTree(from: string, to: string, isWanted: (name: string) => boolean): Promise<void> {
  const entries = await fs.readdir(from, { withFileTypes: true }).catch((error: unknown) => {
    if (isMissing(error)) return [];
    throw error;
  });
  await fs.mkdir(to, { recursive: true, mode: 0o700 });
  for (const entry of entries.filter(e => isWanted(e.name))) {
    const [source, target] = [path.join(from, entry.name), path.join(to, entry.name)];
    if (entry.isDirectory()) await copyTree(source, target, isWanted);
    else if (entry.isFile())
      try {
        await fs.copyFile(source, target, fs.constants.COPYFILE_FICLONE);
        const { atime, mtime } = await fs.stat(source);
        await fs.utimes(target, atime, mtime);
      } catch (error) {
        if (!isMissing(error)) throw error;
      }
  }
}
