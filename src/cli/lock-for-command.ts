import fs from 'node:fs';
import { accountName, runAs } from '../base/access-denied.ts';
import { OperatorError } from '../base/errors.ts';
import { type DataLock, lockDataDirectory } from '../supervisor/data-lock.ts';

/**
 * Locks the data directory for a command, which makes it when it is not there.
 *
 * @throws OperatorError for root, when the directory is another account's: the service, which runs as that account, could not
 *   read what root would make there
 */
export function lockForCommand(directory: string, command: string): DataLock {
  fs.mkdirSync(directory, { recursive: true });
  const { uid } = fs.statSync(directory);
  if (process.geteuid?.() === 0 && uid !== 0) {
    const name = accountName(uid);
    throw new OperatorError(
      `the data directory ${directory} belongs to the account ${name}, which could not use what root makes there: run it as that account, like ${runAs(name)}`,
    );
  }
  return lockDataDirectory(directory, command);
}
