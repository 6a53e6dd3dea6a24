import { setTimeout as sleep } from 'node:timers/promises';

const DEADLINE_EXCEEDED = 4;
/** A call that is not answered for so long makes one look whether the store answers at all, and for how long that may take. */
const SILENT_MS = 1000;
const LOOK_MS = 1500;

/** The store does not answer at all. */
class SilentError extends Error {
  readonly code = DEADLINE_EXCEEDED;

  constructor() {
    super('the graph store does not answer');
  }
}

/** The number of a gRPC status; null for what is none. */
export const codeOf = (error: unknown): number | null =>
  error instanceof Error && 'code' in error && typeof error.code === 'number' ? error.code : null;

/** What a client of the store is used for here. @typeParam P its calls */
type Client<P> = { promises: P; close(): void };

/**
 * A connection to the store that is replaced when nothing is answered on it. When a network loses packets without a word, TCP
 * sends them again after ever longer pauses; waiting for the next one would take up to as long as the network was away.
 */
export class GraphConnection<P> {
  readonly #open: () => Client<P>;
  readonly #look: (() => Promise<unknown>) | null;
  #client: Client<P>;
  /** Ends the calls that wait, which closing a client does not. */
  readonly #waiting = new Set<() => void>();
  #answeredAt = 0;
  #isClosed = false;

  /**
   * @param open opens a connection
   * @param look asks the store something on another connection, for calls that may take longer than a host may be silent;
   *   null: only the time limit of a call counts
   */
  constructor(open: () => Client<P>, look: (() => Promise<unknown>) | null = null) {
    this.#open = open;
    this.#look = look;
    this.#client = open();
  }

  /** Makes a call, and returns or throws what the client does. */
  async ask<T>(call: (client: P) => Promise<T>): Promise<T> {
    const client = this.#client;
    const askedAt = performance.now();
    const looking = this.#look === null ? undefined : setTimeout(() => void this.#check(client), SILENT_MS);
    let end: (() => void) | undefined;
    try {
      const answer = await new Promise<T>((resolve, reject) => {
        end = () => reject(new SilentError());
        this.#waiting.add(end);
        call(client.promises).then(resolve, reject);
      });
      this.#answeredAt = performance.now();
      return answer;
    } catch (error) {
      if (codeOf(error) !== DEADLINE_EXCEEDED) this.#answeredAt = performance.now();
      else if (this.#answeredAt < askedAt) this.#replace(client);
      throw error;
    } finally {
      clearTimeout(looking);
      if (end !== undefined) this.#waiting.delete(end);
    }
  }

  /** Replaces a connection whose store does not answer other questions either; one that is only slow has its time. */
  async #check(silent: Client<P>): Promise<void> {
    const since = performance.now();
    const late = sleep(LOOK_MS, 'late' as const, { ref: false });
    const found = await Promise.race([this.#look?.().catch(codeOf), late]);
    if ((found === 'late' || found === DEADLINE_EXCEEDED) && this.#answeredAt < since) this.#replace(silent);
  }

  /** @param silent the connection that did not answer; another call may have replaced it already */
  #replace(silent: Client<P>): void {
    if (this.#isClosed || this.#client !== silent) return;
    this.#client = this.#open();
    silent.close();
    for (const end of this.#waiting) end();
    this.#waiting.clear();
  }

  /** May be called more than once. */
  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#client.close();
  }
}
