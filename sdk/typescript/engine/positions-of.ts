import type { SourceMapPayload } from 'node:module';

/** Makes the table of positions that the kit reads (`kit/positions.ts`) from a source map. */

const DIGITS = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/';

/** Column in the bundle; source, line and column the author knows. All count from 0. */
type Place = [column: number, source: number, line: number, sourceColumn: number];

/** Numbers in base64 VLQ (ECMA-426 section 6). */
function encode(numbers: readonly number[]): string {
  let out = '';
  for (const number of numbers) {
    let rest = number < 0 ? (-number << 1) | 1 : number << 1;
    do {
      const digit = rest & 31;
      rest >>>= 5;
      out += DIGITS[rest > 0 ? digit | 32 : digit];
    } while (rest > 0);
  }
  return out;
}

function decode(segment: string): number[] {
  const numbers: number[] = [];
  let value = 0;
  let shift = 0;
  for (const c of segment) {
    const digit = DIGITS.indexOf(c);
    value |= (digit & 31) << shift;
    shift += 5;
    if ((digit & 32) !== 0) continue;
    numbers.push((value & 1) === 1 ? -(value >>> 1) : value >>> 1);
    value = 0;
    shift = 0;
  }
  return numbers;
}

/** The places of each line of the bundle. */
export function readMappings(mappings: string): Place[][] {
  let [source, line, sourceColumn] = [0, 0, 0];
  return mappings.split(';').map(row => {
    let column = 0;
    return row.split(',').flatMap((segment): Place[] => {
      const [c = 0, s, l = 0, sc = 0] = decode(segment);
      column += c;
      if (s === undefined) return [];
      source += s;
      line += l;
      sourceColumn += sc;
      return [[column, source, line, sourceColumn]];
    });
  });
}

/**
 * @param map of the bundle
 * @param isAuthors whether a source is to be shown in errors; lines of others stay empty
 * @returns the names of the sources as JSON, then a line for each line of the bundle, each counting from 0
 */
export function positionsOf(map: SourceMapPayload, isAuthors: (source: string) => boolean): Uint8Array {
  const lines = readMappings(map.mappings).map(places => {
    let before: Place = [0, 0, 0, 0];
    return places
      .filter(([, source]) => isAuthors(map.sources[source] ?? ''))
      .map(place => {
        const segment = encode(place.map((n, k) => n - (before[k] ?? 0)));
        before = place;
        return segment;
      })
      .join(',');
  });
  return new TextEncoder().encode([JSON.stringify(map.sources), ...lines].join('\n'));
}
