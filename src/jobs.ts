import { PgBoss } from 'pg-boss';
import { messageOf, ServiceError } from './base/errors.ts';
import type { Database, Queryable } from './db/database.ts';

/** One kind of job. */
export type JobQueue<T extends object> = {
  name: string;
  parse(data: unknown): T;
  run(data: T): Promise<void>;
  /** Called when no further attempt follows, even if the process ended during the last one. */
  gaveUp(data: T): Promise<void>;
  attemptsMax: number;
  /** First delay before a retry; doubles with each attempt. */
  firstDelaySeconds: number;
  delaySecondsMax: number;
  /** An attempt that takes longer counts as failed. */
  seconds: number;
  /** Jobs run at the same time on one host; one when absent. They fail together. */
  together?: number;
  /** Schedule on which one host queues a job: minute hour day month weekday (cron). */
  schedule?: string;
  /** Polling interval of the queue; one second when absent. */
  pollSeconds?: number;
  /** Interval at which a job is queued, once over all hosts. */
  everySeconds?: number;
};

/**
 * A periodic job, on one host at a time. A failed run is not retried; the next run does the work.
 *
 * @param when minute hour day month weekday (cron), or the interval
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
    // Such a job has no data.
    parse: () => ({}),
    gaveUp: () => Promise.resolve(),
    attemptsMax: 1,
    firstDelaySeconds: 1,
    delaySecondsMax: 1,
    pollSeconds: 20,
  };
}

/** A job that starts work in the background. A sweep finds work that is lost with its host. */
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

/** Name of the queue for jobs that were given up. */
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

/**
 * Reporting that a job was given up is retried for a day, every five minutes, because copies of jobs do not keep a
 * longest delay.
 */
const AGAIN: QueueOptions = {
  retryLimit: 288,
  retryDelay: 300,
  retryBackoff: false,
  expireInSeconds: 60,
};
const POLL_SECONDS = 1;
/** Polling interval of the queues for given-up jobs: these are rare, and no request waits for them. */
const POLL_DEAD_SECONDS = 5;
const START_AGAIN_MS = 5000;
const STOP_MS = 5000;
/**
 * Interval of the check, and how far in the future a time must be to count as written before the clock was set back.
 */
const CLOCK_LOOK_MS = 60_000;
const FUTURE_SECONDS = 120;
/** How late a periodic job may be queued after its interval has begun. */
const ASK_AGAIN_MS_MAX = 20_000;

/**
 * Runs jobs later, with retries until they succeed: pg-boss on the service's own database. Starts in the background;
 * the service does not wait for it.
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
    this.#boss.on('error', error => log.warn({ error: messageOf(error) }, 'job queue error'));
  }

  /** Starts to work on these queues in the background; retries while the database is unavailable. */
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
        this.#log.warn({ error: messageOf(error) }, 'the job queue could not be started; trying again');
        this.#timer = setTimeout(() => this.start(queues), START_AGAIN_MS);
      },
    );
  }

  /** Every host queues the job; the library keeps only one per interval. */
  #comeRound(name: string, seconds: number): void {
    if (this.#closing) return;
    const ask = (): void => {
      this.#boss
        .send(name, {}, { singletonSeconds: seconds, singletonKey: name })
        .catch((error: unknown) =>
          this.#log.warn({ error: messageOf(error), queue: name }, 'a job could not be queued; trying again'),
        );
    };
    ask();
    this.#rounds.push(setInterval(ask, Math.min(seconds * 500, ASK_AGAIN_MS_MAX)));
  }

  async #begin(): Promise<void> {
    await this.#boss.start();
    await this.#endFutureWaits();
    // Makes all queues before any work starts, so that a database failure in between does not start a worker twice.
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
      // Of periodic jobs at most one waits, however long the running one takes.
      await this.#queue(q.name, { ...options, deadLetter: dead }, q.everySeconds === undefined ? 'standard' : 'short');
      // Each job stores its dead-letter queue; jobs of a release without one get it here.
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
   * Repairs stored times after the database's clock was set back. The library compares them with the clock, so jobs
   * would not run until the clock has caught up. Waits further in the future than any wait the service uses end now,
   * and so do claims that begin in the future.
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
      this.#log.warn(
        { error: messageOf(error) },
        'times of jobs after a clock change could not be repaired; trying again',
      );
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

  /** Polls a queue at once on this host, because a user waits for the job; other hosts poll at their interval. */
  wake(queue: string): void {
    const worker = this.#workers.get(queue);
    if (worker !== undefined) this.#boss.notifyWorker(worker);
  }

  /**
   * Queues a job in the caller's transaction: the job runs if and only if the transaction commits.
   *
   * @throws ServiceError `unavailable` while the queue is not ready
   */
  async enqueue(client: Queryable, queue: string, data: object): Promise<void> {
    await this.#started;
    const id = this.#ready ? await this.#boss.send(queue, data, { db: executorOf(client) }) : null;
    if (id === null)
      throw new ServiceError('unavailable', 'the job queue is not ready yet; try again', {
        headers: [['Retry-After', '5']],
      });
  }

  /** Waits for running jobs; queued jobs stay for the next start. */
  async close(): Promise<void> {
    this.#closing = true;
    if (this.#timer !== null) clearTimeout(this.#timer);
    await this.#started;
    for (const round of this.#rounds) clearInterval(round);
    // The library may be half started: a start that failed leaves timers behind.
    if (!this.#ready) return await this.#boss.stop({ graceful: false }).catch(() => {});
    // Waits here, because the library's graceful stop checks only every half second whether jobs have ended.
    const names = this.#queues.flatMap(q => [q.name, deadName(q)]);
    const timeout = new Promise(resolve => setTimeout(resolve, STOP_MS).unref());
    await Promise.race([Promise.all(names.map(name => this.#boss.offWork(name))), timeout]);
    await this.#boss.stop({ graceful: false });
  }
}

const executorOf = (db: Queryable) => ({
  executeSql: (text: string, values?: unknown[]) => db.query(text, values),
});
