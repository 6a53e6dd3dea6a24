import fs from 'node:fs';
import os from 'node:os';
import { OperatorError } from '../base/errors.ts';
import { type DataLock, lockDataDirectory } from '../supervisor/data-lock.ts';

/** Name of an account; its number when it has none. */
function nameOf(uid: number): string {
  if (uid === os.userInfo().uid) return os.userInfo().username;
  const line = fs.readFileSync('/etc/passwd', 'utf8').split('\n');
  return line.find(l => l.split(':')[2] === String(uid))?.split(':')[0] ?? `#${uid}`;
}

/**
 * Locks the data directory for a command, which makes it when it is not there.
 *
 * @throws OperatorError for root, when the directory is another account's: the service, which runs as that account, could not
 *   read what root would make there
 */
export function lockForCommand(directory: string, command: string): DataLock {
  fs.mkdirSync(directory, { recursive: true });
  const { uid } = fs.statSync(directory);
  if (process.getuid?.() === 0 && uid !== 0) {
    const name = nameOf(uid);
    throw new OperatorError(
      `the data directory ${directory} belongs to the account ${name}, which could not use what root makes there: run it as that account, like runuser -u ${name} -- plugin-host ...`,
    );
  }
  return lockDataDirectory(directory, command);
}
