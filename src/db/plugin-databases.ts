import { messageOf } from '../base/errors.ts';
import { LIMITS } from '../base/limits.ts';
import type { StoredNames } from './custom-settings.ts';
import type { Queryable } from './database.ts';
import { PluginConnection } from './plugin-connection.ts';

/** Enough connections for the largest number one execution may hold, in every slot of a plugin. */
const CONNECTIONS_MAX = LIMITS.slotsPerPlugin * LIMITS.sqlHandlesPerDatabase;

/** After this time the stored code of a database is read again, because other clients may change it. */
const STORED_NAMES_MS = 60_000;

/** No connection came before the deadline. */
export class NoConnectionInTime extends Error {
  override readonly name = 'NoConnectionInTime';
}

type Waiting = {
  resolve(connection: PluginConnection): void;
  reject(error: unknown): void;
  deadline: number;
  timer: NodeJS.Timeout;
};

/** The connections of one plugin to one of its databases. */
class PluginDatabase {
  readonly url: string;
  #open = 0;
  readonly #idle: Array<{ connection: PluginConnection; since: number }> = [];
  readonly #waiting: Waiting[] = [];
  #isRetired = false;
  #stored: (StoredNames & { at: number }) | null = null;

  constructor(url: string) {
    this.url = url;
  }

  get isUnused(): boolean {
    return this.#open === 0 && this.#waiting.length === 0;
  }

  async take(deadline: number): Promise<PluginConnection> {
    for (;;) {
      const kept = this.#idle.pop();
      if (kept === undefined) break;
      if (!kept.connection.isLost) return kept.connection;
      this.#open--;
    }
    if (this.#open >= CONNECTIONS_MAX) return await this.#wait(deadline);
    this.#open++;
    try {
      const connection = await PluginConnection.open(this.url, Math.max(1, deadline - performance.now()));
      if (this.#currentNames() === null) await this.#readNames(connection, deadline);
      return connection;
    } catch (error) {
      this.#gone();
      throw error;
    }
  }

  #currentNames(): StoredNames | null {
    return this.#stored !== null && performance.now() - this.#stored.at < STORED_NAMES_MS ? this.#stored : null;
  }

  /**
   * If the stored code cannot be read, every session counts as one that may keep a name.
   *
   * @param connection a new one
   * @throws Error when the server stops answering
   */
  async #readNames(connection: PluginConnection, deadline: number): Promise<void> {
    const late = setTimeout(() => connection.destroy(), Math.max(1, deadline - performance.now()));
    const found = await connection.readStoredNames().catch(() => ({ names: [], isOpen: true }));
    clearTimeout(late);
    if (connection.isLost) throw new Error('the database closed the connection');
    this.#stored = { ...found, at: performance.now() };
  }

  /**
   * Whether the reset removed everything an execution left in its session: it removes values, but not the name of a
   * setting with a dot.
   */
  async #isFresh(connection: PluginConnection): Promise<boolean> {
    const stored = this.#currentNames();
    if (connection.mayKeepName || stored === null || stored.isOpen) return false;
    return stored.names.length === 0 || (await connection.listKnown(stored.names)).length === 0;
  }

  #wait(deadline: number): Promise<PluginConnection> {
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => {
        this.#waiting.splice(this.#waiting.indexOf(waiting), 1);
        reject(new NoConnectionInTime(`all ${CONNECTIONS_MAX} connections to this database are in use`));
      }, deadline - performance.now());
      const waiting: Waiting = { resolve, reject, deadline, timer };
      this.#waiting.push(waiting);
    });
  }

  #nextWaiting(): Waiting | undefined {
    const next = this.#waiting.shift();
    if (next !== undefined) clearTimeout(next.timer);
    return next;
  }

  /** Notes that a connection is closed. An execution that waits gets a new one. */
  #gone(): void {
    this.#open--;
    const next = this.#nextWaiting();
    if (next !== undefined) this.take(next.deadline).then(next.resolve, next.reject);
  }

  /** Takes a connection back and resets its session before another execution gets it. */
  async giveBack(connection: PluginConnection): Promise<void> {
    if (connection.isBusy) connection.cancel();
    else if (connection.isCancelled) connection.destroy();
    if (connection.mayChangeCode) this.#stored = null;
    if (!connection.isLost && connection.mayKeepName) await connection.close().catch(() => {});
    if (!connection.isLost) {
      // A server that does not answer must not use up a connection for ever.
      const late = setTimeout(() => connection.destroy(), LIMITS.executionMsMax);
      const isFresh = await connection
        .reset()
        .then(() => this.#isFresh(connection))
        .catch(() => false);
      if (!isFresh) await connection.close().catch(() => {});
      clearTimeout(late);
    }
    if (connection.isLost) return this.#gone();
    if (this.#isRetired) {
      await connection.close().catch(() => {});
      return this.#gone();
    }
    const next = this.#nextWaiting();
    if (next !== undefined) next.resolve(connection);
    else this.#idle.push({ connection, since: performance.now() });
  }

  /** Cancels the statement of an ended execution; the connection is not used again. */
  destroy(connection: PluginConnection): void {
    connection.cancel();
    this.#gone();
  }

  async closeIdle(before: number): Promise<void> {
    const ended = this.#idle.filter(i => i.since < before || i.connection.isLost);
    // Removed from the list before the first await, so that no execution takes a connection that is being closed.
    for (const i of ended) this.#idle.splice(this.#idle.indexOf(i), 1);
    this.#open -= ended.length;
    await Promise.all(ended.map(i => i.connection.close().catch(() => {})));
  }

  /**
   * Lets no execution use these connections again, because the address or the credential has changed. Closes the idle
   * ones at once.
   */
  async retire(): Promise<void> {
    this.#isRetired = true;
    await this.closeIdle(Number.POSITIVE_INFINITY);
  }
}

/** A connection that an execution holds, with the two ways to give it back. */
export type HeldConnection = {
  connection: PluginConnection;
  /** Gives it back for another execution, which gets a fresh session. */
  giveBack(): void;
  /** Cancels its statement and closes it. */
  destroy(): void;
};

/** Connections to the databases of plugins, kept open between executions. */
export class PluginDatabases {
  readonly #databases = new Map<string, PluginDatabase>();
  readonly #returning = new Set<Promise<void>>();
  readonly #timer: NodeJS.Timeout;

  constructor() {
    this.#timer = setInterval(() => void this.#closeIdle(), LIMITS.sqlIdleMs / 4).unref();
  }

  /**
   * @param key names the plugin and the database
   * @param deadline for the connection and for each of its statements, in ms of `performance.now()`
   * @throws NoConnectionInTime; the error of the client library or of the database
   */
  async take(key: string, url: string, deadline: number): Promise<HeldConnection> {
    let database = this.#databases.get(key);
    if (database !== undefined && database.url !== url) {
      void database.retire();
      database = undefined;
    }
    if (database === undefined) {
      database = new PluginDatabase(url);
      this.#databases.set(key, database);
    }
    const from = database;
    const connection = await from.take(deadline);
    connection.begin(deadline);
    // When the execution ends, the connection is closed; the call that waits for it then fails and closes it again.
    let isOver = false;
    const once = (work: () => void) => (): void => {
      if (isOver) return;
      isOver = true;
      work();
    };
    return {
      connection,
      giveBack: once(() => {
        const returned = from.giveBack(connection).finally(() => this.#returning.delete(returned));
        this.#returning.add(returned);
      }),
      destroy: once(() => from.destroy(connection)),
    };
  }

  async #closeIdle(): Promise<void> {
    const before = performance.now() - LIMITS.sqlIdleMs;
    for (const [key, database] of this.#databases) {
      await database.closeIdle(before);
      if (database.isUnused && this.#databases.get(key) === database) this.#databases.delete(key);
    }
  }

  async close(): Promise<void> {
    clearInterval(this.#timer);
    await Promise.all(this.#returning);
    for (const database of this.#databases.values()) await database.retire();
  }
}

export type Connected = { latencyMs: number } & (
  | {
      ok: true;
      server: string;
      database: string;
      user: string;
      isSuperuser: boolean;
      isEncrypted: boolean;
      /** Whether it is the service's own database. */
      isOurs: boolean;
    }
  | { ok: false; code: string; message: string }
);

/**
 * Tests a connection the way a plugin would make it.
 *
 * @param own the service's own database
 * @param url connection string; it never appears in the result
 */
export async function tryConnection(own: Queryable, url: string): Promise<Connected> {
  const began = performance.now();
  const latencyMs = (): number => Math.round(performance.now() - began);
  try {
    const connection = await PluginConnection.open(url, LIMITS.executionMsMax);
    const late = setTimeout(() => connection.destroy(), LIMITS.executionMsMax);
    try {
      const found = await connection.describe();
      const { rows } = await own.query<{ ours: boolean }>(
        `SELECT CASE WHEN has_function_privilege('pg_control_system()', 'execute')
           THEN $1 = (SELECT system_identifier::text FROM pg_control_system()) || '/' || current_database() ELSE false END AS ours`,
        [`${found.systemId}/${found.database}`],
      );
      const { systemId: _, ...told } = found;
      return { ok: true, latencyMs: latencyMs(), isOurs: rows[0]?.ours === true, ...told };
    } finally {
      clearTimeout(late);
      await connection.close();
    }
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : 'unknown';
    return { ok: false, latencyMs: latencyMs(), code, message: messageOf(error) };
  }
}
