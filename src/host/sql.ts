import { Buffer } from 'node:buffer';
import { HOST_ERROR } from '../abi/host-functions.ts';
import { type HostResult, hostError } from '../abi/host-result.ts';
import { messageOf } from '../base/errors.ts';
import { LIMITS } from '../base/limits.ts';
import { isUnavailable } from '../db/database.ts';
import { AnswerTooLarge, type SqlPage } from '../db/page-query.ts';
import { type HeldConnection, NoConnectionInTime, type PluginDatabases } from '../db/plugin-databases.ts';
import { databasesOf } from '../plugins/manifest.ts';
import type { CallEnd, HostArguments, HostHandler, PermittedCall } from './host-functions.ts';
import { Refusal } from './refusal.ts';
import { encodeColumns, encodeRows, parseArguments, type SqlArgument } from './sql-values.ts';

/**
 * Databases of a plugin (permission `sql`, docs/abi.md), by logical name. Each execution gets fresh sessions. When an
 * execution ends, its open connections are taken back and its running statements are cancelled.
 */

type Handle = {
  kind: 'handle';
  name: string;
  held: HeldConnection;
  atEnd: (how: CallEnd) => void;
  transaction: number | null;
  cursor: number | null;
};
type Transaction = { kind: 'transaction'; handle: Handle };
type OpenCursor = { kind: 'cursor'; handle: Handle; columns: SqlPage['columns'] };
type Opened = Handle | Transaction | OpenCursor;

/** The open handles, transactions and cursors of one execution, by number. */
class SqlSession {
  readonly opened = new Map<number, Opened>();
  #last = 0;

  add(what: Opened): number {
    this.opened.set(++this.#last, what);
    return this.#last;
  }

  handles(): Handle[] {
    return [...this.opened.values()].filter(o => o.kind === 'handle');
  }

  /** Removes a handle with its transaction and cursor. */
  forget(handle: Handle): void {
    for (const [id, o] of this.opened)
      if (o === handle || (o.kind !== 'handle' && o.handle === handle)) this.opened.delete(id);
  }
}

/**
 * Conditions in which another attempt or another value may succeed: unique violations, serialization failures,
 * deadlocks, locks.
 */
const CONFLICT = /^(23505|23P01|40\w{3}|55P03)$/;

/** A statement that changes something in a transaction that only reads. */
const READ_ONLY = '25006';

/** The result for an error of the database: the SQLSTATE first, and the position in the statement. */
function refusalOf(error: unknown, isConnecting: boolean): HostResult {
  if (error instanceof Refusal) return hostError(error.code, error.message);
  if (error instanceof AnswerTooLarge) return hostError(HOST_ERROR.tooLarge, error.message);
  if (error instanceof NoConnectionInTime) return hostError(HOST_ERROR.deadline, error.message);
  const state = error instanceof Error && 'code' in error ? String(error.code) : '';
  const isState = /^[0-9A-Z]{5}$/.test(state) && error instanceof Error && 'severity' in error;
  // The plugin may have asked for it; else this is a replica, and the primary may be back for another attempt.
  if (isState && state === READ_ONLY) return hostError(HOST_ERROR.unavailable, `${state}: ${error.message}`);
  // Names of servers and roles are not shown to plugins; the administrator finds them in the log.
  if (isConnecting || !isState || isUnavailable(error))
    return hostError(
      HOST_ERROR.unavailable,
      `${isState ? `${state}: ` : ''}the database ${isConnecting ? 'cannot be reached' : 'has closed the connection'}`,
    );
  // The server's message is about its protocol and does not say what to do.
  if (state === '42601' && /multiple commands/.test(error.message))
    return hostError(HOST_ERROR.invalid, '42601: the text contains several statements; send each in a separate call');
  // It says "due to user request", and no user asked for it.
  if (state === '57014' && /user request/.test(error.message))
    return hostError(HOST_ERROR.deadline, '57014: the statement was ended at the deadline of the execution');
  const position = 'position' in error && error.position !== undefined ? ` (position ${error.position})` : '';
  const constraint = 'constraint' in error && error.constraint !== undefined ? ` (constraint ${error.constraint})` : '';
  const text = `${state}: ${error.message}${position}${constraint}`;
  const code =
    state === '57014' ? HOST_ERROR.deadline : CONFLICT.test(state) ? HOST_ERROR.conflict : HOST_ERROR.invalid;
  return hostError(code, text);
}

const json = (data: string): HostResult => ({ code: Buffer.byteLength(data), data });

function rowsMaxOf(args: HostArguments, k: number): number {
  const n = args.int(k);
  if (n < 0) throw new Refusal(HOST_ERROR.invalid, 'the number of rows is below zero');
  return n === 0 ? LIMITS.sqlRowsDefault : Math.min(n, LIMITS.sqlRowsMax);
}

function argumentsOf(text: string): SqlArgument[] {
  try {
    return parseArguments(text);
  } catch (error) {
    throw new Refusal(HOST_ERROR.invalid, messageOf(error));
  }
}

type SqlName =
  | 'sql_open'
  | 'sql_query'
  | 'sql_fetch'
  | 'sql_exec'
  | 'sql_begin'
  | 'sql_commit'
  | 'sql_rollback'
  | 'sql_close';

/**
 * @param onUnreachable called, for the log, when a connection cannot be made
 */
export function sqlHandlers(
  databases: PluginDatabases,
  onUnreachable: (plugin: string, database: string, error: unknown) => void,
): Record<SqlName, HostHandler> {
  const sessions = new WeakMap<PermittedCall, SqlSession>();

  const sessionOf = (call: PermittedCall): SqlSession => {
    const known = sessions.get(call);
    if (known !== undefined) return known;
    const session = new SqlSession();
    sessions.set(call, session);
    return session;
  };

  const open = async (call: PermittedCall, name: string): Promise<HostResult> => {
    if (!databasesOf(call.plugin.manifest).includes(name)) return hostError(HOST_ERROR.denied);
    const url = call.plugin.databases[name];
    if (url === undefined)
      return hostError(HOST_ERROR.notFound, `no connection string is set for the database "${name}"`);
    const session = sessionOf(call);
    if (session.handles().filter(h => h.name === name).length >= LIMITS.sqlHandlesPerDatabase)
      return hostError(
        HOST_ERROR.tooLarge,
        `${LIMITS.sqlHandlesPerDatabase} handles of database "${name}" are open in this execution; close one of them`,
      );
    if (session.opened.size >= LIMITS.sqlOpenMax)
      return hostError(
        HOST_ERROR.tooLarge,
        `${LIMITS.sqlOpenMax} handles, transactions and cursors are open in this execution; close one of them`,
      );
    let held: HeldConnection;
    try {
      held = await databases.take(`${call.plugin.id}/${name}`, url, call.deadline - LIMITS.answerMarginMs);
    } catch (error) {
      onUnreachable(call.plugin.id, name, error);
      return refusalOf(error, true);
    }
    const atEnd = (how: CallEnd): void => (how === 'killed' ? held.destroy() : held.giveBack());
    const handle: Handle = { kind: 'handle', name, held, atEnd, transaction: null, cursor: null };
    const id = session.add(handle);
    // Runs at once if the execution has ended meanwhile.
    call.atEnd(handle.atEnd);
    return { code: id };
  };

  /** The connection for a statement; refused while a cursor or transaction blocks it. */
  const handleFor = (session: SqlSession, id: number): Handle => {
    const target = session.opened.get(id);
    if (target === undefined || target.kind === 'cursor')
      throw new Refusal(HOST_ERROR.notFound, `${id} is not an open handle or transaction of this execution`);
    const handle = target.kind === 'handle' ? target : target.handle;
    if (target.kind === 'handle' && handle.transaction !== null)
      throw new Refusal(
        HOST_ERROR.conflict,
        `transaction ${handle.transaction} is open on handle ${id}: use its number, end it, or open another handle`,
      );
    if (handle.cursor !== null)
      throw new Refusal(
        HOST_ERROR.conflict,
        `cursor ${handle.cursor} is open on this connection: fetch its rows to the end or close it`,
      );
    return handle;
  };

  const transactionOf = (session: SqlSession, id: number): Transaction => {
    const target = session.opened.get(id);
    if (target?.kind !== 'transaction')
      throw new Refusal(HOST_ERROR.notFound, `${id} is not an open transaction of this execution`);
    return target;
  };

  /** Turns every error into a result. Removes the handle of a lost connection. */
  const guarded =
    (work: (session: SqlSession, args: HostArguments, call: PermittedCall) => Promise<HostResult>): HostHandler =>
    async (call, args) => {
      const session = sessionOf(call);
      try {
        return await work(session, args, call);
      } catch (error) {
        for (const handle of session.handles())
          if (handle.held.connection.isLost) {
            session.forget(handle);
            call.notAtEnd(handle.atEnd);
            handle.held.destroy();
          }
        return refusalOf(error, false);
      }
    };

  const end = async (session: SqlSession, id: number, statement: 'COMMIT' | 'ROLLBACK'): Promise<HostResult> => {
    const { handle } = transactionOf(session, id);
    if (handle.cursor !== null) {
      session.opened.delete(handle.cursor);
      handle.cursor = null;
      await handle.held.connection.closeCursor();
    }
    session.opened.delete(id);
    handle.transaction = null;
    const { command } = await handle.held.connection.exec(statement, []);
    return statement === 'COMMIT' && command === 'ROLLBACK'
      ? hostError(HOST_ERROR.conflict, '25P02: a statement of the transaction had failed, so it was rolled back')
      : { code: 0 };
  };

  return {
    sql_open: guarded((_, args, call) => open(call, args.text(0) === '' ? 'default' : args.text(0))),
    sql_query: guarded(async (session, args) => {
      const handle = handleFor(session, args.int(0));
      const rowsMax = rowsMaxOf(args, 3);
      const page = await handle.held.connection.query(args.text(1), argumentsOf(args.text(2)), rowsMax);
      const { columns } = page;
      if (page.hasMore) handle.cursor = session.add({ kind: 'cursor', handle, columns });
      return json(
        `{"columns":${encodeColumns(columns)},"rows":${encodeRows(columns, page.rows)},"cursor":${handle.cursor ?? 'null'}}`,
      );
    }),
    sql_fetch: guarded(async (session, args) => {
      const id = args.int(0);
      const cursor = session.opened.get(id);
      if (cursor?.kind !== 'cursor')
        throw new Refusal(HOST_ERROR.notFound, `${id} is not an open cursor of this execution`);
      const { handle } = cursor;
      const rowsMax = rowsMaxOf(args, 1);
      let page: SqlPage | null = null;
      try {
        page = await handle.held.connection.fetch(rowsMax);
      } finally {
        if (page?.hasMore !== true) {
          session.opened.delete(id);
          handle.cursor = null;
        }
      }
      return json(`{"rows":${encodeRows(cursor.columns, page.rows)},"cursor":${handle.cursor ?? 'null'}}`);
    }),
    sql_exec: guarded(async (session, args) => {
      const handle = handleFor(session, args.int(0));
      const { rowsAffected } = await handle.held.connection.exec(args.text(1), argumentsOf(args.text(2)));
      return json(`{"rows_affected":${rowsAffected}}`);
    }),
    sql_begin: guarded(async (session, args) => {
      const id = args.int(0);
      if (session.opened.get(id)?.kind === 'transaction')
        throw new Refusal(HOST_ERROR.conflict, `${id} is a transaction; nested transactions are not supported`);
      const handle = handleFor(session, id);
      await handle.held.connection.exec('BEGIN', []);
      handle.transaction = session.add({ kind: 'transaction', handle });
      return { code: handle.transaction };
    }),
    sql_commit: guarded((session, args) => end(session, args.int(0), 'COMMIT')),
    sql_rollback: guarded((session, args) => end(session, args.int(0), 'ROLLBACK')),
    sql_close: guarded(async (session, args, call) => {
      const id = args.int(0);
      const target = session.opened.get(id);
      if (target === undefined) throw new Refusal(HOST_ERROR.notFound, `${id} is not open in this execution`);
      if (target.kind === 'transaction') return await end(session, id, 'ROLLBACK');
      if (target.kind === 'cursor') {
        session.opened.delete(id);
        target.handle.cursor = null;
        await target.handle.held.connection.closeCursor();
        return { code: 0 };
      }
      if (target.cursor !== null) await target.held.connection.closeCursor();
      session.forget(target);
      call.notAtEnd(target.atEnd);
      target.held.giveBack();
      return { code: 0 };
    }),
  };
}
