import type { Database, Queryable } from './database.ts';

/** What the service asks of the tables of the job queue's library, in addition to the library itself. */

/** By how much a time must lie ahead to have been written before the clock was set back. */
const FUTURE_SECONDS = 120;

/**
 * Queries of the library. Once a minute it counts of which exclusive queues a job is active, and takes no job of these before it has read the count
 * again, which is up to two minutes later: a queue that is often busy would stand still. The count is left out; an index keeps two from being active.
 */
export const libraryExecutor = (db: Database) => ({
  async executeSql(text: string, values?: unknown[]) {
    const result = await db.query(text, values);
    // Several statements in one text give several results, none of which is read.
    if (Array.isArray(result.rows))
      for (const row of result.rows) if ('singletonsActive' in row) row.singletonsActive = null;
    return result;
  },
});

/** A job carries the place it goes to when it is given up; those of a release that knew none are given it. */
export async function setDeadLetter(db: Queryable, name: string, dead: string): Promise<void> {
  await db.query(
    "UPDATE pgboss.job SET dead_letter = $1 WHERE name = $2 AND dead_letter IS NULL AND state < 'completed'",
    [dead, name],
  );
}

export type ActiveJob = { id: string; retryCount: number; isSilent: boolean };

/**
 * Jobs of a queue that run, and whether their hosts have sent no heartbeat for a while. One that lies ahead was sent before the clock was set back, and
 * says nothing.
 */
export async function listActive(db: Queryable, name: string, silentSeconds: number): Promise<ActiveJob[]> {
  const { rows } = await db.query<ActiveJob>(
    `SELECT id, retry_count AS "retryCount",
       heartbeat_on NOT BETWEEN clock_timestamp() - make_interval(secs => $2) AND clock_timestamp() AS "isSilent"
     FROM pgboss.job WHERE name = $1 AND state = 'active'`,
    [name, silentSeconds],
  );
  return rows;
}

/**
 * The library compares stored times with the database's clock: after that was set back, jobs of every kind would not come for the length of the
 * step. What lies further ahead than any wait of ours is over, and so are claims and turns that begin in the future.
 *
 * @param longestSeconds of all waits of the queues
 */
export async function endFutureWaits(db: Queryable, longestSeconds: number): Promise<void> {
  const future = `now() + interval '${FUTURE_SECONDS} seconds'`;
  await db.query(
    `UPDATE pgboss.job SET start_after = now() WHERE state < 'active' AND start_after > now() + make_interval(secs => $1)`,
    [longestSeconds + FUTURE_SECONDS],
  );
  await db.query(`UPDATE pgboss.job SET singleton_on = NULL WHERE singleton_on > (${future}) AT TIME ZONE 'UTC'`);
  await db.query(`UPDATE pgboss.job SET started_on = now() WHERE state = 'active' AND started_on > ${future}`);
  await db.query(`UPDATE pgboss.version SET cron_on = NULL WHERE cron_on > ${future}`);
  await db.query(
    `UPDATE pgboss.queue SET monitor_on = NULL, monitor_claim_on = NULL, maintain_on = NULL
     WHERE greatest(monitor_on, monitor_claim_on, maintain_on) > ${future}`,
  );
}

export type QueueState = {
  name: string;
  waiting: number;
  deferred: number;
  active: number;
  failed: number;
  oldestSeconds: number | null;
  lastError: string | null;
  lastCompletedAt: Date | null;
};

/** The queues with their jobs. A job that failed for the last time lies in the queue of those given up as well, which is not listed. */
export async function listQueues(db: Queryable): Promise<QueueState[]> {
  const { rows } = await db.query<QueueState>(
    `SELECT q.name,
       count(*) FILTER (WHERE j.state < 'active' AND j.start_after <= now())::int AS waiting,
       count(*) FILTER (WHERE j.state < 'active' AND j.start_after > now())::int AS deferred,
       count(*) FILTER (WHERE j.state = 'active')::int AS active,
       count(*) FILTER (WHERE j.state = 'failed' AND j.completed_on > now() - interval '1 day')::int AS failed,
       extract(epoch FROM now() - min(j.start_after) FILTER (WHERE j.state < 'active' AND j.start_after <= now()))::float8 AS "oldestSeconds",
       (array_agg(j.output ->> 'message' ORDER BY coalesce(j.completed_on, j.started_on) DESC)
         FILTER (WHERE j.state IN ('retry', 'failed')))[1] AS "lastError",
       max(j.completed_on) FILTER (WHERE j.state = 'completed') AS "lastCompletedAt"
     FROM pgboss.queue q LEFT JOIN pgboss.job j ON j.name = q.name
     WHERE q.name NOT LIKE '%\\_dead' GROUP BY q.name ORDER BY q.name`,
  );
  return rows;
}

/** Jobs that are not done, by queue and state, and how many were given up within a day; for metrics. */
export async function countJobs(
  db: Queryable,
): Promise<Array<{ queue: string; state: 'waiting' | 'deferred' | 'active' | 'failed'; count: number }>> {
  const { rows } = await db.query<{
    queue: string;
    state: 'waiting' | 'deferred' | 'active' | 'failed';
    count: number;
  }>(
    `SELECT name AS queue, count(*)::int AS count,
       CASE WHEN state = 'active' THEN 'active' WHEN state = 'failed' THEN 'failed' WHEN start_after <= now() THEN 'waiting' ELSE 'deferred' END AS state
     FROM pgboss.job
     WHERE (state < 'completed' OR state = 'failed' AND completed_on > now() - interval '1 day') AND name NOT LIKE '%\\_dead'
     GROUP BY 1, 3`,
  );
  return rows;
}
