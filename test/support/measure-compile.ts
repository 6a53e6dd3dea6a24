import { spawn } from 'node:child_process';
import { WASM_FLAGS } from '../../src/plugins/limited-child.ts';

const SCRIPT = `
  const chunks = [];
  process.stdin.on('data', c => chunks.push(c)).on('end', () => {
    const bytes = Buffer.concat(chunks);
    const before = process.resourceUsage();
    new WebAssembly.Module(bytes);
    const after = process.resourceUsage();
    const cpu = u => (u.userCPUTime + u.systemCPUTime) / 1000;
    console.log(JSON.stringify({ cpuMs: cpu(after) - cpu(before), memoryMb: (after.maxRSS - before.maxRSS) / 1024 }));
  });`;

export type Measured = { cpuMs: number; memoryMb: number };

/**
 * Compiles a module in a process of its own, with the flags of the serving one and far wider limits than a trial has.
 *
 * @returns processor time and memory of the compilation alone, or how the process ended
 */
export function measureCompile(module: Uint8Array): Promise<Measured | string> {
  const limits = 'ulimit -t 20 && ulimit -d 4000000 && ulimit -c 0 && exec "$0" "$@"';
  const child = spawn('/bin/sh', ['-c', limits, process.execPath, ...WASM_FLAGS, '-e', SCRIPT], { env: {} });
  let out = '';
  let errors = '';
  child.stdout.on('data', (c: Buffer) => (out += c.toString()));
  child.stderr.on('data', (c: Buffer) => (errors += c.toString().slice(0, 2000)));
  child.stdin.on('error', () => {});
  child.stdin.end(module);
  return new Promise((resolve, reject) => {
    child.once('error', reject);
    child.once('close', (code, signal) =>
      resolve(code === 0 ? (JSON.parse(out) as Measured) : `${signal ?? code}: ${errors.trim().slice(0, 300)}`),
    );
  });
}
