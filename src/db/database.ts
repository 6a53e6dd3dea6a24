import type { Duplex } from 'node:stream';
import pg from 'pg';
import { messageOf } from '../errors.ts';

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

/** Names of the types that are built in, by their OID, and what a list of each consists of. */
const TYPE_NAMES = new Map(Object.entries(pg.types.builtins).map(([name, oid]) => [Number(oid), name.toLowerCase()]));
const LIST_OF = new Map<number, number>([
  [1000, 16],
  [1001, 17],
  [1005, 21],
  [1007, 23],
  [1016, 20],
  [1009, 25],
  [1015, 1043],
  [1014, 1042],
  [1021, 700],
  [1022, 701],
  [1231, 1700],
  [1115, 1114],
  [1185, 1184],
  [1182, 1082],
  [2951, 2950],
  [199, 114],
  [3807, 3802],
]);

export type ColumnType = { name: string; elementOid: number | null };

/** What a column's type is called; `other` for what is not built in, whose values are text. */
export function columnTypeOf(oid: number): ColumnType {
  const element = LIST_OF.get(oid);
  if (element !== undefined) return { name: `${TYPE_NAMES.get(element) ?? 'other'}[]`, elementOid: element };
  return { name: TYPE_NAMES.get(oid) ?? 'other', elementOid: null };
}

/**
 * A connection to a database of a plugin: of its own, with nothing of the service's. The client library throws where it reads what no
 * PostgreSQL server sends, and thrown in a listener of the socket that would end the process: here it ends the connection.
 *
 * @param onData told how many bytes have come, before they are read
 */
export function makePluginClient(url: string, connectMs: number, onData: (bytes: number) => void): pg.Client {
  const client = new pg.Client({
    connectionString: url,
    application_name: 'plugin-host plugin',
    connectionTimeoutMillis: Math.max(1, Math.ceil(connectMs)),
    keepAlive: true,
  });
  const attach: unknown = Reflect.get(client.connection, 'attachListeners');
  if (typeof attach !== 'function') throw new Error('the client library has no attachListeners any more');
  Reflect.set(client.connection, 'attachListeners', (stream: Duplex) => {
    Reflect.apply(attach, client.connection, [stream]);
    const listeners = stream.listeners('data');
    stream.on('data', (chunk: Uint8Array) => {
      try {
        onData(chunk.length);
        for (const listener of listeners) if (!stream.destroyed) Reflect.apply(listener, stream, [chunk]);
      } catch (error) {
        stream.destroy(error instanceof Error ? error : new Error(messageOf(error)));
      }
    });
    for (const listener of listeners) stream.off('data', listener as (chunk: Uint8Array) => void);
  });
  return client;
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
