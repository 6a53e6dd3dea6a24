import { randomBytes } from 'node:crypto';
import { type Database, openDatabase } from '../../src/db/database.ts';

/** Name of the migrated database every test database is a copy of. */
export const TEMPLATE = 'plugin_host_template';

function serverUrl(): string {
  const url = process.env.TEST_DATABASE_URL;
  if (url === undefined) throw new Error('run the tests with: npm test [-- FILE...]');
  return url;
}

export type TestDatabase = { url: string; drop(): Promise<void> };

/** A database of the test's own. */
export async function makeDatabase(): Promise<TestDatabase> {
  const name = `t_${randomBytes(8).toString('hex')}`;
  const server: Database = openDatabase(serverUrl(), 1, () => {});
  await server.query(`CREATE DATABASE ${name} TEMPLATE ${TEMPLATE}`);
  await server.close();
  return {
    url: serverUrl().replace('/plugin_host?', `/${name}?`),
    async drop() {
      const again = openDatabase(serverUrl(), 1, () => {});
      await again.query(`DROP DATABASE IF EXISTS ${name} WITH (FORCE)`);
      await again.close();
    },
  };
}
