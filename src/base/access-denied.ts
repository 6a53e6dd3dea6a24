import fs from 'node:fs';
import path from 'node:path';

type Entry = { name: string; id: number };

/** The entries of `/etc/passwd` or `/etc/group`. */
function entriesOf(file: string): Entry[] {
  try {
    const lines = fs.readFileSync(file, 'utf8').split('\n');
    return lines.map(l => l.split(':')).map(([name = '', , id]) => ({ name, id: Number(id) }));
  } catch {
    return [];
  }
}

const nameIn = (file: string, id: number): string => entriesOf(file).find(e => e.id === id)?.name ?? `#${id}`;

/** Name of a system account; its number when it has none. */
export const accountName = (uid: number): string => nameIn('/etc/passwd', uid);

/** Name of the account this process runs as. */
export const ownAccount = (): string => accountName(process.geteuid?.() ?? 0);

/** How a command is run as another account. */
export function runAs(account: string): string {
  if (process.geteuid?.() === 0) return `runuser -u ${account} -- plugin-host ...`;
  return account === 'root' ? 'sudo plugin-host ...' : `sudo -u ${account} plugin-host ...`;
}

function mayEnter(folder: string): boolean {
  try {
    fs.accessSync(folder, fs.constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

/** The first folder on the way to a file that this account may not enter; else the file, or the folder it would lie in. */
function barrierOf(file: string): string {
  const above = path.dirname(file);
  if (above === file) return file;
  const outer = barrierOf(above);
  if (outer !== above || !mayEnter(above)) return outer;
  return fs.existsSync(file) ? file : above;
}

/** The file of a refusal by the system; null when the error is none. */
function deniedFile(error: unknown, file: string | undefined): string | null {
  if (!(error instanceof Error)) return null;
  if (!('code' in error) || !['EACCES', 'EPERM'].includes(String(error.code))) return deniedFile(error.cause, file);
  const found = file ?? ('path' in error ? error.path : undefined);
  return typeof found === 'string' ? path.resolve(found) : null;
}

/**
 * What a refusal by the system means (EACCES, EPERM): which file, which account, and what to do; null for any other error.
 *
 * @param file when the error itself does not name it
 * @param help what to do, for a file that is not the service's own
 */
export function accessDenied(error: unknown, file?: string, help?: string): string | null {
  const denied = deniedFile(error, file);
  if (denied === null) return null;
  const at = barrierOf(denied);
  const stat = fs.statSync(at, { throwIfNoEntry: false });
  if (stat === undefined) return null;
  const { gid, mode, uid } = stat;
  const [self, owner, group] = [ownAccount(), accountName(uid), nameIn('/etc/group', gid)];
  // A file of root that a group may use, like /etc/plugin-host/config.yaml, is for the account of that name.
  const isShared = uid === 0 && (mode & 0o070) !== 0 && entriesOf('/etc/passwd').some(e => e.name === group);
  const account = isShared ? group : owner;
  const whose = `${at === denied ? 'which' : `because ${at}`} belongs to ${owner}${account === owner ? '' : ` and the group ${group}`}`;
  const todo =
    account === self
      ? ` and has the mode ${(mode & 0o777).toString(8).padStart(3, '0')}: change it with chmod`
      : `: run the command as the account of the service, like ${runAs(account)}`;
  return `the account ${self} may not use ${denied}, ${whose}${help === undefined ? todo : `: ${help}`}`;
}
