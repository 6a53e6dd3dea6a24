import type { Duplex } from 'node:stream';
import pg from 'pg';
import { messageOf } from '../base/errors.ts';
import { parseExactJson } from '../base/exact-json.ts';

export type Queryable = {
  query<R extends pg.QueryResultRow>(query: string | pg.QueryConfig, values?: unknown[]): Promise<pg.QueryResult<R>>;
};

/** int8 columns arrive as bigint-safe strings by default; row parsers decide what they become. */
export type Database = {
  pool: pg.Pool;
  query: Queryable['query'];
  withTransaction<T>(work: (client: Queryable) => Promise<T>): Promise<T>;
  /**
   * Call when connections may be dead without having been closed. Replaces idle connections at once, and connections in
   * use when they are not returned within ten seconds.
   */
  distrustConnections(): void;
  close(): Promise<void>;
};

const [INT8_OID, JSON_OID, JSONB_OID] = [20, 114, 3802];

/** Readers of columns for a query whose JSON keeps the digits of its numbers (base/exact-json.ts). */
export const EXACT_JSON_TYPES: pg.CustomTypesConfig = {
  getTypeParser: (oid, format) =>
    oid === JSON_OID || oid === JSONB_OID ? parseExactJson : pg.types.getTypeParser(oid, format),
};

/** @throws Error for an integer that a number cannot hold: no id and no count of ours is that large */
function readInt8(text: string): number {
  const value = Number(text);
  if (!Number.isSafeInteger(value)) throw new Error(`bug: the integer ${text} is read as a number`);
  return value;
}

/** Readers of columns for a query whose int8 are numbers. */
export const INT8_AS_NUMBER: pg.CustomTypesConfig = {
  getTypeParser: (oid, format) => (oid === INT8_OID ? readInt8 : pg.types.getTypeParser(oid, format)),
};

/** How long a connection that may be dead can stay in use. */
const DISTRUSTED_MS = 10_000;

/** Closes a connection without telling the server, which may not answer any more. */
export function cutConnection(client: pg.ClientBase): void {
  if (client instanceof pg.Client) client.connection.stream.destroy();
}

/**
 * Opens the pool of the service's own database.
 *
 * @param url connection string
 * @param size connections at most
 * @param onError called with errors of idle connections, which the pool replaces
 */
export function openDatabase(url: string, size: number, onError: (error: Error) => void): Database {
  const pool = new pg.Pool({
    connectionString: url,
    max: size,
    connectionTimeoutMillis: 10_000,
    idleTimeoutMillis: 60_000,
    application_name: 'plugin-host',
    // Another style, which a server may be set to, would be read as no time at all. The pool waits for it.
    onConnect: client => client.query('SET datestyle TO ISO'),
  });
  pool.on('error', onError);
  /** The connections, each with how often it was taken and given back: odd while it is in use. */
  const changes = new Map<pg.PoolClient, number>();
  const change = (client: pg.PoolClient): void => void changes.set(client, (changes.get(client) ?? 0) + 1);
  pool.on('acquire', change);
  pool.on('release', (_error, client) => change(client));
  pool.on('remove', client => changes.delete(client));
  const query: Queryable['query'] = (text, values) => pool.query(text, values);
  return {
    pool,
    query,
    distrustConnections() {
      const busy = [...changes].filter(([, count]) => count % 2 === 1);
      for (const [client, count] of changes) if (count % 2 === 0) cutConnection(client);
      setTimeout(() => {
        for (const [client, count] of busy) if (changes.get(client) === count) cutConnection(client);
      }, DISTRUSTED_MS).unref();
    },
    async withTransaction(work) {
      const client = await pool.connect();
      let broken: Error | undefined;
      // A connection lost between two queries is reported only here; without a listener the error would end the
      // process.
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

/**
 * Error codes of the system and of PostgreSQL (appendix A) that say the server cannot be reached, or ended the
 * connection.
 */
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

/** Errors of the client library that have no code. */
const UNAVAILABLE_TEXT =
  /Connection terminated|Client has encountered a connection error|Client was closed|connection timeout|timeout exceeded when trying to connect|timeout expired|Query read timeout|Cannot use a pool after calling end/i;

/** Whether an error means that the database cannot be reached or refuses to serve, rather than a fault of the query. */
export function isUnavailable(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  const code = 'code' in error ? String(error.code) : '';
  // Class 08 are connection exceptions. But 08P01 can also come on a connection that stays open, for a wrong number of
  // values.
  if (code === '08P01') return 'severity' in error && error.severity === 'FATAL';
  if (UNAVAILABLE_CODES.has(code) || /^08...$/.test(code)) return true;
  // A server on this machine that is still starting has no socket yet.
  if (code === 'ENOENT' && 'syscall' in error && error.syscall === 'connect') return true;
  if (error instanceof AggregateError && error.errors.some(isUnavailable)) return true;
  return UNAVAILABLE_TEXT.test(error.message);
}

/** Names of the built-in types by OID, and the element types of lists. */
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

/** The name of a column's type; `other` for a type that is not built in, whose values are passed on as text. */
export function columnTypeOf(oid: number): ColumnType {
  const element = LIST_OF.get(oid);
  if (element !== undefined) return { name: `${TYPE_NAMES.get(element) ?? 'other'}[]`, elementOid: element };
  return { name: TYPE_NAMES.get(oid) ?? 'other', elementOid: null };
}

/**
 * A connection to a database of a plugin, separate from the service's pool. On bytes that no PostgreSQL server sends,
 * the client library throws inside a socket listener, which would end the process; here such an error closes the
 * connection instead.
 *
 * @param onData called with the number of bytes that arrived, before they are parsed
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

/** Application name of such connections; a running service has at least one. */
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
