import { messageOf, ServiceError } from '../base/errors.ts';
import { LIMITS } from '../base/limits.ts';
import { ownDirectory, removeOwnDirectory } from '../base/own-directory.ts';
import type { Database } from '../db/database.ts';
import { tryLock } from '../db/held-lock.ts';
import { LOCKS } from '../db/locks.ts';
import type { BatchResult, Starter } from './batch.ts';
import type { Entity } from './entities.ts';
import { endImport, endInterrupted, type ImportRun } from './import-log.ts';
import { type ImportSettings, ImportThread, type TaskEvents } from './import-thread.ts';
import { type BrakeRelease, beginPull } from './pull.ts';

export type ImportsParts = {
  db: Database;
  settings: Omit<ImportSettings, 'directory'>;
  /** Below it each process has a place of its own. */
  directory: string;
  log: {
    warn(fields: Record<string, unknown>, text: string): void;
    info(fields: Record<string, unknown>, text: string): void;
  };
  /** The day, a date like 2026-09-01. */
  today(): string;
};

/** A batch that has been silent for so long has ended with its process. */
const SILENT_BATCH_SECONDS = 600;

/** A day by the clock of this machine, like 2026-09-01. */
export function localDay(now: Date): string {
  const two = (n: number): string => String(n).padStart(2, '0');
  return `${now.getFullYear()}-${two(now.getMonth() + 1)}-${two(now.getDate())}`;
}

/** Why a pull does not begin although nothing is wrong. */
export const isUnderWay = (error: unknown): boolean =>
  error instanceof ServiceError && error.extra.reason === 'under_way';

/** University data coming in (docs/university.md "Pulls", docs/university.md "Batches"): batches, pulls, and the days that begin and end positions. */
export class Imports {
  readonly #parts: ImportsParts;
  readonly #thread: ImportThread;
  readonly #stopping = new AbortController();
  readonly #pulls = new Set<Promise<unknown>>();
  readonly directory: string;

  constructor(parts: ImportsParts) {
    this.#parts = parts;
    this.directory = ownDirectory(parts.directory);
    this.#thread = new ImportThread({ ...parts.settings, directory: this.directory });
  }

  /** Whether this process pulls from the source now. */
  get isPulling(): boolean {
    return this.#pulls.size > 0;
  }

  /**
   * Takes over the records of one request.
   *
   * @param file the body as it came
   * @throws ServiceError when it is no array
   */
  async batch(entity: Entity, file: string, dryRun: boolean, startedBy: Starter): Promise<BatchResult> {
    const order = { file, dryRun, startedBy, today: this.#parts.today() };
    await endInterrupted(this.#parts.db, 'batch', SILENT_BATCH_SECONDS);
    return await this.#thread.run({ kind: 'batch', type: entity.type, order });
  }

  /**
   * Begins one synchronization with the source (PullOnce, docs/university.md "Pulls").
   *
   * @param release types that may lose more of their records this time
   * @returns its place in the log, and its end
   * @throws ServiceError `conflict` when there is no source, or a pull is under way on any host
   */
  async beginPull(
    startedBy: Starter,
    release: BrakeRelease,
    events: Pick<TaskEvents, 'onProgress'> = {},
  ): Promise<{ importId: number; done: Promise<ImportRun> }> {
    const { db, log, settings } = this.#parts;
    if (settings.baseUrl === '')
      throw new ServiceError(
        'conflict',
        'there is no source to pull from: set university_sync.base_url (BOT_UNIVERSITY_SYNC_BASE_URL)',
      );
    if (this.#stopping.signal.aborted) throw new ServiceError('draining', 'the host is shutting down');
    const ending = new AbortController();
    const lock = await tryLock(settings.databaseUrl, LOCKS.universityPull, () =>
      ending.abort(new Error('the connection that kept other hosts from pulling was lost')),
    );
    if (lock === null)
      throw new ServiceError('conflict', 'a pull is under way; see GET /api/admin/university/imports', {
        extra: { reason: 'under_way' },
      });
    try {
      // The host that had the lock before has ended, with what it was doing.
      await endInterrupted(db, 'pull', 0);
      await endInterrupted(db, 'batch', SILENT_BATCH_SECONDS);
      const importId = await beginPull(db, startedBy, release);
      const order = { today: this.#parts.today(), release };
      const done = this.#thread
        .run(
          { kind: 'pull', importId, order },
          {
            ...events,
            onProblem: (type, problem) =>
              log.warn({ import: importId, type, problem }, 'a list of the university was not taken over whole'),
            signal: AbortSignal.any([
              ending.signal,
              this.#stopping.signal,
              AbortSignal.timeout(LIMITS.universityPullMs),
            ]),
          },
        )
        .catch(async (error: unknown) => {
          await endImport(db, importId, 'failed', 'an error of the host').catch(() => {});
          throw error;
        })
        .finally(() => lock.close());
      this.#pulls.add(done);
      done
        .then(
          run =>
            run.state === 'failed'
              ? log.warn({ import: importId }, 'a pull failed: GET /api/admin/university/imports says why')
              : log.info({ import: importId, state: run.state }, 'university data were pulled'),
          (error: unknown) => log.warn({ import: importId, error: messageOf(error) }, 'a pull failed'),
        )
        .finally(() => this.#pulls.delete(done));
      return { importId, done };
    } catch (error) {
      await lock.close();
      throw error;
    }
  }

  /** Gives and takes away the rights that begin or end with the day. @returns how many records */
  async settleDates(): Promise<number> {
    return await this.#thread.run({ kind: 'dates', today: this.#parts.today() });
  }

  async close(): Promise<void> {
    this.#stopping.abort(new Error('the host was stopped'));
    await Promise.allSettled(this.#pulls);
    await this.#thread.close();
    removeOwnDirectory(this.directory);
  }
}
