import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';

const isAlive = (pid: number): boolean => {
  try {
    return process.kill(pid, 0);
  } catch (error) {
    return error instanceof Error && 'code' in error && error.code === 'EPERM';
  }
};

/** Folders this process has made. */
const OWN = new Set<string>();
const FOREIGN_MS_MAX = 24 * 3_600_000;

/**
 * Makes a folder for files that this process needs while it runs. Removes folders left by ended processes of this
 * machine, and folders of other machines that are a day old.
 *
 * @param above made when absent
 */
export function ownDirectory(above: string): string {
  fs.mkdirSync(above, { recursive: true, mode: 0o700 });
  const host = os.hostname().replaceAll(/[^\w.]/g, '_');
  for (const name of fs.readdirSync(above)) {
    const file = path.join(above, name);
    const [, of, pid] = /^run-(.*)-(\d+)-\w+$/.exec(name) ?? [];
    if (OWN.has(file) || pid === undefined) continue;
    const isOver =
      of === host
        ? Number(pid) === process.pid || !isAlive(Number(pid))
        : Date.now() - (fs.statSync(file, { throwIfNoEntry: false })?.mtimeMs ?? 0) > FOREIGN_MS_MAX;
    if (isOver) fs.rmSync(file, { recursive: true, force: true });
  }
  const own = fs.mkdtempSync(path.join(above, `run-${host}-${process.pid}-`));
  OWN.add(own);
  return own;
}

/** Removes such a folder. */
export function removeOwnDirectory(own: string): void {
  fs.rmSync(own, { recursive: true, force: true });
  OWN.delete(own);
}
