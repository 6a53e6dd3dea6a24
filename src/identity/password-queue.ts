import { ServiceError } from '../base/errors.ts';
import { networksOf } from '../base/ip-address.ts';
import { LIMITS } from '../base/limits.ts';

/** The caller whose password is compared; the order of comparisons depends on it. */
export type PasswordTurn = {
  /** A browser that this account has logged in with before, or a session: no stranger can claim to be one. */
  known: boolean;
  address: string;
  account: string;
  /** Failures at the account lately, over all callers. */
  accountFailures: number;
};

type Waiting = {
  turn: PasswordTurn;
  /** From the widest to the narrowest. */
  networks: readonly string[];
  begin(): void;
  refuse(error: ServiceError): void;
  late: NodeJS.Timeout;
};

const { accountFailuresFree, accountPaceMsMax, accountPaceMsMin, passwordWaitMsMax, passwordsWaitingMax } = LIMITS;

/** Counts of served networks are halved so often: who came long ago does not flood now. */
const FORGET_MS = 30_000;

/**
 * Least time between two strangers' attempts at an account with so many failures. Guesses from many addresses are as slow as this
 * together, and a login that is due waits for its turn among them.
 */
export const paceMs = (failures: number): number =>
  failures < accountFailuresFree
    ? 0
    : Math.min(accountPaceMsMin * 2 ** Math.min(failures - accountFailuresFree, 20), accountPaceMsMax);

/**
 * The order in which passwords are compared, one at a time (docs/identity.md "Guessing"): those of known browsers and of sessions first,
 * then strangers, those from networks that had the fewest turns lately before the others, at an account no faster than its pace.
 */
export class PasswordQueue {
  readonly #known: Waiting[] = [];
  readonly #strangers: Waiting[] = [];
  readonly #served = new Map<string, number>();
  /** When the next stranger may try an account. */
  readonly #paces = new Map<string, number>();
  #busy = false;
  #wake: NodeJS.Timeout | null = null;
  #forgotAt = performance.now();

  /**
   * Does work when it is this caller's turn.
   *
   * @throws ServiceError `unavailable` when too many wait, those of the most crowded network first, or it takes too long
   */
  async run<T>(turn: PasswordTurn, work: () => Promise<T>): Promise<T> {
    await this.#turn(turn);
    try {
      return await work();
    } finally {
      this.#busy = false;
      this.#next();
    }
  }

  #turn(turn: PasswordTurn): Promise<void> {
    return new Promise((begin, refuse) => {
      const queue = turn.known ? this.#known : this.#strangers;
      const waiting: Waiting = {
        turn,
        networks: networksOf(turn.address),
        begin,
        refuse,
        late: setTimeout(() => {
          queue.splice(queue.indexOf(waiting), 1);
          refuse(overloaded());
        }, passwordWaitMsMax).unref(),
      };
      queue.push(waiting);
      if (queue.length > passwordsWaitingMax) this.#dropOne(queue);
      this.#next();
    });
  }

  /** Drops the newest of the network that has the most waiting. */
  #dropOne(queue: Waiting[]): void {
    const counts = new Map<string, number>();
    for (const { networks } of queue) for (const n of networks) counts.set(n, (counts.get(n) ?? 0) + 1);
    const crowd = (w: Waiting): number[] => w.networks.map(n => counts.get(n) ?? 0);
    let worst = queue.length - 1;
    for (let k = queue.length - 2; k >= 0; k--)
      if (compare(crowd(queue[k] as Waiting), crowd(queue[worst] as Waiting)) > 0) worst = k;
    const [dropped] = queue.splice(worst, 1);
    if (dropped === undefined) return;
    clearTimeout(dropped.late);
    dropped.refuse(overloaded());
  }

  #next(): void {
    if (this.#busy) return;
    const now = performance.now();
    this.#forget(now);
    const known = this.#known.shift();
    const next = known ?? this.#nextStranger(now);
    if (next === undefined) return this.#wakeWhenDue(now);
    clearTimeout(next.late);
    this.#busy = true;
    for (const n of next.networks) this.#served.set(n, (this.#served.get(n) ?? 0) + 1);
    if (known === undefined) this.#paces.set(next.turn.account, now + paceMs(next.turn.accountFailures));
    next.begin();
  }

  #nextStranger(now: number): Waiting | undefined {
    let best: number | null = null;
    let fewest: number[] = [];
    for (const [k, { networks, turn }] of this.#strangers.entries()) {
      if ((this.#paces.get(turn.account) ?? 0) > now) continue;
      const served = networks.map(n => this.#served.get(n) ?? 0);
      if (best !== null && compare(served, fewest) >= 0) continue;
      best = k;
      fewest = served;
    }
    return best === null ? undefined : this.#strangers.splice(best, 1)[0];
  }

  #wakeWhenDue(now: number): void {
    if (this.#wake !== null) clearTimeout(this.#wake);
    this.#wake = null;
    if (this.#strangers.length === 0) return;
    const due = Math.min(...this.#strangers.map(w => this.#paces.get(w.turn.account) ?? 0));
    this.#wake = setTimeout(() => this.#next(), Math.max(1, due - now));
  }

  #forget(now: number): void {
    if (now - this.#forgotAt < FORGET_MS) return;
    this.#forgotAt = now;
    for (const [n, count] of this.#served) {
      if (count <= 1) this.#served.delete(n);
      else this.#served.set(n, Math.floor(count / 2));
    }
    for (const [account, due] of this.#paces) if (due <= now) this.#paces.delete(account);
  }
}

/** Compares two lists of numbers, the first difference decides. */
function compare(a: readonly number[], b: readonly number[]): number {
  const k = a.findIndex((n, i) => n !== b[i]);
  return k < 0 ? 0 : (a[k] ?? 0) - (b[k] ?? 0);
}

const RETRY_SECONDS = 5;
const overloaded = (): ServiceError =>
  new ServiceError('unavailable', `too many passwords wait to be checked; try again in ${RETRY_SECONDS} s`, {
    headers: [['Retry-After', String(RETRY_SECONDS)]],
  });
