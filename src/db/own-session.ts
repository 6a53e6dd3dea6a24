import { OperatorError } from '../base/errors.ts';
import { cutConnection, makeClient } from './database.ts';

/** Sessions in a transaction at a time, next to the one that is looked at. */
const OTHERS = 3;
const LATE_MS = 10_000;

type Client = ReturnType<typeof makeClient>;

async function backendOf(client: Client): Promise<number> {
  const { rows } = await client.query<{ pid: number }>('SELECT pg_backend_pid() AS pid');
  return rows[0]?.pid ?? 0;
}

/**
 * Makes sure that a connection to the database is one session, from its beginning to its end. A pooler in transaction mode gives each
 * transaction the session that is free: LISTEN and locks would be another client's, and a revocation would be heard late or never.
 *
 * @throws OperatorError that says what to change
 */
export async function assertOwnSession(url: string): Promise<void> {
  const clients = Array.from({ length: OTHERS + 1 }, () => makeClient(url));
  const late = setTimeout(() => clients.map(cutConnection), LATE_MS);
  try {
    const [own, ...others] = clients as [Client, ...Client[]];
    for (const client of clients) client.on('error', () => {});
    await own.connect();
    const pid = await backendOf(own);
    for (const other of others) {
      await other.connect();
      // It keeps its session until the end, so that a pooler gives the first connection another one, if it shares them.
      await other.query('BEGIN');
      if ((await backendOf(other)) === pid || (await backendOf(own)) !== pid) throw shared();
    }
  } finally {
    clearTimeout(late);
    await Promise.all(clients.map(client => client.end().catch(() => {})));
  }
}

const shared = (): OperatorError =>
  new OperatorError(
    'database.url leads to a pooler in transaction mode, where a connection is not one session: the service would not hear what other hosts change. Use its session mode (pool_mode = session of PgBouncer), or the address of PostgreSQL itself',
  );
