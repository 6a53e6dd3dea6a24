import { spawn } from 'node:child_process';
import fs from 'node:fs';
import { LIMITS } from '../base/limits.ts';
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

/**
 * Processor time of the child: a soft limit, so that the signal names the limit; a second later the system kills the
 * child.
 */
const CPU_SECONDS = 2;
/** Resident memory of the child, not the address space V8 reserves. */
const MEMORY_MIB = 1024;
/** Elapsed time of the child; on an overloaded host it may end here without using its processor time. */
const TIMEOUT_MS = 30_000;
/**
 * How often the resident memory of the child is read. The limit of the system acts at once, but does not count shared
 * pages.
 */
const LOOK_MS = 20;
/** Plain JavaScript, because stripping types would use memory and time of the trial. */
const SCRIPT =
  "const {readFileSync: r} = require('node:fs'); const b = r(3); if (!WebAssembly.validate(b)) new WebAssembly.Module(b); new WebAssembly.Module(r(0))";

type Ending = { code: number | null; signal: NodeJS.Signals | null; text: string; overMemory: boolean; late: boolean };

/**
 * Compiles a module in a child process with the flags of the serving one, in 1 GiB of memory and 2 s of processor time,
 * so that a module that is too much for the compiler harms no other process. Also validates the upload: it could name
 * the control memory, which does not exist there, but exists in the rewritten module, where the compiler would not
 * object.
 *
 * @param uploaded file of the module as uploaded
 * @param runnable file of the rewritten module
 * @returns null if it compiles, otherwise the reason as a sentence
 */
export async function trialCompile(uploaded: string, runnable: string): Promise<string | null> {
  const ending = await runTrial(uploaded, runnable);
  if (ending.code === 0 && !ending.overMemory) return null;
  const compile = /CompileError: (.*)/.exec(ending.text)?.[1];
  if (compile !== undefined) return compile;
  if (ending.overMemory || /out of memory|GrowBuffer|allocation failed|bad_alloc/i.test(ending.text))
    return `compiling the module takes more than ${MEMORY_MIB} MiB of memory; split its largest functions`;
  if (ending.signal === 'SIGXCPU')
    return `compiling the module takes more than ${CPU_SECONDS} s of processor time; make it smaller or split its largest functions`;
  if (ending.late)
    return `compiling the module did not end within ${TIMEOUT_MS / 1000} s; this host may be overloaded, try again`;
  return `the compiler ended with ${ending.signal ?? `code ${ending.code}`} on the module: ${firstLine(ending.text)}`;
}

function firstLine(text: string): string {
  const line = text.split('\n').find(l => /[A-Za-z]{3}/.test(l)) ?? 'no error text';
  return line
    .replaceAll(/[^\x20-\x7e]/g, ' ')
    .trim()
    .slice(0, 200);
}

async function runTrial(uploaded: string, runnable: string): Promise<Ending> {
  const limits = `ulimit -S -t ${CPU_SECONDS} && ulimit -H -t ${CPU_SECONDS + 1} && ulimit -d ${MEMORY_MIB * 1024} && ulimit -c 0`;
  const args = [process.execPath, ...WASM_FLAGS, '-e', SCRIPT];
  const files = [uploaded, runnable].map(file => fs.openSync(file, 'r'));
  const ending: Ending = { code: null, signal: null, text: '', overMemory: false, late: false };
  const timers: NodeJS.Timeout[] = [];
  try {
    const [original = 'ignore', module = 'ignore'] = files;
    const child = spawn('/bin/sh', ['-c', `${limits} && exec "$0" "$@"`, ...args], {
      stdio: [module, 'ignore', 'pipe', original],
      env: {},
    });
    timers.push(
      setTimeout(() => {
        ending.late = true;
        child.kill('SIGKILL');
      }, TIMEOUT_MS),
      setInterval(() => {
        if (child.pid === undefined || residentMib(child.pid) <= MEMORY_MIB) return;
        ending.overMemory = true;
        child.kill('SIGKILL');
      }, LOOK_MS),
    );
    child.stderr?.on('data', (chunk: Buffer) => {
      if (ending.text.length < 10_000) ending.text += chunk.toString();
    });
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
