import { type Schemas, sendRecords } from '../api/client.ts';
import type { ListCheck } from './check-lists.ts';
import { guessType } from './guess-type.ts';
import { type FileFault, FileProblem, type RecordFile, readFile, readRecords } from './record-file.ts';
import type { UniversityType } from './types.ts';

type TypeName = UniversityType['type'];
export type Outcome = { result: Schemas['BatchResult']; importId: number | null };

/** A file with the type its records are taken for, and what became of it. */
export type List = {
  id: number;
  name: string;
  text: string;
  type: TypeName | null;
  file: RecordFile | null;
  fault: FileFault | null;
  check: ListCheck | null;
  outcome: Outcome | null;
  error: unknown;
};

let last = 0;

/** Why a file holds no records; throws what is no such reason. */
function faultOf(error: unknown): FileFault {
  if (!(error instanceof FileProblem)) throw error;
  return error.fault;
}

/** Reads the records of a list as those of its type, or says why it has none. */
function read(text: string, type: UniversityType | undefined): Pick<List, 'file' | 'fault'> {
  try {
    return { file: readRecords(text, type?.fields ?? [], type?.columns), fault: null };
  } catch (error) {
    return { file: null, fault: faultOf(error) };
  }
}

/** Reads a dropped file, and guesses which type it holds. */
export async function listOf(
  dropped: File,
  types: readonly UniversityType[],
  label: (type: TypeName) => string,
): Promise<List> {
  last++;
  const list = { id: last, name: dropped.name, check: null, outcome: null, error: null };
  let text = '';
  try {
    text = (await readFile(dropped)).text;
  } catch (error) {
    return { ...list, text, type: null, file: null, fault: faultOf(error) };
  }
  const columns = read(text, undefined).file?.columns ?? [];
  const type = guessType({ name: dropped.name, columns }, types, label) ?? undefined;
  return { ...list, text, type: type?.type ?? null, ...read(text, type) };
}

/** The list as one of another type. */
export const asType = (list: List, type: UniversityType): List => ({
  ...list,
  type: type.type,
  ...read(list.text, type),
  check: null,
  outcome: null,
  error: null,
});

/** Lists in the order in which their types refer to each other; those whose type is not known come last. */
export function inOrder(lists: readonly List[], types: readonly UniversityType[]): List[] {
  const place = ({ type }: List): number => {
    const at = types.findIndex(x => x.type === type);
    return at < 0 ? types.length : at;
  };
  return [...lists].sort((a, b) => place(a) - place(b));
}

/** Types that lists refer to, of which there is nothing yet and no list either. */
export function missingFor(lists: readonly List[], types: readonly UniversityType[]): UniversityType[] {
  const given = new Set(lists.map(l => l.type));
  const needed = types
    .filter(x => given.has(x.type))
    .flatMap(x => x.fields.flatMap(f => (f.required && f.references !== null ? [f.references] : [])));
  return types.filter(x => needed.includes(x.type) && x.records === 0 && !given.has(x.type));
}

/** What has to be there before records of a type can be, and the type itself, in order. */
export function neededFor(type: TypeName, types: readonly UniversityType[]): UniversityType[] {
  const needed = new Set<TypeName>();
  const add = (name: TypeName): void => {
    if (needed.has(name)) return;
    needed.add(name);
    for (const f of types.find(x => x.type === name)?.fields ?? [])
      if (f.required && f.references !== null) add(f.references);
  };
  add(type);
  return types.filter(x => needed.has(x.type));
}

/**
 * Imports lists one after another. A list that fails as a whole ends it: those behind may refer to it.
 *
 * @param onChange called with each list before and after its turn
 */
export async function importLists(
  lists: readonly List[],
  types: readonly UniversityType[],
  onChange: (list: List, isRunning: boolean) => void,
): Promise<void> {
  for (const list of lists) {
    const path = types.find(x => x.type === list.type)?.path;
    if (path === undefined || list.file === null || list.outcome !== null) continue;
    onChange({ ...list, error: null }, true);
    try {
      onChange({ ...list, error: null, outcome: await sendRecords(path, list.file.records, false) }, false);
    } catch (error) {
      onChange({ ...list, error }, false);
      return;
    }
  }
}
