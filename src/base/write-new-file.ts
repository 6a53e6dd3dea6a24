import fs from 'node:fs';

/**
 * Writes a file into a directory that another account may write to. Removes what is at the path first and never follows
 * a link there, because a supervisor that runs as root must not be led to write elsewhere.
 *
 * @param mode permission bits of the file
 * @throws Error when another process puts something at the path meanwhile
 */
export function writeNewFile(file: string, data: string | Uint8Array, mode: number): void {
  fs.rmSync(file, { force: true });
  fs.writeFileSync(file, data, { mode, flag: 'wx' });
}
