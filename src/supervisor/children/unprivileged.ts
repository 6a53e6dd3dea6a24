import { execFileSync, spawnSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { messageOf } from '../../base/errors.ts';

/** A system account that processes are started as. */
export type Account = { name: string; uid: number; gid: number };

const NAME = 'plugin-host';
/** Entries of the data directory that belong to the supervisor. */
const NOT_OURS = /^(supervisor\.(lock|sock)|spicedb\.endpoint|spicedb-.*|built)$/;
/**
 * With the sticky bit: the account can make entries, but not remove or rename those of other accounts, like the
 * database's.
 */
const TOP_MODE = 0o1771;

function idOf(flag: '-u' | '-g', name: string): number | null {
  const r = spawnSync('id', [flag, name], { encoding: 'utf8' });
  return r.status === 0 ? Number(r.stdout) : null;
}

/** Finds a system account by name, and creates it when absent. @throws Error when it cannot be created */
export function systemAccount(name: string, progress: (text: string) => void): Account {
  if (idOf('-u', name) === null) {
    progress(`creating the system account "${name}"`);
    execFileSync('useradd', ['--system', '--user-group', '--no-create-home', '--shell', '/usr/sbin/nologin', name], {
      stdio: 'pipe',
    });
  }
  const [uid, gid] = [idOf('-u', name), idOf('-g', name)];
  if (uid === null || gid === null) throw new Error(`the account "${name}" was not created`);
  return { name, uid, gid };
}

/** Gives a file or a tree to an account. Changes the top last, so that an interrupted run is repeated. */
function giveTo(account: Account, at: string): void {
  const stat = fs.lstatSync(at);
  if (stat.uid !== 0 && stat.uid !== account.uid) return;
  if (stat.isDirectory()) for (const name of fs.readdirSync(at)) giveTo(account, path.join(at, name));
  // A file with several hard links may be a system file that the account linked here.
  else if (stat.nlink > 1) return;
  fs.lchownSync(at, account.uid, account.gid);
}

/**
 * Gives the account the entries it does not own yet: all of them at the first start, later those that a command of root
 * made.
 */
function handOver(account: Account, directory: string): void {
  for (const name of fs.readdirSync(directory)) {
    const at = path.join(directory, name);
    // Entries of a third account, like the database's, keep their owner.
    if (!NOT_OURS.test(name) && fs.lstatSync(at).uid === 0) giveTo(account, at);
  }
  fs.lchownSync(directory, 0, account.gid);
  fs.chmodSync(directory, TOP_MODE);
}

/** Paths the account must be able to read: the program, its sources and packages, the way to the data. */
function unreadable(account: Account, dataDirectory: string): string | null {
  const project = fileURLToPath(new URL('../../../', import.meta.url));
  const needed = [
    process.execPath,
    path.join(project, 'src'),
    path.join(project, 'package.json'),
    path.join(project, 'node_modules'),
    path.dirname(dataDirectory),
  ];
  for (const at of needed) {
    const r = spawnSync('test', ['-r', at, '-o', '-x', at], { uid: account.uid, gid: account.gid, cwd: '/' });
    if (r.status !== 0) return at;
  }
  return null;
}

/**
 * Lets child processes raise a priority they have lowered, as root may. The serving process lowers the priority of a
 * lane that uses much processor time. Without this (no `prlimit` on the system) such a lane must be replaced instead.
 */
function letChildrenRaisePriority(): void {
  spawnSync('prlimit', ['--pid', String(process.pid), '--nice=20:20'], { stdio: 'ignore' });
}

/**
 * Prepares the account that runs plugins when this process is root, and gives it the data directory. Null when this
 * process is not root, or when it fails: then a warning says why, and plugins run as root.
 *
 * @param dataDirectory absolute path
 */
export function dropTo(
  dataDirectory: string,
  tell: { progress(text: string): void; warn(text: string): void },
): Account | null {
  if (process.getuid?.() !== 0) return null;
  try {
    const account = systemAccount(NAME, tell.progress);
    const at = unreadable(account, dataDirectory);
    if (at !== null) {
      tell.warn(
        `plugins run as root: the account "${NAME}" cannot read ${at}; put the program and its data where every account can read them, like /opt/plugin-host and /var/lib/plugin-host, or start the service as an ordinary user`,
      );
      return null;
    }
    handOver(account, dataDirectory);
    letChildrenRaisePriority();
    return account;
  } catch (error) {
    tell.warn(
      `plugins run as root: ${messageOf(error).split('\n')[0]}; create the system account "${NAME}", or start the service as an ordinary user`,
    );
    return null;
  }
}

/** The command that runs the program as an account, with the one capability to listen on ports below 1024. */
export function asAccountOnPort(
  account: Account | null,
  port: number,
  args: readonly string[],
): { execPath: string; execArgv: string[]; uid?: number; gid?: number } {
  if (account === null) return { execPath: process.execPath, execArgv: [...args] };
  if (port === 0 || port > 1023)
    return { execPath: process.execPath, execArgv: [...args], uid: account.uid, gid: account.gid };
  const drop = [`--reuid=${account.uid}`, `--regid=${account.gid}`, '--clear-groups'];
  const keep = ['--inh-caps=+net_bind_service', '--ambient-caps=+net_bind_service'];
  return { execPath: 'setpriv', execArgv: [...drop, ...keep, '--', process.execPath, ...args] };
}
