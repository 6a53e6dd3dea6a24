import { type Config, ConfigError } from '../config/load.ts';
import { type Database, openDatabase } from '../db/database.ts';
import { type MigrationState, migrate, migrationStates } from '../db/migrate.ts';
import { prepareDatabase, roleOfUrl } from '../db/service-role.ts';
import { withDatabaseAsItIs } from './admin-commands.ts';
import { table } from './table.ts';

function urlOf(config: Config): string {
  const url = config.values['database.url'];
  if (url === '')
    throw new ConfigError('migrate needs database.url (BOT_DATABASE_URL); the embedded database is migrated at start');
  return url;
}

async function withConnection<T>(url: string, run: (db: Database) => Promise<T>): Promise<T> {
  const db = openDatabase(url, 1, () => {});
  try {
    return await run(db);
  } finally {
    await db.close();
  }
}

/**
 * `migrate up`: brings the database of `database.url` up to date.
 *
 * @returns what to print
 * @throws ConfigError when there is no such database
 */
export async function migrateUp(config: Config): Promise<string> {
  const url = urlOf(config);
  const ownerUrl = config.values['database.owner_url'];
  const applied =
    ownerUrl === '' ? await withConnection(url, migrate) : await prepareDatabase(ownerUrl, () => roleOfUrl(url));
  return applied.length === 0 ? 'the database is up to date' : `applied ${applied.join(', ')}`;
}

const line = (m: MigrationState): string[] => [
  m.name,
  m.state,
  m.appliedAt?.toISOString() ?? '-',
  m.expands ? 'expands' : 'contracts',
];

/** In words, what the states mean for this release. */
function summary(states: readonly MigrationState[]): string {
  const count = (state: MigrationState['state']): number => states.filter(m => m.state === state).length;
  const unknown = states.filter(m => m.state === 'unknown');
  if (unknown.some(m => !m.expands))
    return `a newer release has changed the database: this one does not run on it (${unknown.map(m => m.name).join(', ')})`;
  const newer = unknown.length === 0 ? '' : `; ${unknown.length} of a newer release, on which this one runs`;
  return count('pending') === 0
    ? `the database is up to date${newer}`
    : `${count('pending')} pending${newer}: plugin-host migrate up, or start the service`;
}

/**
 * `migrate status`: the migrations of this release and of the database.
 *
 * @returns what to print
 * @throws CommandError when it is the embedded one, and does not run
 */
export async function migrateStatus(config: Config, json: boolean): Promise<string> {
  const states = await withDatabaseAsItIs(config, migrationStates);
  if (json)
    return JSON.stringify(
      states.map(({ appliedAt, ...m }) => ({ ...m, applied_at: appliedAt })),
      null,
      2,
    );
  return `${table([['MIGRATION', 'STATE', 'APPLIED', 'KIND'], ...states.map(line)])}\n${summary(states)}`;
}
