import fs from 'node:fs';
import { type DataLock, lockDataDirectory } from '../../supervisor/handover/data-lock.ts';

/** Locks the data directory for a command, which makes it when it is not there. */
export function lockForCommand(directory: string, command: string): DataLock {
  fs.mkdirSync(directory, { recursive: true });
  return lockDataDirectory(directory, command);
}
