import { availableParallelism } from 'node:os';
import { ThreadEnded, WorkerTask } from '../base/worker-task.ts';
import type { FindingRule } from './finding.ts';
import type { Inspection, KnownStart } from './inspect.ts';
import type { Manifest } from './manifest.ts';

/**
 * Runs the gate in a separate thread: reading a module of 60 MB takes most of a second, which no request should wait
 * for.
 */
export type InspectionOrder = {
  /** The module as uploaded. */
  file: string;
  sha256: string;
  /** The manifest from `plugin_describe`, if the module has no manifest section. */
  manifest: Manifest | null;
  start: KnownStart;
};

export type InspectedFile = Inspection & { rewrittenSha256: string };

/** Time limit. Reading 64 MB takes a second; the rules of the gate bound how slow a module can make it. */
const TIMEOUT_MS = 20_000;
/**
 * Heap limit. A thread that exceeds it ends and the module is refused; the rules of the gate bound how much a module
 * can need.
 */
const HEAP_MB = 512;
/** An idle thread ends after this time. */
const IDLE_MS = 10_000;

const makeTask = (idleMs: number): WorkerTask<InspectionOrder, InspectedFile> =>
  new WorkerTask({
    file: new URL('./inspect-worker.ts', import.meta.url),
    does: 'reads modules',
    threads: Math.max(1, Math.floor(availableParallelism() / 2)),
    deadlineMs: TIMEOUT_MS,
    idleMs,
    heapMb: HEAP_MB,
  });

let inspection = makeTask(IDLE_MS);

/** From now on threads stay: for `plugin dev`, where the next change should not wait for the start of one. */
export function keepInspectThreads(): void {
  inspection = makeTask(Number.POSITIVE_INFINITY);
}

/**
 * Runs the gate on the module in a file.
 *
 * @returns the findings and, if none is a refusal, the module to compile
 * @throws Error if the file differs from the upload or cannot be read
 */
export async function inspectFile(order: InspectionOrder): Promise<InspectedFile> {
  try {
    return await inspection.run(order);
  } catch (error) {
    if (!(error instanceof ThreadEnded) || error.why === 'other') throw error;
    return error.why === 'deadline'
      ? refused('time', `reading the module takes longer than ${TIMEOUT_MS / 1000} s`)
      : refused('memory', `reading the module takes more than ${HEAP_MB} MB of memory`);
  }
}

/** Ends the threads: a process that ends must not have to join them. */
export const endInspectThreads = (): Promise<void> => inspection.end();

function refused(rule: FindingRule, message: string): InspectedFile {
  return {
    findings: [{ level: 'refusal', rule, message }],
    manifest: null,
    signature: null,
    mustDescribe: false,
    rewritten: null,
    startModule: null,
    rewrittenSha256: '',
  };
}
