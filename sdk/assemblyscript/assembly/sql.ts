import * as abi from "./abi";
import { Json, Obj, quote } from "./json";
import { lastError } from "./result";

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
  /** A document for a column of type `json` or `jsonb`. */
  json(v: Obj): Args {
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

export function args(): Args {
  return new Args();
}

/** One row; columns by their place. */
export class Row {
  private cells: Json[];
  constructor(row: Json) {
    this.cells = row.items();
  }
  private cell(k: i32): Json {
    assert(k >= 0 && k < this.cells.length, "the row has no such column");
    return this.cells[k];
  }
  isNull(k: i32): bool {
    return this.cell(k).isNull;
  }
  /** Text of any value but a list or document, empty for null. */
  str(k: i32): string {
    const c = this.cell(k);
    return c.text.length == 0 && !c.isNull && c.toString() != '""' ? c.toString() : c.text;
  }
  /** An integer, exact over all 64 bits. */
  num(k: i32): i64 {
    return this.cell(k).integer;
  }
  float(k: i32): f64 {
    return F64.parseFloat(this.cell(k).text);
  }
  bool(k: i32): bool {
    return this.cell(k).flag;
  }
  /** A document or a list. */
  json(k: i32): Json {
    return this.cell(k);
  }
}

function parked(n: i32): Json {
  const b = new ArrayBuffer(n);
  abi.result_read(changetype<usize>(b), n);
  return Json.trusted(b);
}

/** What a statement gave; rows beyond the first page are fetched as they are asked for. */
export class Rows {
  readonly columns: string[] = [];
  private page: Json[] = [];
  private at: i32 = 0;
  private cursor: i32 = 0;
  /** Why there are no further rows, or null at the end. */
  error: string | null = null;
  constructor(first: Json | null, error: string | null, private pageRows: i32) {
    this.error = error;
    if (first !== null) {
      const columns = first.get("columns").items();
      for (let k = 0; k < columns.length; k++) this.columns.push(columns[k].str("name"));
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
        this.error = lastError();
        return null;
      }
      this.take(parked(n));
    }
    return this.at < this.page.length ? new Row(this.page[this.at++]) : null;
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
    const s = String.UTF8.encode(sql);
    const a = String.UTF8.encode(values.toString());
    const n = abi.sql_query(this.handle, changetype<usize>(s), s.byteLength, changetype<usize>(a), a.byteLength, pageRows);
    return n < 0 ? new Rows(null, lastError(), pageRows) : new Rows(parked(n), null, pageRows);
  }
  /** Runs one statement; how many rows it changed, -1 when it failed (`LastError`). */
  Exec(sql: string, values: Args = args()): i64 {
    const s = String.UTF8.encode(sql);
    const a = String.UTF8.encode(values.toString());
    const n = abi.sql_exec(this.handle, changetype<usize>(s), s.byteLength, changetype<usize>(a), a.byteLength);
    return n < 0 ? -1 : parked(n).i64("rows_affected");
  }
  /** `<SQLSTATE>: <message>` of the last statement that failed. */
  LastError(): string {
    return lastError();
  }
}

export class Transaction extends Statements {
  /** The error text when it was not committed. */
  Commit(): string | null {
    return abi.sql_commit(this.handle) < 0 ? lastError() : null;
  }
  Rollback(): string | null {
    return abi.sql_rollback(this.handle) < 0 ? lastError() : null;
  }
}

export class Connection extends Statements {
  /** A transaction on this connection; null when it failed (`LastError`). */
  Begin(): Transaction | null {
    const n = abi.sql_begin(this.handle);
    return n < 0 ? null : new Transaction(n);
  }
  Close(): void {
    abi.sql_close(this.handle);
  }
}
