import { spawn } from 'node:child_process';
import fs from 'node:fs';
import { availableParallelism } from 'node:os';
import { LIMITS } from '../base/limits.ts';
import { makeSemaphore } from '../base/semaphore.ts';
import { GATE } from './gate/gate-limits.ts';

/**
 * Flags of every process that compiles plugins; worker threads and NODE_OPTIONS refuse them (docs/SECURITY.md,
 * "Sandbox"). All code is compiled before it runs, each function once, by the compiler the gate chose for it
 * (`gate/compile-cost`). So a killed execution leaves no compilation running.
 */
export const WASM_FLAGS = [
  `--wasm-max-mem-pages=${LIMITS.memoryPagesMax}`,
  `--wasm-max-table-size=${GATE.tableEntries}`,
  '--no-wasm-lazy-compilation',
  '--no-wasm-dynamic-tiering',
  '--no-wasm-tier-up',
  '--experimental-wasm-compilation-hints',
] as const;

/** Resident memory of the child, not the address space V8 reserves. */
export const CHILD_MEMORY_MIB = 1024;
/** Elapsed time of the child; on an overloaded host it may end here without using its processor time. */
const TIMEOUT_MS = 30_000;
/**
 * How often the resident memory of the child is read. The limit of the system acts at once, but does not count shared
 * pages.
 */
const LOOK_MS = 20;
const OUTPUT_CHARS_MAX = 10_000;
/** Largest file a child writes, in blocks of 512 bytes: 64 MiB. */
const FILE_BLOCKS_MAX = 131_072;
/** Stack in KiB: that of a lane, which is a thread with 4 MiB. */
const STACK_KIB = 3904;
/** Children at a time; further ones wait. Each may take 1 GiB of memory. */
const turns = makeSemaphore(Math.min(4, availableParallelism()));

/** How a child ended. `text`: what it wrote as errors. */
export type Ending = {
  code: number | null;
  signal: NodeJS.Signals | null;
  output: string;
  text: string;
  overMemory: boolean;
  late: boolean;
};

export type LimitedChild = {
  /** Arguments of Node after the flags. */
  args: readonly string[];
  /**
   * Processor time: a soft limit, so that the signal names the limit; a second later the system kills the child.
   */
  cpuSeconds: number;
  /** Files it reads: the first on standard input, the others on the descriptors from 3. */
  reads: readonly string[];
  /** File it writes, on the next descriptor. */
  writes?: string;
};

/**
 * Runs Node with the flags of the serving process in a process of its own, in 1 GiB of memory and with limited
 * processor time, so that a module that is too much for it harms no other process.
 */
export const runLimitedChild = (child: LimitedChild): Promise<Ending> => turns(() => run(child));

async function run({ args, cpuSeconds, reads, writes }: LimitedChild): Promise<Ending> {
  const time = `ulimit -S -t ${cpuSeconds} && ulimit -H -t ${cpuSeconds + 1}`;
  const limits = `${time} && ulimit -d ${CHILD_MEMORY_MIB * 1024} && ulimit -f ${FILE_BLOCKS_MAX} && ulimit -c 0`;
  const command = [process.execPath, ...WASM_FLAGS, `--stack-size=${STACK_KIB}`, ...args];
  const files: number[] = [];
  const ending: Ending = { code: null, signal: null, output: '', text: '', overMemory: false, late: false };
  const timers: NodeJS.Timeout[] = [];
  try {
    for (const file of reads) files.push(fs.openSync(file, 'r'));
    if (writes !== undefined) files.push(fs.openSync(writes, 'w'));
    const [input = 'ignore', ...others] = files;
    const child = spawn('/bin/sh', ['-c', `${limits} && exec "$0" "$@"`, ...command], {
      stdio: [input, 'pipe', 'pipe', ...others],
      env: {},
    });
    timers.push(
      setTimeout(() => {
        ending.late = true;
        child.kill('SIGKILL');
      }, TIMEOUT_MS),
      setInterval(() => {
        if (child.pid === undefined || residentMib(child.pid) <= CHILD_MEMORY_MIB) return;
        ending.overMemory = true;
        child.kill('SIGKILL');
      }, LOOK_MS),
    );
    const keep = (part: 'output' | 'text') => (chunk: string) => {
      if (ending[part].length < OUTPUT_CHARS_MAX) ending[part] += chunk;
    };
    child.stdout?.setEncoding('utf8').on('data', keep('output'));
    child.stderr?.setEncoding('utf8').on('data', keep('text'));
    await new Promise<void>((resolve, reject) => {
      child.once('error', reject);
      child.once('close', (code, signal) => {
        ending.code = code;
        ending.signal = signal;
        resolve();
      });
    });
    return ending;
  } finally {
    for (const timer of timers) clearTimeout(timer);
    for (const file of files) fs.closeSync(file);
  }
}

/** Peak resident memory of a process; 0 where the system does not report it. */
function residentMib(pid: number): number {
  try {
    return Number(/^VmHWM:\s*(\d+) kB/m.exec(fs.readFileSync(`/proc/${pid}/status`, 'latin1'))?.[1] ?? 0) / 1024;
  } catch {
    return 0;
  }
}

/** Signals by which a process ends that does what it must not, or that V8 ends itself with. */
const CRASHES: ReadonlySet<string> = new Set(['SIGSEGV', 'SIGABRT', 'SIGILL', 'SIGBUS', 'SIGTRAP', 'SIGFPE']);

export const isCrash = (ending: Ending): boolean => ending.signal !== null && CRASHES.has(ending.signal);

/** Why a child ended without success, without what its errors say; null if only those say it. */
export function limitOf(ending: Ending): 'memory' | 'processor time' | 'time' | null {
  if (ending.overMemory || /out of memory|GrowBuffer|allocation failed|bad_alloc/i.test(ending.text)) return 'memory';
  if (ending.signal === 'SIGXCPU') return 'processor time';
  return ending.late ? 'time' : null;
}
