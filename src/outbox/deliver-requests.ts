import { messageOf } from '../base/errors.ts';
import type { DeliverQueue } from './deliver-job.ts';

/** How soon a host looks whether what was appended is delivered, by the host that delivered last or by the job that was requested. */
export const LOOK_FOR_JOB_MS = 500;

/** Sees to it that a job delivers what was appended, without a job for each change: the host that delivered last asks for it. */
export class DeliverRequests {
  readonly #queue: DeliverQueue;
  readonly #look: () => void;
  readonly #onError: (error: string) => void;
  /** Whether this host delivered last: it asks for a job at once, which spares the others a takeover. */
  #wasLast = true;
  #requestedAt = Number.NEGATIVE_INFINITY;
  #timer: NodeJS.Timeout | null = null;
  #isClosed = false;

  /** @param look finds out what has become of the line; called after `LOOK_FOR_JOB_MS` */
  constructor(queue: DeliverQueue, look: () => void, onError: (error: string) => void) {
    this.#queue = queue;
    this.#look = look;
    this.#onError = onError;
  }

  /** Something was appended that this host does not deliver now. */
  appended(): void {
    if (!this.#wasLast) this.#lookSoon();
    else if (performance.now() - this.#requestedAt > LOOK_FOR_JOB_MS) this.request();
  }

  /** Not waited for; the next look finds out whether the job has begun. */
  request(): void {
    this.#requestedAt = performance.now();
    this.#queue.request().catch((error: unknown) => this.#onError(messageOf(error)));
    this.#lookSoon();
  }

  /** A job has begun on this host. */
  began(): void {
    this.#wasLast = true;
    this.#requestedAt = Number.NEGATIVE_INFINITY;
  }

  /** Another host has delivered. */
  anotherDelivered(): void {
    this.#wasLast = false;
  }

  #lookSoon(): void {
    if (this.#isClosed) return;
    this.#timer ??= setTimeout(() => {
      this.#timer = null;
      this.#look();
    }, LOOK_FOR_JOB_MS);
  }

  close(): void {
    this.#isClosed = true;
    if (this.#timer !== null) clearTimeout(this.#timer);
  }
}
