import { ownResidentBytes, residentBytes } from '../base/resident-bytes.ts';

/**
 * The memory that the serving processes of a host may use together. Each has an equal share, and may use what the
 * others leave of theirs: only a process above its share has to give memory up, and only while all of them together are
 * above the budget.
 */
export class MemoryBudget {
  readonly #bytes: number;
  #share: number;
  readonly #processes: number;
  /** Process ids of the other serving processes. */
  #others: readonly number[] = [];

  /**
   * @param bytes resident memory of all processes; 0: no budget
   * @param processes number of serving processes
   */
  constructor(bytes: number, processes: number) {
    this.#bytes = bytes;
    this.#processes = processes;
    this.#share = bytes / processes;
  }

  /** What this process may always use, in bytes; 0: no budget. */
  get share(): number {
    return this.#share;
  }

  /** @param pids the other serving processes that run now */
  useOthers(pids: readonly number[]): void {
    this.#others = pids;
    // While one process replaces another there is one more.
    this.#share = this.#bytes / Math.max(this.#processes, pids.length + 1);
  }

  /** Whether this process has to give memory up. */
  get isExceeded(): boolean {
    if (this.#bytes === 0) return false;
    let used = ownResidentBytes();
    if (used <= this.#share) return false;
    for (const pid of this.#others) used += residentBytes(pid);
    return used > this.#bytes;
  }
}
