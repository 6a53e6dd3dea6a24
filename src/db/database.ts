import type { Duplex } from 'node:stream';
import pg from 'pg';
import { messageOf } from '../base/errors.ts';

export type Queryable = {
  query<R extends pg.QueryResultRow>(query: string | pg.QueryConfig, values?: unknown[]): Promise<pg.QueryResult<R>>;
};

/** int8 columns arrive as bigint-safe strings by default; row parsers decide what they become. */
export type Database = {
  pool: pg.Pool;
  query: Queryable['query'];
  withTransaction<T>(work: (client: Queryable) => Promise<T>): Promise<T>;
  /**
   * Connections opened until now may be dead without a close: idle ones are replaced at once, and those in use when they
   * have not come back after ten seconds.
   */
  distrustConnections(): void;
  close(): Promise<void>;
};

/** How long a connection that may be dead can go on with what it does. */
const DISTRUSTED_MS = 10_000;

/** Ends a connection without a word to the server, which may not answer any more. */
export function cutConnection(client: pg.ClientBase): void {
  if (client instanceof pg.Client) client.connection.stream.destroy();
}

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
  const idle = new Set<pg.PoolClient>();
  /** Connections in use, each with the number of its use. */
  const inUse = new Map<pg.PoolClient, number>();
  let uses = 0;
  pool.on('acquire', client => {
    idle.delete(client);
    inUse.set(client, uses++);
  });
  pool.on('release', (_error, client) => {
    inUse.delete(client);
    idle.add(client);
  });
  pool.on('remove', client => {
    inUse.delete(client);
    idle.delete(client);
  });
  const query: Queryable['query'] = (text, values) => pool.query(text, values);
  return {
    pool,
    query,
    distrustConnections() {
      for (const client of idle) cutConnection(client);
      const busy = [...inUse];
      setTimeout(() => {
        for (const [client, use] of busy) if (inUse.get(client) === use) cutConnection(client);
      }, DISTRUSTED_MS).unref();
    },
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

/** Error codes of the system and of PostgreSQL (appendix A) that say the server cannot be reached, or ended the connection. */
const UNAVAILABLE_CODES: ReadonlySet<string> = new Set([
  ...['ECONNREFUSED', 'ECONNRESET', 'ECONNABORTED', 'ENOTFOUND', 'EAI_AGAIN', 'ETIMEDOUT', 'EPIPE'],
  ...['EHOSTUNREACH', 'EHOSTDOWN', 'ENETUNREACH', 'ENETDOWN'],
  // admin_shutdown, crash_shutdown, cannot_connect_now, database_dropped, idle_session_timeout
  ...['57P01', '57P02', '57P03', '57P04', '57P05'],
  // too_many_connections; idle_in_transaction_session_timeout, transaction_timeout
  ...['53300', '25P03', '25P04'],
  // read_only_sql_transaction: a failover is under way, and this is the replica.
  '25006',
]);

/** What the client library says without a code. */
const UNAVAILABLE_TEXT =
  /Connection terminated|Client has encountered a connection error|Client was closed|connection timeout|timeout exceeded when trying to connect|timeout expired|Query read timeout|Cannot use a pool after calling end/i;

/** Whether an error means that the database cannot be reached or refuses to serve, rather than a fault of the query. */
export function isUnavailable(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  const code = 'code' in error ? String(error.code) : '';
  // Class 08 are connection exceptions, but for 08P01 of a connection that goes on: a wrong number of values, say.
  if (code === '08P01') return 'severity' in error && error.severity === 'FATAL';
  if (UNAVAILABLE_CODES.has(code) || /^08...$/.test(code)) return true;
  // The socket of a server on this machine, which is starting.
  if (code === 'ENOENT' && 'syscall' in error && error.syscall === 'connect') return true;
  if (error instanceof AggregateError && error.errors.some(isUnavailable)) return true;
  return UNAVAILABLE_TEXT.test(error.message);
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

/** Name of such connections at the server; a service that runs has one. */
export const LISTENER_NAME = 'plugin-host listener';

/** One dedicated connection that is not in the pool, for LISTEN. */
export function makeClient(url: string): pg.Client {
  return new pg.Client({
    connectionString: url,
    application_name: LISTENER_NAME,
    connectionTimeoutMillis: 10_000,
    keepAlive: true,
  });
}
