import { setTimeout as sleep } from 'node:timers/promises';
import { SHARE_ENV } from 'node:worker_threads';
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
  /** Whether its threads see the environment of the process, for programs they start; without it, it is empty. */
  sharesEnvironment?: boolean;
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

/** One thread and the task it does: Piscina owns the thread, which starts when it is needed. */
class TaskThread<Task, Answer> {
  readonly #pool: ThreadPool<Task, Answer>;
  readonly #ended: () => ThreadEnded;
  /** Ends the task that was handed over. */
  #stop: AbortController | null = null;

  constructor({ file, heapMb, idleMs, sharesEnvironment }: WorkerTaskOptions, ended: () => ThreadEnded) {
    this.#ended = ended;
    this.#pool = new ThreadPool<Task, Answer>({
      filename: file.href,
      minThreads: 0,
      maxThreads: 1,
      concurrentTasksPerWorker: 1,
      idleTimeout: idleMs ?? Number.POSITIVE_INFINITY,
      recordTiming: false,
      env: sharesEnvironment === true ? SHARE_ENV : {},
      // Nothing the process was started with has to be loaded for it.
      execArgv: ['--disable-warning=ExperimentalWarning'],
      ...(heapMb === undefined ? {} : { resourceLimits: { maxOldGenerationSizeMb: heapMb } }),
    });
    let lastError: unknown = null;
    this.#pool.on('error', error => {
      lastError = error;
    });
    // A thread that ends before it has taken its task leaves the task waiting: the library tells of the thread alone.
    this.#pool.on('workerDestroy', () => {
      const stop = this.#stop;
      setImmediate(() => {
        const why = lastError ?? ended();
        lastError = null;
        if (this.#pool.threads.length === 0) stop?.abort(why);
      });
    });
  }

  /** Does a task. @param deadlineMs ends the thread, with the task; @param late the reason then */
  async run(task: Task, deadlineMs: number | undefined, late: () => ThreadEnded): Promise<Answer> {
    const stop = new AbortController();
    this.#stop = stop;
    const timer = deadlineMs === undefined ? undefined : setTimeout(() => stop.abort(late()), deadlineMs);
    try {
      return await this.#pool.run(task, { signal: stop.signal });
    } catch (error) {
      if (stop.signal.aborted) throw stop.signal.reason;
      throw error instanceof Error && ENDED.test(error.message) ? this.#ended() : error;
    } finally {
      clearTimeout(timer);
      this.#stop = null;
    }
  }

  end(): Promise<void> {
    return this.#pool.destroy();
  }
}

/**
 * A task that is done in threads of its own, which start when they are needed, read nothing of the environment, and keep no process alive
 * while idle. The order, the bound on what waits and the deadline are kept here: of tasks with a signal Piscina counts none as waiting, and
 * gives a later one the first place. Each thread is a pool of its own, so that a thread that ends rejects its own task alone.
 */
export class WorkerTask<Task, Answer> {
  readonly #options: WorkerTaskOptions;
  readonly #threads: ReadonlyArray<TaskThread<Task, Answer>>;
  /** Threads that do no task; the one used last is used first, so that the others may end. */
  readonly #free: Array<TaskThread<Task, Answer>>;
  readonly #turns: ReturnType<typeof makeSemaphore>;
  readonly #running = new Set<Promise<Answer>>();
  /** How often `end` was called: tasks that waited then are not begun. */
  #ends = 0;

  constructor(options: WorkerTaskOptions) {
    this.#options = options;
    this.#turns = makeSemaphore(options.threads);
    this.#threads = Array.from({ length: options.threads }, () => new TaskThread(options, () => this.#ended()));
    this.#free = [...this.#threads];
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
      const running = this.#inThread(task);
      this.#running.add(running);
      return await running.finally(() => this.#running.delete(running));
    });
  }

  async #inThread(task: Task): Promise<Answer> {
    const { deadlineMs, does, heapMb } = this.#options;
    const thread = this.#free.pop();
    if (thread === undefined) throw new Error('bug: more tasks run than there are threads');
    try {
      return await thread.run(
        task,
        deadlineMs,
        () => new ThreadEnded('deadline', `the thread that ${does} was ended after ${deadlineMs} ms`),
      );
    } catch (error) {
      if (error instanceof Error && 'code' in error && error.code === 'ERR_WORKER_OUT_OF_MEMORY')
        throw new ThreadEnded('memory', `the thread that ${does} ran out of its memory of ${heapMb} MB`);
      throw error;
    } finally {
      this.#free.push(thread);
    }
  }

  #ended(): ThreadEnded {
    return new ThreadEnded('other', `the thread that ${this.#options.does} ended`);
  }

  /** Ends the threads: a process that ends must not have to join them. Tasks that run have a moment to end, those that wait are rejected. */
  async end(): Promise<void> {
    this.#ends++;
    await Promise.race([Promise.allSettled(this.#running), sleep(LOADING_MS_MAX, undefined, { ref: false })]);
    await Promise.all(this.#threads.map(thread => thread.end()));
  }
}
