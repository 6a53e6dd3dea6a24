type Field = { name: string; required: boolean };
type Type = { type: string; path: string; fields: readonly Field[] };

/** Words of a name with single dashes around them: `01 Student_positions.csv` becomes `-01-student-positions-`. */
const dashed = (text: string): string => `-${text.toLowerCase().replace(/[^\p{L}\p{N}]+/gu, '-')}-`.replace(/-+/g, '-');

/**
 * The type of records that a file holds, by its name, or else by its columns.
 *
 * @param label how the pages call a type, which a file may be named after as well
 * @returns null when neither tells
 */
export function guessType<T extends Type>(
  file: { name: string; columns: readonly string[] },
  types: readonly T[],
  label: (type: T['type']) => string,
): T | null {
  const name = dashed(file.name.replace(/\.[^.]+$/, ''));
  const named = types
    .flatMap(type => [type.path, type.type, label(type.type)].map(text => ({ type, word: dashed(text) })))
    .filter(({ word }) => name.includes(word))
    .sort((a, b) => b.word.length - a.word.length);
  return named[0]?.type ?? byColumns(file.columns, types);
}

/** The one type whose fields the columns fit best: all that it needs is there, and the fewest columns are left over. */
function byColumns<T extends Type>(columns: readonly string[], types: readonly T[]): T | null {
  const fits = types
    .filter(type => type.fields.every(f => !f.required || columns.includes(f.name)))
    .map(type => {
      const needed = type.fields.filter(f => f.required).length;
      const further = columns.filter(c => !type.fields.some(f => f.name === c)).length;
      return { type, needed, further };
    })
    .sort((a, b) => a.further - b.further || b.needed - a.needed);
  const [best, second] = fits;
  if (best === undefined) return null;
  return second !== undefined && second.further === best.further && second.needed === best.needed ? null : best.type;
}
