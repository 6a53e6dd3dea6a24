import { PgBoss } from 'pg-boss';
import { messageOf, ServiceError } from './base/errors.ts';
import { Seldom } from './base/seldom.ts';
import type { Database, Queryable } from './db/database.ts';
import { endFutureWaits, libraryExecutor, listActive, setDeadLetter } from './db/job-tables.ts';

/** One kind of job. */
export type JobQueue<T extends object> = {
  name: string;
  parse(data: unknown): T;
  /** @param ended aborted when the service stops, or when the job was given to another host */
  run(data: T, ended: AbortSignal): Promise<void>;
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
  /**
   * At most one job of the queue waits, and one runs on all hosts together; `request` queues it. A host takes none before `resume`. A job sends
   * heartbeats, and after a second without one another host takes over.
   */
  isExclusive?: boolean;
  /** How long jobs that ended are kept; a week when absent. */
  keepSeconds?: number;
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
  let running: Promise<void> | null = null;
  return {
    name,
    ...(typeof when === 'string' ? { schedule: when } : when),
    seconds,
    // A run that takes too long goes on after it has failed: the next one waits for it instead of working next to it.
    run: () =>
      (running ??= run().finally(() => {
        running = null;
      })),
    // Such a job has no data.
    parse: () => ({}),
    gaveUp: () => Promise.resolve(),
    attemptsMax: 1,
    firstDelaySeconds: 1,
    delaySecondsMax: 1,
    pollSeconds: 20,
  };
}

const KICKS_KEPT_SECONDS = 3600;

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
    // Many are queued, and their number is what makes looking for the next one slow.
    keepSeconds: KICKS_KEPT_SECONDS,
  };
}

/** Name of the queue for jobs that were given up. */
const deadName = (queue: { name: string }): string => `${queue.name}_dead`;

type Policy = 'standard' | 'short' | 'stately';

type WorkOptions = { pollingIntervalSeconds: number; batchSize?: number; heartbeatRefreshSeconds?: number };

export type JobsLog = { warn(fields: Record<string, unknown>, text: string): void };

type QueueOptions = {
  retryLimit: number;
  retryDelay: number;
  retryBackoff: boolean;
  retryDelayMax?: number;
  expireInSeconds: number;
  deadLetter?: string;
  heartbeatSeconds?: number;
  deleteAfterSeconds?: number;
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
/** How often the job of an exclusive queue sends a heartbeat, after how long without one it is taken over, and when the library does so itself. */
const HEARTBEAT_SECONDS = 0.5;
const SILENT_SECONDS = 1;
const HEARTBEAT_SECONDS_MAX = 10;
const START_AGAIN_MS = 5000;
const STOP_MS = 5000;
/** Interval of the check for times that lie in the future. */
const CLOCK_LOOK_MS = 60_000;
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
  /** Exclusive queues of which this host takes jobs now. */
  readonly #resumed = new Set<string>();
  /** Workers begin and end one after another. */
  #changes: Promise<unknown> = Promise.resolve();
  readonly #stop = new AbortController();

  constructor(db: Database, log: JobsLog) {
    this.#db = db;
    this.#log = log;
    this.#boss = new PgBoss({ db: libraryExecutor(db), schema: 'pgboss', createSchema: false });
    const seldom = new Seldom();
    this.#boss.on('error', error => {
      // The library names the queue and the worker behind the reason.
      const reason = messageOf(error).replace(/ \(Queue: .*\)$/, '');
      seldom.line(reason, more => log.warn({ error: reason, ...more }, 'the job queue reports an error'));
    });
  }

  /** Starts to work on these queues in the background; retries while the database is unavailable. */
  start(queues: ReadonlyArray<JobQueue<object>>): void {
    this.#queues = queues;
    this.#started = this.#begin().then(
      () => {
        this.#ready = true;
        this.#rounds.push(setInterval(() => void this.#endFutureWaits(), CLOCK_LOOK_MS));
        for (const q of this.#queues) if (q.everySeconds !== undefined) this.#comeRound(q.name, q.everySeconds);
        for (const name of this.#resumed) this.#changeWorker(name);
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
        ...(q.keepSeconds === undefined ? {} : { deleteAfterSeconds: q.keepSeconds }),
        ...(q.isExclusive === true ? { heartbeatSeconds: HEARTBEAT_SECONDS_MAX } : {}),
      };
      const dead = deadName(q);
      await this.#queue(dead, AGAIN);
      await this.#queue(q.name, { ...options, deadLetter: dead }, policyOf(q));
      await setDeadLetter(this.#db, q.name, dead);
      if (q.schedule !== undefined) await this.#boss.schedule(q.name, q.schedule, {});
      const deadPoll = Math.max(POLL_DEAD_SECONDS, q.pollSeconds ?? 0);
      work.push(() => this.#work(dead, { pollingIntervalSeconds: deadPoll }, data => q.gaveUp(q.parse(data))));
      if (q.isExclusive !== true) work.push(() => this.#workOn(q));
    }
    for (const begin of work) await begin();
  }

  /**
   * Repairs stored times after the database's clock was set back. The library compares them with the clock, so jobs
   * would not run until the clock has caught up. Waits further in the future than any wait the service uses end now,
   * and so do claims that begin in the future.
   */
  async #endFutureWaits(): Promise<void> {
    const longest = Math.max(AGAIN.retryDelay, ...this.#queues.map(q => q.delaySecondsMax));
    try {
      await endFutureWaits(this.#db, longest);
    } catch (error) {
      this.#log.warn(
        { error: messageOf(error) },
        'times of jobs after a clock change could not be repaired; trying again',
      );
    }
  }

  async #queue(name: string, options: QueueOptions, policy: Policy = 'standard'): Promise<void> {
    await this.#boss.createQueue(name, { ...options, policy });
    await this.#boss.updateQueue(name, options);
  }

  async #workOn(q: JobQueue<object>): Promise<void> {
    const options = {
      pollingIntervalSeconds: q.pollSeconds ?? POLL_SECONDS,
      batchSize: q.together ?? 1,
      ...(q.isExclusive === true ? { heartbeatRefreshSeconds: HEARTBEAT_SECONDS } : {}),
    };
    await this.#work(q.name, options, (data, ended) => q.run(q.parse(data), ended));
  }

  async #work(
    name: string,
    options: WorkOptions,
    run: (data: unknown, ended: AbortSignal) => Promise<void>,
  ): Promise<void> {
    const worker = await this.#boss.work(name, { ...options, burstWhenBatchFull: true }, async jobs => {
      await Promise.all(jobs.map(job => run(job.data, AbortSignal.any([job.signal, this.#stop.signal]))));
    });
    this.#workers.set(name, worker);
  }

  /** From now on this host takes jobs of an exclusive queue. */
  resume(name: string): void {
    if (this.#resumed.has(name)) return;
    this.#resumed.add(name);
    this.#changeWorker(name);
  }

  /** Leaves the jobs of an exclusive queue to other hosts; one that runs here ends by itself. */
  pause(name: string): void {
    if (this.#resumed.delete(name)) this.#changeWorker(name);
  }

  #changeWorker(name: string): void {
    const change = async (): Promise<void> => {
      const queue = this.#queues.find(q => q.name === name);
      if (!this.#ready || this.#closing || queue === undefined) return;
      const worker = this.#workers.get(name);
      if (this.#resumed.has(name) && worker === undefined) await this.#workOn(queue);
      if (this.#resumed.has(name) || worker === undefined) return;
      this.#workers.delete(name);
      await this.#boss.offWork(name, { id: worker, wait: false });
    };
    this.#changes = this.#changes.then(change).catch((error: unknown) => {
      this.#log.warn({ error: messageOf(error), queue: name }, 'the work on a queue could not be begun or ended');
    });
  }

  /** Sees to it that a job of an exclusive queue waits; this host looks at once whether it can run it. */
  async request(name: string): Promise<void> {
    await this.#started;
    if (!this.#ready || this.#closing) return;
    await this.#boss.send(name, {});
    this.wake(name);
  }

  /**
   * Sees to it that a job which was requested before begins. The active one in its way fails when its host is silent; it is tried again as its
   * queue says, and the one that waits may begin.
   */
  async requestAgain(name: string): Promise<void> {
    await this.#started;
    if (!this.#ready || this.#closing) return;
    await this.#boss.send(name, {});
    const active = await listActive(this.#db, name, SILENT_SECONDS);
    const silent = active.filter(job => job.isSilent);
    if (silent.length < active.length) return;
    if (silent.length > 0) {
      await this.#boss.fail(name, silent, { message: `its host was silent for ${SILENT_SECONDS} s` });
      this.#log.warn({ queue: name }, 'a job is taken over from a host that is silent');
    }
    this.wake(name);
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
    this.#stop.abort();
    if (this.#timer !== null) clearTimeout(this.#timer);
    await this.#started;
    await this.#changes;
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

/** The policy of a queue: at most one job of a schedule waits, however long the one before it takes. */
const policyOf = (q: JobQueue<object>): Policy =>
  q.isExclusive === true ? 'stately' : q.everySeconds === undefined ? 'standard' : 'short';

const executorOf = (db: Queryable) => ({
  executeSql: (text: string, values?: unknown[]) => db.query(text, values),
});
