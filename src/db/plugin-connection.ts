import net from 'node:net';
import { LIMITS } from '../base/limits.ts';
import { listKnown, maySetName, readStoredNames, type StoredNames } from './custom-settings.ts';
import { makePluginClient } from './database.ts';
import { AnswerTooLarge, PageQuery, type SqlPage } from './page-query.ts';

/** Protocol code of a cancel request. */
const CANCEL_CODE = 80_877_102;
/** For the server to close its end. */
const CLOSE_MS = 1000;
/** For a cancelled statement to end; the session of one that has not is ended. */
const STUBBORN_MS = 1500;

/** Settings every execution begins with; what a plugin changes of them lasts until its execution ends. */
const PREPARE = `SELECT set_config('statement_timeout', '${LIMITS.executionMsMax}', false), set_config('timezone', 'UTC', false)`;
/** Lets the server notice that a host is gone: PostgreSQL 14 and newer, on Linux and where else a socket tells it. */
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

/** What names a connection to its server; the client library keeps it without saying so in its types. */
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
  /** Bytes of the answer that comes in. */
  #bytes = 0;
  #isTooLarge = false;
  #mayKeepName = false;
  #mayChangeCode = false;
  #prepareText = PREPARE_CHECKED;
  /** When a statement is ended, in ms of `performance.now()`. */
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
   * @param connectMs bounds all of it
   * @throws what the client library or the database says
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

  /** Whether a statement may have given the session a setting with a dot in its name, which no reset takes away. */
  get mayKeepName(): boolean {
    return this.#mayKeepName;
  }

  /** Whether a statement may have changed what is stored in the database as code. */
  get mayChangeCode(): boolean {
    return this.#mayChangeCode;
  }

  #note(text: string): void {
    this.#mayKeepName ||= maySetName(text);
    this.#mayChangeCode ||= /\b(?:create|alter)\b/i.test(text);
  }

  /** To be called before anything ran in the session. */
  readStoredNames(): Promise<StoredNames> {
    return this.#work(() => readStoredNames(this.#client));
  }

  /** Those of the names the session knows, also behind a reset. */
  listKnown(names: readonly string[]): Promise<string[]> {
    return this.#work(() => listKnown(this.#client, names));
  }

  /** Begins an execution. @param until when its statements are ended, in ms of `performance.now()` */
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
   * Runs one statement and reads its first rows. When there are more, they are read with `fetch`.
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

  /** Further rows of the open cursor. */
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

  /** Runs one statement whose rows are not wanted. @returns how many it affected, and the word of its command tag */
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

  /** Takes away all that an execution may have left in the session, so that the next one finds a fresh one. */
  async reset(): Promise<void> {
    this.#until = Number.POSITIVE_INFINITY;
    await this.closeCursor();
    await this.#work(async () => {
      await this.#client.query('ROLLBACK');
      await this.#client.query('DISCARD ALL');
      await this.#prepare();
    });
  }

  /** What the server says of itself and of us, for an administrator. `systemId` is empty where the role may not know it. */
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

  /** Asks the server to end the statement it is at, and gives the connection up. A statement that survives that is terminated. */
  cancel(): void {
    this.destroy();
    this.#requestCancel();
    setTimeout(() => void this.#terminate(), STUBBORN_MS).unref();
  }

  /** What catches its cancellation runs on, and looks for its client only as long as the plugin has left that setting alone. */
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
      // The database is away, and its sessions with it; or it lets us in no more.
    }
  }

  /** Whether a request to end a statement is on its way: it may meet a later one, which must not be that of another execution. */
  get isCancelled(): boolean {
    return this.#isCancelled;
  }

  /**
   * The request travels on a connection of its own, which the server takes before any login (PostgreSQL documentation "Canceling Requests
   * in Progress").
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
    // The server ends the statement by itself at `statement_timeout`, if the plugin left it.
    socket.on('error', () => {});
    socket.end(request);
  }

  /** Gives the connection up as it is; what waits for an answer fails. */
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
