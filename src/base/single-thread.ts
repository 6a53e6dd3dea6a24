import type { Worker } from 'node:worker_threads';
import { ServiceError } from './errors.ts';

/** A message to or from the thread: a task or its answer, with the number that pairs them. */
export type Numbered<T> = { id: number; content: T };

export type SingleThreadOptions = {
  /** Starts the worker; called again when the last one ended. */
  makeWorker(): Worker;
  /** What the thread does, for errors: `checks passwords`. */
  does: string;
  waitingMax: number;
  /** `Retry-After` of a caller that is refused because `waitingMax` tasks wait. */
  retryAfterSeconds: number;
};

/**
 * Runs tasks one after another in a worker thread, which starts with the first task. An idle thread does not keep the
 * process alive.
 */
export class SingleThread<Task, Answer> {
  readonly #options: SingleThreadOptions;
  #worker: Worker | null = null;
  #lastId = 0;
  readonly #waiting = new Map<number, { resolve(answer: Answer): void; reject(error: Error): void }>();

  constructor(options: SingleThreadOptions) {
    this.#options = options;
  }

  /**
   * @returns what the thread answers; rejected when the thread ends first
   * @throws ServiceError `unavailable` when too many tasks wait
   */
  run(task: Task): Promise<Answer> {
    const { does, retryAfterSeconds, waitingMax } = this.#options;
    if (this.#waiting.size >= waitingMax)
      throw new ServiceError(
        'unavailable',
        `${waitingMax} tasks wait for the thread that ${does}; try again in ${retryAfterSeconds} s`,
        { headers: [['Retry-After', String(retryAfterSeconds)]] },
      );
    const worker = this.#worker ?? this.#start();
    const id = ++this.#lastId;
    return new Promise((resolve, reject) => {
      this.#waiting.set(id, { resolve, reject });
      worker.ref();
      worker.postMessage({ id, content: task } satisfies Numbered<Task>);
    });
  }

  #start(): Worker {
    const worker = this.#options.makeWorker();
    worker.on('message', ({ content, id }: Numbered<Answer>) => {
      this.#waiting.get(id)?.resolve(content);
      this.#waiting.delete(id);
      if (this.#waiting.size === 0) worker.unref();
    });
    const ended = (why: Error): void => {
      if (this.#worker !== worker) return;
      this.#worker = null;
      for (const { reject } of this.#waiting.values()) reject(why);
      this.#waiting.clear();
    };
    worker.once('error', ended);
    worker.once('exit', () => ended(new Error(`the thread that ${this.#options.does} ended`)));
    this.#worker = worker;
    return worker;
  }

  async end(): Promise<void> {
    await this.#worker?.terminate();
  }
}
