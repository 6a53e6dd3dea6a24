import { spawn } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';

/**
 * A service that root starts runs as an account of its own, if that account can read the program. In a checkout below a folder that is
 * closed to others, like /root, it cannot, and what the tests say of that account would not be seen.
 */

/** Whether other accounts reach what is in a folder. */
export function othersMayEnter(folder: string): boolean {
  for (let one = folder; ; one = path.dirname(one)) {
    if ((fs.statSync(one).mode & 0o001) === 0) return false;
    if (one === path.dirname(one)) return true;
  }
}

/**
 * Runs these tests once more, with the checkout mounted in a folder that others may enter, in a mount namespace of its own: nothing of
 * it is seen outside, and nothing is left (mount_namespaces(7)).
 *
 * @returns the exit code
 */
export async function runWhereOthersMayEnter(): Promise<number> {
  const root = path.resolve(import.meta.dirname, '..');
  const place = fs.mkdtempSync(path.join(os.tmpdir(), 'plugin-host-checkout-'));
  fs.chmodSync(place, 0o711);
  const script = 'mount --bind "$1" "$2" && cd "$2" && shift 2 && exec "$0" test/run.ts "$@"';
  // Node and the commands of packages lie in the checkout as well.
  const there = (text = ''): string => text.replaceAll(`${root}/`, `${place}/`);
  const words = ['--mount', 'sh', '-c', script, there(process.execPath), root, place, ...process.argv.slice(2)];
  const env = { ...process.env, PATH: there(process.env.PATH) };
  const child = spawn('unshare', words, { stdio: 'inherit', env });
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => child.kill(signal));
  const code = await new Promise<number>((resolve, reject) => {
    child.once('error', reject);
    child.once('close', ended => resolve(ended ?? 1));
  });
  fs.rmdirSync(place);
  return code;
}
