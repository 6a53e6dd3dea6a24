import fs from 'node:fs';
import { type Config, dataPath } from '../../config/load.ts';

/**
 * Makes a command of root go on as the account that owns the data directory: the service runs as that account, and could
 * not use what root makes there. What root alone can read, the configuration and the credentials of systemd, is read by then.
 * Changes nothing when another account runs the command, or the directory is root's or not there.
 */
export function continueAsOwner(config: Config): void {
  const owned = fs.statSync(dataPath(config), { throwIfNoEntry: false });
  if (process.geteuid?.() !== 0 || owned === undefined || owned.uid === 0) return;
  const { uid, gid } = owned;
  process.setgroups?.([gid]);
  process.setgid?.(gid);
  process.setuid?.(uid);
}
