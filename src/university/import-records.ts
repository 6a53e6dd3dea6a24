import { setTimeout as sleep } from 'node:timers/promises';
import { ServiceError } from '../base/errors.ts';
import { LIMITS } from '../base/limits.ts';
import type { Entity } from './entities.ts';
import { type Prepared, parseRecord, type RecordError } from './parse-record.ts';
import { type SyncCounts, type SyncOptions, type SyncParts, syncRecords } from './sync.ts';

/** How a list of records went; `success` and `failed` are records, an error is a place. */
export type ImportCounts = SyncCounts & { total: number; success: number; failed: number };

export type ImportOptions = SyncOptions & {
  /** Ends it before the next chunk. */
  signal?: AbortSignal;
  /** Rests as long as it works: no request waits for it, and requests need the processors. */
  isPaced: boolean;
  /** A date like 2026-09-01, in whose light records hold or do not. */
  today: string;
  /** Called with mistakes as they are found. */
  onErrors(errors: readonly RecordError[]): Promise<void>;
  /** Told after each chunk. */
  onProgress(counts: Readonly<ImportCounts>): Promise<void>;
};

/** @throws ServiceError `body_too_large` */
export function assertCount(count: number): void {
  if (count > LIMITS.universityRecordsMax)
    throw new ServiceError(
      'body_too_large',
      `the list has more than ${LIMITS.universityRecordsMax} records (universityRecordsMax)`,
    );
}

/** Records that are tried a second time. */
const AGAIN_MAX = 10_000;

function addCounts(counts: ImportCounts, more: Pick<ImportCounts, 'created' | 'updated' | 'unchanged'>): void {
  counts.created += more.created;
  counts.updated += more.updated;
  counts.unchanged += more.unchanged;
  counts.success = counts.created + counts.updated + counts.unchanged;
}

/** The id of a record with mistakes. One that is wrong itself is shortened in the error, and may look like a right one. */
const rightIdOf = (errors: readonly RecordError[]): string | null =>
  errors.some(e => e.field === 'external_id') ? null : (errors[0]?.external_id ?? null);

/**
 * Takes over a list of records of one type: each by itself, so that a bad one spoils no other, many in one transaction.
 * Records that cannot be taken over because of what another one has are tried again behind the last.
 *
 * @param values as they stand in the list
 * @returns the counts
 * @throws ServiceError `body_too_large`; what `values` and the signal throw
 */
export async function importRecords(
  parts: SyncParts,
  entity: Entity,
  values: AsyncIterable<unknown>,
  options: ImportOptions,
): Promise<ImportCounts> {
  const counts: ImportCounts = { total: 0, success: 0, failed: 0, created: 0, updated: 0, unchanged: 0 };
  /** Where each id stood first, those of bad records included. */
  const ids = new Map<string, number>();
  const again: Prepared[] = [];
  let chunk: Prepared[] = [];
  let wrong: RecordError[] = [];

  const write = async (isLast: boolean): Promise<void> => {
    options.signal?.throwIfAborted();
    const records = chunk;
    chunk = [];
    const began = performance.now();
    const result = await syncRecords(parts, entity, records, options);
    if (options.isPaced) await sleep(performance.now() - began);
    const failed = new Set<number>();
    for (const error of result.errors) {
      failed.add(error.index);
      const mayPass = error.code === 'conflict' && !isLast && !options.dryRun && again.length < AGAIN_MAX;
      if (!mayPass) wrong.push(error);
    }
    const byIndex = new Map(records.map(r => [r.index, r]));
    const told = new Set(wrong.map(e => e.index));
    for (const index of failed) {
      const record = byIndex.get(index);
      if (record !== undefined && !told.has(index)) again.push(record);
      else counts.failed++;
    }
    addCounts(counts, result);
    if (wrong.length > 0) await options.onErrors(wrong);
    wrong = [];
    await options.onProgress(counts);
  };

  for await (const value of values) {
    const index = counts.total++;
    assertCount(counts.total);
    const parsed = parseRecord(entity, index, value, options.today);
    if ('errors' in parsed) {
      wrong.push(...parsed.errors);
      counts.failed++;
      const id = rightIdOf(parsed.errors);
      if (id !== null && !ids.has(id)) ids.set(id, index);
    } else {
      const { externalId } = parsed.record;
      const first = ids.get(externalId);
      if (first === undefined) {
        ids.set(externalId, index);
        chunk.push(parsed.record);
      } else {
        counts.failed++;
        const message = `/${index}/external_id is the same as that of /${first}; one record of an id counts`;
        wrong.push({ index, external_id: externalId, field: 'external_id', code: 'duplicate', message });
      }
    }
    if (chunk.length >= LIMITS.universityChunk || wrong.length >= LIMITS.importErrorsTold) await write(false);
  }
  await write(false);
  while (again.length > 0) {
    chunk = again.splice(0, LIMITS.universityChunk);
    await write(true);
  }
  return counts;
}
