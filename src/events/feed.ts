import { Readable } from 'node:stream';
import { LIMITS } from '../base/limits.ts';
import type { Queryable } from '../db/database.ts';
import { cloudEvent, type StoredEvent } from './event.ts';
import { type EventFilter, lastEventId, listEventsAfter } from './publish.ts';

/** A comment now and then tells both ends that the other is there. */
const HEARTBEAT_MS = 5000;
const PAGE = 200;

/** Of events that are published at the same time a lower number may become visible later: that many numbers are looked at again. */
const LOOKED_AT_AGAIN = 100;

type Watcher = {
  filter: EventFilter;
  /** Events up to here it has, or wants none of. */
  from: number;
  /** The highest number it was shown, and the last ones. */
  at: number;
  seen: Set<number>;
  stream: Readable;
  isFull: boolean;
  isStillAllowed(): Promise<boolean>;
};

const wants = (f: EventFilter, e: StoredEvent): boolean =>
  (f.pluginId === undefined || f.pluginId === e.pluginId) && (f.type === undefined || f.type === e.type);

/** As `text/event-stream` has it (HTML Living Standard, "Server-sent events"). */
function written(e: StoredEvent): string {
  // The payload stands there as it was published, perhaps on several lines.
  const data = cloudEvent(e)
    .split(/\r\n|\r|\n/)
    .map(line => `data: ${line}\n`);
  return `id: ${e.id}\nevent: ${e.type}\n${data.join('')}\n`;
}

/** Events as they are published, for administrators who watch. */
export class EventFeed {
  readonly #db: Queryable;
  readonly #onError: (error: unknown) => void;
  readonly #watchers = new Set<Watcher>();
  #isReading = false;
  #again = false;
  #timer: NodeJS.Timeout | null = null;
  #isClosed = false;

  constructor(db: Queryable, onError: (error: unknown) => void) {
    this.#db = db;
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
  async watch(filter: EventFilter, after: number | null, isStillAllowed: () => Promise<boolean>): Promise<Readable> {
    if (this.#isClosed) return Readable.from([]);
    // A number from before a restore may lie ahead of all there are: nothing would come for a long time.
    const last = await lastEventId(this.#db);
    const at = Math.min(after ?? last, last);
    const stream = new Readable({ read: () => (watcher.isFull = false), highWaterMark: LIMITS.eventFeedBytesMax });
    const watcher: Watcher = { filter, from: at, at, seen: new Set(), stream, isFull: false, isStillAllowed };
    stream.push(`: events\nretry: 2000\n\n`);
    this.#watchers.add(watcher);
    const over = setTimeout(() => {
      this.#watchers.delete(watcher);
      stream.push(null);
    }, LIMITS.eventStreamMs);
    stream.on('close', () => {
      clearTimeout(over);
      this.#watchers.delete(watcher);
      if (this.#watchers.size === 0 && this.#timer !== null) {
        clearInterval(this.#timer);
        this.#timer = null;
      }
    });
    this.#timer ??= setInterval(() => {
      for (const w of this.#watchers) this.#beat(w);
      this.look();
    }, HEARTBEAT_MS);
    this.look();
    return stream;
  }

  #beat(w: Watcher): void {
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

  #push(w: Watcher, text: string): void {
    if (w.isFull) return void w.stream.destroy();
    w.isFull = !w.stream.push(text);
  }

  /** Something was published, or may have been. */
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
      const events = await listEventsAfter(this.#db, from - LOOKED_AT_AGAIN, PAGE);
      for (const e of events) for (const w of this.#watchers) this.#show(w, e);
      if (events.length === PAGE) this.#again = true;
    }
  }

  #show(w: Watcher, e: StoredEvent): void {
    if (e.id <= w.from || e.id <= w.at - LOOKED_AT_AGAIN || w.seen.has(e.id)) return;
    w.seen.add(e.id);
    w.at = Math.max(w.at, e.id);
    if (w.seen.size > 2 * LOOKED_AT_AGAIN) for (const id of w.seen) if (id <= w.at - LOOKED_AT_AGAIN) w.seen.delete(id);
    if (wants(w.filter, e)) this.#push(w, written(e));
  }

  /** Ends every stream, and those that are still to begin: their watchers come back to another host or process. */
  close(): void {
    this.#isClosed = true;
    for (const w of this.#watchers) w.stream.push(null);
    if (this.#timer !== null) clearInterval(this.#timer);
    this.#timer = null;
  }
}
