import fs from 'node:fs';

/**
 * Writes a file into a directory another account may write to. What stands at the path is removed first, and a link there is
 * never followed: a supervisor that runs as root must write nothing elsewhere.
 *
 * @param mode permission bits of the file
 * @throws Error when something is put there in between
 */
export function writeNewFile(file: string, data: string | Uint8Array, mode: number): void {
  fs.rmSync(file, { force: true });
  fs.writeFileSync(file, data, { mode, flag: 'wx' });
}
