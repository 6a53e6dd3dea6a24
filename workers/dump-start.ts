import { Buffer } from 'node:buffer';
import { performance } from 'node:perf_hooks';
import {
  CONTROL,
  CONTROL_MEMORY,
  GUEST_MEMORY,
  HOST_MODULE,
  START_EXPORT,
  TABLE_EXPORT,
} from '../src/abi/host-memory.ts';
import { REPORT_LENGTH_BYTES, type StartOrder, type StartReport } from '../src/abi/start-report.ts';
import { LIMITS, PAGE_BYTES } from '../src/base/limits.ts';
import { ExecutionState } from './execution-state.ts';
import { GuestMemory } from './guest-memory.ts';
import { makeHostImports } from './host-imports.ts';
import { makeWasi } from './wasi.ts';

/** Longest time from the beginning of the start at which it may still sleep. */
const SLEEP_UNTIL_MS = 1000;
const BLOCK_BYTES = 4096;
/** Zeros between two parts of the image up to which copying them is cheaper than another part. */
const GAP_BYTES = 16_384;
const EXTENTS_MAX = 1000;

/** WASI functions whose answers differ between executions, or that an execution shows. */
const ASKED: Readonly<Record<string, keyof StartReport['asked']>> = {
  random_get: 'random',
  clock_time_get: 'clock',
  poll_oneoff: 'clock',
  fd_write: 'output',
};

/** The parts of a memory that are not zero, in whole blocks. */
function extentsOf(memory: Uint8Array): Array<[number, number]> {
  const zeros = new Uint8Array(PAGE_BYTES);
  const isZero = (from: number, length: number): boolean =>
    Buffer.compare(memory.subarray(from, from + length), zeros.subarray(0, length)) === 0;
  const blocks: number[] = [];
  for (let page = 0; page < memory.length; page += PAGE_BYTES) {
    if (isZero(page, PAGE_BYTES)) continue;
    for (let at = page; at < page + PAGE_BYTES; at += BLOCK_BYTES) if (!isZero(at, BLOCK_BYTES)) blocks.push(at);
  }
  for (let gap = GAP_BYTES; ; gap *= 4) {
    const extents: Array<[number, number]> = [];
    for (const at of blocks) {
      const last = extents.at(-1);
      if (last !== undefined && at - (last[0] + last[1]) <= gap) last[1] = at + BLOCK_BYTES - last[0];
      else extents.push([at, BLOCK_BYTES]);
    }
    if (extents.length <= EXTENTS_MAX) return extents;
  }
}

/** Everything the tables of an instance hold. */
function tableEntries(exports: WebAssembly.Exports): unknown[] {
  const entries: unknown[] = [];
  for (let n = 0; ; n++) {
    const table = exports[`${TABLE_EXPORT}${n}`];
    if (!(table instanceof WebAssembly.Table)) return entries;
    entries.push(table.length);
    for (let k = 0; k < table.length; k++) entries.push(table.get(k));
  }
}

/** Runs the start of a compiled module with every host function denied. */
function runStart(module: WebAssembly.Module, { controlPages, memoryPages }: StartOrder) {
  const control = new WebAssembly.Memory({ initial: controlPages, maximum: controlPages });
  const state = new ExecutionState(new Int32Array(control.buffer));
  const guest = new GuestMemory(state.control);
  const memory = new WebAssembly.Memory({ initial: memoryPages.min, maximum: memoryPages.max });
  state.reset();
  state.control[CONTROL.pages] = memoryPages.min;
  guest.bind(memory, new Uint8Array(memory.buffer), new DataView(memory.buffer));
  const until = performance.now() + SLEEP_UNTIL_MS;
  // `sleep` ends a second after what remains.
  const wasi = makeWasi(state, guest, { remainingMs: () => until - performance.now() - 1000, sleeping() {} });
  const report: StartReport = {
    failure: null,
    asked: { random: 0, clock: 0, output: 0 },
    closed: false,
    tablesChanged: false,
    sleeps: false,
    overflowed: false,
    pages: memoryPages.min,
    imageBytes: 0,
    extents: [],
  };
  const noting = Object.entries(wasi.functions).map(([name, run]) => {
    const asked = ASKED[name];
    const noted = (...args: unknown[]): unknown => {
      if (asked !== undefined) report.asked[asked]++;
      if (name === 'fd_close') report.closed = true;
      if (name === 'poll_oneoff' && performance.now() > until) {
        report.sleeps = true;
        throw new Error('the start sleeps too long');
      }
      return typeof run === 'function' ? run(...args) : undefined;
    };
    return [name, noted];
  });
  try {
    const { exports } = new WebAssembly.Instance(module, {
      plugin_host: makeHostImports(state, guest, { keepBody: () => null, call: () => -1 }),
      wasi_snapshot_preview1: Object.fromEntries(noting),
      [HOST_MODULE]: { [GUEST_MEMORY]: memory, [CONTROL_MEMORY]: control },
    });
    const before = tableEntries(exports);
    const start = exports[START_EXPORT];
    if (typeof start !== 'function') throw new Error(`the module has no export ${START_EXPORT}`);
    start();
    const after = tableEntries(exports);
    report.tablesChanged = before.length !== after.length || before.some((entry, k) => entry !== after[k]);
    if (state.ended !== null) report.failure = state.failure ?? `it ended itself (${state.ended})`;
  } catch (error) {
    report.overflowed = error instanceof RangeError;
    report.failure =
      state.ended === 'exit'
        ? `it called proc_exit(${state.exitCode})`
        : error instanceof Error
          ? error.message
          : 'an exception was thrown and not caught';
  }
  report.pages = guest.pages;
  return { report, control: new Uint8Array(control.buffer), memory: guest.bytes };
}

/**
 * Runs the start of a plugin once.
 *
 * @param module compiled, of what runs the start alone
 * @returns what it leaves, as parts of a file: the length of the report, the report, and the image if it can be kept
 */
export function dumpStart(module: WebAssembly.Module, order: StartOrder): Uint8Array[] {
  const { control, memory, report } = runStart(module, order);
  const image: Uint8Array[] = [];
  if (report.failure === null) {
    const extents = extentsOf(memory);
    report.imageBytes = extents.reduce((sum, [, length]) => sum + length, 0);
    if (report.imageBytes <= LIMITS.startImageBytesMax) {
      report.extents = extents;
      image.push(control, ...extents.map(([address, length]) => memory.subarray(address, address + length)));
    }
  }
  const text = Buffer.from(JSON.stringify(report));
  const length = Buffer.alloc(REPORT_LENGTH_BYTES);
  length.writeUInt32LE(text.length);
  return [length, text, ...image];
}
