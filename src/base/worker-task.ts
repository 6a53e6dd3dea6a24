import { setTimeout as sleep } from 'node:timers/promises';
import { ServiceError } from './errors.ts';
import { makeSemaphore } from './semaphore.ts';
import { ThreadPool } from './thread-pool.ts';

export type WorkerTaskOptions = {
  /** Module whose default export does one task. */
  file: URL;
  /** What its threads do, for errors: `checks passwords`. */
  does: string;
  /** Tasks at a time; further ones wait, in the order they came. */
  threads: number;
  /** Tasks that run or wait; further ones are refused, to come again after so many seconds. */
  waiting?: { max: number; retryAfterSeconds: number };
  /** For one task, with the start of its thread; then the thread is ended. */
  deadlineMs?: number;
  /** A thread without work ends after this; without it, never. */
  idleMs?: number;
  /** V8's own limit on what the objects of a thread take. */
  heapMb?: number;
};

/** A thread that ended before its task was done. */
export class ThreadEnded extends Error {
  override readonly name = 'ThreadEnded';
  readonly why: 'deadline' | 'memory' | 'other';

  constructor(why: ThreadEnded['why'], message: string) {
    super(message);
    this.why = why;
  }
}

/** Node aborts the process when a thread is ended while it loads its modules, which takes a fraction of this. */
const LOADING_MS_MAX = 5000;
/** What the library calls a thread that ended by itself, was ended by `destroy`, or is not started while that goes on. */
const ENDED = /^(worker exited with code|Terminating worker thread|The task has been aborted)/;

/**
 * A task that is done in threads of its own, which start when they are needed, read nothing of the environment, and keep no process alive
 * while idle. Piscina owns the threads. The order, the bound on what waits and the deadline are kept here: of tasks with a signal the
 * library counts none as waiting, and gives a later one the first place.
 */
export class WorkerTask<Task, Answer> {
  readonly #options: WorkerTaskOptions;
  readonly #pool: ThreadPool<Task, Answer>;
  readonly #turns: ReturnType<typeof makeSemaphore>;
  /** Tasks that were handed over, by what ends them. */
  readonly #running = new Map<AbortController, Promise<Answer>>();
  /** How often `end` was called: tasks that waited then are not begun. */
  #ends = 0;

  constructor(options: WorkerTaskOptions) {
    this.#options = options;
    this.#turns = makeSemaphore(options.threads);
    this.#pool = new ThreadPool<Task, Answer>({
      filename: options.file.href,
      minThreads: 0,
      maxThreads: options.threads,
      concurrentTasksPerWorker: 1,
      idleTimeout: options.idleMs ?? Number.POSITIVE_INFINITY,
      recordTiming: false,
      env: {},
      // Nothing the process was started with has to be loaded for it.
      execArgv: ['--disable-warning=ExperimentalWarning'],
      ...(options.heapMb === undefined ? {} : { resourceLimits: { maxOldGenerationSizeMb: options.heapMb } }),
    });
    let lastError: unknown = null;
    this.#pool.on('error', error => {
      lastError = error;
    });
    // A thread that ends before it has taken its task leaves that one waiting: the library tells of the thread alone.
    this.#pool.on('workerDestroy', () =>
      setImmediate(() => {
        const why = lastError ?? this.#ended();
        lastError = null;
        if (this.#running.size <= this.#pool.threads.length) return;
        for (const task of this.#running.keys()) task.abort(why);
      }),
    );
  }

  /**
   * @returns what the thread answers; rejected with what the task throws, or `ThreadEnded`
   * @throws ServiceError `unavailable` when too many tasks wait
   */
  run(task: Task): Promise<Answer> {
    const { does, waiting } = this.#options;
    if (waiting !== undefined && this.#turns.activeCount + this.#turns.pendingCount >= waiting.max)
      throw new ServiceError(
        'unavailable',
        `${waiting.max} tasks wait for the thread that ${does}; try again in ${waiting.retryAfterSeconds} s`,
        { headers: [['Retry-After', String(waiting.retryAfterSeconds)]] },
      );
    const ends = this.#ends;
    return this.#turns(async () => {
      if (ends !== this.#ends) throw this.#ended();
      const stop = new AbortController();
      const running = this.#inThread(task, stop);
      this.#running.set(stop, running);
      return await running.finally(() => this.#running.delete(stop));
    });
  }

  async #inThread(task: Task, stop: AbortController): Promise<Answer> {
    const { deadlineMs, does, heapMb } = this.#options;
    const late = (): void =>
      stop.abort(new ThreadEnded('deadline', `the thread that ${does} was ended after ${deadlineMs} ms`));
    const timer = deadlineMs === undefined ? undefined : setTimeout(late, deadlineMs);
    try {
      return await this.#pool.run(task, { signal: stop.signal });
    } catch (error) {
      if (stop.signal.aborted) throw stop.signal.reason;
      if (!(error instanceof Error)) throw error;
      if ('code' in error && error.code === 'ERR_WORKER_OUT_OF_MEMORY')
        throw new ThreadEnded('memory', `the thread that ${does} ran out of its memory of ${heapMb} MB`);
      throw ENDED.test(error.message) ? this.#ended() : error;
    } finally {
      clearTimeout(timer);
    }
  }

  #ended(): ThreadEnded {
    return new ThreadEnded('other', `the thread that ${this.#options.does} ended`);
  }

  /** Ends the threads: a process that ends must not have to join them. Tasks that run have a moment to end, those that wait are rejected. */
  async end(): Promise<void> {
    this.#ends++;
    await Promise.race([Promise.allSettled(this.#running.values()), sleep(LOADING_MS_MAX, undefined, { ref: false })]);
    await this.#pool.destroy();
  }
}
