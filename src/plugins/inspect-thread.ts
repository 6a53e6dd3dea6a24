import { availableParallelism } from 'node:os';
import { Worker } from 'node:worker_threads';
import { makeSemaphore } from '../base/semaphore.ts';
import type { Inspection } from './inspect.ts';
import type { Manifest } from './manifest.ts';

/**
 * The gate, in a thread of its own: reading a module of 60 MB takes most of a second, which no request should wait for.
 */
export type InspectionOrder = {
  /** The module as uploaded. */
  file: string;
  sha256: string;
  /** What `plugin_describe` has given, when the module itself carries no manifest. */
  manifest: Manifest | null;
};

export type InspectedFile = Inspection & { rewrittenSha256: string };

/** What the thread posts. */
export type InspectionAnswer = { ok: true; inspected: InspectedFile } | { ok: false; message: string };

/** Reading 64 MB takes a second; the rules of the gate bound what a module can make of it. */
const TIMEOUT_MS = 20_000;
/** A thread beyond it ends, and the module is refused: the rules of the gate bound what a module makes it hold. */
const HEAP_MB = 512;
/** A thread without work ends after this. */
const IDLE_MS = 10_000;
const semaphore = makeSemaphore(Math.max(1, Math.floor(availableParallelism() / 2)));

/**
 * Passes the module in a file through the gate.
 *
 * @returns the findings and, when none is a refusal, the module to compile
 * @throws Error when the file is not the one that was uploaded or cannot be read
 */
export function inspectFile(order: InspectionOrder): Promise<InspectedFile> {
  return semaphore(() => inThread(order));
}

/** Threads that have read a module and may read another one; what they have loaded takes longer than most modules. */
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
    // Nothing the process was started with has to be loaded for it.
    execArgv: ['--disable-warning=ExperimentalWarning'],
    resourceLimits: { maxOldGenerationSizeMb: HEAP_MB },
  });
}

/** Keeps a thread for the next module, for a while. */
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

/** Ends the threads that wait for another module: a process that ends must not have to join them. */
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
