import fs from 'node:fs';
import { inspectModule } from '../src/plugins/inspect.ts';
import { expensiveModule, type Next } from '../test/support/expensive-modules.ts';
import { measureCompile } from '../test/support/measure-compile.ts';
import { admin, install, memoryMb, servingPid, startHost } from './host.ts';

/** Bytes of code a module may be given; small ones find what is expensive for its size. */
const SCALES = [3000, 30_000, 200_000, 1_000_000] as const;

export type CompileResult = {
  accepted: number;
  /** Most that one accepted module took. */
  memoryMb: number;
  cpuMs: number;
  /** Most for its size, in megabytes per megabyte and milliseconds per megabyte, of modules above 10 KB. */
  memoryPerMb: number;
  cpuPerMb: number;
  /** How the compiler ended on modules the gate had accepted. */
  failures: string[];
};

/** Makes modules that are meant to be expensive and compiles those the gate accepts, each in a process of its own. */
export async function compileExpensive(count: number, next: Next): Promise<CompileResult> {
  const r: CompileResult = { accepted: 0, memoryMb: 0, cpuMs: 0, memoryPerMb: 0, cpuPerMb: 0, failures: [] };
  for (let k = 0; k < count; k++) {
    const { bytes, name } = expensiveModule(next, SCALES[next(SCALES.length)] ?? 3000);
    const { rewritten } = inspectModule(bytes);
    if (rewritten === null) continue;
    r.accepted++;
    const measured = await measureCompile(rewritten.bytes);
    if (typeof measured === 'string') {
      r.failures.push(`module ${k}, ${name}: ${measured}`);
      continue;
    }
    r.memoryMb = Math.max(r.memoryMb, measured.memoryMb);
    r.cpuMs = Math.max(r.cpuMs, measured.cpuMs);
    if (bytes.length < 10_000) continue;
    r.memoryPerMb = Math.max(r.memoryPerMb, (measured.memoryMb * 1e6) / bytes.length);
    r.cpuPerMb = Math.max(r.cpuPerMb, (measured.cpuMs * 1e6) / bytes.length);
  }
  return r;
}

/** Processor time of a process so far, in ms. */
function cpuMsOf(pid: number): number {
  const stat = fs.readFileSync(`/proc/${pid}/stat`, 'latin1');
  const [user = 0, system = 0] = stat
    .slice(stat.lastIndexOf(')') + 2)
    .split(' ')
    .slice(11, 13)
    .map(Number);
  return (user + system) * 10;
}

export type KilledResult = { statuses: number[]; memoryMb: number; idleCpuMs: number };

/**
 * Calls a plugin of much code that loops, eight times at once, until the deadline ends them.
 *
 * @param module plugin `expensive`, with a handler that does not end
 * @returns the most memory the serving process grew by, and its processor time in two seconds after the last answer
 */
export async function killExpensive(directory: string, module: Uint8Array): Promise<KilledResult> {
  const host = await startHost(directory, { BOT_EXECUTION_TIMEOUT_MS: '1000' });
  try {
    await install(host.port, module);
    const pid = servingPid(host);
    const before = memoryMb(pid);
    let most = before;
    const watch = setInterval(() => {
      most = Math.max(most, memoryMb(pid));
    }, 20);
    const call = (): Promise<number> =>
      fetch(`http://127.0.0.1:${host.port}/api/triggers/http/expensive/run`).then(r => r.status);
    const statuses = await Promise.all(Array.from({ length: 8 }, call));
    clearInterval(watch);
    await admin(host.port, 'POST', '/plugins/expensive/disable');
    // The threads that replace the ended ones start 100 ms apart.
    await new Promise(resolve => setTimeout(resolve, 5000));
    const at = cpuMsOf(pid);
    await new Promise(resolve => setTimeout(resolve, 2000));
    return { statuses, memoryMb: most - before, idleCpuMs: cpuMsOf(pid) - at };
  } finally {
    await host.stop();
  }
}
