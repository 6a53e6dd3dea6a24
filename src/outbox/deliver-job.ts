import type { JobQueue } from '../jobs.ts';

/** The queue of the job that delivers. */
export const DELIVER_QUEUE = 'outbox_deliver';

/** The queue of the job that delivers, as the outbox needs it (`Jobs`). */
export type DeliverQueue = {
  /** Sees to it that a job waits. */
  request(): Promise<void>;
  /** Sees to it that a job which was requested before begins: a host that has died may be in its way. */
  requestAgain(): Promise<void>;
  /** Looks at once whether a job waits. */
  wake(): void;
  /** This host takes jobs, or leaves them to others. */
  resume(): void;
  pause(): void;
};

/**
 * Delivers the line, on one host at a time; queued when something was appended, and once a minute for what was lost.
 *
 * @param deliver until there is nothing left, for some seconds at most
 * @param gaveUp told when a job has failed for the last time
 */
export const outboxDeliverJob = (
  deliver: (ended: AbortSignal) => Promise<void>,
  gaveUp: () => void,
): JobQueue<object> => ({
  name: DELIVER_QUEUE,
  isExclusive: true,
  schedule: '* * * * *',
  parse: () => ({}),
  run: (_, ended) => deliver(ended),
  async gaveUp() {
    gaveUp();
  },
  attemptsMax: 5,
  firstDelaySeconds: 2,
  delaySecondsMax: 60,
  // Longer than the store may take for a write, beyond the time a turn lasts.
  seconds: 60,
  // A host that queues one looks at once.
  pollSeconds: 20,
  // One every three seconds while much is delivered.
  keepSeconds: 3600,
});
