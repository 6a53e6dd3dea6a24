import fs from 'node:fs';
import path from 'node:path';
import { CommandError } from './admin-commands.ts';
import { copyTree } from './copy-tree.ts';

/** Files of a backup on their way into the folder `files` of the data directory. */
export type StagedFiles = {
  /** Moves them to their place. */
  place(): void;
  /** Leaves the folder as it was before. */
  takeBack(): void;
  /** Removes what is not needed any more. */
  finish(): void;
};

/** In the folder itself, which may be a mount point: what lies on its file system can be renamed, the folder cannot. */
export const STAGING = '.restoring';
/** Made by mkfs(8) at the top of a file system; root alone may look into it. */
export const OF_SYSTEM = 'lost+found';

function holdsFiles(folder: string): boolean {
  const entries = fs.readdirSync(folder, { withFileTypes: true }).filter(e => ![STAGING, OF_SYSTEM].includes(e.name));
  return entries.some(
    e =>
      e.isFile() ||
      (e.isDirectory() &&
        fs
          .readdirSync(path.join(folder, e.name), { recursive: true, withFileTypes: true })
          .some(below => below.isFile())),
  );
}

/**
 * Copies the files of a backup into a folder next to their place.
 *
 * @param from the files of the backup; there are none when it is missing
 * @param target may be missing, and may be a mount point
 * @throws CommandError when the target holds files
 */
export async function stageFiles(from: string, target: string): Promise<StagedFiles> {
  const isThere = fs.existsSync(target);
  if (isThere && holdsFiles(target))
    throw new CommandError(`${target} holds files already: name an empty data directory`);
  if (!fs.existsSync(from)) return { place() {}, takeBack() {}, finish() {} };
  const staging = path.join(target, STAGING);
  const [fresh, before] = [path.join(staging, 'fresh'), path.join(staging, 'before')];
  const placed: string[] = [];
  const takeBack = (): void => {
    for (const name of placed.splice(0)) {
      fs.rmSync(path.join(target, name), { recursive: true, force: true });
      if (fs.existsSync(path.join(before, name))) fs.renameSync(path.join(before, name), path.join(target, name));
    }
    fs.rmSync(staging, { recursive: true, force: true });
    if (!isThere) fs.rmdirSync(target);
  };
  // Left by a restore that was killed.
  fs.rmSync(staging, { recursive: true, force: true });
  try {
    for (const folder of [fresh, before]) fs.mkdirSync(folder, { recursive: true, mode: 0o700 });
    await copyTree(from, fresh, () => true);
  } catch (error) {
    takeBack();
    throw error;
  }
  return {
    place() {
      for (const name of fs.readdirSync(fresh)) {
        const at = path.join(target, name);
        // The entry that is there holds no file.
        if (fs.existsSync(at)) fs.renameSync(at, path.join(before, name));
        placed.push(name);
        fs.renameSync(path.join(fresh, name), at);
      }
    },
    takeBack,
    finish: () => fs.rmSync(staging, { recursive: true, force: true }),
  };
}
