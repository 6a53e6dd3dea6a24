import { WASI_SIGNATURES } from '../src/abi/host-functions.ts';
import { LIMITS } from '../src/base/limits.ts';
import type { ExecutionState } from './execution-state.ts';
import type { GuestMemory } from './guest-memory.ts';
import { trap } from './trap.ts';
import { type WasmSignature, wasmFunctions } from './wasm-functions.ts';

/** WASI preview1 error numbers this host returns. */
const ERRNO = {
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

const CLOCK_GRAIN_NS = 100_000n;
const MS = 1_000_000n;
const RANDOM_CHUNK = 65_536;
const IOVECS_MAX = 1024;
const SUBSCRIPTIONS_MAX = 128;

type WasiFunction = (...args: never[]) => number | undefined;

export type WasiHost = {
  functions: Record<string, WebAssembly.ExportValue>;
  /** Opens the three standard descriptors again. Called before every execution. */
  reset(): void;
  /** Logs text that was written without a newline at its end. */
  flush(): void;
};

/** The functions of the lane that clocks and sleeps use. */
export type WasiLane = {
  /** Milliseconds left until the deadline of the running execution. */
  remainingMs(): number;
  sleeping(on: boolean): void;
};

type Subscription = { userdata: bigint; tag: number; error: number; fires: boolean; waitNs: bigint | null };

/**
 * WASI preview1 without a file system or sockets: clocks, randomness, standard output as log lines, sleep. Not
 * `node:wasi`, because its documentation advises against running untrusted code, and because this is 15 times faster
 * (docs/SECURITY.md).
 */
export function makeWasi(state: ExecutionState, guest: GuestMemory, lane: WasiLane): WasiHost {
  const open = [true, true, true];
  const partial = ['', '', ''];
  let hasWritten = false;
  /** Letters may be cut anywhere by writes and their vectors, so each descriptor has a decoder that keeps the first part of one. */
  const decoders = [1, 2].map(() => new TextDecoder('utf-8', { ignoreBOM: true }));
  const decoded = (fd: number, bytes?: Uint8Array): string =>
    decoders[fd - 1]?.decode(bytes, { stream: bytes !== undefined }) ?? '';
  const sleepCell = new Int32Array(new SharedArrayBuffer(4));
  const isOpen = (fd: number): boolean => open[fd] === true;
  const realNs = (): bigint => BigInt(Date.now()) * MS;
  const monotonicNs = (): bigint => (BigInt(Math.floor(performance.now() * 1e6)) / CLOCK_GRAIN_NS) * CLOCK_GRAIN_NS;

  /** A reading as the guest gets it. What a start draws is not recorded, because a start may be remembered. */
  const drawnTime = (clock: 0 | 1, now: bigint): bigint => {
    if (state.initializing) return now;
    if (state.replayed !== null) return state.replayed.clock(clock, now);
    state.drawing?.clock(clock, now);
    return now;
  };

  const emptySizes = (count: number, bytes: number): number => {
    if (!guest.holds(count, 4) || !guest.holds(bytes, 4)) return ERRNO.fault;
    guest.view.setUint32(count >>> 0, 0, true);
    guest.view.setUint32(bytes >>> 0, 0, true);
    return ERRNO.success;
  };

  const filled = (fd: number, at: number, size: number, write: (at: number, view: DataView) => void): number => {
    if (!isOpen(fd)) return ERRNO.badf;
    if (!guest.holds(at, size)) return ERRNO.fault;
    guest.bytes.fill(0, at >>> 0, (at >>> 0) + size);
    write(at >>> 0, guest.view);
    return ERRNO.success;
  };

  /** Splits standard output and standard error into log lines at newlines. */
  const logOutput = (fd: number, text: string): void => {
    const lines = (partial[fd] + text).split('\n');
    const rest = lines.pop() ?? '';
    for (const line of lines) state.log(fd === 2 ? 3 : 1, line);
    if (rest.length >= 4096) {
      state.log(fd === 2 ? 3 : 1, rest);
      partial[fd] = '';
    } else partial[fd] = rest;
  };

  /** Hands over what was written without a newline at its end. */
  const takeRest = (take: (fd: number, rest: string) => void): void => {
    // Most executions write nothing.
    if (!hasWritten) return;
    hasWritten = false;
    for (const fd of [1, 2]) {
      take(fd, partial[fd] + decoded(fd));
      partial[fd] = '';
    }
  };

  const fdWrite = (fd: number, vectors: number, countGiven: number, written: number): number => {
    if (fd !== 1 && fd !== 2) return ERRNO.badf;
    if (!isOpen(fd)) return ERRNO.badf;
    const count = countGiven >>> 0;
    if (count > IOVECS_MAX) return ERRNO.inval;
    if (!guest.holds(vectors, count * 8) || !guest.holds(written, 4)) return ERRNO.fault;
    hasWritten = true;
    let total = 0;
    for (let i = 0; i < count; i++) {
      const at = guest.view.getUint32((vectors >>> 0) + 8 * i, true);
      const length = guest.view.getUint32((vectors >>> 0) + 8 * i + 4, true);
      if (!guest.holds(at, length)) return ERRNO.fault;
      total += length;
      if (total > 0xffffffff) return ERRNO.inval;
      const room = Math.max(0, LIMITS.logBytesPerExecution - state.logBytes);
      logOutput(fd, decoded(fd, guest.range(at, Math.min(length, room))));
      if (length > room) state.logTruncated = true;
    }
    guest.view.setUint32(written >>> 0, total, true);
    return ERRNO.success;
  };

  const readSubscription = (at: number): Subscription | null => {
    const view = guest.view;
    const s: Subscription = {
      userdata: view.getBigUint64(at, true),
      tag: view.getUint8(at + 8),
      error: 0,
      fires: false,
      waitNs: null,
    };
    if (s.tag === 0) {
      const clock = view.getUint32(at + 16, true);
      if (clock > 1) return { ...s, error: ERRNO.inval, fires: true };
      const timeout = view.getBigUint64(at + 24, true);
      const absolute = (view.getUint16(at + 40, true) & 1) === 1;
      const now = absolute ? (clock === 1 ? monotonicNs() : realNs()) : 0n;
      // The clocks of a replay do not wait for it.
      return { ...s, waitNs: timeout > now && state.replayed === null ? timeout - now : 0n };
    }
    if (s.tag > 2) return null;
    const fd = view.getUint32(at + 16, true);
    return { ...s, fires: true, error: !isOpen(fd) ? ERRNO.badf : s.tag === 1 && fd !== 0 ? ERRNO.notcapable : 0 };
  };

  const sleep = (ns: bigint): void => {
    // Ends a little after the deadline, so that the deadline ends the execution.
    const ms = Math.min(Number(ns) / 1e6, Math.max(0, lane.remainingMs()) + 1000);
    if (ms <= 0) return;
    lane.sleeping(true);
    Atomics.wait(sleepCell, 0, 0, ms);
    lane.sleeping(false);
  };

  const pollOneoff = (inAt: number, outAt: number, countGiven: number, stored: number): number => {
    const count = countGiven >>> 0;
    if (count === 0 || count > SUBSCRIPTIONS_MAX) return ERRNO.inval;
    if (!guest.holds(inAt, count * 48) || !guest.holds(outAt, count * 32) || !guest.holds(stored, 4))
      return ERRNO.fault;
    const all: Subscription[] = [];
    for (let i = 0; i < count; i++) {
      const s = readSubscription((inAt >>> 0) + 48 * i);
      if (s === null) return ERRNO.inval;
      all.push(s);
    }
    if (!all.some(s => s.fires)) {
      const shortest = all.reduce<bigint | null>(
        (m, s) => (s.waitNs !== null && (m === null || s.waitNs < m) ? s.waitNs : m),
        null,
      );
      if (shortest !== null) {
        sleep(shortest);
        for (const s of all) if (s.waitNs !== null && s.waitNs <= shortest) s.fires = true;
      }
    }
    let k = 0;
    for (const s of all) {
      if (!s.fires) continue;
      const at = (outAt >>> 0) + 32 * k++;
      guest.bytes.fill(0, at, at + 32);
      guest.view.setBigUint64(at, s.userdata, true);
      guest.view.setUint16(at + 8, s.error, true);
      guest.view.setUint8(at + 10, s.tag);
    }
    guest.view.setUint32(stored >>> 0, k, true);
    return ERRNO.success;
  };

  const functions: Record<string, WasiFunction> = {
    args_get: () => ERRNO.success,
    args_sizes_get: emptySizes,
    environ_get: () => ERRNO.success,
    environ_sizes_get: emptySizes,
    clock_res_get(clock: number, at: number) {
      if (clock !== 0 && clock !== 1) return ERRNO.inval;
      if (!guest.holds(at, 8)) return ERRNO.fault;
      guest.view.setBigUint64(at >>> 0, clock === 0 ? MS : CLOCK_GRAIN_NS, true);
      return ERRNO.success;
    },
    clock_time_get(clock: number, _precision: bigint, at: number) {
      if (clock !== 0 && clock !== 1) return ERRNO.inval;
      if (!guest.holds(at, 8)) return ERRNO.fault;
      guest.view.setBigUint64(at >>> 0, clock === 0 ? drawnTime(0, realNs()) : drawnTime(1, monotonicNs()), true);
      return ERRNO.success;
    },
    random_get(at: number, length: number) {
      if (!guest.holds(at, length)) return ERRNO.fault;
      const range = guest.range(at, length);
      if (!state.initializing && state.replayed?.random(range) === true) return ERRNO.success;
      for (let o = 0; o < range.length; o += RANDOM_CHUNK) crypto.getRandomValues(range.subarray(o, o + RANDOM_CHUNK));
      if (!state.initializing) state.drawing?.random(range);
      return ERRNO.success;
    },
    fd_write: fdWrite,
    fd_read(fd: number, vectors: number, count: number, read: number) {
      if (!isOpen(fd)) return ERRNO.badf;
      if (fd !== 0) return ERRNO.notcapable;
      if (count >>> 0 > IOVECS_MAX) return ERRNO.inval;
      if (!guest.holds(vectors, (count >>> 0) * 8) || !guest.holds(read, 4)) return ERRNO.fault;
      guest.view.setUint32(read >>> 0, 0, true);
      return ERRNO.success;
    },
    fd_close(fd: number) {
      if (!isOpen(fd)) return ERRNO.badf;
      open[fd] = false;
      return ERRNO.success;
    },
    fd_fdstat_get: (fd: number, at: number) =>
      filled(fd, at, 24, (p, view) => {
        view.setUint8(p, 2);
        view.setUint16(p + 2, fd === 0 ? 0 : 1, true);
        view.setBigUint64(p + 8, fd === 0 ? 2n : 64n, true);
      }),
    fd_filestat_get: (fd: number, at: number) => filled(fd, at, 64, (p, view) => view.setUint8(p + 16, 2)),
    fd_fdstat_set_flags: (fd: number) => (isOpen(fd) ? ERRNO.notsup : ERRNO.badf),
    fd_seek: (fd: number) => (isOpen(fd) ? ERRNO.spipe : ERRNO.badf),
    fd_tell: (fd: number) => (isOpen(fd) ? ERRNO.spipe : ERRNO.badf),
    fd_renumber: (from: number, to: number) => (isOpen(from) && isOpen(to) ? ERRNO.notsup : ERRNO.badf),
    // libc stops its scan for preopened directories at the first EBADF.
    fd_prestat_get: () => ERRNO.badf,
    fd_prestat_dir_name: () => ERRNO.badf,
    path_symlink: () => ERRNO.badf,
    sched_yield: () => ERRNO.success,
    proc_raise: () => ERRNO.nosys,
    proc_exit(code: number): undefined {
      state.ended = 'exit';
      state.exitCode = code >>> 0;
      trap();
    },
    poll_oneoff: pollOneoff,
  };
  for (const name of Object.keys(WASI_SIGNATURES)) {
    if (functions[name] !== undefined) continue;
    const whenOpen = name.startsWith('sock_')
      ? ERRNO.notsock
      : name.startsWith('path_')
        ? ERRNO.notdir
        : ERRNO.notcapable;
    functions[name] = (fd: number) => (isOpen(fd) ? whenOpen : ERRNO.badf);
  }
  return {
    functions: wasmFunctions(guardAll(functions, state), wasiSignatures()),
    reset() {
      open.fill(true);
      takeRest(() => {});
    },
    flush() {
      takeRest((fd, rest) => {
        if (rest !== '') state.log(fd === 2 ? 3 : 1, rest);
      });
    },
  };
}

function wasiSignatures(): Map<string, WasmSignature> {
  return new Map(
    Object.entries(WASI_SIGNATURES).map(([name, letters]) => [
      name,
      { parameters: [...letters].map(l => (l === 'I' ? 'i64' : 'i32')), result: name !== 'proc_exit' },
    ]),
  );
}

/**
 * Wraps the functions: they trap once the execution has ended, and after a stack overflow, which the guest must not
 * catch.
 */
function guardAll(functions: Record<string, WasiFunction>, state: ExecutionState): Record<string, WasiFunction> {
  const guarded: Record<string, WasiFunction> = {};
  for (const [name, run] of Object.entries(functions)) {
    guarded[name] = (...args: never[]) => {
      if (state.ended !== null) trap();
      try {
        return run(...args);
      } catch (error) {
        state.ended ??= 'fault';
        state.failure ??= `WASI function ${name} failed: ${error instanceof Error ? error.message : 'unknown'}`;
        trap();
      }
    };
  }
  return guarded;
}
