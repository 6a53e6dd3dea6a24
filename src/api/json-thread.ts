import { Worker } from 'node:worker_threads';
import { ServiceError } from '../errors.ts';
import { REQUEST_LIMITS } from '../request-limits.ts';
import { parseJsonBody } from './json-body.ts';

export type JsonOrder = { id: number; bytes: Uint8Array };
export type JsonAnswer = { id: number } & ({ value: unknown } | { problem: string; isRefusal: boolean });

type Waiting = { resolve(value: unknown): void; reject(error: Error): void };

/** Parses large bodies in a thread of its own, one after another; it ends with the process, or when something goes wrong in it. */
class JsonThread {
  #worker: Worker | null = null;
  #lastId = 0;
  readonly #waiting = new Map<number, Waiting>();

  parse(bytes: Uint8Array): Promise<unknown> {
    if (this.#waiting.size >= REQUEST_LIMITS.jsonBodiesWaitingMax)
      throw new ServiceError('unavailable', 'too many large bodies are being read (jsonBodiesWaitingMax); try again', {
        headers: [['Retry-After', '2']],
      });
    const worker = this.#worker ?? this.#start();
    const id = ++this.#lastId;
    return new Promise((resolve, reject) => {
      this.#waiting.set(id, { resolve, reject });
      worker.ref();
      worker.postMessage({ id, bytes } satisfies JsonOrder);
    });
  }

  #start(): Worker {
    const worker = new Worker(new URL('./json-worker.ts', import.meta.url), {
      env: {},
      execArgv: ['--disable-warning=ExperimentalWarning'],
      resourceLimits: { maxOldGenerationSizeMb: 128 },
    });
    worker.on('message', (answer: JsonAnswer) => {
      const waiting = this.#waiting.get(answer.id);
      this.#waiting.delete(answer.id);
      // An idle thread keeps no process alive.
      if (this.#waiting.size === 0) worker.unref();
      if ('value' in answer) waiting?.resolve(answer.value);
      else
        waiting?.reject(
          answer.isRefusal ? new ServiceError('malformed_request', answer.problem) : new Error(answer.problem),
        );
    });
    const ended = (why: Error): void => {
      if (this.#worker !== worker) return;
      this.#worker = null;
      for (const { reject } of this.#waiting.values()) reject(why);
      this.#waiting.clear();
    };
    worker.once('error', ended);
    worker.once('exit', () => ended(new Error('the thread that reads large bodies ended')));
    this.#worker = worker;
    return worker;
  }

  async end(): Promise<void> {
    await this.#worker?.terminate();
  }
}

const thread = new JsonThread();

/**
 * The value of a body; one beyond `jsonInlineBytesMax` is read in a thread, so that no other request waits for it.
 *
 * @throws ServiceError `malformed_request`
 */
export async function readJsonBody(bytes: Uint8Array): Promise<unknown> {
  return bytes.length <= REQUEST_LIMITS.jsonInlineBytesMax ? parseJsonBody(bytes) : await thread.parse(bytes);
}

/** Ends the thread: a process that ends must not have to join it. */
export const endJsonThread = (): Promise<void> => thread.end();
