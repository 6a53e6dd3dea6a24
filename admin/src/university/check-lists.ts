import { type Schemas, sendRecords } from '../api/client.ts';
import type { List } from './import-lists.ts';
import type { UniversityType } from './types.ts';

type RecordError = Schemas['RecordError'];

/** What a list came to that was tried without writing. */
export type ListCheck = {
  total: number;
  /** Records that can be imported, `pending` included. */
  success: number;
  /** Records that name one of another dropped list, which the import brings first. */
  pending: number;
  /** What is wrong with the others; a long list is cut by the service. */
  errors: RecordError[];
};

/** Types of the objects that an appointment may name are those of the graph, where a group has a longer name. */
const typeNamed = (objectType: unknown): string => String(objectType).replace(/^study_/, '');

const memberOf = (record: unknown, name: string): unknown =>
  typeof record === 'object' && record !== null ? Object.entries(record).find(([key]) => key === name)?.[1] : undefined;

/** The ids that lists bring, by type. */
function idsOf(lists: readonly List[]): Map<string, Set<unknown>> {
  const ids = new Map<string, Set<unknown>>();
  for (const { file, type } of lists) {
    if (type === null || file === null) continue;
    const known = ids.get(type) ?? new Set();
    for (const record of file.records) known.add(memberOf(record, 'external_id'));
    ids.set(type, known);
  }
  return ids;
}

/** Tells whether what a record misses is in another of the lists. */
function comesWith(
  error: RecordError,
  record: unknown,
  type: UniversityType,
  ids: ReadonlyMap<string, Set<unknown>>,
): boolean {
  if (error.code !== 'unknown_reference' || error.field === null) return false;
  const references = type.fields.find(f => f.name === error.field)?.references ?? null;
  const named = references ?? typeNamed(memberOf(record, 'object_type'));
  return ids.get(named)?.has(memberOf(record, error.field)) ?? false;
}

/** Sorts what was wrong into what the other lists mend and what stays wrong. */
function checkOf(
  result: Schemas['BatchResult'],
  list: List,
  type: UniversityType,
  ids: ReadonlyMap<string, Set<unknown>>,
): ListCheck {
  const errors = result.errors.filter(e => !comesWith(e, list.file?.records[e.index], type, ids));
  const wrong = new Set(errors.map(e => e.index));
  const pending = new Set(result.errors.map(e => e.index).filter(index => !wrong.has(index))).size;
  return { total: result.total, success: result.success + pending, pending, errors };
}

/**
 * Tries lists without writing anything.
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
      return;
    }
  }
}
