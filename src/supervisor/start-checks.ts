import fs from 'node:fs';
import net from 'node:net';
import path from 'node:path';
import { accessDenied } from '../base/access-denied.ts';
import { messageOf } from '../base/errors.ts';
import { foreignFunctions } from '../base/foreign-functions.ts';
import { writeNewFile } from '../base/write-new-file.ts';
import type { Config } from '../config/load.ts';
import { StartError } from './children/child.ts';
import { type DataLock, holderText, lockDataDirectory } from './handover/data-lock.ts';
import { postgresBinaries, spicedbLibrary } from './stores/embedded-packages.ts';

/**
 * Every package that this configuration needs is installed. Asked first, before anything is made or started.
 *
 * @throws OperatorError that says what to set or install
 */
export function checkPackages(config: Config): void {
  foreignFunctions();
  if (config.values['database.url'] === '') postgresBinaries();
  if (config.values['spicedb.endpoint'] === '') spicedbLibrary();
}

/** Makes a directory and its parents one by one: `recursive` never returns below /proc. */
function makeDirectory(directory: string): void {
  if (fs.existsSync(directory)) return;
  makeDirectory(path.dirname(directory));
  fs.mkdirSync(directory);
}

function directoryError(directory: string, error: unknown): StartError {
  const denied = accessDenied(error);
  if (denied !== null)
    return new StartError(
      `the data directory ${directory} cannot be written: ${denied}; or name another one with data.dir (BOT_DATA_DIR)`,
    );
  const code = error instanceof Error && 'code' in error ? error.code : '';
  const what = code === 'ENOSPC' ? 'is full; free some space' : 'cannot be written; change its owner';
  return new StartError(
    `the data directory ${directory} ${what} or name another one with data.dir (BOT_DATA_DIR): ${messageOf(error)}`,
  );
}

/**
 * Makes the data directory if absent, locks it for this process, and checks that it can be written and has free space.
 * Changes nothing in it before the lock is held.
 *
 * @param warn called when the system does not support locks
 * @returns descriptor of the lock; null when the system does not support locks
 * @throws StartError that names the process which holds the lock
 */
export function checkDataDirectory(directory: string, warn: (text: string) => void): number | null {
  const probe = path.join(directory, `.write-test-${process.pid}`);
  let lock: DataLock;
  try {
    makeDirectory(directory);
    lock = lockDataDirectory(directory, 'serve');
  } catch (error) {
    throw directoryError(directory, error);
  }
  if (lock.state === 'taken')
    throw new StartError(
      `the data directory ${directory} is in use by ${holderText(lock.by)}; stop it first, or name another directory with data.dir (BOT_DATA_DIR)`,
    );
  if (lock.state === 'unsupported')
    warn(`the data directory ${directory} cannot be locked (${lock.why}): start no second service on it`);
  try {
    writeNewFile(probe, Buffer.alloc(64 * 1024), 0o600);
  } catch (error) {
    throw directoryError(directory, error);
  } finally {
    fs.rmSync(probe, { force: true });
  }
  return lock.state === 'held' ? lock.fd : null;
}

/** Fails early when another program has the port, before anything slow is started. */
export function checkPort(host: string, port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    const server = net.createServer();
    server.once('error', error => {
      const code = 'code' in error ? error.code : '';
      const what =
        code === 'EADDRINUSE'
          ? `${host}:${port} is taken by another program; stop it or choose another port with http.port (BOT_HTTP_PORT)`
          : code === 'EACCES'
            ? `${host}:${port} needs more rights; choose a port above 1023 with http.port (BOT_HTTP_PORT)`
            : `${host} is not an address of this machine; set http.host (BOT_HTTP_HOST)`;
      reject(new StartError(`cannot listen: ${what}`));
    });
    server.listen({ host, port, exclusive: true }, () => server.close(() => resolve()));
  });
}
