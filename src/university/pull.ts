import fsp from 'node:fs/promises';
import path from 'node:path';
import { appendAudit } from '../audit/audit-log.ts';
import { messageOf, ServiceError } from '../base/errors.ts';
import { LIMITS } from '../base/limits.ts';
import type { Database } from '../db/database.ts';
import { type Starter, stateOf } from './batch.ts';
import { forgetBookmark, keepBookmark, loadBookmark, type Remembered } from './bookmarks.ts';
import { type Bookmark, type DataSource, SourceError } from './data-source.ts';
import { ENTITIES, type Entity, type EntityType } from './entities.ts';
import {
  addImportErrors,
  beginImport,
  endImport,
  findImport,
  type ImportedType,
  type ImportRun,
  noteBrake,
  noteType,
  type TypeState,
} from './import-log.ts';
import { assertCount, importRecords } from './import-records.ts';
import { jsonElements } from './json-elements.ts';
import { readChunks, Spool } from './spool.ts';
import { deactivate, listPresent, type SyncParts } from './sync.ts';

export type PullParts = SyncParts & {
  source: DataSource;
  /** Lists lie there until they are whole. */
  directory: string;
  /** Share of the active records of a type, in percent, that one pull may make inactive. */
  brakePercent: number;
};

/** Types whose brake is released in one pull, and how many records each of them may lose; without it any number. */
export type BrakeRelease = { types: readonly EntityType[]; endingMax?: number | undefined };

export const NO_RELEASE: BrakeRelease = { types: [] };

export type PullOrder = {
  /** A date like 2026-09-01. */
  today: string;
  release: BrakeRelease;
};

export type PullProgress = Pick<ImportedType, 'type' | 'state' | 'total' | 'success' | 'failed'> & {
  importId: number;
  /** Records of the list, once it is known. */
  of: number | null;
};

/** A list that is whole, on disk. */
type Listed = {
  file: string;
  bookmark: Bookmark | null;
  count: number;
  /** Elements that do not say which record they are. */
  nameless: number;
  ids: ReadonlySet<string>;
  /** The ids that the source itself says are not active. */
  inactive: ReadonlySet<string>;
};

type Outcome = { state: TypeState; counts?: Parameters<typeof noteType>[4]; problem?: string };

const idOf = (record: unknown): string | null =>
  typeof record === 'object' && record !== null && 'external_id' in record && typeof record.external_id === 'string'
    ? record.external_id
    : null;

/** Fetches a list to a file; nothing of it is used before all of it is there. */
async function fetchList(
  { directory, source }: PullParts,
  entity: Entity,
  known: Bookmark | null,
  signal: AbortSignal,
): Promise<Listed | 'not_offered' | 'unchanged'> {
  const file = path.join(directory, `list-${entity.path}-${crypto.randomUUID()}.json`);
  const spool = await Spool.open(file, LIMITS.universityListBytesMax);
  let seen: Array<{ id: string | null; isActive: boolean }> = [];
  let [mark, markedAt] = [await spool.mark(), 0];
  try {
    const fetched = await source[entity.type](
      {
        async take(record) {
          const isActive = !(
            typeof record === 'object' &&
            record !== null &&
            'is_active' in record &&
            record.is_active === false
          );
          assertCount(seen.push({ id: idOf(record), isActive }));
          await spool.append(record);
        },
        async mark() {
          [mark, markedAt] = [await spool.mark(), seen.length];
        },
        async rewind() {
          await spool.rewind(mark);
          seen = seen.slice(0, markedAt);
        },
      },
      known,
      signal,
    );
    if (fetched.kind !== 'whole') {
      await spool.abandon();
      await fsp.rm(file, { force: true });
      return fetched.kind;
    }
    await spool.finish();
    const idsOf = (records: typeof seen): Set<string> => new Set(records.map(s => s.id).filter(id => id !== null));
    return {
      file,
      bookmark: fetched.bookmark,
      count: seen.length,
      nameless: seen.filter(s => s.id === null).length,
      ids: idsOf(seen),
      inactive: idsOf(seen.filter(s => !s.isActive)),
    };
  } catch (error) {
    await spool.abandon();
    await fsp.rm(file, { force: true });
    throw error;
  }
}

const PRESENT_PAGE = 10_000;

/** Records the list has no more, and which active ones of how many it would make inactive. */
async function lostBy(
  db: Database,
  entity: Entity,
  list: Listed,
): Promise<{ missing: string[]; ending: string[]; active: number }> {
  const [missing, ending]: [string[], string[]] = [[], []];
  let active = 0;
  for (let after = ''; ; ) {
    const page = await listPresent(db, entity, after, PRESENT_PAGE);
    for (const { id, isActive } of page) {
      after = id;
      const isMissing = !list.ids.has(id);
      if (isMissing) missing.push(id);
      if (!isActive) continue;
      active++;
      if (isMissing || list.inactive.has(id)) ending.push(id);
    }
    if (page.length < PRESENT_PAGE) return { missing, ending, active };
  }
}

async function takeOver(
  parts: PullParts,
  entity: Entity,
  list: Listed,
  order: PullOrder,
  importId: number,
  writes: number,
  onProgress: (p: PullProgress) => void,
  signal: AbortSignal,
): Promise<Outcome> {
  const { db } = parts;
  const { active, ending, missing } = await lostBy(db, entity, list);
  const { endingMax, types } = order.release;
  // The list may have changed since an administrator looked at what it would end.
  const isReleased = types.includes(entity.type) && ending.length <= (endingMax ?? ending.length);
  if (ending.length * 100 > active * parts.brakePercent && !isReleased) {
    await noteBrake(db, importId, entity.type, { ending: ending.length, active }, ending);
    return {
      state: 'stopped',
      counts: { total: list.count },
      problem: `the list would make ${ending.length} of ${active} active records inactive, more than ${parts.brakePercent} % (university_sync.brake_percent); nothing of this type was changed. If it is right, pull with release_brake ["${entity.type}"]`,
    };
  }
  // Whatever interrupts what follows, the list is fetched again.
  await forgetBookmark(db, entity.type, false);
  let deactivated = 0;
  // An element without an id may be any of those that seem to be missing.
  const gone = list.nameless > 0 ? [] : missing;
  const endGone = async (): Promise<void> => {
    for (let k = 0; k < gone.length; k += LIMITS.universityChunk) {
      signal.throwIfAborted();
      deactivated += await deactivate(parts, entity, gone.slice(k, k + LIMITS.universityChunk));
    }
  };
  // People first: the account of one may pass to another. A record of another type may come back under a new id, and
  // whom it is about must not be without it meanwhile.
  if (entity.type === 'person') await endGone();
  const note = { type: entity.type, importId, of: list.count };
  const counts = await importRecords(
    parts,
    entity,
    jsonElements(readChunks(list.file), LIMITS.universityRecordBytesMax),
    {
      dryRun: false,
      isPaced: true,
      signal,
      today: order.today,
      onErrors: errors => addImportErrors(db, importId, entity.type, errors),
      async onProgress(so) {
        await noteType(db, importId, entity.type, 'running', { ...so, deactivated });
        onProgress({ ...note, state: 'running', total: so.total, success: so.success, failed: so.failed });
      },
    },
  );
  signal.throwIfAborted();
  if (entity.type !== 'person') await endGone();
  if (counts.failed === 0 && list.bookmark !== null) await keepBookmark(db, entity.type, list.bookmark, writes);
  const state = list.count === 0 ? 'succeeded' : stateOf(counts);
  return { state, counts: { ...counts, deactivated } };
}

async function pullType(
  parts: PullParts,
  entity: Entity,
  order: PullOrder,
  importId: number,
  onProgress: (p: PullProgress) => void,
  signal: AbortSignal,
): Promise<Outcome> {
  const { db } = parts;
  await noteType(db, importId, entity.type, 'fetching');
  onProgress({ type: entity.type, importId, of: null, state: 'fetching', total: 0, success: 0, failed: 0 });
  const { bookmark, writes }: Remembered = await loadBookmark(db, entity.type);
  const list = await fetchList(parts, entity, bookmark, signal);
  if (typeof list === 'string') return { state: list };
  try {
    return await takeOver(parts, entity, list, order, importId, writes, onProgress, signal);
  } finally {
    await fsp.rm(list.file, { force: true });
  }
}

const OFFERS_NOTHING =
  'the source offers none of the fourteen lists (it answers 404 or 501 to each): correct university_sync.base_url';
const GOOD: ReadonlySet<TypeState> = new Set(['succeeded', 'unchanged', 'not_offered']);

/**
 * One synchronization with the source (docs/university.md "Pulls"): the fourteen lists in the order of what refers to what. What goes wrong with one
 * of them is noted, and the next one follows.
 *
 * @param importId where it is noted
 * @param signal ends it between two chunks
 */
export async function runPull(
  parts: PullParts,
  importId: number,
  order: PullOrder,
  onProgress: (p: PullProgress) => void,
  onProblem: (type: EntityType, problem: string) => void,
  signal: AbortSignal,
): Promise<ImportRun> {
  const { db } = parts;
  const states: TypeState[] = [];
  try {
    for (const entity of ENTITIES) {
      signal.throwIfAborted();
      const outcome = await pullType(parts, entity, order, importId, onProgress, signal).catch(
        (error: unknown): Outcome => {
          if (signal.aborted) throw error;
          const isExpected = error instanceof SourceError || error instanceof ServiceError;
          return {
            state: 'failed',
            problem: isExpected ? messageOf(error) : `an error of the host: ${messageOf(error)}`,
          };
        },
      );
      const { counts, problem, state } = outcome;
      states.push(state);
      await noteType(db, importId, entity.type, state, counts, problem ?? null);
      if (!GOOD.has(state))
        onProblem(entity.type, problem ?? `${counts?.failed ?? 0} of ${counts?.total ?? 0} records failed`);
      const { failed = 0, success = 0, total = 0 } = counts ?? {};
      onProgress({ type: entity.type, importId, of: total, state, total, success, failed });
    }
    const good = states.filter(s => GOOD.has(s)).length;
    const some = good + states.filter(s => s === 'partial').length;
    if (states.every(s => s === 'not_offered')) {
      await endImport(db, importId, 'failed', OFFERS_NOTHING);
      const [first] = ENTITIES;
      if (first !== undefined) onProblem(first.type, OFFERS_NOTHING);
    } else
      await endImport(db, importId, good === states.length ? 'succeeded' : some === 0 ? 'failed' : 'partial', null);
  } catch (error) {
    const problem = messageOf(signal.aborted ? signal.reason : error);
    await endImport(db, importId, signal.aborted ? 'interrupted' : 'failed', problem).catch(() => {});
    if (!signal.aborted) throw error;
  }
  const run = await findImport(db, importId);
  if (run === undefined) throw new Error(`import ${importId} is gone from the log`);
  return run;
}

/** @returns its place in the log of imports */
export async function beginPull(
  db: Database,
  { actor, name }: Starter,
  { endingMax, types: released }: BrakeRelease,
): Promise<number> {
  const types = ENTITIES.map(e => e.type);
  return await db.withTransaction(async client => {
    const importId = await beginImport(client, 'pull', name, types);
    if (actor !== null)
      await appendAudit(client, actor, {
        action: 'university.pull',
        objectType: 'import',
        objectId: String(importId),
        after: { release_brake: released, ...(endingMax === undefined ? {} : { ending_max: endingMax }) },
      });
    return importId;
  });
}
