import { LIMITS } from '../base/limits.ts';
import { columnTypeOf } from './database.ts';

/** The answer exceeds `sqlAnswerBytesMax` or `sqlCellsMax`. */
export class AnswerTooLarge extends Error {
  override readonly name = 'AnswerTooLarge';
}

/** The answer to one statement; values are in PostgreSQL's text format. */
export type SqlColumn = { name: string; oid: number };
export type SqlRow = ReadonlyArray<string | null>;
export type SqlPage = { columns: SqlColumn[]; rows: SqlRow[]; hasMore: boolean; rowsAffected: number; command: string };

/** The methods of the client library's connection used here; its type declarations lack them. */
type Wire = {
  stream: { cork(): void; uncork(): void };
  parse(query: { name: string; text: string }): void;
  bind(config: { portal: string; statement: string; values: ReadonlyArray<string | Buffer | null> }): void;
  describe(message: { type: 'P'; name: string }): void;
  execute(config: { portal: string; rows: number }): void;
  close(message: { type: 'P'; name: string }): void;
  flush(): void;
  sync(): void;
  sendCopyFail(message: string): void;
};

type Waiting = { resolve(page: SqlPage): void; reject(error: unknown): void };

function commasIn(text: string): number {
  let commas = 0;
  for (let at = text.indexOf(','); at >= 0; at = text.indexOf(',', at + 1)) commas++;
  return commas;
}

/**
 * One statement whose rows are read in pages (PostgreSQL documentation "Extended Query"). The first page takes one
 * round trip: all messages that request it are sent in one packet. `pg-cursor` needs three round trips, and a statement
 * with COPY ends the process there. The extended protocol accepts one statement at a time and refuses several. The
 * client library calls the methods named `handle...`.
 */
export class PageQuery {
  readonly #text: string;
  readonly #values: ReadonlyArray<string | Buffer | null>;
  /** Null: runs the statement to its end and discards its rows. */
  #rowsMax: number | null;
  #wire: Wire | null = null;
  #waiting: Waiting | null = null;
  #columns: SqlColumn[] = [];
  #rows: SqlRow[] = [];
  /** Rows of the page that is being received. */
  #cells = 0;
  #lists: number[] = [];
  #isOver = false;
  #affected = 0;
  #command = '';
  #ready: (() => void) | null = null;
  /** The client library reads both. */
  readonly name = '';
  callback: ((error: unknown) => void) | null = null;
  /** Resolves when the connection can take another statement. */
  readonly ended: Promise<void>;

  constructor(text: string, values: ReadonlyArray<string | Buffer | null>, rowsMax: number | null) {
    this.#text = text;
    this.#values = values;
    this.#rowsMax = rowsMax;
    this.ended = new Promise(resolve => {
      this.#ready = resolve;
    });
  }

  /** The first page. Call it before the statement is passed to the client. */
  first(): Promise<SqlPage> {
    return this.#wait();
  }

  #wait(): Promise<SqlPage> {
    return new Promise((resolve, reject) => {
      this.#waiting = { resolve, reject };
    });
  }

  /** The next page of a statement that has more rows. */
  next(rowsMax: number): Promise<SqlPage> {
    if (this.#isOver) return Promise.reject(new Error('the statement has ended'));
    const page = this.#wait();
    this.#rowsMax = rowsMax;
    const wire = this.#connected();
    // The last row of the page before was already the first of this one.
    wire.execute({ portal: '', rows: rowsMax });
    wire.flush();
    return page;
  }

  /** Ends the statement without reading the remaining rows. */
  close(): Promise<void> {
    if (!this.#isOver) {
      this.#isOver = true;
      const wire = this.#connected();
      wire.close({ type: 'P', name: '' });
      wire.sync();
    }
    return this.ended;
  }

  #connected(): Wire {
    if (this.#wire === null) throw new Error('the statement was not sent');
    return this.#wire;
  }

  /** Requests one row more than the page has, to learn whether more rows follow. */
  submit(connection: object): void {
    const wire = connection as Wire;
    this.#wire = wire;
    wire.stream.cork();
    wire.parse({ name: '', text: this.#text });
    wire.bind({ portal: '', statement: '', values: this.#values });
    wire.describe({ type: 'P', name: '' });
    if (this.#rowsMax === null) {
      // 0 means all rows. No page follows, so the sync message is sent in the same packet: one round trip.
      wire.execute({ portal: '', rows: 0 });
      wire.sync();
      this.#isOver = true;
    } else {
      wire.execute({ portal: '', rows: this.#rowsMax + 1 });
      wire.flush();
    }
    wire.stream.uncork();
  }

  handleRowDescription({ fields }: { fields: ReadonlyArray<{ name: string; dataTypeID: number }> }): void {
    this.#columns = fields.map(f => ({ name: f.name, oid: f.dataTypeID }));
    this.#lists = [...this.#columns.keys()].filter(k => columnTypeOf(this.#columns[k]?.oid ?? 0).elementOid !== null);
  }

  /** Discards rows beyond the bound; the whole page is refused once it has arrived. */
  handleDataRow({ fields }: { fields: SqlRow }): void {
    if (this.#rowsMax === null) return;
    this.#cells += fields.length;
    for (const k of this.#lists) this.#cells += commasIn(fields[k] ?? '');
    if (this.#cells <= LIMITS.sqlCellsMax) this.#rows.push(fields);
  }

  handlePortalSuspended(): void {
    if (this.#cells > LIMITS.sqlCellsMax) return this.handleError(this.#tooManyCells());
    const ahead = this.#rows.pop();
    this.#give(true, 0);
    if (ahead !== undefined) this.#rows.push(ahead);
  }

  /**
   * Returns the last page only when the server is ready again: outside a transaction it commits then, and may still
   * fail.
   */
  handleCommandComplete({ text }: { text: string }): void {
    this.#affected = Number(/ (\d+)$/.exec(text)?.[1] ?? 0);
    this.#command = text.split(' ', 1)[0] ?? '';
    this.#over();
  }

  handleEmptyQuery(): void {
    this.#over();
  }

  #over(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#connected().sync();
  }

  #give(hasMore: boolean, rowsAffected: number): void {
    const page = { columns: this.#columns, rows: this.#rows, hasMore, rowsAffected, command: this.#command };
    this.#rows = [];
    this.#cells = 0;
    this.#waiting?.resolve(page);
    this.#waiting = null;
  }

  #tooManyCells(): AnswerTooLarge {
    return new AnswerTooLarge(
      `the answer holds more than ${LIMITS.sqlCellsMax} values, elements of lists counted; ask for fewer rows`,
    );
  }

  /** Also called when the connection is lost, when nothing can be sent any more. */
  handleError(error: unknown): void {
    this.#rows = [];
    if (this.#wire !== null && !this.#isOver) {
      this.#isOver = true;
      this.#wire.sync();
    }
    this.#waiting?.reject(error);
    this.#waiting = null;
    // The client library sends no further messages to a failed statement; the next one waits in its queue.
    this.#ready?.();
  }

  handleReadyForQuery(): void {
    if (this.#cells > LIMITS.sqlCellsMax) this.handleError(this.#tooManyCells());
    this.#give(false, this.#affected);
    this.#ready?.();
  }

  handleCopyInResponse(): void {
    // While the server waits for COPY data it ignores the sync message sent before, so it is sent again with the error.
    this.#isOver = false;
    this.#connected().sendCopyFail('COPY FROM STDIN is not for plugins; insert rows');
  }

  /** Discards the rows of COPY TO STDOUT. */
  handleCopyData(): void {}
}
