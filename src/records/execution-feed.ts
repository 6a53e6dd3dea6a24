import { Feed, streamBlock } from '../base/feed.ts';
import type { Queryable } from '../db/database.ts';
import {
  type ListedRecord,
  lastRecordId,
  listRecordsByIds,
  type RecordFilter,
  recordIdsAfter,
  takesRecord,
} from './execution-records.ts';

/** Executions as they are recorded, for administrators who watch. */
export type ExecutionFeed = Feed<ListedRecord, RecordFilter>;

/** Other hosts write several hundred records at once, and their numbers may become visible later than those of the next ones. */
const LOOKED_AT_AGAIN = 1000;
const EVERY_MS = 500;

/** @param toJson the record as the lists of the API have it */
export const executionFeed = (
  db: Queryable,
  toJson: (r: ListedRecord) => object,
  onError: (error: unknown) => void,
): ExecutionFeed =>
  new Feed(
    {
      lastId: () => lastRecordId(db),
      idsAfter: (after, limit) => recordIdsAfter(db, after, limit),
      listByIds: ids => listRecordsByIds(db, ids),
      wants: takesRecord,
      written: r => streamBlock(r.id, r.outcome, JSON.stringify(toJson(r))),
      lookedAtAgain: LOOKED_AT_AGAIN,
      everyMs: EVERY_MS,
    },
    onError,
  );
