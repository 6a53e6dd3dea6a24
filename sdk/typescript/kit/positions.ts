import * as raw from './host-functions.js';

/**
 * Finds the author's lines: the engine knows positions in the bundle, and the build has left a table of where they come
 * from (`positionsOf`): the names of the files, then a line for each line of the bundle, as in a source map (ECMA-426).
 */

/** A place in the bundle and where it comes from; lines and columns count from 0. */
type Mapping = { column: number; source: number; line: number; sourceColumn: number };

const DIGITS = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/';

/** Numbers of a segment, in base64 VLQ (ECMA-426 section 6). */
function decode(segment: string): number[] {
  const numbers: number[] = [];
  let value = 0;
  let shift = 0;
  for (const c of segment) {
    const digit = DIGITS.indexOf(c);
    value |= (digit & 31) << shift;
    shift += 5;
    if (digit & 32) continue;
    numbers.push(value & 1 ? -(value >>> 1) : value >>> 1);
    value = 0;
    shift = 0;
  }
  return numbers;
}

/** The mappings of a line of the bundle. Each line of the table counts from 0, so that no other one is read. */
function readLine(text: string): Mapping[] {
  let [column, source, line, sourceColumn] = [0, 0, 0, 0];
  return text.split(',').map(segment => {
    const [c = 0, s = 0, l = 0, sc = 0] = decode(segment);
    column += c;
    source += s;
    line += l;
    sourceColumn += sc;
    return { column, source, line, sourceColumn };
  });
}

let known: { sources: string[]; lines: string[] } | null = null;

function table(): { sources: string[]; lines: string[] } {
  if (known === null) {
    const [sources = '[]', ...lines] = raw.positions().split('\n');
    known = { sources: JSON.parse(sources), lines };
  }
  return known;
}

/** The name the engine gives the bundle. */
const FRAME = /plugin\.js:(\d+):(\d+)/;

/** The author's place; null in the kit and the engine, which have no mappings. */
function sourceOf(line: number, column: number): string | null {
  const { lines, sources } = table();
  const text = lines[line - 1] ?? '';
  if (text === '') return null;
  const mappings = readLine(text);
  const found = mappings.findLast(m => m.column <= column - 1) ?? mappings[0];
  const source = found === undefined ? undefined : sources[found.source];
  return found === undefined || source === undefined ? null : `${source}:${found.line + 1}:${found.sourceColumn + 1}`;
}

/** Lines of which several that are the same follow each other, as in a function that calls itself, are counted. */
function withCounts(lines: readonly string[]): string[] {
  const counted: string[] = [];
  for (let from = 0, to = 0; from < lines.length; from = to) {
    while (lines[to] === lines[from] && to < lines.length) to++;
    counted.push(to - from < 3 ? lines.slice(from, to).join('\n') : `${lines[from]}, ${to - from} times`);
  }
  return counted;
}

/** A stack of the engine with the author's files and lines; frames of the engine and of the kit are left out. */
export function authorStack(stack: string): string {
  const frames = stack.split('\n').flatMap(frame => {
    const [place = '', line, column] = FRAME.exec(frame) ?? [];
    if (place === '') return [];
    const source = sourceOf(Number(line), Number(column));
    return source === null ? [] : [frame.replace(place, source)];
  });
  return withCounts(frames).join('\n');
}
