/**
 * Numbers and structures of WASI preview1 that this host uses, as the specification has them
 * (https://github.com/WebAssembly/WASI/blob/main/legacy/preview1/docs.md). Offsets and sizes are bytes; all is little endian.
 */

/** https://github.com/WebAssembly/WASI/blob/main/legacy/preview1/docs.md#errno */
export const ERRNO = {
  success: 0,
  badf: 8,
  fault: 21,
  inval: 28,
  nosys: 52,
  notdir: 54,
  notsock: 57,
  notsup: 58,
  spipe: 70,
  notcapable: 76,
} as const;

/** https://github.com/WebAssembly/WASI/blob/main/legacy/preview1/docs.md#clockid */
export const CLOCK = { realtime: 0, monotonic: 1 } as const;
export type Clock = (typeof CLOCK)[keyof typeof CLOCK];

/** Standard descriptors. */
export const STDIN = 0;
export const STDOUT = 1;
export const STDERR = 2;

/** https://github.com/WebAssembly/WASI/blob/main/legacy/preview1/docs.md#filetype */
export const CHARACTER_DEVICE = 2;

/** https://github.com/WebAssembly/WASI/blob/main/legacy/preview1/docs.md#fdflags */
export const FDFLAG_APPEND = 1;

/** https://github.com/WebAssembly/WASI/blob/main/legacy/preview1/docs.md#rights */
export const RIGHTS = { fdRead: 1n << 1n, fdWrite: 1n << 6n } as const;

/** `iovec` and `ciovec`. https://github.com/WebAssembly/WASI/blob/main/legacy/preview1/docs.md#iovec */
export const IOVEC = { size: 8, buffer: 0, length: 4 } as const;

/** https://github.com/WebAssembly/WASI/blob/main/legacy/preview1/docs.md#fdstat */
export const FDSTAT = { size: 24, filetype: 0, flags: 2, rights: 8 } as const;

/** https://github.com/WebAssembly/WASI/blob/main/legacy/preview1/docs.md#filestat */
export const FILESTAT = { size: 64, filetype: 16 } as const;

/** https://github.com/WebAssembly/WASI/blob/main/legacy/preview1/docs.md#subscription */
export const SUBSCRIPTION = {
  size: 48,
  userdata: 0,
  tag: 8,
  /** Offset of the id of a clock. */
  clock: 16,
  timeout: 24,
  flags: 40,
  /** Offset of a descriptor. */
  descriptor: 16,
} as const;

/** https://github.com/WebAssembly/WASI/blob/main/legacy/preview1/docs.md#eventtype */
export const EVENTTYPE = { clock: 0, fdRead: 1, fdWrite: 2 } as const;

/** https://github.com/WebAssembly/WASI/blob/main/legacy/preview1/docs.md#subclockflags */
export const ABSTIME = 1;

/** https://github.com/WebAssembly/WASI/blob/main/legacy/preview1/docs.md#event */
export const EVENT = { size: 32, userdata: 0, error: 8, type: 10 } as const;
