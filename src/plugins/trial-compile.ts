import { spawn } from 'node:child_process';
import fs from 'node:fs';
import { GATE, LIMITS } from '../limits.ts';

/** Address space of the child in KiB: Node itself reserves below 4 GiB. */
const ADDRESS_SPACE_KIB = 6 * 1024 * 1024;
const TIMEOUT_MS = 20_000;
/** Plain JavaScript: stripping types from a file would itself reserve more address space than the trial has. */
const SCRIPT =
  "const {readFileSync: r} = require('node:fs'); const b = r(3); if (!WebAssembly.validate(b)) new WebAssembly.Module(b); new WebAssembly.Module(r(0))";

/** Flags of every process that compiles plugins; worker threads and NODE_OPTIONS refuse them (security.md layer 2). */
export const WASM_FLAGS = [
  `--wasm-max-mem-pages=${LIMITS.memoryPagesMax}`,
  `--wasm-max-table-size=${GATE.tableEntries}`,
] as const;

/**
 * Compiles a module in a child process under an address-space limit with lazy compilation off, so that a module the
 * compiler chokes on takes nothing along. The upload is validated too: what it may not name (the control memory) exists
 * only in the rewritten module, so there the compiler would not object.
 *
 * @param uploaded file of the module as uploaded
 * @param runnable file of the rewritten module
 * @returns null when it compiles, else the reason in plain words
 */
export async function trialCompile(uploaded: string, runnable: string): Promise<string | null> {
  const script = `ulimit -v ${ADDRESS_SPACE_KIB} && exec "$0" "$@"`;
  const args = [process.execPath, '--no-wasm-lazy-compilation', ...WASM_FLAGS, '-e', SCRIPT];
  const files = [uploaded, runnable].map(file => fs.openSync(file, 'r'));
  let text = '';
  let code: number | null;
  let signal: NodeJS.Signals | null;
  try {
    const [original = 'ignore', module = 'ignore'] = files;
    const child = spawn('/bin/sh', ['-c', script, ...args], {
      stdio: [module, 'ignore', 'pipe', original],
      env: {},
      timeout: TIMEOUT_MS,
      killSignal: 'SIGKILL',
    });
    child.stderr?.on('data', (chunk: Buffer) => {
      if (text.length < 10_000) text += chunk.toString();
    });
    [code, signal] = await new Promise<[number | null, NodeJS.Signals | null]>((resolve, reject) => {
      child.once('error', reject);
      child.once('close', (c, s) => resolve([c, s]));
    });
  } finally {
    for (const file of files) fs.closeSync(file);
  }
  if (code === 0) return null;
  const compile = /CompileError: (.*)/.exec(text)?.[1];
  if (compile !== undefined) return compile;
  if (signal === 'SIGKILL') return `the module does not compile within ${TIMEOUT_MS / 1000} s`;
  return `compiling the module takes more memory than the trial allows (${ADDRESS_SPACE_KIB / 1024 / 1024} GiB of address space)`;
}
