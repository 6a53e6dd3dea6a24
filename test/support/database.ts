import { randomBytes } from 'node:crypto';
import { type Database, openDatabase } from '../../src/db/database.ts';
import { EMBEDDED_ROLE, withUser } from '../../src/db/service-role.ts';

/** Name of the migrated database every test database is a copy of. */
export const TEMPLATE = 'plugin_host_template';

function serverUrl(): string {
  const url = process.env.TEST_DATABASE_URL;
  if (url === undefined) throw new Error('run the tests with: npm test [-- FILE...]');
  return url;
}

/** Password of the role services log in with. */
export const SERVICE_PASSWORD = 'test';

export type TestDatabase = {
  /** As the owner of everything. */
  url: string;
  /** As the role a serving process has. */
  serviceUrl: string;
  drop(): Promise<void>;
};

/** The address of a database as a serving process is given it. */
export const asService = (url: string): string => withUser(url, EMBEDDED_ROLE, SERVICE_PASSWORD);

/** A database of the test's own. */
export async function makeDatabase(): Promise<TestDatabase> {
  const name = `t_${randomBytes(8).toString('hex')}`;
  const server: Database = openDatabase(serverUrl(), 1, () => {});
  await server.query(`CREATE DATABASE ${name} TEMPLATE ${TEMPLATE}`);
  await server.close();
  const url = serverUrl().replace('/plugin_host?', `/${name}?`);
  return {
    url,
    serviceUrl: asService(url),
    async drop() {
      const again = openDatabase(serverUrl(), 1, () => {});
      await again.query(`DROP DATABASE IF EXISTS ${name} WITH (FORCE)`);
      await again.close();
    },
  };
}

/** A database with nothing in it. */
export async function makeEmptyDatabase(): Promise<Omit<TestDatabase, 'serviceUrl'>> {
  const made = await makeDatabase();
  const name = new URL(made.url).pathname.slice(1);
  const server: Database = openDatabase(serverUrl(), 1, () => {});
  await server.query(`DROP DATABASE ${name}`);
  await server.query(`CREATE DATABASE ${name} TEMPLATE template0`);
  await server.close();
  return made;
}
