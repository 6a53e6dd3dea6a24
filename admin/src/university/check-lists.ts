import { type Schemas, sendRecords } from '../api/client.ts';
import type { List } from './import-lists.ts';
import type { UniversityType } from './types.ts';

type RecordError = Schemas['RecordError'];

/** Result of a dry run of one list. */
export type ListCheck = {
  total: number;
  /** Records that can be imported, `pending` included. */
  success: number;
  /** Records that refer to one of another dropped list, which the import brings first. */
  pending: number;
  /** What is wrong with the others. */
  errors: RecordError[];
  /** How many errors the service found, if it sent only the first of them: then nothing is known of the other records. */
  errorsTotal: number | null;
};

const memberOf = (record: unknown, name: string): unknown =>
  typeof record === 'object' && record !== null ? Object.entries(record).find(([key]) => key === name)?.[1] : undefined;

/** The ids that the import of lists would bring, by type. */
type Ids = ReadonlyMap<string, Set<unknown>>;

/** What was imported already is in the database, as far as it was taken. */
function idsOf(lists: readonly List[]): Ids {
  const ids = new Map<string, Set<unknown>>();
  for (const { file, outcome, type } of lists) {
    if (type === null || file === null || outcome !== null) continue;
    const known = ids.get(type) ?? new Set();
    for (const record of file.records) known.add(memberOf(record, 'external_id'));
    ids.set(type, known);
  }
  return ids;
}

/** Whether what a record refers to is in another of the lists. */
function comesWith(error: RecordError, record: unknown, type: UniversityType, ids: Ids): boolean {
  if (error.code !== 'unknown_reference' || error.field === null) return false;
  const references = type.fields.find(f => f.name === error.field)?.references;
  return ids.get(references ?? String(memberOf(record, 'object_type')))?.has(memberOf(record, error.field)) ?? false;
}

/** Separates references that another list satisfies from real errors; refused records bring nothing for later lists. */
function checkOf(result: Schemas['BatchResult'], list: List, type: UniversityType, ids: Ids): ListCheck {
  const records = list.file?.records ?? [];
  const errors = result.errors.filter(e => !comesWith(e, records[e.index], type, ids));
  const wrong = new Set(errors.map(e => e.index));
  for (const { code, index } of errors)
    if (code !== 'duplicate') ids.get(type.type)?.delete(memberOf(records[index], 'external_id'));
  const pending = new Set(result.errors.map(e => e.index).filter(index => !wrong.has(index))).size;
  const errorsTotal = result.errors_total ?? null;
  return { total: result.total, success: result.success + pending, pending, errors, errorsTotal };
}

/**
 * Tries lists without writing anything, in their order. A list that cannot be tried holds up no other.
 *
 * @param onChange called with each list before and after its turn
 */
export async function checkLists(
  lists: readonly List[],
  types: readonly UniversityType[],
  onChange: (list: List, isRunning: boolean) => void,
): Promise<void> {
  const ids = idsOf(lists);
  for (const list of lists) {
    const type = types.find(x => x.type === list.type);
    if (type === undefined || list.file === null || list.outcome !== null) continue;
    onChange({ ...list, error: null, check: null }, true);
    try {
      const { result } = await sendRecords(type.path, list.file.records, true);
      onChange({ ...list, error: null, check: checkOf(result, list, type, ids) }, false);
    } catch (error) {
      onChange({ ...list, check: null, error }, false);
    }
  }
}
