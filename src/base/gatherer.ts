import { ReusedEntries } from './reused-entries.ts';

/** The deadline of an execution passed before what it asked for was begun: nothing was done. */
export class CallTooLate extends Error {
  override readonly name = 'CallTooLate';
}

/**
 * What was done for a call that has ended would come after its answer, and a second time with the next one.
 *
 * @param deadline of the execution, as `performance.now()`
 * @throws CallTooLate behind it
 */
export function assertInTime(deadline: number): void {
  if (performance.now() >= deadline) throw new CallTooLate();
}

type GathererOptions<Item> = {
  /** Batches under way at a time; what comes meanwhile is in a later batch. */
  batchesMax: number;
  /** Removes the items of the next batch from those that wait, oldest first; at least one. */
  take(waiting: Item[]): Item[];
  /** Does a batch; settles every item of it, and does not reject. */
  run(batch: Item[]): Promise<void>;
  /** Whether who asked has ended; asked of items that wait. */
  isOver(item: Item): boolean;
  /** Settles an item that is over, without doing it. */
  drop(item: Item): void;
};

/** Collects the items of one group. */
class GroupItems<Item> {
  readonly #options: GathererOptions<Item>;
  readonly #waiting: Item[] = [];
  #underWay = 0;
  #isScheduled = false;

  constructor(options: GathererOptions<Item>) {
    this.#options = options;
  }

  get isIdle(): boolean {
    return this.#waiting.length === 0 && this.#underWay === 0;
  }

  add(item: Item): void {
    const { drop, isOver } = this.#options;
    // While a batch hangs, executions end and others come: items without a caller must not pile up.
    while (this.#waiting[0] !== undefined && isOver(this.#waiting[0])) drop(this.#waiting.shift()!);
    this.#waiting.push(item);
    if (this.#isScheduled || this.#underWay >= this.#options.batchesMax) return;
    this.#isScheduled = true;
    // Runs when the calls that the main thread found together have all been served.
    queueMicrotask(() => {
      this.#isScheduled = false;
      this.#begin();
    });
  }

  #begin(): void {
    const { batchesMax, run, take } = this.#options;
    while (this.#waiting.length > 0 && this.#underWay < batchesMax) {
      this.#underWay++;
      run(take(this.#waiting)).finally(() => {
        this.#underWay--;
        this.#begin();
      });
    }
  }
}

export type GatherOptions<Item> = Pick<GathererOptions<Item>, 'batchesMax' | 'drop' | 'isOver' | 'take'> & {
  /** Does a batch of a group; settles every item of it, and does not reject. */
  run(group: string, batch: Item[]): Promise<void>;
};

/**
 * Does together what is asked for at the same time: the items of one group (a plugin, or a table) in one event-loop turn
 * are one batch, and while enough batches of the group are under way, what comes is collected for the next one.
 */
export class Gatherer<Item> {
  readonly #options: GatherOptions<Item>;
  readonly #byGroup = new ReusedEntries<GroupItems<Item>>(items => !items.isIdle);

  constructor(options: GatherOptions<Item>) {
    this.#options = options;
  }

  add(group: string, item: Item): void {
    let items = this.#byGroup.get(group);
    if (items === undefined) {
      const { run } = this.#options;
      items = new GroupItems<Item>({ ...this.#options, run: batch => run(group, batch) });
      this.#byGroup.add(group, items);
    }
    items.add(item);
  }
}
