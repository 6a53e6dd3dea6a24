import { commandOf, isBelow, readProcess } from './processes.ts';

/**
 * The only places of tests and benchmarks that send signals by number (`tidy.test.ts`). A number that came from a file, a table or an
 * empty list may be 0 (the own process group), -1 (every process of the machine) or the pid of a process that has nothing to do with the
 * test: kill(2).
 */

/**
 * Sends a signal to a process that the calling process, or one of its children, has started.
 *
 * @throws Error when the pid is no living descendant
 */
export function signalDescendant(pid: number | undefined, signal: NodeJS.Signals): void {
  if (pid === undefined || !Number.isSafeInteger(pid) || pid < 2)
    throw new Error(`${signal} needs the pid of a process, and got ${pid}`);
  const entry = readProcess(pid);
  if (entry === null || entry.isZombie) throw new Error(`${signal}: process ${pid} has ended`);
  if (!isBelow(pid, process.pid))
    throw new Error(`${signal}: process ${pid} is no descendant of this test: ${commandOf(pid)}`);
  process.kill(pid, signal);
}

/**
 * Sends a signal to a backend of PostgreSQL that serves a database of the test's own.
 *
 * @param pid as `pg_stat_activity` has it
 * @param database its name, unique to the test
 * @throws Error when the process serves no connection of that database
 */
export function signalBackend(pid: number | undefined, database: string, signal: NodeJS.Signals): void {
  if (pid === undefined || !Number.isSafeInteger(pid) || pid < 2)
    throw new Error(`${signal} needs the pid of a backend, and got ${pid}`);
  // postgres: ROLE DATABASE ADDRESS STATE
  const title = commandOf(pid);
  if (!title.startsWith('postgres: ') || !title.split(' ').includes(database))
    throw new Error(`${signal}: process ${pid} serves no connection of the database ${database}: ${title}`);
  process.kill(pid, signal);
}

/**
 * Kills what is left of a process group.
 *
 * @param leader pid of the child that was started with `detached`, which makes it the leader of a group of its own
 */
export function killGroup(leader: number | undefined): void {
  if (leader === undefined || !Number.isSafeInteger(leader) || leader < 2 || leader === process.pid)
    throw new Error(`a process group has the pid of its leader, and got ${leader}`);
  try {
    process.kill(-leader, 'SIGKILL');
  } catch (error) {
    // ESRCH: all have ended.
    if (!(error instanceof Error && 'code' in error && error.code === 'ESRCH')) throw error;
  }
}

/**
 * Kills a process that was seen below a test which has ended, so that it has other parents by now.
 *
 * @param startedAt as it was when it was seen: another process may have the pid by now, and is left alone
 */
export function killLeftover(pid: number, startedAt: number): void {
  if (pid < 2 || readProcess(pid)?.startedAt !== startedAt) return;
  try {
    process.kill(pid, 'SIGKILL');
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'ESRCH')) throw error;
  }
}
