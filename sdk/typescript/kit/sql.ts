import { exactJSON } from './exact-json.ts';
import { bytesOf, checked, parked, parkedText, toJSON } from './host.ts';
import * as raw from './host-functions.js';

/** What stands for `$1`, `$2` ... of a statement. An object is a document for a column of type `json` or `jsonb`. */
export type SQLArgument = null | boolean | number | bigint | string | Date | Uint8Array | SQLArgument[] | object;

/**
 * A value of a row: `int8` is a `bigint`, `numeric` a string with all digits, `bytea` a `Uint8Array`, times are text
 * (RFC 3339), `json` is the value itself, in which whole numbers beyond 2^53 are a `bigint`.
 */
// biome-ignore lint/suspicious/noExplicitAny: the column of the database says what it is.
export type SQLValue = any;

/** A row, by the names of its columns. */
export type Row = Record<string, SQLValue>;

type Column = { name: string; type: string };
type Page = { columns: Column[]; rows: SQLValue[][]; cursor: number | null };

function wireValue(value: SQLArgument): unknown {
  if (value === null || value === undefined) return null;
  if (typeof value === 'number') return Number.isFinite(value) ? value : String(value);
  if (typeof value !== 'object') return value;
  if (value instanceof Date) return value.toISOString();
  const bytes = bytesOf(value);
  if (bytes !== null) return { base64: bytes.toBase64() };
  if (Array.isArray(value)) return { array: value.map(wireValue) };
  return { json: value };
}

const argumentsOf = (values: readonly SQLArgument[]): string => toJSON(values.map(wireValue));

const bigintOf = (value: SQLValue): bigint => BigInt(value);
/** Numbers of a page that is read exactly are a `bigint` also where the column has fractions. */
const numberOf = (value: SQLValue): SQLValue => (typeof value === 'bigint' ? Number(value) : value);

/** How values of a type are read that JSON has in another form. Lists of any depth have the type of their items. */
const READERS: Readonly<Record<string, (value: SQLValue) => SQLValue>> = {
  int8: bigintOf,
  bytea: (value: string) => Uint8Array.fromBase64(value),
  float4: numberOf,
  float8: numberOf,
};

function read(value: SQLValue, reader: (value: SQLValue) => SQLValue): SQLValue {
  if (value === null) return null;
  return Array.isArray(value) ? value.map(v => read(v, reader)) : reader(value);
}

/** Reads a page; `columns` stands on the first one alone. */
function readPage(text: string, known: Column[] | null): Page {
  const page: Page = exactJSON(text);
  const columns = page.columns ?? known ?? [];
  columns.forEach(({ type }, k) => {
    const reader = READERS[type.replace(/(\[\])+$/, '')];
    if (reader !== undefined) for (const row of page.rows) row[k] = read(row[k], reader);
  });
  return { ...page, columns };
}

/** The rows of a statement. Further pages are fetched as they are asked for. */
export class Rows<T extends Row = Row> implements Iterable<T> {
  readonly columns: readonly Column[];
  #rows: SQLValue[][];
  #at = 0;
  #cursor: number | null;
  readonly #pageRows: number;

  constructor(first: Page, pageRows: number) {
    this.columns = first.columns;
    this.#rows = first.rows;
    this.#cursor = first.cursor;
    this.#pageRows = pageRows;
  }
  /** The next row; null behind the last one. @throws HostError */
  Next(): T | null {
    while (this.#at >= this.#rows.length) {
      if (this.#cursor === null) return null;
      const page = readPage(parkedText(raw.sql_fetch(this.#cursor, this.#pageRows)), [...this.columns]);
      this.#rows = page.rows;
      this.#cursor = page.cursor;
      this.#at = 0;
    }
    const row = this.#rows[this.#at++] ?? [];
    return Object.fromEntries(this.columns.map((c, k) => [c.name, row[k]])) as T;
  }
  /** All rows that are left. */
  All(): T[] {
    return [...this];
  }
  /** In JSON the rows that are left stand as a list. */
  toJSON(): T[] {
    return this.All();
  }
  /** Gives the connection back to other statements before the last row. */
  Close(): void {
    if (this.#cursor !== null) raw.sql_close(this.#cursor);
    this.#cursor = null;
    this.#rows = [];
  }
  *[Symbol.iterator](): Iterator<T> {
    for (let row = this.Next(); row !== null; row = this.Next()) yield row;
  }
}

/** Where statements go: a connection or a transaction. */
class Statements {
  protected readonly handle: number;

  constructor(handle: number) {
    this.handle = handle;
  }
  /**
   * Runs one statement that gives rows.
   *
   * @param pageRows rows the host gives at a time; 1000 without it
   * @throws HostError; its message begins with the SQLSTATE
   * @example for (const { name } of db.Query('SELECT name FROM courses WHERE id = $1', [id])) ...
   */
  Query<T extends Row = Row>(statement: string, values: readonly SQLArgument[] = [], pageRows = 0): Rows<T> {
    const text = parkedText(raw.sql_query(this.handle, statement, argumentsOf(values), pageRows));
    return new Rows<T>(readPage(text, null), pageRows);
  }
  /** The first row; null when there is none. */
  QueryRow<T extends Row = Row>(statement: string, values: readonly SQLArgument[] = []): T | null {
    const rows = this.Query<T>(statement, values, 1);
    const row = rows.Next();
    rows.Close();
    return row;
  }
  /** Runs one statement. @returns how many rows it changed */
  Exec(statement: string, values: readonly SQLArgument[] = []): number {
    return parked<{ rows_affected: number }>(raw.sql_exec(this.handle, statement, argumentsOf(values))).rows_affected;
  }
}

type NoPromise<T> = T extends PromiseLike<unknown> ? never : unknown;

/** A transaction; without `Commit` it is rolled back when the execution ends. */
export class Transaction extends Statements {
  /** Makes its changes last. */
  Commit(): void {
    checked(raw.sql_commit(this.handle));
  }
  /** Takes its changes back; so does the end of the execution. */
  Rollback(): void {
    checked(raw.sql_rollback(this.handle));
  }
}

/** A connection with a session of its own. An execution may have two open to one database. */
export class Connection extends Statements {
  /** Begins a transaction, which `Commit` or `Rollback` ends. */
  Begin(): Transaction {
    return new Transaction(checked(raw.sql_begin(this.handle)));
  }
  /**
   * Runs a function in a transaction: commits when it returns, rolls back when it throws.
   *
   * @param work must not be `async`: it would return before it has ended, and what it throws later would not be taken back
   * @throws TypeError for an `async` one, whose changes are taken back
   */
  Transaction<T>(work: (transaction: Transaction) => T & NoPromise<T>): T {
    const transaction = this.Begin();
    let result: T;
    try {
      result = work(transaction);
      if (result instanceof Promise)
        throw new TypeError('the function of a transaction must not be async: statements need no await');
    } catch (error) {
      // It may have ended already; what the function has thrown is what its caller must see.
      try {
        transaction.Rollback();
      } catch {}
      throw error;
    }
    transaction.Commit();
    return result;
  }
  /** Gives the connection back; so does the end of the execution. */
  Close(): void {
    checked(raw.sql_close(this.handle));
  }
}

export const openDatabase = (name: string): Connection => new Connection(checked(raw.sql_open(name)));
