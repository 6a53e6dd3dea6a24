import { spawn } from 'node:child_process';
import { once } from 'node:events';
import fs from 'node:fs';

/**
 * Packs entries of a folder into a new archive (tar, gzip) that other accounts cannot read, from its first byte on.
 *
 * @param file must not be there yet; removed when it cannot be written whole
 * @param entries names below the folder
 * @throws Error with what tar says
 */
export async function packFolder(file: string, folder: string, entries: readonly string[]): Promise<void> {
  const fd = fs.openSync(file, 'wx', 0o600);
  try {
    const tar = spawn('tar', ['-czf', '-', '-C', folder, ...entries], { stdio: ['ignore', fd, 'pipe'] });
    let said = '';
    tar.stderr?.setEncoding('utf8').on('data', (chunk: string) => {
      said += chunk;
    });
    const [code] = await once(tar, 'close');
    if (code !== 0) throw new Error(said.trim().split('\n')[0] || `tar ended with ${code}`);
    fs.fsyncSync(fd);
  } catch (error) {
    fs.rmSync(file, { force: true });
    throw error;
  } finally {
    fs.closeSync(fd);
  }
}
