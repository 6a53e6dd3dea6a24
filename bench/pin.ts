import { spawnSync } from 'node:child_process';
import os from 'node:os';

/** As many cores as the service, its peers and the generator share. */
const CORES = 2;

/**
 * Keeps this process, and everything it starts, on the same cores: on a large machine a peer with more threads would get
 * more of them.
 *
 * @returns the cores, as `taskset` writes them; null where it is not installed
 */
export function pin(): string | null {
  const last = Math.min(CORES, os.cpus().length) - 1;
  const { status, stdout } = spawnSync('taskset', ['-acp', `0-${last}`, String(process.pid)], { encoding: 'utf8' });
  return status === 0 ? (/: (\S+)\s*$/.exec(stdout.trim())?.[1] ?? `0-${last}`) : null;
}
