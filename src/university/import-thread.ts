import { SHARE_ENV, Worker } from 'node:worker_threads';
import { type ErrorCode, type FieldError, messageOf, ServiceError } from '../base/errors.ts';
import { LIMITS } from '../base/limits.ts';
import type { BatchOrder, BatchResult } from './batch.ts';
import type { EntityType } from './entities.ts';
import type { ImportRun } from './import-log.ts';
import type { PullOrder, PullProgress } from './pull.ts';

/** Where lists come from and lie; what the thread is started with. */
export type ImportSettings = {
  databaseUrl: string;
  directory: string;
  baseUrl: string;
  token: string;
  pageMs: number;
  firstWaitMs: number;
  brakePercent: number;
};

export type ImportTask =
  | { kind: 'batch'; type: EntityType; order: BatchOrder }
  | { kind: 'pull'; importId: number; order: PullOrder }
  /** Positions and appointments begin and end by their dates. */
  | { kind: 'dates'; today: string };

export type TaskResult<T extends ImportTask> = T extends { kind: 'batch' }
  ? BatchResult
  : T extends { kind: 'pull' }
    ? ImportRun
    : number;

export type ToThread = { id: number; task: ImportTask } | { id: number; abort: string };
export type FromThread = { id: number } & (
  | { kind: 'progress'; progress: PullProgress }
  | { kind: 'problem'; type: EntityType; problem: string }
  | { kind: 'done'; result: unknown }
  | { kind: 'refused'; code: ErrorCode; message: string; errors: FieldError[] }
  | { kind: 'failed'; message: string; stack: string | undefined; code: string | undefined }
);

export type TaskEvents = {
  onProgress?(progress: PullProgress): void;
  onProblem?(type: EntityType, problem: string): void;
  signal?: AbortSignal;
};

type Waiting = { resolve(result: unknown): void; reject(error: Error): void; events: TaskEvents };

const stopping = (): ServiceError =>
  new ServiceError('draining', 'the host is shutting down', { headers: [['Retry-After', '2']] });

/** Why a task is ended before it is done, for the log of imports. */
function whyEnded(signal: AbortSignal | undefined): string {
  const reason: unknown = signal?.reason;
  return reason instanceof Error && reason.name === 'TimeoutError'
    ? `it was not done after ${LIMITS.universityPullMs / 3_600_000} hours (universityPullMs)`
    : messageOf(reason);
}

/** Started with its first task; what it holds is given back when it has had none for so long. */
const IDLE_MS = 60_000;

/**
 * Imports in a thread of their own with a low priority and a connection of its own: parsing a hundred thousand records
 * takes seconds, which no request of the main thread should wait for.
 */
export class ImportThread {
  readonly #settings: ImportSettings;
  #worker: Worker | null = null;
  #lastId = 0;
  #idle: NodeJS.Timeout | null = null;
  readonly #waiting = new Map<number, Waiting>();
  #closed = false;

  constructor(settings: ImportSettings) {
    this.#settings = settings;
  }

  /** @throws ServiceError what the thread refused */
  async run<T extends ImportTask>(task: T, events: TaskEvents = {}): Promise<TaskResult<T>> {
    if (this.#closed) throw stopping();
    const worker = this.#worker ?? this.#start();
    if (this.#idle !== null) clearTimeout(this.#idle);
    const id = ++this.#lastId;
    const abort = (): void => worker.postMessage({ id, abort: whyEnded(events.signal) } satisfies ToThread);
    events.signal?.addEventListener('abort', abort, { once: true });
    try {
      const result = await new Promise<unknown>((resolve, reject) => {
        this.#waiting.set(id, { resolve, reject, events });
        worker.postMessage({ id, task } satisfies ToThread);
        if (events.signal?.aborted === true) abort();
      });
      return result as TaskResult<T>;
    } finally {
      events.signal?.removeEventListener('abort', abort);
      this.#waiting.delete(id);
      if (this.#waiting.size === 0) this.#idle = setTimeout(() => void this.#end(), IDLE_MS).unref();
    }
  }

  #start(): Worker {
    const worker = new Worker(new URL('./import-worker.ts', import.meta.url), {
      workerData: this.#settings,
      // The database's client library reads settings of its own there.
      env: SHARE_ENV,
      execArgv: ['--disable-warning=ExperimentalWarning'],
      // Garbage of a list is collected before it piles up; a million ids fit.
      resourceLimits: { maxYoungGenerationSizeMb: 8, maxOldGenerationSizeMb: 512 },
    });
    worker.on('message', (message: FromThread) => this.#hear(message));
    const ended = (error: Error): void => {
      // One that was ended while it was idle has no tasks; those that wait are its successor's.
      if (this.#worker !== worker) return;
      this.#worker = null;
      for (const { reject } of this.#waiting.values()) reject(error);
    };
    worker.on('error', ended);
    worker.on('exit', () => ended(new Error('the thread that imports has ended')));
    this.#worker = worker;
    return worker;
  }

  #hear(message: FromThread): void {
    const waiting = this.#waiting.get(message.id);
    if (waiting === undefined) return;
    switch (message.kind) {
      case 'progress':
        return waiting.events.onProgress?.(message.progress);
      case 'problem':
        return waiting.events.onProblem?.(message.type, message.problem);
      case 'done':
        return waiting.resolve(message.result);
      case 'refused':
        return waiting.reject(new ServiceError(message.code, message.message, { errors: message.errors }));
      case 'failed': {
        // The code shows whether the database is unavailable.
        const error = Object.assign(
          new Error(message.message),
          message.code === undefined ? {} : { code: message.code },
        );
        if (message.stack !== undefined) error.stack = message.stack;
        return waiting.reject(error);
      }
    }
  }

  async #end(): Promise<void> {
    const worker = this.#worker;
    this.#worker = null;
    await worker?.terminate();
  }

  async close(): Promise<void> {
    this.#closed = true;
    if (this.#idle !== null) clearTimeout(this.#idle);
    await this.#end();
    for (const { reject } of this.#waiting.values()) reject(stopping());
  }
}
