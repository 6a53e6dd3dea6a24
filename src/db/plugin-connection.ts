import net from 'node:net';
import { LIMITS } from '../base/limits.ts';
import { listKnown, maySetName, readStoredNames, type StoredNames } from './custom-settings.ts';
import { makePluginClient } from './database.ts';
import { AnswerTooLarge, PageQuery, type SqlPage } from './page-query.ts';

/** Protocol code of a cancel request. */
const CANCEL_CODE = 80_877_102;
/** Time for the server to close its end. */
const CLOSE_MS = 1000;
/** Time for a cancelled statement to end; after it the session is terminated. */
const STUBBORN_MS = 1500;

/** Settings at the start of every execution. A plugin may change them until its execution ends. */
const PREPARE = `SELECT set_config('statement_timeout', '${LIMITS.executionMsMax}', false), set_config('timezone', 'UTC', false)`;
/**
 * Lets the server notice that a host has gone. Needs PostgreSQL 14 or newer and a system that reports closed sockets,
 * like Linux.
 */
const PREPARE_CHECKED = `${PREPARE}, set_config('client_connection_check_interval', '500', false)`;

type DescribedSql = {
  server: string;
  database: string;
  user: string;
  super: boolean;
  encrypted: boolean;
  system_id: string;
};
export type Described = {
  server: string;
  database: string;
  user: string;
  isSuperuser: boolean;
  isEncrypted: boolean;
  systemId: string;
};

/** Process id and secret key of a connection, for a cancel request; the library's type declarations lack them. */
function backendKeyOf(client: object): [number | null, number | null] {
  const of = (name: string): number | null => {
    const value: unknown = Reflect.get(client, name);
    return typeof value === 'number' ? value : null;
  };
  return [of('processID'), of('secretKey')];
}

/** One connection to a database of a plugin; it belongs to one execution at a time. */
export class PluginConnection {
  readonly #client: ReturnType<typeof makePluginClient>;
  readonly #url: string;
  #cursor: PageQuery | null = null;
  #isBusy = false;
  #isLost = false;
  #isCancelled = false;
  /** Bytes received of the current answer. */
  #bytes = 0;
  #isTooLarge = false;
  #mayKeepName = false;
  #mayChangeCode = false;
  #prepareText = PREPARE_CHECKED;
  /** When a statement is cancelled, in ms of `performance.now()`. */
  #until = Number.POSITIVE_INFINITY;

  private constructor(url: string, connectMs: number) {
    this.#url = url;
    this.#client = makePluginClient(url, connectMs, bytes => {
      this.#bytes += bytes;
      if (this.#bytes <= LIMITS.sqlAnswerBytesMax || this.#isTooLarge) return;
      this.#isTooLarge = true;
      this.destroy();
    });
    this.#client.on('error', () => {
      this.#isLost = true;
    });
    this.#client.on('end', () => {
      this.#isLost = true;
    });
  }

  /**
   * @param connectMs time for the whole connection, login included
   * @throws the error of the client library or of the database
   */
  static async open(url: string, connectMs: number): Promise<PluginConnection> {
    const connection = new PluginConnection(url, connectMs);
    let isLate = false;
    const late = setTimeout(() => {
      isLate = true;
      connection.destroy();
    }, connectMs);
    try {
      await connection.#client.connect();
      await connection.#prepare();
      return connection;
    } catch (error) {
      connection.destroy();
      throw isLate ? new Error(`the database did not answer within ${Math.ceil(connectMs)} ms`) : error;
    } finally {
      clearTimeout(late);
    }
  }

  async #prepare(): Promise<void> {
    if (this.#prepareText === PREPARE_CHECKED) {
      const ok = await this.#client.query(PREPARE_CHECKED).then(
        () => true,
        () => false,
      );
      if (ok) return;
      this.#prepareText = PREPARE;
    }
    await this.#client.query(this.#prepareText);
  }

  /** Whether a statement may have given the session a setting with a dot in its name, which no reset removes. */
  get mayKeepName(): boolean {
    return this.#mayKeepName;
  }

  /** Whether a statement may have changed the code stored in the database. */
  get mayChangeCode(): boolean {
    return this.#mayChangeCode;
  }

  #note(text: string): void {
    this.#mayKeepName ||= maySetName(text);
    this.#mayChangeCode ||= /\b(?:create|alter)\b/i.test(text);
  }

  /** Call it before any statement ran in the session. */
  readStoredNames(): Promise<StoredNames> {
    return this.#work(() => readStoredNames(this.#client));
  }

  /** The given names that the session knows, even after a reset. */
  listKnown(names: readonly string[]): Promise<string[]> {
    return this.#work(() => listKnown(this.#client, names));
  }

  /** Begins an execution. @param until when its statements are cancelled, in ms of `performance.now()` */
  begin(until: number): void {
    this.#until = until;
  }

  /** Whether a statement is under way. */
  get isBusy(): boolean {
    return this.#isBusy;
  }

  get isLost(): boolean {
    return this.#isLost;
  }

  async #work<T>(work: () => Promise<T>): Promise<T> {
    this.#bytes = 0;
    this.#isBusy = true;
    const late =
      this.#until === Number.POSITIVE_INFINITY
        ? undefined
        : setTimeout(() => this.#requestCancel(), Math.max(0, this.#until - performance.now()));
    try {
      return await work();
    } catch (error) {
      if (this.#isTooLarge)
        throw new AnswerTooLarge(
          `the database sent more than ${LIMITS.sqlAnswerBytesMax} bytes for one call; ask for fewer rows. The connection was closed`,
        );
      throw error;
    } finally {
      clearTimeout(late);
      this.#isBusy = false;
    }
  }

  /**
   * Runs one statement and reads its first rows; `fetch` reads more.
   *
   * @throws DatabaseError of the client library; AnswerTooLarge
   */
  query(text: string, values: ReadonlyArray<string | Buffer | null>, rowsMax: number): Promise<SqlPage> {
    this.#note(text);
    return this.#work(async () => {
      const query = new PageQuery(text, values, rowsMax);
      const first = query.first();
      this.#client.query(query);
      const page = await first;
      if (page.hasMore) this.#cursor = query;
      return page;
    });
  }

  /** The next rows of the open cursor. */
  fetch(rowsMax: number): Promise<SqlPage> {
    const cursor = this.#cursor;
    if (cursor === null) throw new Error('no cursor is open on this connection');
    return this.#work(async () => {
      this.#cursor = null;
      const page = await cursor.next(rowsMax);
      if (page.hasMore) this.#cursor = cursor;
      return page;
    });
  }

  async closeCursor(): Promise<void> {
    const cursor = this.#cursor;
    if (cursor === null) return;
    this.#cursor = null;
    await this.#work(() => cursor.close());
  }

  /** Runs one statement and discards its rows. @returns how many rows it affected, and the word of its command tag */
  exec(
    text: string,
    values: ReadonlyArray<string | Buffer | null>,
  ): Promise<{ rowsAffected: number; command: string }> {
    this.#note(text);
    return this.#work(async () => {
      const query = new PageQuery(text, values, null);
      const done = query.first();
      this.#client.query(query);
      return await done;
    });
  }

  /** Resets the session, so that nothing an execution left in it reaches the next one. */
  async reset(): Promise<void> {
    this.#until = Number.POSITIVE_INFINITY;
    await this.closeCursor();
    await this.#work(async () => {
      await this.#client.query('ROLLBACK');
      await this.#client.query('DISCARD ALL');
      await this.#prepare();
    });
  }

  /**
   * Facts about the server and the session, for an administrator. `systemId` is empty where the role may not read it.
   */
  async describe(): Promise<Described> {
    const { rows } = await this.#client.query<DescribedSql>(
      `SELECT current_setting('server_version') AS server, current_database() AS database, current_user AS "user",
         coalesce((SELECT rolsuper FROM pg_roles WHERE rolname = current_user), false) AS super,
         coalesce((SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()), false) AS encrypted,
         CASE WHEN has_function_privilege('pg_control_system()', 'execute')
           THEN (SELECT system_identifier::text FROM pg_control_system()) ELSE '' END AS system_id`,
    );
    const [row] = rows;
    if (row === undefined) throw new Error('the database answered nothing');
    const { database, encrypted, server, super: isSuperuser, system_id, user } = row;
    return { server, database, user, isSuperuser, isEncrypted: encrypted, systemId: system_id };
  }

  /** Cancels the running statement and closes the connection. If the statement goes on, terminates its session. */
  cancel(): void {
    this.destroy();
    this.#requestCancel();
    setTimeout(() => void this.#terminate(), STUBBORN_MS).unref();
  }

  /**
   * Terminates the session. A statement that catches its cancellation would run on, and a plugin can switch off the
   * server's own check for a lost client.
   */
  async #terminate(): Promise<void> {
    const [processId] = backendKeyOf(this.#client);
    if (processId === null) return;
    try {
      const other = await PluginConnection.open(this.#url, LIMITS.executionMsMax);
      const late = setTimeout(() => other.destroy(), LIMITS.executionMsMax);
      await other.exec(
        `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
         WHERE pid = $1 AND pid <> pg_backend_pid() AND usename = current_user AND backend_start < now() - interval '1 second'`,
        [String(processId)],
      );
      clearTimeout(late);
      await other.close();
    } catch {
      // The database is unavailable, and its sessions have ended; or it refuses the login now.
    }
  }

  /**
   * Whether a cancel request is under way. It may reach a later statement, which must not belong to another execution.
   */
  get isCancelled(): boolean {
    return this.#isCancelled;
  }

  /**
   * Sends the cancel request on a separate connection, which needs no login (PostgreSQL documentation "Canceling
   * Requests in Progress").
   */
  #requestCancel(): void {
    const { host, port } = this.#client;
    const [processId, secretKey] = backendKeyOf(this.#client);
    this.#isCancelled = true;
    if (processId === null || secretKey === null) return;
    const request = Buffer.alloc(16);
    request.writeInt32BE(16, 0);
    request.writeInt32BE(CANCEL_CODE, 4);
    request.writeInt32BE(processId, 8);
    request.writeInt32BE(secretKey, 12);
    const socket = host.startsWith('/') ? net.connect(`${host}/.s.PGSQL.${port}`) : net.connect(port, host);
    socket.setTimeout(LIMITS.executionMsMax, () => socket.destroy());
    // The server ends the statement at `statement_timeout`, unless the plugin changed that setting.
    socket.on('error', () => {});
    socket.end(request);
  }

  /** Closes the connection at once; a statement that waits for an answer fails. */
  destroy(): void {
    this.#isLost = true;
    this.#client.connection.stream.destroy();
  }

  async close(): Promise<void> {
    this.#isLost = true;
    const late = setTimeout(() => this.destroy(), CLOSE_MS);
    await this.#client.end().finally(() => clearTimeout(late));
  }
}
