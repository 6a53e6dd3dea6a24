import { type Config, ConfigError } from '../../config/load.ts';
import { type Database, openDatabase } from '../../db/database.ts';
import { type MigrationState, migrate, migrationStates } from '../../db/migrate.ts';
import { prepareDatabase, roleOfUrl } from '../../db/service-role.ts';
import { jsonText } from '../print/json-text.ts';
import { table } from '../print/table.ts';
import { withUnmigratedDatabase } from './admin-commands.ts';
import { databaseFailure } from './database-failure.ts';

function urlOf(config: Config): string {
  const url = config.values['database.url'];
  if (url === '')
    throw new ConfigError(
      'migrate needs database.url (BOT_DATABASE_URL); the start of the service migrates the embedded one, and migrate status shows how it stands',
    );
  return url;
}

async function withConnection<T>(url: string, run: (db: Database) => Promise<T>): Promise<T> {
  const db = openDatabase(url, 1, () => {});
  try {
    return await run(db);
  } catch (error) {
    throw databaseFailure(error);
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
export async function migrateUp(config: Config, json: boolean): Promise<string> {
  const url = urlOf(config);
  const ownerUrl = config.values['database.owner_url'];
  const applied =
    ownerUrl === ''
      ? await withConnection(url, migrate)
      : await prepareDatabase(ownerUrl, () => roleOfUrl(url)).catch((error: unknown) => {
          throw databaseFailure(error);
        });
  if (json) return jsonText({ applied });
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
 * `migrate status`: the migrations of this release and of the database. An embedded database that stands still is started for
 * the answer, and changed in nothing.
 *
 * @returns what to print
 * @throws CommandError when the database cannot be read
 */
export async function migrateStatus(config: Config, json: boolean, progress: (text: string) => void): Promise<string> {
  const states = await withUnmigratedDatabase(config, progress, migrationStates);
  if (json) return jsonText({ items: states.map(({ appliedAt, ...m }) => ({ ...m, applied_at: appliedAt })) });
  return `${table([['MIGRATION', 'STATE', 'APPLIED', 'KIND'], ...states.map(line)])}\n${summary(states)}`;
}
