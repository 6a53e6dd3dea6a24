import type { LogLine } from './execution-outcome.ts';
import { LOG_BYTES, logAt, type SharedViews } from './shared-layout.ts';

/** Bytes written so far, after the lines they are of; whether a line did not fit. */
const HEAD_BYTES = 8;
/** Level and length of a line. */
const LINE_HEAD_BYTES = 4;
const LENGTH_MAX = 0xffff;
const WARN = 2;

/**
 * One lane's log area: the first log lines of the execution that runs. A thread that is stopped hands nothing over, so
 * the main thread takes them from here: the last line before an endless loop is what its author needs most.
 */
export class LogArea {
  readonly #views: SharedViews;
  readonly #header: number;
  readonly #linesAt: number;
  /** Bytes written; the lane's own copy. */
  #used = 0;

  constructor(views: SharedViews, lane: number) {
    this.#views = views;
    this.#header = logAt(lane) >> 2;
    this.#linesAt = logAt(lane) + HEAD_BYTES;
  }

  /** Lane: an execution begins. */
  clear(): void {
    const { all32 } = this.#views;
    this.#used = 0;
    // Lines of the thread before may be there, which was stopped.
    if (all32[this.#header] !== 0) Atomics.store(all32, this.#header, 0);
    if (all32[this.#header + 1] !== 0) Atomics.store(all32, this.#header + 1, 0);
  }

  /** Lane: keeps a line as far as there is room. */
  add({ level, text }: LogLine): void {
    const { all32, buffer } = this.#views;
    const at = this.#linesAt + this.#used;
    const room = Math.min(LOG_BYTES - HEAD_BYTES - this.#used - LINE_HEAD_BYTES, LENGTH_MAX);
    if (room <= 0) return void Atomics.store(all32, this.#header + 1, 1);
    const length = buffer.write(text, at + LINE_HEAD_BYTES, room, 'utf8');
    buffer.writeUInt16LE(level, at);
    buffer.writeUInt16LE(length, at + 2);
    this.#used += LINE_HEAD_BYTES + length;
    // Published when it is whole: the main thread may read at any moment.
    Atomics.store(all32, this.#header, this.#used);
    if (Buffer.byteLength(text) > length) Atomics.store(all32, this.#header + 1, 1);
  }

  /** Main thread: the lines there are. */
  read(): LogLine[] {
    const { all32, buffer } = this.#views;
    const lines: LogLine[] = [];
    const end = this.#linesAt + Atomics.load(all32, this.#header);
    for (let at = this.#linesAt; at + LINE_HEAD_BYTES <= end; ) {
      const from = at + LINE_HEAD_BYTES;
      at = from + buffer.readUInt16LE(at + 2);
      lines.push({ level: buffer.readUInt16LE(from - LINE_HEAD_BYTES), text: buffer.utf8Slice(from, at) });
    }
    if (Atomics.load(all32, this.#header + 1) === 1)
      lines.push({ level: WARN, text: `the log of an execution that is stopped is kept up to ${LOG_BYTES} bytes` });
    return lines;
  }
}
