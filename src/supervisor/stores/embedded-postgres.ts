import { type ChildProcess, spawnSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import fs from 'node:fs';
import net from 'node:net';
import path from 'node:path';
import { messageOf } from '../../base/errors.ts';
import { writeNewFile } from '../../base/write-new-file.ts';
import { makeClient } from '../../db/database.ts';
import { AdoptedChild, type Child, standardFds } from '../children/adopted-child.ts';
import { exited, StartError, spawnGuarded } from '../children/child.ts';
import { startedPid } from '../children/started-pid.ts';
import { assertNoForeignLink } from '../children/trusted-folder.ts';
import { type Account, systemAccount } from '../children/unprivileged.ts';
import type { PostgresState } from '../handover/takeover-state.ts';
import { type PostgresBinaries, postgresBinaries } from './embedded-packages.ts';

export type PostgresOptions = {
  /** Cluster directory; made by initdb when absent. */
  directory: string;
  /** Fails when it is absent: a command that names the wrong directory must not make an empty database there. */
  mustExist?: true;
  /** Where it listens when the path of its socket is too long; without it a free port. */
  port?: number;
  /** Group that may use its socket, when PostgreSQL runs as a separate account. */
  socketGroup?: number;
  /** Called before each slow step. */
  progress(text: string): void;
  /** Extra `-c` settings, for tests. */
  settings?: Readonly<Record<string, string>>;
};

export type RunningPostgres = { process: Child; url: string; stop(): Promise<void> };

const SUPERUSER = 'plugin_host';
const DATABASE = 'plugin_host';
/** A unix socket address holds 107 bytes (unix(7)); the file name takes 18 of them. */
const SOCKET_DIRECTORY_MAX = 85;
const START_MS = 60_000;

/**
 * The account PostgreSQL runs as when this process is root, because PostgreSQL refuses to run as root. Made when
 * absent.
 */
function accountForRoot(progress: (text: string) => void): Account | null {
  if (process.getuid?.() !== 0) return null;
  try {
    return systemAccount('postgres', progress);
  } catch (error) {
    throw new StartError(
      `PostgreSQL does not run as root and the account "postgres" could not be created (${messageOf(error).split('\n')[0]}); run as an ordinary user or set BOT_DATABASE_URL`,
    );
  }
}

/** Whether every account may enter all directories above a path. */
function reachable(target: string): boolean {
  for (let p = path.resolve(target); ; p = path.dirname(p)) {
    if (fs.existsSync(p) && fs.statSync(p).isDirectory() && (fs.statSync(p).mode & 0o001) === 0) return false;
    if (p === path.dirname(p)) return true;
  }
}

/**
 * The command that runs a binary as the account. If the account cannot reach the files (a checkout below /root), the
 * process keeps the one capability to read them; nothing is copied and no permissions are changed. Without the secure
 * bit, access(2) would check the files without that capability.
 */
function asAccount(
  account: Account | null,
  binary: string,
  directory: string,
  args: readonly string[],
): [string, string[]] {
  if (account === null) return [binary, [...args]];
  const keep =
    reachable(path.dirname(binary)) && reachable(path.dirname(directory))
      ? []
      : ['--inh-caps=+dac_override', '--ambient-caps=+dac_override', '--securebits=+no_setuid_fixup'];
  return [
    'setpriv',
    [`--reuid=${account.uid}`, `--regid=${account.gid}`, '--clear-groups', ...keep, '--', binary, ...args],
  ];
}

/** The password of the superuser stands next to the cluster. */
const passwordFileOf = (directory: string): string => `${path.resolve(directory)}.password`;

const childEnv = (): NodeJS.ProcessEnv => ({ PATH: process.env.PATH, LC_ALL: 'C', TZ: 'UTC' });

/** @returns the password of its superuser */
function initialise(binaries: PostgresBinaries, account: Account | null, directory: string): string {
  assertNoForeignLink(directory);
  const passwordFile = passwordFileOf(directory);
  // It gets its name when it is whole: the program that makes it may be killed.
  const partial = `${directory}.new`;
  const password = randomBytes(24).toString('hex');
  fs.rmSync(partial, { recursive: true, force: true });
  fs.mkdirSync(partial, { recursive: true, mode: 0o700 });
  writeNewFile(passwordFile, `${password}\n`, 0o600);
  if (account !== null) {
    fs.lchownSync(partial, account.uid, account.gid);
    fs.lchownSync(passwordFile, account.uid, account.gid);
  }
  const args = [
    `--pgdata=${partial}`,
    `--username=${SUPERUSER}`,
    `--pwfile=${passwordFile}`,
    '--auth=scram-sha-256',
    '--encoding=UTF8',
    '--locale=C',
    '--locale-provider=builtin',
    '--builtin-locale=C.UTF-8',
    '--no-instructions',
  ];
  const [command, all] = asAccount(account, binaries.initdb, partial, args);
  const r = spawnSync(command, all, { encoding: 'utf8', env: childEnv(), cwd: '/' });
  if (r.status !== 0) {
    fs.rmSync(partial, { recursive: true, force: true });
    const reason =
      (r.stderr ?? String(r.error ?? '')).split('\n').find(l => /error|fatal|could not|cannot/i.test(l)) ??
      'no reason given';
    throw new StartError(
      `the embedded PostgreSQL could not be initialised in ${directory}: ${reason.trim()}; check that the disk has free space and the directory can be written`,
    );
  }
  try {
    fs.renameSync(partial, directory);
  } catch (error) {
    fs.rmSync(partial, { recursive: true, force: true });
    throw new StartError(
      `the embedded PostgreSQL cannot have its files in ${directory}: ${messageOf(error)}; it must be absent or empty, and no mount point`,
    );
  }
  return password;
}

/** Stops a server that an earlier supervisor left running in this directory. */
async function stopLeftover(directory: string): Promise<void> {
  let pid: number;
  try {
    pid = Number(fs.readFileSync(path.join(directory, 'postmaster.pid'), 'utf8').split('\n')[0]);
    if (!fs.readFileSync(`/proc/${pid}/cmdline`, 'latin1').includes('postgres')) return;
  } catch {
    return;
  }
  const alive = (): boolean => fs.existsSync(`/proc/${pid}`);
  for (const [signal, ms] of [
    ['SIGINT', 10_000],
    ['SIGQUIT', 5000],
  ] as const) {
    try {
      process.kill(pid, signal);
    } catch {
      return;
    }
    for (const until = Date.now() + ms; alive() && Date.now() < until; )
      await new Promise(resolve => setTimeout(resolve, 25));
    if (!alive()) return;
  }
}

/**
 * The address of an embedded PostgreSQL that already runs in the directory, read from its pid file; null when none
 * runs.
 */
export function findRunningPostgres(directory: string): string | null {
  try {
    const [pid, , , port, sockets, host] = fs.readFileSync(path.join(directory, 'postmaster.pid'), 'utf8').split('\n');
    if (!fs.readFileSync(`/proc/${Number(pid)}/cmdline`, 'latin1').includes('postgres')) return null;
    const password = fs.readFileSync(passwordFileOf(directory), 'utf8').trim();
    const where = sockets === undefined || sockets === '' ? '' : `?host=${encodeURIComponent(sockets)}`;
    return `postgresql://${SUPERUSER}:${password}@${where === '' ? (host ?? '127.0.0.1') : 'localhost'}:${port}/${DATABASE}${where}`;
  } catch {
    return null;
  }
}

function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = net.createServer();
    server.once('error', reject);
    server.listen(0, '127.0.0.1', () => {
      const address = server.address();
      server.close(() => resolve(typeof address === 'object' && address !== null ? address.port : 0));
    });
  });
}

const codeOf = (error: unknown): unknown => (error instanceof Error && 'code' in error ? error.code : undefined);
/** The server is starting: after a crash it first does what had only been noted (SQLSTATE `cannot_connect_now`). */
const STARTING = '57P03';
const WRONG_PASSWORD = '28P01';

/** @throws StartError when it ends, does not answer, or refuses the password */
async function whenReady(
  url: string,
  child: ChildProcess,
  lastLine: () => string,
  { directory, progress }: PostgresOptions,
): Promise<void> {
  let until = Date.now() + START_MS;
  for (let isSaid = false; ; ) {
    if (child.exitCode !== null || child.signalCode !== null)
      throw new StartError(`the embedded PostgreSQL ended at start: ${lastLine() || 'no reason given'}`);
    const client = makeClient(url);
    client.on('error', () => {});
    try {
      await client.connect();
      const { rowCount } = await client.query('SELECT 1 FROM pg_database WHERE datname = $1', [DATABASE]);
      if (rowCount === 0) await client.query(`CREATE DATABASE ${client.escapeIdentifier(DATABASE)}`);
      await client.end();
      return;
    } catch (error) {
      await client.end().catch(() => {});
      const code = codeOf(error);
      if (code === WRONG_PASSWORD)
        throw new StartError(
          `the embedded PostgreSQL refuses the password in ${passwordFileOf(directory)}: put back the file that belongs to ${directory}`,
        );
      if (Date.now() > until && code === STARTING) {
        // Ended now, it would begin with the same again.
        until = Date.now() + START_MS;
        if (!isSaid) progress('the embedded PostgreSQL recovers after a crash, which takes as long as it takes');
        isSaid = true;
      }
      if (Date.now() > until)
        throw new StartError(
          `the embedded PostgreSQL does not answer within ${START_MS / 1000} s: ${messageOf(error)}`,
        );
      await new Promise(resolve => setTimeout(resolve, 15));
    }
  }
}

/**
 * Starts PostgreSQL from the npm package in a directory, which it initialises the first time.
 *
 * @returns when it answers
 * @throws StartError with one line that says what to do
 */
export async function startPostgres(options: PostgresOptions): Promise<RunningPostgres> {
  const { progress } = options;
  const directory = path.resolve(options.directory);
  const binaries = postgresBinaries();
  const account = accountForRoot(progress);
  let password: string;
  if (fs.existsSync(path.join(directory, 'PG_VERSION'))) {
    await stopLeftover(directory);
    password = fs.readFileSync(passwordFileOf(directory), 'utf8').trim();
  } else if (options.mustExist === true) {
    throw new StartError(
      `no service has run with the data directory ${path.dirname(directory)} (data.dir) yet: name the configuration of the service with --config FILE, or start the service once`,
    );
  } else {
    progress('initialising the embedded PostgreSQL (once)');
    password = initialise(binaries, account, directory);
  }
  const sockets = `${directory}-run`;
  const useSocket = Buffer.byteLength(sockets) <= SOCKET_DIRECTORY_MAX;
  const port = useSocket ? 5432 : (options.port ?? (await freePort()));
  const settings: Record<string, string> = {
    listen_addresses: useSocket ? '' : '127.0.0.1',
    unix_socket_directories: useSocket ? sockets : '',
    port: String(port),
    max_connections: '100',
    shared_buffers: '64MB',
    jit: 'off',
    log_min_messages: 'warning',
    ...options.settings,
  };
  if (useSocket) {
    assertNoForeignLink(sockets);
    fs.mkdirSync(sockets, { recursive: true, mode: 0o700 });
    if (account !== null) {
      fs.lchownSync(sockets, account.uid, options.socketGroup ?? account.gid);
      // Processes that can enter the directory still need the password.
      fs.chmodSync(sockets, options.socketGroup === undefined ? 0o700 : 0o710);
    }
  }
  progress('starting the embedded PostgreSQL');
  const flags = Object.entries(settings).flatMap(([k, v]) => ['-c', `${k}=${v}`]);
  const [command, args] = asAccount(account, binaries.postgres, directory, ['-D', directory, ...flags]);
  const child = spawnGuarded(command, args, 'INT', childEnv());
  let last = '';
  const keep = (chunk: Buffer): void => {
    const line = chunk
      .toString()
      .split('\n')
      .filter(l => /FATAL|PANIC|ERROR|could not|not /.test(l))
      .at(-1);
    if (line !== undefined) last = line.trim();
  };
  child.stderr?.on('data', keep);
  child.stdout?.on('data', keep);
  const authority = useSocket
    ? `${SUPERUSER}:${password}@localhost:5432`
    : `${SUPERUSER}:${password}@127.0.0.1:${port}`;
  const urlOf = (database: string): string =>
    `postgresql://${authority}/${database}${useSocket ? `?host=${encodeURIComponent(sockets)}` : ''}`;
  await whenReady(urlOf('postgres'), child, () => last, { ...options, directory });
  return runningPostgres(child, urlOf(DATABASE));
}

function runningPostgres(child: Child, url: string): RunningPostgres {
  return {
    process: child,
    url,
    async stop() {
      // The guard interrupts PostgreSQL (fast shutdown) when its pipe closes, and exits with it.
      child.stdin?.end();
      if (await exited(child, 15_000)) return;
      if (child.pid !== undefined) process.kill(-child.pid, 'SIGQUIT');
      await exited(child, 5000);
    },
  };
}

/** The state of a running server for another program, which calls `adoptPostgres` with it. */
export const postgresStateOf = ({ process: child, url }: RunningPostgres): PostgresState => ({
  pid: startedPid(child),
  ...standardFds(child),
  url,
});

/** Takes over the server that the program before has started. */
export const adoptPostgres = ({ pid, url, ...pipes }: PostgresState): RunningPostgres =>
  runningPostgres(new AdoptedChild(pid, pipes), url);
