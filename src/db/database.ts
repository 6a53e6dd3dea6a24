import pg from 'pg';

export type Queryable = {
  query<R extends pg.QueryResultRow>(query: string | pg.QueryConfig, values?: unknown[]): Promise<pg.QueryResult<R>>;
};

/** int8 columns arrive as bigint-safe strings by default; row parsers decide what they become. */
export type Database = {
  pool: pg.Pool;
  query: Queryable['query'];
  withTransaction<T>(work: (client: Queryable) => Promise<T>): Promise<T>;
  close(): Promise<void>;
};

/**
 * Opens the pool of the service's own database.
 *
 * @param url connection string
 * @param size connections at most
 * @param onError told of errors on idle connections, which the pool replaces by itself
 */
export function openDatabase(url: string, size: number, onError: (error: Error) => void): Database {
  const pool = new pg.Pool({
    connectionString: url,
    max: size,
    connectionTimeoutMillis: 10_000,
    idleTimeoutMillis: 60_000,
    application_name: 'plugin-host',
  });
  pool.on('error', onError);
  const query: Queryable['query'] = (text, values) => pool.query(text, values);
  return {
    pool,
    query,
    async withTransaction(work) {
      const client = await pool.connect();
      let broken: Error | undefined;
      // A connection lost between two queries is reported here alone; unheard, it would end the process.
      const lost = (error: Error): void => {
        broken = error;
      };
      client.on('error', lost);
      try {
        await client.query('BEGIN');
        const result = await work({ query: (text, values) => client.query(text, values) });
        await client.query('COMMIT');
        return result;
      } catch (error) {
        await client.query('ROLLBACK').catch((e: Error) => {
          broken = e;
        });
        throw error;
      } finally {
        client.off('error', lost);
        client.release(broken);
      }
    },
    close: () => pool.end(),
  };
}

/** Whether an error means that the database cannot be reached or refuses to serve, rather than a fault of the query. */
export function isUnavailable(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  const code = 'code' in error ? String(error.code) : '';
  return (
    [
      'ECONNREFUSED',
      'ECONNRESET',
      'ENOTFOUND',
      'ETIMEDOUT',
      'EPIPE',
      'EHOSTUNREACH',
      '57P01',
      '57P02',
      '57P03',
      '53300',
      '08006',
      '08001',
      '08003',
    ].includes(code) ||
    /Connection terminated|timeout exceeded when trying to connect|Client was closed/.test(error.message)
  );
}

/** One dedicated connection that is not in the pool, for LISTEN. */
export function makeClient(url: string): pg.Client {
  return new pg.Client({
    connectionString: url,
    application_name: 'plugin-host listener',
    connectionTimeoutMillis: 10_000,
    keepAlive: true,
  });
}
