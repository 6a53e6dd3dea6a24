import { WASI_SIGNATURES } from '../src/abi/host-functions.ts';
import type { ExecutionState } from './execution-state.ts';
import type { GuestMemory } from './guest-memory.ts';
import { trap } from './trap.ts';
import { makeClocks } from './wasi-clocks.ts';
import { ERRNO } from './wasi-layout.ts';
import { type SleepingLane, WasiPoll } from './wasi-poll.ts';
import { WasiStdio } from './wasi-stdio.ts';
import { type WasmSignature, wasmFunctions } from './wasm-functions.ts';

/** Bytes that the system gives at once. */
const RANDOM_CHUNK = 65_536;

type WasiFunction = (...args: never[]) => number | undefined;

export type WasiHost = {
  functions: Record<string, WebAssembly.ExportValue>;
  /** Opens the three standard descriptors again. Called before every execution. */
  reset(): void;
  /** Logs text that was written without a newline at its end. */
  flush(): void;
};

/**
 * WASI preview1 without a file system or sockets: clocks, randomness, standard output as log lines, sleep. Not
 * `node:wasi`, because its documentation advises against running untrusted code, and because this is 15 times faster
 * (docs/SECURITY.md).
 */
export function makeWasi(state: ExecutionState, guest: GuestMemory, lane: SleepingLane): WasiHost {
  const stdio = new WasiStdio(state, guest);
  const isOpen = (fd: number): boolean => stdio.isOpen(fd);
  const functions: Record<string, WasiFunction> = {
    ...makeEmptyLists(guest),
    ...makeClocks(state, guest),
    ...stdio.functions(),
    ...new WasiPoll(state, guest, isOpen, lane).functions(),
    ...makeProcess(state, guest),
  };
  for (const name of Object.keys(WASI_SIGNATURES)) {
    const errno = refusalOf(name);
    functions[name] ??= (fd: number) => (isOpen(fd) ? errno : ERRNO.badf);
  }
  return {
    functions: wasmFunctions(guardAll(functions, state), wasiSignatures()),
    reset: () => stdio.reset(),
    flush: () => stdio.flush(),
  };
}

/** What a function answers that is not offered, for a descriptor that is open. */
const refusalOf = (name: string): number =>
  name.startsWith('sock_') ? ERRNO.notsock : name.startsWith('path_') ? ERRNO.notdir : ERRNO.notcapable;

/** A plugin has no arguments and no environment. */
function makeEmptyLists(guest: GuestMemory) {
  const emptySizes = (count: number, bytes: number): number => {
    if (!guest.holds(count, 4) || !guest.holds(bytes, 4)) return ERRNO.fault;
    guest.view.setUint32(count >>> 0, 0, true);
    guest.view.setUint32(bytes >>> 0, 0, true);
    return ERRNO.success;
  };
  return {
    /** https://github.com/WebAssembly/WASI/blob/main/legacy/preview1/docs.md#args_get */
    args_get: () => ERRNO.success,

    /** https://github.com/WebAssembly/WASI/blob/main/legacy/preview1/docs.md#args_sizes_get */
    args_sizes_get: emptySizes,

    /** https://github.com/WebAssembly/WASI/blob/main/legacy/preview1/docs.md#environ_get */
    environ_get: () => ERRNO.success,

    /** https://github.com/WebAssembly/WASI/blob/main/legacy/preview1/docs.md#environ_sizes_get */
    environ_sizes_get: emptySizes,
  };
}

/** Randomness, and the end of an execution. */
function makeProcess(state: ExecutionState, guest: GuestMemory) {
  return {
    /**
     * Bytes are recorded, or come from a recording; those of a start are not, because a start may be remembered.
     * https://github.com/WebAssembly/WASI/blob/main/legacy/preview1/docs.md#random_get
     */
    random_get(at: number, length: number): number {
      if (!guest.holds(at, length)) return ERRNO.fault;
      const range = guest.range(at, length);
      if (!state.initializing && (state.replayed?.random(range) === true || state.first.random(range)))
        return ERRNO.success;
      for (let o = 0; o < range.length; o += RANDOM_CHUNK) crypto.getRandomValues(range.subarray(o, o + RANDOM_CHUNK));
      if (state.initializing) {
        // Another run would have another start.
        state.first.end();
        return ERRNO.success;
      }
      state.drawing?.random(range);
      state.first.noteRandom(range);
      return ERRNO.success;
    },

    /** https://github.com/WebAssembly/WASI/blob/main/legacy/preview1/docs.md#path_symlink */
    path_symlink: () => ERRNO.badf,

    /** https://github.com/WebAssembly/WASI/blob/main/legacy/preview1/docs.md#sched_yield */
    sched_yield: () => ERRNO.success,

    /** https://github.com/WebAssembly/WASI/blob/main/legacy/preview1/docs.md#proc_raise */
    proc_raise: () => ERRNO.nosys,

    /** https://github.com/WebAssembly/WASI/blob/main/legacy/preview1/docs.md#proc_exit */
    proc_exit(code: number): undefined {
      state.ended = 'exit';
      state.exitCode = code >>> 0;
      trap();
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

const hasExited = ({ ended }: ExecutionState): boolean => ended === 'exit';

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
        // `proc_exit` ends it by a trap as well, and has not failed.
        if (hasExited(state)) trap();
        state.ended ??= 'fault';
        state.failure ??= `WASI function ${name} failed: ${error instanceof Error ? error.message : 'unknown'}`;
        trap();
      }
    };
  }
  return guarded;
}
