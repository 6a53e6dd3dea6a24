import { randomBytes } from 'node:crypto';
import fs from 'node:fs';
import { OperatorError } from '../../base/errors.ts';

const isRoot = (): boolean => process.getuid?.() === 0;

/**
 * Makes a folder that this process alone writes to, below one where the account it drops to may make entries: root writes nothing through
 * what that account has put at the path before. What is there and is not such a folder is renamed; the sticky bit of the folder above
 * keeps the new one where it is.
 */
export function makeTrustedFolder(directory: string): void {
  const stat = fs.lstatSync(directory, { throwIfNoEntry: false });
  const isOwn = stat?.isDirectory() === true && stat.uid === process.getuid?.() && (stat.mode & 0o022) === 0;
  if (stat !== undefined && !isOwn) fs.renameSync(directory, `${directory}.replaced-${randomBytes(4).toString('hex')}`);
  if (!isOwn) fs.mkdirSync(directory, { recursive: true, mode: 0o755 });
  // Whatever the umask is: the account reads it.
  if (!isOwn) fs.chmodSync(directory, 0o755);
}

/**
 * Root changes nothing behind a link that another account has made. Links of root's own, to another disk, are followed.
 *
 * @throws OperatorError that names the link
 */
export function assertNoForeignLink(at: string): void {
  const stat = fs.lstatSync(at, { throwIfNoEntry: false });
  if (isRoot() && stat?.isSymbolicLink() === true && stat.uid !== 0)
    throw new OperatorError(`${at} is a link that the account ${stat.uid} has made: remove it`);
}
