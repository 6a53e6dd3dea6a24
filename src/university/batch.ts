import { type Actor, appendAudit } from '../audit/audit-log.ts';
import { LIMITS } from '../base/limits.ts';
import { forgetBookmark } from './bookmarks.ts';
import type { Entity } from './entities.ts';
import { addImportErrors, beginImport, endImport, noteType } from './import-log.ts';
import { assertCount, type ImportCounts, importRecords } from './import-records.ts';
import { jsonElements } from './json-elements.ts';
import type { RecordError } from './parse-record.ts';
import { readChunks } from './spool.ts';
import type { SyncParts } from './sync.ts';

/** Who began an import: a name for the log of imports, and the actor for the audit log; null for what the service does by itself. */
export type Starter = { name: string; actor: Actor | null };

export type BatchOrder = {
  /** The body as it came. */
  file: string;
  dryRun: boolean;
  /** Who stands in the log of imports, and in the audit log. */
  startedBy: Starter;
  /** A date like 2026-09-01. */
  today: string;
};

export type BatchResult = {
  counts: ImportCounts;
  /** At most `importErrorsTold`. */
  errors: RecordError[];
  errorsTotal: number;
  /** In the log; null for a dry run, which leaves nothing. */
  importId: number | null;
};

export const stateOf = ({
  failed,
  total,
}: Pick<ImportCounts, 'failed' | 'total'>): 'succeeded' | 'partial' | 'failed' =>
  failed === 0 ? 'succeeded' : failed < total ? 'partial' : 'failed';

/**
 * Takes over the records of one batch request (docs/university.md "Batches"). The whole array is read before anything is written, so that one that is
 * broken off changes nothing.
 *
 * @throws ServiceError `malformed_request` or `validation_failed` when it is no array
 */
export async function importBatch(parts: SyncParts, entity: Entity, order: BatchOrder): Promise<BatchResult> {
  const elements = () => jsonElements(readChunks(order.file), LIMITS.universityRecordBytesMax);
  let count = 0;
  for await (const _ of elements()) assertCount(++count);
  const { db } = parts;
  const importId = order.dryRun ? null : await beginImport(db, 'batch', order.startedBy.name, [entity.type]);
  const errors: RecordError[] = [];
  let errorsTotal = 0;
  const end = async (state: ReturnType<typeof stateOf>, counts: ImportCounts | undefined, problem: string | null) => {
    if (importId === null) return;
    await db.withTransaction(async client => {
      await noteType(client, importId, entity.type, state, counts, problem);
      await endImport(client, importId, state, problem);
      if (order.startedBy.actor === null) return;
      const { created, failed, success, total, updated } = counts ?? {};
      await appendAudit(client, order.startedBy.actor, {
        action: 'university.import',
        objectType: 'import',
        objectId: String(importId),
        after: { type: entity.type, state, total, success, created, updated, failed, problem },
      });
    });
  };
  try {
    const counts = await importRecords(parts, entity, elements(), {
      dryRun: order.dryRun,
      isPaced: false,
      // The list of the source is not what is there any more.
      onWrite: client => forgetBookmark(client, entity.type, true),
      today: order.today,
      async onErrors(found) {
        errorsTotal += found.length;
        for (const error of found) if (errors.length < LIMITS.importErrorsTold) errors.push(error);
        if (importId !== null) await addImportErrors(db, importId, entity.type, found);
      },
      async onProgress(so) {
        if (importId !== null) await noteType(db, importId, entity.type, 'running', so);
      },
    });
    await end(stateOf(counts), counts, null);
    errors.sort((a, b) => a.index - b.index);
    return { counts, errors, errorsTotal, importId };
  } catch (error) {
    await end('failed', undefined, 'it was broken off by an error of the host').catch(() => {});
    throw error;
  }
}
