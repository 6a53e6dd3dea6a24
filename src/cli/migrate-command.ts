import { type Config, ConfigError } from '../config/load.ts';
import { openDatabase } from '../db/database.ts';
import { migrate } from '../db/migrate.ts';
import { prepareDatabase, roleOfUrl } from '../db/service-role.ts';

async function applyTo(config: Config): Promise<string[]> {
  const url = config.values['database.url'];
  const ownerUrl = config.values['database.owner_url'];
  if (url === '')
    throw new ConfigError('migrate needs database.url (BOT_DATABASE_URL); the embedded database is migrated at start');
  if (ownerUrl !== '') return await prepareDatabase(ownerUrl, () => roleOfUrl(url));
  const db = openDatabase(url, 1, () => {});
  try {
    return await migrate(db);
  } finally {
    await db.close();
  }
}

/**
 * `migrate`: brings the database of `database.url` up to date.
 *
 * @returns what to print
 * @throws ConfigError when there is no such database
 */
export async function migrateCommand(config: Config): Promise<string> {
  const applied = await applyTo(config);
  return applied.length === 0 ? 'the database is up to date' : `applied ${applied.join(', ')}`;
}
