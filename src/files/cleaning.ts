import { LIMITS } from '../base/limits.ts';
import type { Database } from '../db/database.ts';
import { deleteExpired, forgetRemoved, listToRemove, readStates, type StoreKind, setRemoved } from './file-records.ts';
import type { FileStorage, StoredObject } from './file-storage.ts';

/** Files looked at in one statement. */
const AT_ONCE = 500;

export type CleaningParts = {
  db: Database;
  storages: readonly FileStorage[];
  onError(error: unknown, what: string): void;
};

/** What one run did. */
export type Cleaned = { deleted: number; removed: number; forgotten: number };

/**
 * Deletes files whose time has come, and removes the bytes of deleted ones. A row says "deleted" before any byte of it goes, and
 * nothing that is deleted comes back: whatever is cut off is done the next time.
 */
export async function cleanFiles({ db, onError, storages }: CleaningParts): Promise<Cleaned> {
  const cleaned: Cleaned = { deleted: 0, removed: 0, forgotten: 0 };
  for (let n = AT_ONCE; n === AT_ONCE; cleaned.deleted += n) n = await deleteExpired(db, AT_ONCE);
  const byKind = new Map<StoreKind, FileStorage>(storages.map(s => [s.kind, s]));
  // Behind the last one each time: those that cannot be removed now do not keep the others.
  for (let after = ''; ; ) {
    const page = await listToRemove(db, after, AT_ONCE);
    const gone: string[] = [];
    for (const file of page) {
      after = file.id;
      const storage = byKind.get(file.store);
      if (storage === undefined) continue;
      try {
        await storage.remove(file);
        gone.push(file.id);
      } catch (error) {
        onError(error, `removing the bytes of deleted file ${file.id}`);
      }
    }
    await setRemoved(db, gone);
    cleaned.removed += gone.length;
    if (page.length < AT_ONCE) break;
  }
  cleaned.forgotten = await forgetRemoved(db);
  return cleaned;
}

/**
 * Removes what lies in a store and belongs to no file: bytes a crash has left. What may belong to one stays: its final bytes as long as
 * it is not deleted, what was uploaded as long as it is pending, and everything young.
 *
 * @param nowMs the time in ms
 * @returns how many objects
 */
export async function removeOrphans(
  { db, onError, storages }: CleaningParts,
  nowMs: number,
  ageMsMin: number = LIMITS.orphanMsMin,
): Promise<number> {
  let removed = 0;
  for (const storage of storages)
    try {
      for await (const page of storage.list()) {
        const old = page.filter(o => nowMs - o.modifiedAt.getTime() >= ageMsMin);
        const states = await readStates(
          db,
          old.map(o => o.id),
        );
        for (const object of old) {
          if (mayBelong(object, states.get(object.id))) continue;
          await storage.removeObject(object.key);
          removed++;
        }
      }
    } catch (error) {
      onError(error, `looking for what belongs to no file (${storage.kind})`);
    }
  return removed;
}

type Known = { state: 'pending' | 'ready' | 'deleted'; digest: string | null };

function mayBelong(object: StoredObject, known: Known | undefined): boolean {
  // A completion that was cut off has brought the bytes of a pending file to a final place.
  if (known?.state === 'pending') return true;
  return known?.state === 'ready' && !object.uploaded && known.digest?.split(' ')[0] === object.version;
}
