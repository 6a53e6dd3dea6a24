import fs from 'node:fs';
import path from 'node:path';
import { ownAccount } from '../../base/access-denied.ts';
import { CommandError } from './admin-commands.ts';

/** A command that makes a folder for the account of this process. */
function installCommand(folder: string): string {
  const owner = process.geteuid?.() === 0 ? '' : `-o ${ownAccount()} `;
  return `install -d ${owner}-m 700 ${folder}`;
}

/**
 * Makes sure that something can be made at a place: nothing is there yet, and this account may write into the folder above.
 *
 * @param noun what is made there
 * @throws CommandError that says what is wrong and what to do
 */
export function assertNewPlace(place: string, noun: 'folder' | 'file'): void {
  if (fs.existsSync(place)) throw new CommandError(`${place} is there already; name another ${noun}`);
  const above = path.dirname(path.resolve(place));
  const stat = fs.statSync(above, { throwIfNoEntry: false });
  if (stat === undefined)
    throw new CommandError(
      `the folder ${above} is not there, in which ${path.basename(place)} would be made; make it first, like: ${installCommand(above)}`,
    );
  if (!stat.isDirectory()) throw new CommandError(`${above} is a file; name a place in a folder`);
  try {
    fs.accessSync(above, fs.constants.W_OK | fs.constants.X_OK);
  } catch {
    throw new CommandError(
      `the account ${ownAccount()} may not write into ${above}; name a folder of this account, or let root make one, like: ${installCommand(path.resolve(place, '..', 'plugin-host'))}`,
    );
  }
}
