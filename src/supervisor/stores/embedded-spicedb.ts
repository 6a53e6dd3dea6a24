import { fork } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { AdoptedChild, type Child, messagesFd } from '../children/adopted-child.ts';
import { exited, MAIN, StartError } from '../children/child.ts';
import { startedPid } from '../children/started-pid.ts';
import type { Account } from '../children/unprivileged.ts';
import type { SpicedbState } from '../handover/takeover-state.ts';

export type RunningSpicedb = {
  process: Child;
  endpoint: string;
  /** Directory of its sockets. */
  sockets: string;
  stop(): Promise<void>;
};

/** A unix socket address holds 107 bytes (unix(7)); the engine's own socket has a name of up to 50. */
const SOCKET_DIRECTORY_MAX = 55;
const START_MS = 20_000;
const STOP_MS = 3000;

/**
 * Starts the embedded graph store, empty, in a separate process that ends with this one.
 *
 * @param directory for its sockets only, closed to other accounts; made when absent, removed when the store stops. If
 * the path is too
 *   long for a socket, a temporary directory of the system is used instead
 * @param account it runs as; null: the account of this process
 * @param environment variables it gets next to PATH
 * @throws StartError when it does not become ready
 */
export async function startEmbeddedSpicedb(
  directory: string,
  account: Account | null = null,
  environment: NodeJS.ProcessEnv = {},
): Promise<RunningSpicedb> {
  const fits = Buffer.byteLength(directory) <= SOCKET_DIRECTORY_MAX;
  const sockets = fits ? directory : fs.mkdtempSync(path.join(os.tmpdir(), 'plugin-host-'));
  if (fits) {
    fs.mkdirSync(path.dirname(sockets), { recursive: true });
    // Removed and made again, so that a link another account put there is not followed.
    fs.rmSync(sockets, { recursive: true, force: true });
    fs.mkdirSync(sockets, { mode: 0o700 });
  }
  if (account !== null) fs.lchownSync(sockets, account.uid, account.gid);
  const socket = path.join(sockets, 'grpc.sock');
  const child = fork(MAIN, ['spicedb', socket], {
    execPath: process.execPath,
    execArgv: ['--disable-warning=ExperimentalWarning'],
    // A separate process group, so that Ctrl-C reaches only the supervisor, which stops its children in order.
    detached: true,
    ...(account === null ? {} : { uid: account.uid, gid: account.gid }),
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
    // The engine makes another socket in the directory for temporary files.
    // The engine is written in Go and allocates much for each check. Collecting garbage a quarter as often makes checks
    // a third faster.
    env: { ...environment, PATH: process.env.PATH, TMPDIR: sockets, GOGC: '400' },
  });
  try {
    await new Promise<void>((resolve, reject) => {
      const timer = setTimeout(
        () => reject(new StartError(`the embedded SpiceDB was not ready after ${START_MS / 1000} s`)),
        START_MS,
      );
      child.once('message', () => {
        clearTimeout(timer);
        resolve();
      });
      child.once('error', reject);
      child.once('exit', (code, signal) => {
        clearTimeout(timer);
        reject(new StartError(`the embedded SpiceDB ended at start (${signal ?? `exit code ${code}`})`));
      });
    });
  } catch (error) {
    child.kill('SIGKILL');
    remove(sockets);
    throw error;
  }
  return runningSpicedb(child, `unix:${socket}`, sockets);
}

const remove = (sockets: string): void => fs.rmSync(sockets, { recursive: true, force: true });

function runningSpicedb(child: Child, endpoint: string, sockets: string): RunningSpicedb {
  return {
    process: child,
    endpoint,
    sockets,
    async stop() {
      child.kill('SIGTERM');
      if (!(await exited(child, STOP_MS))) child.kill('SIGKILL');
      remove(sockets);
    },
  };
}

/** The state of a running store for another program, which calls `adoptSpicedb` with it. */
export const spicedbStateOf = ({ process: child, endpoint, sockets }: RunningSpicedb): SpicedbState => ({
  pid: startedPid(child),
  fd: messagesFd(child),
  endpoint,
  sockets,
});

/** Takes over a store that the program before has started. */
export const adoptSpicedb = ({ endpoint, fd, pid, sockets }: SpicedbState): RunningSpicedb =>
  runningSpicedb(new AdoptedChild(pid, { messages: fd }), endpoint, sockets);
