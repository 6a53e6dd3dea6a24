import { Worker } from 'node:worker_threads';
import { ServiceError } from '../errors.ts';
import { LIMITS } from '../limits.ts';

/** What the thread is asked: to compare with a hash, or without one to make it. */
export type PasswordOrder = { id: number; password: string; against: string | null };
export type PasswordAnswer = { id: number } & ({ hash: string } | { right: boolean } | { error: string });

/** What is wrong with a new password, or null. */
export function passwordProblem(password: string): string | null {
  const bytes = Buffer.byteLength(password);
  if (bytes < LIMITS.passwordBytesMin) return `must have at least ${LIMITS.passwordBytesMin} bytes`;
  if (bytes > LIMITS.passwordBytesMax)
    return `has ${bytes} bytes; at most ${LIMITS.passwordBytesMax} are allowed (a Cyrillic letter takes two)`;
  if (password.includes('\0')) return 'must not hold a NUL character';
  return null;
}

/**
 * A thread of its own with a low priority: a computation takes a quarter of a second, which neither requests nor the
 * thread pool that file reads and DNS share should feel (security.md). Computations wait for each other.
 */
export class PasswordThread {
  readonly #makeWorker: () => Worker;
  #worker: Worker | null = null;
  #lastId = 0;
  readonly #waiting = new Map<number, { resolve(a: PasswordAnswer): void; reject(e: Error): void }>();

  /** @param makeWorker starts a thread that runs `password-worker.ts` */
  constructor(makeWorker: () => Worker) {
    this.#makeWorker = makeWorker;
  }

  compute(password: string, against: string | null): Promise<PasswordAnswer> {
    if (this.#waiting.size >= LIMITS.passwordsWaitingMax)
      throw new ServiceError('unavailable', 'too many passwords are being checked; try again', {
        headers: [['Retry-After', '5']],
      });
    const worker = this.#worker ?? this.#start();
    const id = ++this.#lastId;
    return new Promise((resolve, reject) => {
      this.#waiting.set(id, { resolve, reject });
      worker.ref();
      worker.postMessage({ id, password, against } satisfies PasswordOrder);
    });
  }

  #start(): Worker {
    const worker = this.#makeWorker();
    worker.on('message', (answer: PasswordAnswer) => {
      this.#waiting.get(answer.id)?.resolve(answer);
      this.#waiting.delete(answer.id);
      // An idle thread keeps no process alive.
      if (this.#waiting.size === 0) worker.unref();
    });
    const ended = (why: Error): void => {
      if (this.#worker !== worker) return;
      this.#worker = null;
      for (const { reject } of this.#waiting.values()) reject(why);
      this.#waiting.clear();
    };
    worker.once('error', ended);
    worker.once('exit', () => ended(new Error('the thread that computes passwords ended')));
    this.#worker = worker;
    return worker;
  }
}

/** A thread that computes passwords; it may read nothing of the environment. */
export const startPasswordWorker = (): Worker =>
  new Worker(new URL('./password-worker.ts', import.meta.url), { env: {} });

const thread = new PasswordThread(startPasswordWorker);

export async function hashPassword(password: string): Promise<string> {
  const answer = await thread.compute(password, null);
  if ('hash' in answer) return answer.hash;
  throw new Error('error' in answer ? answer.error : 'no hash was made');
}

/** Hash of a password nobody has (random bytes, forgotten): an unknown account takes the same time. */
const NOBODY = '$2b$12$mO8/Rer1zuIoje9qmMG.3.jMoJtxMFlSvtn8gYiNtmYXYjXdPGuHm';

/** Whether a password is right; takes the same time when there is no hash. */
export async function passwordMatches(password: string, hash: string | null): Promise<boolean> {
  const given = Buffer.byteLength(password) > LIMITS.passwordBytesMax ? '' : password;
  const answer = await thread.compute(given, hash ?? NOBODY);
  if ('error' in answer) throw new Error(answer.error);
  return 'right' in answer && answer.right && hash !== null && given === password;
}
