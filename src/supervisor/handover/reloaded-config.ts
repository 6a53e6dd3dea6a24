import fs from 'node:fs';
import path from 'node:path';
import { messageOf, OperatorError } from '../../base/errors.ts';
import { type Config, ConfigError, type ConfigKey, withValues } from '../../config/load.ts';
import type { PendingConfig } from '../../config/pending-config.ts';

/** Keys that the supervisor itself has used by the time it is asked to reload. */
const USED_AT_START: readonly ConfigKey[] = [
  'data.dir',
  'http.host',
  'http.port',
  'serving.processes',
  'admin.setup_token',
  'spicedb.recycle_mb',
  'metrics.host',
  'metrics.port',
];
/** Empty: the embedded one, which is started below the supervisor or not. */
const EMBEDDED_IF_EMPTY: readonly ConfigKey[] = ['database.url', 'spicedb.endpoint'];

function isSameFile(a: string, b: string): boolean {
  const [of, other] = [a, b].map(file => fs.statSync(file, { throwIfNoEntry: false }));
  return path.resolve(a) === path.resolve(b) || (of !== undefined && of.ino === other?.ino && of.dev === other.dev);
}

/**
 * A reload reads the file that the service was started with: the next start would read it as well.
 *
 * @param own the file of the start; null for none
 * @param named the one that a reload names; null for none
 * @throws OperatorError when they are not the same
 */
export function assertSameFile(own: string | null, named: string | null): void {
  if (named === null || (own !== null && isSameFile(own, named))) return;
  const started = own === null ? 'without a configuration file' : `with ${path.resolve(own)}`;
  throw new OperatorError(
    `it was started ${started}, and --config or BOT_CONFIG names ${named}: leave that out, or restart the service with the other file`,
  );
}

const keysOf = (config: Config): ConfigKey[] => Object.keys(config.values) as ConfigKey[];

const differs = (before: Config, after: Config, key: ConfigKey): boolean =>
  JSON.stringify(before.values[key]) !== JSON.stringify(after.values[key]);

/** The keys with another value. */
export const changedKeys = (before: Config, after: Config): ConfigKey[] =>
  keysOf(after).filter(key => differs(before, after, key));

/** Keys with another value that a reload cannot apply. */
function restartKeys(given: Config, next: Config): ConfigKey[] {
  const isSwitched = (key: ConfigKey): boolean => (given.values[key] === '') !== (next.values[key] === '');
  return [...USED_AT_START.filter(key => differs(given, next, key)), ...EMBEDDED_IF_EMPTY.filter(isSwitched)];
}

/**
 * What the next reload or start would find.
 *
 * @param given the configuration as it was read before
 * @param readAgain reads it now
 */
export function pendingConfig(given: Config, readAgain: () => Config): PendingConfig {
  try {
    const next = readAgain();
    return { changed: changedKeys(given, next), restart: restartKeys(given, next), problem: null };
  } catch (error) {
    return { changed: [], restart: [], problem: error instanceof ConfigError ? error.outside : messageOf(error) };
  }
}

/**
 * The configuration that new serving processes get when it is read again.
 *
 * @param given as it was read before
 * @param next as it is read now
 * @param effective what the serving processes have: `given` with what the supervisor found out at start
 * @throws OperatorError that names the keys that count after a restart only
 */
export function reloadedConfig(given: Config, next: Config, effective: Config): Config {
  const bound = restartKeys(given, next);
  if (bound.length > 0)
    throw new OperatorError(
      `${bound.join(', ')} ${bound.length > 1 ? 'have other values' : 'has another value'} now, which a restart of the service alone can apply; nothing was changed`,
    );
  // The serving processes never get the owner's password.
  const found = { 'http.port': effective.values['http.port'], 'database.owner_url': '' };
  if (next.values['database.url'] !== '') return withValues(next, found);
  return withValues(next, { ...found, 'database.url': effective.values['database.url'] });
}
