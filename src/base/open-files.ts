import fs from 'node:fs';

/** Descriptors a process needs besides connections of clients: modules, lanes, database, files under way. */
export const OTHER_FILES = 256;
/** However low the limit of the system is, an administrator gets in. */
const CONNECTIONS_MIN = 16;

/** How many files and connections this process may have open (`ulimit -n`); without an end where the system does not say. */
export function openFilesMax(): number {
  try {
    const [, soft = ''] = /^Max open files\s+(\S+)/m.exec(fs.readFileSync('/proc/self/limits', 'latin1')) ?? [];
    return soft === 'unlimited' || soft === '' ? Number.POSITIVE_INFINITY : Number(soft);
  } catch {
    return Number.POSITIVE_INFINITY;
  }
}

/** The number of connections that leaves descriptors for everything else. */
export const connectionsWithin = (wanted: number, filesMax: number): number =>
  Math.min(wanted, Math.max(CONNECTIONS_MIN, filesMax - OTHER_FILES));

/** What to do about a limit that is too low for the configured connections; null when it is not. */
export function openFilesProblem(wanted: number, filesMax: number): string | null {
  const most = connectionsWithin(wanted, filesMax);
  return most >= wanted
    ? null
    : `at most ${filesMax} files may be open, so ${most} connections of clients instead of ${wanted} (http.max_connections): raise the limit (LimitNOFILE of systemd, ulimit -n) to ${wanted + OTHER_FILES}`;
}
