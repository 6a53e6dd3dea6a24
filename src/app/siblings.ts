import { type Config, withValues } from '../config/load.ts';
import type { PendingConfig } from '../config/pending-config.ts';
import { makeHostId } from '../db/held-lock.ts';
import { SlotLeases } from '../execution/slot-leases.ts';
import type { LeaseMessage } from '../execution/slot-messages.ts';
import type { StrikeMessage } from '../records/strikes.ts';

type Told = LeaseMessage | StrikeMessage | { kind: 'ask_heard' | 'ask_config'; number: number };

/** What a serving process shares with the others of its host, through the supervisor. */
export type Siblings = {
  /** Number of serving processes, this one included. */
  readonly processes: number;
  /** Names this host in the database. */
  readonly hostId: number;
  /** Share of each plugin's slots that this process may use; null: all of them. */
  readonly slots: SlotLeases | null;
  tell(message: Told): void;
  /** Resolves when the others have heard what was changed before the call, after a second in any case. */
  heard(): Promise<boolean>;
  /** What the next reload would find; null where no supervisor answers within a second. */
  pendingConfig(): Promise<PendingConfig | null>;
};

const ANSWER_MS = 1000;

/** A host with one serving process and no supervisor. */
export const alone = (): Siblings => ({
  processes: 1,
  hostId: makeHostId(),
  slots: null,
  tell() {},
  heard: async () => true,
  pendingConfig: async () => null,
});

/** The other serving processes below the same supervisor. */
export class LinkedSiblings implements Siblings {
  readonly processes: number;
  readonly hostId: number;
  readonly slots: SlotLeases;
  readonly tell: (message: Told) => void;
  readonly #waiting = new Map<number, (answer: PendingConfig | true) => void>();
  #asked = 0;
  /** Process ids of those that run now. */
  others: readonly number[] = [];

  constructor(processes: number, hostId: number, tell: (message: Told) => void) {
    this.processes = processes;
    this.hostId = hostId;
    this.slots = new SlotLeases(tell);
    this.tell = tell;
  }

  async heard(): Promise<boolean> {
    return this.others.length === 0 || (await this.#ask('ask_heard')) !== null;
  }

  async pendingConfig(): Promise<PendingConfig | null> {
    const answer = await this.#ask('ask_config');
    return answer === true ? null : answer;
  }

  /** @returns null when no answer came in time */
  async #ask(kind: 'ask_heard' | 'ask_config'): Promise<PendingConfig | true | null> {
    const number = ++this.#asked;
    const answer = await new Promise<PendingConfig | true | null>(resolve => {
      const late = setTimeout(() => resolve(null), ANSWER_MS);
      this.#waiting.set(number, given => {
        clearTimeout(late);
        resolve(given);
      });
      this.tell({ kind, number });
    });
    this.#waiting.delete(number);
    return answer;
  }

  /** The supervisor has answered a question; `true`: all others have heard. */
  answer(number: number, given: PendingConfig | true): void {
    this.#waiting.get(number)?.(given);
  }
}

/** Connections to the database that a process needs at least. */
const POOL_MIN = 4;

/**
 * The configuration of one of several serving processes: what it says of the host is divided among them. Slots and memory
 * are shared in other ways (`slot-leases`, `memory-budget`).
 */
export function shareOf(config: Config, processes: number): Config {
  const v = config.values;
  const part = (whole: number, min = 1): number => Math.max(min, Math.ceil(whole / processes));
  return processes === 1
    ? config
    : withValues(config, {
        'http.max_connections': part(v['http.max_connections']),
        'http.max_receiving': part(v['http.max_receiving'], v['http.max_receiving_per_address']),
        'database.pool_size': part(v['database.pool_size'], POOL_MIN),
        'execution.lanes': part(v['execution.lanes']),
      });
}
