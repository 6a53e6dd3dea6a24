import { LIMITS } from '../src/base/limits.ts';
import type { ExecutionState } from './execution-state.ts';
import type { GuestMemory } from './guest-memory.ts';
import {
  CHARACTER_DEVICE,
  ERRNO,
  FDFLAG_APPEND,
  FDSTAT,
  FILESTAT,
  IOVEC,
  RIGHTS,
  STDERR,
  STDIN,
  STDOUT,
} from './wasi-layout.ts';

const IOVECS_MAX = 1024;
/** A line of output without a newline is logged in pieces of about this many characters. */
const LINE_MAX = 4096;
/** Levels of log lines. */
const [INFO, ERROR] = [1, 3];

/** The three standard descriptors: input that is empty, and output that becomes log lines. */
export class WasiStdio {
  readonly #state: ExecutionState;
  readonly #guest: GuestMemory;
  readonly #open = [true, true, true];
  /** Bytes written since the last newline, by descriptor. */
  readonly #partial = ['', '', ''];
  /** Letters may be cut anywhere by writes and their vectors, so each descriptor has a decoder that keeps the first part of one. */
  readonly #decoders = [STDOUT, STDERR].map(() => new TextDecoder('utf-8', { ignoreBOM: true }));
  #hasWritten = false;

  constructor(state: ExecutionState, guest: GuestMemory) {
    this.#state = state;
    this.#guest = guest;
  }

  isOpen(fd: number): boolean {
    return this.#open[fd] === true;
  }

  /** Opens the descriptors again, and forgets what was written without a newline at its end. */
  reset(): void {
    this.#open.fill(true);
    this.#takeRest(() => {});
  }

  /** Logs what was written without a newline at its end. */
  flush(): void {
    this.#takeRest((fd, rest) => {
      if (rest !== '') this.#log(fd, rest);
    });
  }

  #log(fd: number, line: string): void {
    this.#state.log(fd === STDERR ? ERROR : INFO, line);
  }

  #decoded(fd: number, bytes?: Uint8Array): string {
    return this.#decoders[fd - STDOUT]?.decode(bytes, { stream: bytes !== undefined }) ?? '';
  }

  #takeRest(take: (fd: number, rest: string) => void): void {
    // Most executions write nothing.
    if (!this.#hasWritten) return;
    this.#hasWritten = false;
    for (const fd of [STDOUT, STDERR]) {
      take(fd, this.#partial[fd] + this.#decoded(fd));
      this.#partial[fd] = '';
    }
  }

  /** Splits output into log lines at newlines. */
  #logOutput(fd: number, text: string): void {
    const lines = (this.#partial[fd] + text).split('\n');
    const rest = lines.pop() ?? '';
    for (const line of lines) this.#log(fd, line);
    if (rest.length >= LINE_MAX) this.#log(fd, rest);
    this.#partial[fd] = rest.length >= LINE_MAX ? '' : rest;
  }

  #write(fd: number, vectors: number, count: number, written: number): number {
    const guest = this.#guest;
    if (fd === STDIN || !this.isOpen(fd)) return ERRNO.badf;
    if (count > IOVECS_MAX) return ERRNO.inval;
    if (!guest.holds(vectors, count * IOVEC.size) || !guest.holds(written, 4)) return ERRNO.fault;
    this.#hasWritten = true;
    let total = 0;
    for (let i = 0; i < count; i++) {
      const vector = (vectors >>> 0) + i * IOVEC.size;
      const at = guest.view.getUint32(vector + IOVEC.buffer, true);
      const length = guest.view.getUint32(vector + IOVEC.length, true);
      if (!guest.holds(at, length)) return ERRNO.fault;
      total += length;
      if (total > 0xffffffff) return ERRNO.inval;
      const room = Math.max(0, LIMITS.logBytesPerExecution - this.#state.logBytes);
      this.#logOutput(fd, this.#decoded(fd, guest.range(at, Math.min(length, room))));
      if (length > room) this.#state.logTruncated = true;
    }
    guest.view.setUint32(written >>> 0, total, true);
    return ERRNO.success;
  }

  #read(fd: number, vectors: number, count: number, read: number): number {
    const guest = this.#guest;
    if (!this.isOpen(fd)) return ERRNO.badf;
    if (fd !== STDIN) return ERRNO.notcapable;
    if (count > IOVECS_MAX) return ERRNO.inval;
    if (!guest.holds(vectors, count * IOVEC.size) || !guest.holds(read, 4)) return ERRNO.fault;
    guest.view.setUint32(read >>> 0, 0, true);
    return ERRNO.success;
  }

  /** Writes a structure for the guest, in which every field is zero that `write` leaves alone. */
  #fill(fd: number, at: number, size: number, write: (at: number, view: DataView) => void): number {
    const { bytes, view } = this.#guest;
    if (!this.isOpen(fd)) return ERRNO.badf;
    if (!this.#guest.holds(at, size)) return ERRNO.fault;
    bytes.fill(0, at >>> 0, (at >>> 0) + size);
    write(at >>> 0, view);
    return ERRNO.success;
  }

  /** The functions of descriptors. */
  functions() {
    const unlessClosed = (errno: number) => (fd: number) => (this.isOpen(fd) ? errno : ERRNO.badf);
    return {
      /** https://github.com/WebAssembly/WASI/blob/main/legacy/preview1/docs.md#fd_write */
      fd_write: (fd: number, vectors: number, count: number, written: number) =>
        this.#write(fd, vectors, count >>> 0, written),

      /** Standard input is at its end. https://github.com/WebAssembly/WASI/blob/main/legacy/preview1/docs.md#fd_read */
      fd_read: (fd: number, vectors: number, count: number, read: number) => this.#read(fd, vectors, count >>> 0, read),

      /** https://github.com/WebAssembly/WASI/blob/main/legacy/preview1/docs.md#fd_close */
      fd_close: (fd: number) => {
        if (!this.isOpen(fd)) return ERRNO.badf;
        this.#open[fd] = false;
        return ERRNO.success;
      },

      /** https://github.com/WebAssembly/WASI/blob/main/legacy/preview1/docs.md#fd_fdstat_get */
      fd_fdstat_get: (fd: number, at: number) =>
        this.#fill(fd, at, FDSTAT.size, (p, view) => {
          view.setUint8(p + FDSTAT.filetype, CHARACTER_DEVICE);
          view.setUint16(p + FDSTAT.flags, fd === STDIN ? 0 : FDFLAG_APPEND, true);
          view.setBigUint64(p + FDSTAT.rights, fd === STDIN ? RIGHTS.fdRead : RIGHTS.fdWrite, true);
        }),

      /** https://github.com/WebAssembly/WASI/blob/main/legacy/preview1/docs.md#fd_filestat_get */
      fd_filestat_get: (fd: number, at: number) =>
        this.#fill(fd, at, FILESTAT.size, (p, view) => view.setUint8(p + FILESTAT.filetype, CHARACTER_DEVICE)),

      /** https://github.com/WebAssembly/WASI/blob/main/legacy/preview1/docs.md#fd_fdstat_set_flags */
      fd_fdstat_set_flags: unlessClosed(ERRNO.notsup),

      /** https://github.com/WebAssembly/WASI/blob/main/legacy/preview1/docs.md#fd_seek */
      fd_seek: unlessClosed(ERRNO.spipe),

      /** https://github.com/WebAssembly/WASI/blob/main/legacy/preview1/docs.md#fd_tell */
      fd_tell: unlessClosed(ERRNO.spipe),

      /** https://github.com/WebAssembly/WASI/blob/main/legacy/preview1/docs.md#fd_renumber */
      fd_renumber: (from: number, to: number) => (this.isOpen(from) && this.isOpen(to) ? ERRNO.notsup : ERRNO.badf),

      /**
       * No directory is there: libc stops its scan for them at the first EBADF.
       * https://github.com/WebAssembly/WASI/blob/main/legacy/preview1/docs.md#fd_prestat_get
       */
      fd_prestat_get: () => ERRNO.badf,

      /** https://github.com/WebAssembly/WASI/blob/main/legacy/preview1/docs.md#fd_prestat_dir_name */
      fd_prestat_dir_name: () => ERRNO.badf,
    };
  }
}
