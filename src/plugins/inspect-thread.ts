import { availableParallelism } from 'node:os';
import { Worker } from 'node:worker_threads';
import { makeSemaphore } from '../base/semaphore.ts';
import type { Inspection } from './inspect.ts';
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
};

export type InspectedFile = Inspection & { rewrittenSha256: string };

/** The message the thread posts. */
export type InspectionAnswer = { ok: true; inspected: InspectedFile } | { ok: false; message: string };

/** Time limit. Reading 64 MB takes a second; the rules of the gate bound how slow a module can make it. */
const TIMEOUT_MS = 20_000;
/**
 * Heap limit. A thread that exceeds it ends and the module is refused; the rules of the gate bound how much a module
 * can need.
 */
const HEAP_MB = 512;
/** An idle thread ends after this time. */
const IDLE_MS = 10_000;
const semaphore = makeSemaphore(Math.max(1, Math.floor(availableParallelism() / 2)));

/**
 * Runs the gate on the module in a file.
 *
 * @returns the findings and, if none is a refusal, the module to compile
 * @throws Error if the file differs from the upload or cannot be read
 */
export function inspectFile(order: InspectionOrder): Promise<InspectedFile> {
  return semaphore(() => inThread(order));
}

/** Idle threads, kept for the next module because loading a thread's code takes longer than most modules. */
const idle: Array<{ worker: Worker; end: NodeJS.Timeout }> = [];

function takeThread(): Worker {
  const kept = idle.pop();
  if (kept !== undefined) {
    clearTimeout(kept.end);
    for (const event of ['error', 'exit']) kept.worker.removeAllListeners(event);
    kept.worker.ref();
    return kept.worker;
  }
  return new Worker(new URL('./inspect-worker.ts', import.meta.url), {
    env: {},
    // The thread needs no options of the process, like loaders.
    execArgv: ['--disable-warning=ExperimentalWarning'],
    resourceLimits: { maxOldGenerationSizeMb: HEAP_MB },
  });
}

/** Keeps a thread for the next module for some time. */
function keepThread(worker: Worker): void {
  for (const event of ['message', 'error', 'exit']) worker.removeAllListeners(event);
  const drop = (): void => {
    const at = idle.findIndex(i => i.worker === worker);
    if (at >= 0) clearTimeout(idle.splice(at, 1)[0]?.end);
  };
  const end = setTimeout(() => {
    drop();
    void worker.terminate();
  }, IDLE_MS).unref();
  worker.once('error', drop);
  worker.once('exit', drop);
  worker.unref();
  idle.push({ worker, end });
}

/** Ends the idle threads, so that the process can exit without waiting for them. */
export async function endIdleThreads(): Promise<void> {
  await Promise.all(
    idle.splice(0).map(({ end, worker }) => {
      clearTimeout(end);
      return worker.terminate();
    }),
  );
}

function inThread(order: InspectionOrder): Promise<InspectedFile> {
  const worker = takeThread();
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => {
      resolve(refused('time', `reading the module takes longer than ${TIMEOUT_MS / 1000} s`));
      void worker.terminate();
    }, TIMEOUT_MS);
    worker.once('message', (answer: InspectionAnswer) => {
      clearTimeout(timer);
      keepThread(worker);
      if (answer.ok) resolve(answer.inspected);
      else reject(new Error(answer.message));
    });
    worker.once('error', error => {
      if ('code' in error && error.code === 'ERR_WORKER_OUT_OF_MEMORY')
        resolve(refused('memory', `reading the module takes more than ${HEAP_MB} MB of memory`));
      else reject(error);
    });
    worker.once('exit', () => {
      clearTimeout(timer);
      reject(new Error('the thread that read the module ended without an answer'));
    });
    worker.postMessage(order);
  });
}

function refused(rule: string, message: string): InspectedFile {
  return {
    findings: [{ level: 'refusal', rule, message }],
    manifest: null,
    mustDescribe: false,
    memoryPages: null,
    rewritten: null,
    rewrittenSha256: '',
  };
}
