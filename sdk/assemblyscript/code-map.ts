import { z } from 'zod';
import { encodePositions, type Place } from '../../src/abi/positions.ts';
import { readMappings } from '../typescript/engine/positions-of.ts';

/** Where the code of a module comes from, of the compiler's source map: only the author's lines, function by function. */

const sourceMap = z.object({ sources: z.array(z.string()), mappings: z.string() });

/** From an offset in the module on up to the next row, code comes from this place; null for code of the kit alone. */
type Row = { offset: number; place: { source: string; line: number; column: number } | null };

export type CodeMap = {
  /** In order of their offsets; each function begins with one. */
  rows: Row[];
  /** Where the content of the code section begins. */
  codeAt: number;
  /** Where the functions begin. */
  bodies: ReadonlySet<number>;
};

/** Files of the kit and of the compiler's library. */
const isLibrary = (source: string): boolean => source.startsWith('~lib/') || source === '__main.ts';

const CODE_SECTION = 10;

function readCode(module: Uint8Array): { codeAt: number; bodies: Set<number> } {
  let at = 8;
  const number = (): number => {
    for (let value = 0, shift = 0; ; shift += 7) {
      const byte = module[at++] ?? 0;
      value |= (byte & 127) << shift;
      if (byte < 128) return value >>> 0;
    }
  };
  while (at < module.length) {
    const id = module[at++];
    const end = number() + at;
    if (id === CODE_SECTION) {
      const codeAt = at;
      const bodies = new Set<number>();
      for (let count = number(); count > 0; count--) {
        const size = number();
        bodies.add(at);
        at += size;
      }
      return { codeAt, bodies };
    }
    at = end;
  }
  return { codeAt: at, bodies: new Set() };
}

/**
 * @param module as the compiler has written it
 * @param map its source map, whose columns are byte offsets in the module, in one line
 * @returns where code comes from; what is inlined from the library counts as the author's line before it
 */
export function readCodeMap(module: Uint8Array, map: string): CodeMap {
  const { mappings, sources } = sourceMap.parse(JSON.parse(map));
  const { bodies, codeAt } = readCode(module);
  const places = new Map<number, Row['place']>([...bodies].map(offset => [offset, null]));
  for (const [offset, index, line, column] of readMappings(mappings)[0] ?? []) {
    const source = sources[index];
    if (source !== undefined && !isLibrary(source)) places.set(offset, { source, line: line + 1, column: column + 1 });
  }
  const rows = [...places].map(([offset, place]) => ({ offset, place })).sort((a, b) => a.offset - b.offset);
  return { rows, codeAt, bodies };
}

/** The content of the section `plugin.positions` (docs/abi.md "Positions"). */
export function positionsSection({ bodies, codeAt, rows }: CodeMap): Uint8Array {
  const numbers = new Map<string, number>();
  const places: Place[] = [];
  const addresses: number[] = [];
  const placeOf: number[] = [];
  let last = -1;
  for (const { offset, place } of rows) {
    // A row counts up to the end of its function.
    if (bodies.has(offset)) last = -1;
    if (place === null) continue;
    const { line, source } = place;
    const key = `${source}:${line}`;
    const number = numbers.get(key) ?? places.length;
    if (number === places.length) places.push({ file: source, line, name: null, caller: -1 });
    numbers.set(key, number);
    if (number === last) continue;
    last = number;
    addresses.push(offset - codeAt);
    placeOf.push(number);
  }
  return encodePositions({ places, addresses, placeOf });
}

/** The author's places in a stack of V8, the innermost first. */
export function placesOf(stack: string, { rows }: CodeMap): string[] {
  return [...stack.matchAll(/wasm-function\[\d+\]:0x([0-9a-f]+)/g)].flatMap(([, hex = '']) => {
    const at = Number.parseInt(hex, 16);
    const place = rows.findLast(row => row.offset <= at)?.place ?? null;
    return place === null ? [] : [`${place.source}:${place.line}:${place.column}`];
  });
}
