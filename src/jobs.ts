import { PgBoss } from 'pg-boss';
import { messageOf, ServiceError } from './base/errors.ts';
import type { Database, Queryable } from './db/database.ts';

/** One kind of job. */
export type JobQueue<T extends object> = {
  name: string;
  parse(data: unknown): T;
  run(data: T): Promise<void>;
  /** Told when no further attempt follows, also when the last one ended with its process. */
  gaveUp(data: T): Promise<void>;
  attemptsMax: number;
  /** Doubles with each attempt. */
  firstDelaySeconds: number;
  delaySecondsMax: number;
  /** An attempt that takes longer counts as failed. */
  seconds: number;
  /** How many are run at the same time on one host; one when absent. They fail together. */
  together?: number;
  /** When one is queued by itself, on one of the hosts: minute hour day month weekday (cron). */
  schedule?: string;
  /** How often the queue is looked at; every second when absent. */
  pollSeconds?: number;
  /** Queued by itself, once in each such span on all hosts together. */
  everySeconds?: number;
};

/**
 * Work that comes round by itself, on one host at a time: what one run does not do, the next one does.
 *
 * @param when minute hour day month weekday (cron), or the span in which it comes once
 * @param seconds a run that takes longer counts as failed
 */
export function scheduledJob(
  name: string,
  when: string | { everySeconds: number },
  seconds: number,
  run: () => Promise<void>,
): JobQueue<object> {
  return {
    name,
    ...(typeof when === 'string' ? { schedule: when } : when),
    seconds,
    run,
    // Nothing is told to such a job.
    parse: () => ({}),
    gaveUp: () => Promise.resolve(),
    attemptsMax: 1,
    firstDelaySeconds: 1,
    delaySecondsMax: 1,
    pollSeconds: 20,
  };
}

/** Work that goes on by itself once it is told of; what is lost with its host is found by a sweep. */
export function kickJob<T extends object>(
  name: string,
  parse: (data: unknown) => T,
  kick: (data: T) => void,
): JobQueue<object> {
  return {
    name,
    parse,
    run: async data => kick(parse(data)),
    gaveUp: () => Promise.resolve(),
    attemptsMax: 3,
    firstDelaySeconds: 1,
    delaySecondsMax: 10,
    seconds: 60,
    together: 32,
  };
}

/** Queue of the jobs that were given up. */
const deadName = (queue: { name: string }): string => `${queue.name}_dead`;

export type JobsLog = { warn(fields: Record<string, unknown>, text: string): void };

type QueueOptions = {
  retryLimit: number;
  retryDelay: number;
  retryBackoff: boolean;
  retryDelayMax?: number;
  expireInSeconds: number;
  deadLetter?: string;
};

/** Saying that a job was given up is itself tried for a day, every five minutes: copies of jobs take no longest delay along. */
const AGAIN: QueueOptions = {
  retryLimit: 288,
  retryDelay: 300,
  retryBackoff: false,
  expireInSeconds: 60,
};
const POLL_SECONDS = 1;
/** Jobs that were given up are rare, and no request waits for them. */
const POLL_DEAD_SECONDS = 5;
const START_AGAIN_MS = 5000;
const STOP_MS = 5000;
/** How often, and by how much a time must lie ahead to have been written before the clock was set back. */
const CLOCK_LOOK_MS = 60_000;
const FUTURE_SECONDS = 120;
/** How late a job that is queued by itself may come after its span has begun. */
const ASK_AGAIN_MS_MAX = 20_000;

/**
 * Work that is done later and again until it succeeds: pg-boss on the service's own database. It starts beside the service,
 * which does not wait for it.
 */
export class Jobs {
  readonly #db: Database;
  readonly #boss: PgBoss;
  readonly #log: JobsLog;
  #queues: ReadonlyArray<JobQueue<object>> = [];
  #started: Promise<void> | null = null;
  #ready = false;
  #closing = false;
  #timer: NodeJS.Timeout | null = null;
  readonly #rounds: NodeJS.Timeout[] = [];
  readonly #workers = new Map<string, string>();

  constructor(db: Database, log: JobsLog) {
    this.#db = db;
    this.#log = log;
    this.#boss = new PgBoss({ db: executorOf(db), schema: 'pgboss', createSchema: false });
    this.#boss.on('error', error => log.warn({ error: messageOf(error) }, 'the job queue reports an error'));
  }

  /** Starts to work on these queues in the background; tries again while the database is away. */
  start(queues: ReadonlyArray<JobQueue<object>>): void {
    this.#queues = queues;
    this.#started = this.#begin().then(
      () => {
        this.#ready = true;
        this.#rounds.push(setInterval(() => void this.#endFutureWaits(), CLOCK_LOOK_MS));
        for (const q of this.#queues) if (q.everySeconds !== undefined) this.#comeRound(q.name, q.everySeconds);
      },
      (error: unknown) => {
        if (this.#closing) return;
        this.#log.warn({ error: messageOf(error) }, 'the job queue could not be started; it is tried again');
        this.#timer = setTimeout(() => this.start(queues), START_AGAIN_MS);
      },
    );
  }

  /** Every host asks for it; the library takes one job of a span and no second one. */
  #comeRound(name: string, seconds: number): void {
    if (this.#closing) return;
    const ask = (): void => {
      this.#boss
        .send(name, {}, { singletonSeconds: seconds, singletonKey: name })
        .catch((error: unknown) =>
          this.#log.warn({ error: messageOf(error), queue: name }, 'a job could not be queued; it is tried again'),
        );
    };
    ask();
    this.#rounds.push(setInterval(ask, Math.min(seconds * 500, ASK_AGAIN_MS_MAX)));
  }

  async #begin(): Promise<void> {
    await this.#boss.start();
    await this.#endFutureWaits();
    // All queues before any work: should the database go away in between, nothing is worked on twice.
    const work: Array<() => Promise<unknown>> = [];
    for (const q of this.#queues) {
      const options = {
        retryLimit: q.attemptsMax - 1,
        retryDelay: q.firstDelaySeconds,
        retryBackoff: true,
        retryDelayMax: q.delaySecondsMax,
        expireInSeconds: q.seconds,
      };
      const dead = deadName(q);
      await this.#queue(dead, AGAIN);
      // Of those that come round one waits at most, however long the one before it takes.
      await this.#queue(q.name, { ...options, deadLetter: dead }, q.everySeconds === undefined ? 'standard' : 'short');
      // A job carries the place it goes to; those of a release that knew none are given it.
      await this.#db.query(
        "UPDATE pgboss.job SET dead_letter = $1 WHERE name = $2 AND dead_letter IS NULL AND state < 'completed'",
        [dead, q.name],
      );
      if (q.schedule !== undefined) await this.#boss.schedule(q.name, q.schedule, {});
      work.push(
        () => this.#work(dead, POLL_DEAD_SECONDS, 1, data => q.gaveUp(q.parse(data))),
        () => this.#work(q.name, q.pollSeconds ?? POLL_SECONDS, q.together ?? 1, data => q.run(q.parse(data))),
      );
    }
    for (const begin of work) await begin();
  }

  /**
   * The library compares stored times with the database's clock: after that was set back, jobs of every kind would not come for the length of the
   * step. What lies further ahead than any wait of ours is over, and so are claims and turns that begin in the future.
   */
  async #endFutureWaits(): Promise<void> {
    const longest = Math.max(AGAIN.retryDelay, ...this.#queues.map(q => q.delaySecondsMax)) + FUTURE_SECONDS;
    const future = `now() + interval '${FUTURE_SECONDS} seconds'`;
    try {
      await this.#db.query(
        `UPDATE pgboss.job SET start_after = now() WHERE state < 'active' AND start_after > now() + make_interval(secs => $1)`,
        [longest],
      );
      await this.#db.query(
        `UPDATE pgboss.job SET singleton_on = NULL WHERE singleton_on > (${future}) AT TIME ZONE 'UTC'`,
      );
      await this.#db.query(
        `UPDATE pgboss.job SET started_on = now() WHERE state = 'active' AND started_on > ${future}`,
      );
      await this.#db.query(`UPDATE pgboss.version SET cron_on = NULL WHERE cron_on > ${future}`);
      await this.#db.query(
        `UPDATE pgboss.queue SET monitor_on = NULL, monitor_claim_on = NULL, maintain_on = NULL
         WHERE greatest(monitor_on, monitor_claim_on, maintain_on) > ${future}`,
      );
    } catch (error) {
      this.#log.warn({ error: messageOf(error) }, 'waits that lie in the future could not be ended; it is tried again');
    }
  }

  async #queue(name: string, options: QueueOptions, policy: 'standard' | 'short' = 'standard'): Promise<void> {
    await this.#boss.createQueue(name, { ...options, policy });
    await this.#boss.updateQueue(name, options);
  }

  async #work(
    name: string,
    pollingIntervalSeconds: number,
    batchSize: number,
    run: (data: unknown) => Promise<void>,
  ): Promise<void> {
    const options = { pollingIntervalSeconds, batchSize, burstWhenBatchFull: true };
    const worker = await this.#boss.work(name, options, async jobs => {
      await Promise.all(jobs.map(job => run(job.data)));
    });
    this.#workers.set(name, worker);
  }

  /** A job was queued that a user waits for: this host looks at once, the others when it is their turn. */
  wake(queue: string): void {
    const worker = this.#workers.get(queue);
    if (worker !== undefined) this.#boss.notifyWorker(worker);
  }

  /**
   * Queues a job as part of the caller's transaction: it is done if and only if the transaction commits.
   *
   * @throws ServiceError `unavailable` while the queue is not up
   */
  async enqueue(client: Queryable, queue: string, data: object): Promise<void> {
    await this.#started;
    const id = this.#ready ? await this.#boss.send(queue, data, { db: executorOf(client) }) : null;
    if (id === null)
      throw new ServiceError('unavailable', 'the job queue is not up yet; try again', {
        headers: [['Retry-After', '5']],
      });
  }

  /** Lets running jobs end; what is queued stays for the next start. */
  async close(): Promise<void> {
    this.#closing = true;
    if (this.#timer !== null) clearTimeout(this.#timer);
    await this.#started;
    for (const round of this.#rounds) clearInterval(round);
    // The library may have begun all the same: a start that failed half way leaves timers behind.
    if (!this.#ready) return await this.#boss.stop({ graceful: false }).catch(() => {});
    // Waited for here: a graceful stop of the library looks every half second whether they have ended.
    const names = this.#queues.flatMap(q => [q.name, deadName(q)]);
    const timeout = new Promise(resolve => setTimeout(resolve, STOP_MS).unref());
    await Promise.race([Promise.all(names.map(name => this.#boss.offWork(name))), timeout]);
    await this.#boss.stop({ graceful: false });
  }
}

const executorOf = (db: Queryable) => ({
  executeSql: (text: string, values?: unknown[]) => db.query(text, values),
});
