import { Readable } from 'node:stream';
import { LIMITS } from './limits.ts';

/** A comment now and then tells both ends that the other is there. */
const HEARTBEAT_MS = 5000;
/** A watcher that comes back after long begins this far back: nothing loads a whole table. */
const BACK_MAX = 10_000;
/** Rows that are read and written to watchers at a time; a client that reads gets what it has before the next ones come. */
const ROWS_AT_A_TIME = 50;

/** What can be watched: rows of a table whose numbers grow. */
export type Watchable<Row extends { id: number }, Filter> = {
  /** Number of the last row; 0 when there is none. */
  lastId(): Promise<number>;
  /** Numbers behind a number, the lowest first, at most `limit`. */
  idsAfter(after: number, limit: number): Promise<number[]>;
  /** The rows of these numbers, the lowest first. */
  listByIds(ids: readonly number[]): Promise<Row[]>;
  wants(filter: Filter, row: Row): boolean;
  /** The row as a block of `text/event-stream` (HTML Living Standard, "Server-sent events"). */
  written(row: Row): string;
  /** How many numbers are looked at again: of rows written at the same time a lower number may become visible later. */
  lookedAtAgain: number;
  /** How often it is looked for rows that were not announced with `look`, in ms. */
  everyMs: number;
};

/** The fields of a block: the number, what it is, and data of any number of lines. */
export const streamBlock = (id: number, event: string, data: string): string =>
  `id: ${id}\nevent: ${event}\n${data
    .split(/\r\n|\r|\n/)
    .map(line => `data: ${line}\n`)
    .join('')}\n`;

type Watcher<Filter> = {
  filter: Filter;
  /** Rows up to here it has, or wants none of. */
  from: number;
  /** The highest number it was shown, and the last ones. */
  at: number;
  seen: Set<number>;
  stream: Readable;
  isFull: boolean;
  isStillAllowed(): Promise<boolean>;
};

/** Rows as they are written, for administrators who watch. */
export class Feed<Row extends { id: number }, Filter> {
  readonly #of: Watchable<Row, Filter>;
  readonly #onError: (error: unknown) => void;
  readonly #watchers = new Set<Watcher<Filter>>();
  #isReading = false;
  #again = false;
  #timers: NodeJS.Timeout[] = [];
  #isClosed = false;

  constructor(of: Watchable<Row, Filter>, onError: (error: unknown) => void) {
    this.#of = of;
    this.#onError = onError;
  }

  get watchers(): number {
    return this.#watchers.size;
  }

  /**
   * Everything from now on, or behind a number that was seen last. A watcher that reads too slowly is ended, and may come back with the
   * number it has.
   *
   * @param isStillAllowed asked at every heartbeat: a stream ends when its reader's credential does
   */
  async watch(filter: Filter, after: number | null, isStillAllowed: () => Promise<boolean>): Promise<Readable> {
    if (this.#isClosed) return Readable.from([]);
    // A number from before a restore may lie ahead of all there are: nothing would come for a long time.
    const last = await this.#of.lastId();
    if (this.#isClosed) return Readable.from([]);
    const at = Math.max(Math.min(after ?? last, last), last - BACK_MAX);
    const stream = new Readable({ read: () => (watcher.isFull = false), highWaterMark: LIMITS.eventFeedBytesMax });
    const watcher: Watcher<Filter> = { filter, from: at, at, seen: new Set(), stream, isFull: false, isStillAllowed };
    // A client that loses the stream before the first row comes back behind what was there at its beginning.
    stream.push(`: events\nretry: 2000\nid: ${at}\n\n`);
    this.#watchers.add(watcher);
    const over = setTimeout(() => {
      this.#watchers.delete(watcher);
      stream.push(null);
    }, LIMITS.eventStreamMs);
    // Lines for a stream that has ended meanwhile are not missed: its client comes back.
    stream.on('error', () => {});
    stream.on('close', () => {
      clearTimeout(over);
      this.#watchers.delete(watcher);
      if (this.#watchers.size === 0) this.#rest();
    });
    if (this.#timers.length === 0)
      this.#timers = [
        setInterval(() => {
          for (const w of this.#watchers) this.#beat(w);
        }, HEARTBEAT_MS),
        setInterval(() => this.look(), this.#of.everyMs),
      ];
    this.look();
    return stream;
  }

  #rest(): void {
    for (const timer of this.#timers) clearInterval(timer);
    this.#timers = [];
  }

  #beat(w: Watcher<Filter>): void {
    w.isStillAllowed()
      // The database is away: the reader comes back and is asked then.
      .catch(() => false)
      .then(allowed => {
        if (!this.#watchers.has(w)) return;
        if (allowed) return this.#push(w, ': still here\n\n');
        this.#watchers.delete(w);
        w.stream.push(null);
      })
      .catch(error => this.#onError(error));
  }

  #push(w: Watcher<Filter>, text: string): void {
    if (w.isFull) return void w.stream.destroy();
    w.isFull = !w.stream.push(text);
  }

  /** Something was written, or may have been. */
  look(): void {
    if (this.#watchers.size === 0) return;
    this.#again = true;
    if (this.#isReading) return;
    this.#isReading = true;
    this.#read()
      .catch(error => this.#onError(error))
      .finally(() => {
        this.#isReading = false;
        // It came in the last moment.
        if (this.#again) this.look();
      });
  }

  async #read(): Promise<void> {
    while (this.#again) {
      this.#again = false;
      const from = Math.min(...[...this.#watchers].map(w => w.at));
      if (!Number.isFinite(from)) return;
      // More than is looked at again, so that each page gets on.
      const page = 2 * this.#of.lookedAtAgain;
      const ids = await this.#of.idsAfter(from - this.#of.lookedAtAgain, page);
      const missing = ids.filter(id => [...this.#watchers].some(w => this.#lacks(w, id)));
      for (let k = 0; k < missing.length && !this.#isClosed; k += ROWS_AT_A_TIME) {
        const rows = await this.#of.listByIds(missing.slice(k, k + ROWS_AT_A_TIME));
        for (const row of rows) for (const w of this.#watchers) this.#show(w, row);
      }
      if (ids.length === page && missing.length > 0) this.#again = true;
    }
  }

  #lacks(w: Watcher<Filter>, id: number): boolean {
    return id > w.from && id > w.at - this.#of.lookedAtAgain && !w.seen.has(id);
  }

  #show(w: Watcher<Filter>, row: Row): void {
    const { lookedAtAgain } = this.#of;
    if (!this.#lacks(w, row.id)) return;
    w.seen.add(row.id);
    w.at = Math.max(w.at, row.id);
    if (w.seen.size > 2 * lookedAtAgain) for (const id of w.seen) if (id <= w.at - lookedAtAgain) w.seen.delete(id);
    if (this.#of.wants(w.filter, row)) this.#push(w, this.#of.written(row));
  }

  /** Ends every stream, and those that are still to begin: their watchers come back to another host or process. */
  close(): void {
    this.#isClosed = true;
    const watchers = [...this.#watchers];
    this.#watchers.clear();
    for (const w of watchers) w.stream.push(null);
    this.#rest();
  }
}
