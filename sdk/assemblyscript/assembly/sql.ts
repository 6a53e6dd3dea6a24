import * as abi from "./plugin_host";
import { decodeBase64, toBase64 } from "./base64";
import { Json, JSONValue, Obj, obj, quote } from "./json";
import { errorOf, lastCode, lastError, parked, refusal, Result } from "./result";
import { pointer, utf8 } from "./text";

/** Values for the $1, $2 ... of a statement, in order: `args().num(5).str("x")`. */
export class Args {
  private parts: string[] = [];
  str(v: string): Args {
    this.parts.push(quote(v));
    return this;
  }
  num(v: i64): Args {
    this.parts.push(v.toString());
    return this;
  }
  float(v: f64): Args {
    this.parts.push(isFinite(v) ? v.toString() : quote(v.toString()));
    return this;
  }
  bool(v: bool): Args {
    this.parts.push(v ? "true" : "false");
    return this;
  }
  nul(): Args {
    this.parts.push("null");
    return this;
  }
  /** For a column of type `bytea`. */
  bytes(v: ArrayBuffer): Args {
    this.parts.push('{"base64":"' + toBase64(v) + '"}');
    return this;
  }
  /** A document for a column of type `json` or `jsonb`. */
  json(v: JSONValue): Args {
    this.parts.push('{"json":' + v.toString() + "}");
    return this;
  }
  /** A list for `= ANY($n)` and columns of lists. */
  list(values: Args): Args {
    this.parts.push('{"array":' + values.toString() + "}");
    return this;
  }
  toString(): string {
    return "[" + this.parts.join(",") + "]";
  }
}

/** No values yet. @example db.Exec("UPDATE notes SET text = $1 WHERE id = $2", args().str("x").num(5)) */
export function args(): Args {
  return new Args();
}

const QUOTE: u8 = 34;

/** One row; columns by their place or name. */
export class Row {
  private cells: Json[];
  constructor(row: Json, private columns: string[], private types: string[]) {
    this.cells = row.items();
  }
  private cell(k: i32): Json {
    if (k < 0 || k >= this.cells.length) throw new Error("the row has no column " + k.toString() + ": it has " + this.columns.join(", "));
    return this.cells[k];
  }
  /** A value by the name of its column; absent when there is no such column. @example row.get("grade").integer */
  get(column: string): Json {
    const k = this.columns.lastIndexOf(column);
    return k < 0 ? Json.absent() : this.cells[k];
  }
  isNull(k: i32): bool {
    return this.cell(k).isNull;
  }
  /** Text of any value but a list or document, empty for null. */
  str(k: i32): string {
    const c = this.cell(k);
    return c.text.length == 0 && !c.isNull && c.toString() != '""' ? c.toString() : c.text;
  }
  /** An integer, exact over all 64 bits; also of a `numeric` without a fraction, which `sum` of integers is. */
  num(k: i32): i64 {
    const c = this.cell(k);
    return load<u8>(c.from) == QUOTE ? I64.parseInt(c.text) : c.integer;
  }
  float(k: i32): f64 {
    return F64.parseFloat(this.cell(k).text);
  }
  bool(k: i32): bool {
    return this.cell(k).flag;
  }
  /** Of a column of type `bytea`, and the text of others; empty for null. */
  bytes(k: i32): ArrayBuffer {
    const c = this.cell(k);
    if (this.types[k] != "bytea" && !c.isNull) return utf8(this.str(k));
    const b: ArrayBuffer | null = c.isNull ? null : decodeBase64(c.from + 1, c.to - 1);
    return b === null ? new ArrayBuffer(0) : b!;
  }
  /** A document or a list. */
  json(k: i32): Json {
    return this.cell(k);
  }
  /** The row as an object, by the names of its columns. */
  toObj(): Obj {
    const o = obj();
    for (let k = 0; k < this.cells.length; k++) o.json(this.columns[k], this.cells[k]);
    return o;
  }
}

function answer(n: i32): Json {
  return Json.trusted(parked(n));
}

/** What a statement gave; rows beyond the first page are fetched as they are asked for. */
export class Rows {
  readonly columns: string[] = [];
  private types: string[] = [];
  private page: Json[] = [];
  private at: i32 = 0;
  private cursor: i32 = 0;
  /** Why there are no further rows, or null at the end. */
  error: string | null = null;
  constructor(first: Json | null, error: string | null, private pageRows: i32) {
    this.error = error;
    if (first !== null) {
      const columns = first.get("columns").items();
      for (let k = 0; k < columns.length; k++) {
        this.columns.push(columns[k].str("name"));
        this.types.push(columns[k].str("type"));
      }
      this.take(first);
    }
  }
  private take(page: Json): void {
    this.page = page.get("rows").items();
    this.cursor = <i32>page.i64("cursor");
    this.at = 0;
  }
  get ok(): bool {
    return this.error === null;
  }
  /** The next row, or null behind the last one and when it failed (`error`). */
  next(): Row | null {
    if (this.at >= this.page.length && this.cursor > 0) {
      const n = abi.sql_fetch(this.cursor, this.pageRows);
      this.cursor = 0;
      if (n < 0) {
        this.error = errorOf(n);
        return null;
      }
      this.take(answer(n));
    }
    return this.at < this.page.length ? new Row(this.page[this.at++], this.columns, this.types) : null;
  }
  /** Gives the connection back to other statements before the last row. */
  close(): void {
    if (this.cursor > 0) abi.sql_close(this.cursor);
    this.cursor = 0;
    this.page = [];
  }
}

/** Where statements go: a connection or a transaction. */
export class Statements {
  constructor(readonly handle: i32) {}
  /** Runs one statement and gives its rows, `pageRows` of them at a time (0 is 1000). */
  Query(sql: string, values: Args = args(), pageRows: i32 = 0): Rows {
    const s = utf8(sql);
    const a = utf8(values.toString());
    const n = abi.sql_query(this.handle, pointer(s), s.byteLength, pointer(a), a.byteLength, pageRows);
    return n < 0 ? new Rows(null, errorOf(n), pageRows) : new Rows(answer(n), null, pageRows);
  }
  /** Runs one statement; how many rows it changed, -1 when it failed (`LastError`, `LastCode`). */
  Exec(sql: string, values: Args = args()): i64 {
    const s = utf8(sql);
    const a = utf8(values.toString());
    const n = abi.sql_exec(this.handle, pointer(s), s.byteLength, pointer(a), a.byteLength);
    if (n >= 0) return answer(n).i64("rows_affected");
    errorOf(n);
    return -1;
  }
  /** `<SQLSTATE>: <message>` of the last statement that failed. */
  LastError(): string {
    return lastError();
  }
  /** `conflict` for violated uniqueness and what is worth another try, `invalid_argument`, `unavailable` ... */
  LastCode(): string {
    return lastCode();
  }
}

/** Statements that count together or not at all; rolled back when the execution ends without `Commit`. */
export class Transaction extends Statements {
  /** The error text when it was not committed. */
  Commit(): string | null {
    return refusal(abi.sql_commit(this.handle));
  }
  Rollback(): string | null {
    return refusal(abi.sql_rollback(this.handle));
  }
}

/** A session of its own with a database. */
export class Connection extends Statements {
  /** A transaction on this connection; null when it failed (`LastError`). */
  Begin(): Transaction | null {
    const n = abi.sql_begin(this.handle);
    if (n >= 0) return new Transaction(n);
    errorOf(n);
    return null;
  }
  Close(): void {
    abi.sql_close(this.handle);
  }
}

export function openDatabase(name: string): Result<Connection | null> {
  const b = utf8(name);
  const n = abi.sql_open(pointer(b), b.byteLength);
  return n < 0 ? new Result<Connection | null>(null, errorOf(n)) : new Result<Connection | null>(new Connection(n));
}
