import type { Database } from '../db/database.ts';
import type { Appended } from './append.ts';
import { areSettled } from './stream.ts';

/** Callers that wait for what they appended. */
export class SettledWaits {
  readonly #db: Database;
  readonly #waiting = new Set<() => void>();

  constructor(db: Database) {
    this.#db = db;
  }

  /** Something was delivered: every waiting caller looks whether it was its own. */
  delivered(): void {
    for (const look of this.#waiting) look();
  }

  /**
   * Waits until entries are in the store, or have died, or the time is up.
   *
   * @param isHopeful whether anything can be delivered here at all
   * @returns whether they are no longer in the line
   */
  async settled({ firstId, lastId }: Appended, waitMs: number, isHopeful: () => boolean): Promise<boolean> {
    const until = performance.now() + waitMs;
    for (;;) {
      let look = (): void => {};
      const announced = new Promise<void>(resolve => {
        look = resolve;
      });
      this.#waiting.add(look);
      try {
        if (await areSettled(this.#db, firstId, lastId)) return true;
        const left = until - performance.now();
        if (left <= 0 || !isHopeful()) return false;
        let timer: NodeJS.Timeout | undefined;
        await Promise.race([announced, new Promise<void>(resolve => (timer = setTimeout(resolve, left)))]);
        clearTimeout(timer);
      } finally {
        this.#waiting.delete(look);
      }
    }
  }
}
