import { LIMITS } from '../base/limits.ts';
import { columnTypeOf } from './database.ts';

/** More than `sqlAnswerBytesMax` or `sqlCellsMax`. */
export class AnswerTooLarge extends Error {
  override readonly name = 'AnswerTooLarge';
}

/** What a database has sent for one statement; values as the text PostgreSQL writes. */
export type SqlColumn = { name: string; oid: number };
export type SqlRow = ReadonlyArray<string | null>;
export type SqlPage = { columns: SqlColumn[]; rows: SqlRow[]; hasMore: boolean; rowsAffected: number; command: string };

/** The part of the client library's connection that is used here; its types know less than it does. */
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
 * One statement whose rows come page by page (PostgreSQL documentation "Extended Query"). All that asks for the first page travels in one
 * packet and its rows come back in one round trip; `pg-cursor` takes three, and a statement with COPY ends the process there. In this
 * protocol the server takes one statement at a time and refuses several. The client library calls the methods named `handle...`.
 */
export class PageQuery {
  readonly #text: string;
  readonly #values: ReadonlyArray<string | Buffer | null>;
  /** Null: the statement runs to its end, and its rows are not kept. */
  #rowsMax: number | null;
  #wire: Wire | null = null;
  #waiting: Waiting | null = null;
  #columns: SqlColumn[] = [];
  #rows: SqlRow[] = [];
  /** Of the page that comes in. */
  #cells = 0;
  #lists: number[] = [];
  #isOver = false;
  #affected = 0;
  #command = '';
  #ready: (() => void) | null = null;
  /** The client library looks at both. */
  readonly name = '';
  callback: ((error: unknown) => void) | null = null;
  /** Resolves when the connection is free for another statement. */
  readonly ended: Promise<void>;

  constructor(text: string, values: ReadonlyArray<string | Buffer | null>, rowsMax: number | null) {
    this.#text = text;
    this.#values = values;
    this.#rowsMax = rowsMax;
    this.ended = new Promise(resolve => {
      this.#ready = resolve;
    });
  }

  /** The first page; to be called before the statement is given to the client. */
  first(): Promise<SqlPage> {
    return this.#wait();
  }

  #wait(): Promise<SqlPage> {
    return new Promise((resolve, reject) => {
      this.#waiting = { resolve, reject };
    });
  }

  /** Further rows of a statement that has some. */
  next(rowsMax: number): Promise<SqlPage> {
    if (this.#isOver) return Promise.reject(new Error('the statement has ended'));
    const page = this.#wait();
    this.#rowsMax = rowsMax;
    const wire = this.#connected();
    // One row has been read ahead.
    wire.execute({ portal: '', rows: rowsMax });
    wire.flush();
    return page;
  }

  /** Leaves the rest of the rows where they are. */
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

  /** One row more is asked for than is given: only so it is known whether there is one. */
  submit(connection: object): void {
    const wire = connection as Wire;
    this.#wire = wire;
    wire.stream.cork();
    wire.parse({ name: '', text: this.#text });
    wire.bind({ portal: '', statement: '', values: this.#values });
    wire.describe({ type: 'P', name: '' });
    if (this.#rowsMax === null) {
      // 0 is all rows. Nothing follows, so the end of the statement travels along: one round trip.
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

  /** Rows beyond the bound are not kept: the whole page is refused when it has come. */
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

  /** The last page is given when the server is ready again: outside of a transaction it commits only then, and may still fail. */
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

  /** Also told when the connection is lost, where nothing can be sent any more. */
  handleError(error: unknown): void {
    this.#rows = [];
    if (this.#wire !== null && !this.#isOver) {
      this.#isOver = true;
      this.#wire.sync();
    }
    this.#waiting?.reject(error);
    this.#waiting = null;
    // The client library tells a statement that failed of nothing more; what follows waits in its queue.
    this.#ready?.();
  }

  handleReadyForQuery(): void {
    if (this.#cells > LIMITS.sqlCellsMax) this.handleError(this.#tooManyCells());
    this.#give(false, this.#affected);
    this.#ready?.();
  }

  handleCopyInResponse(): void {
    // While it waits for rows the server passes over the end that travelled along: it is sent again with the error.
    this.#isOver = false;
    this.#connected().sendCopyFail('COPY FROM STDIN is not for plugins; insert rows');
  }

  /** Rows of COPY TO STDOUT have nowhere to go. */
  handleCopyData(): void {}
}
