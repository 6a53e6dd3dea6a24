import { Buffer } from 'node:buffer';
import { compilationHints } from '../../abi/compilation-hints.ts';
import { CONTROL, CONTROL_MEMORY, GUEST_MEMORY, HOST_MODULE } from '../../abi/host-memory.ts';
import { leb, signedLeb } from '../../abi/leb.ts';
import { PAGE_BYTES } from '../../base/limits.ts';
import type { DataImage, ModuleOutline } from './module.ts';

/** Increased with every change of the output of `rewriteModule`; older stored modules are then rewritten again. */
export const RUNNABLE_FORMAT = 4;

/**
 * Largest name section kept. V8 copies names once per stack frame, so a large section would fill the heap of the
 * thread.
 */
const NAME_BYTES_MAX = 256 * 1024;

/** Gap between two data segments up to which copying zeros is cheaper than a separate segment. */
const GAP_BYTES_MAX = 256;

const SECTION = {
  custom: 0,
  type: 1,
  import: 2,
  function: 3,
  table: 4,
  memory: 5,
  export: 7,
  start: 8,
  element: 9,
  code: 10,
  data: 11,
  dataCount: 12,
} as const;

/**
 * Rewrites a module that passed the gate. The memory becomes an import with a capped maximum, table maxima are capped,
 * adjacent data segments are joined, and exports are removed. A new start function runs the module's own start
 * function, `_initialize` and the entry, so making an instance is the whole execution. A custom section names the
 * compiler for each function. This saves time per instance (1 us for an export, 0.02 us for a data segment). Function,
 * table, global and type indices and memory index 0 stay the same.
 *
 * @param bytes the module as uploaded
 * @param outline what `readModule` returned for these bytes, with a memory and the entry
 * @param entry the export to run
 */
export function rewriteModule(
  bytes: Uint8Array,
  outline: ModuleOutline,
  entry: 'plugin_handle' | 'plugin_describe',
): Uint8Array {
  const memory = outline.memory;
  const indexOf = (name: string): number | undefined =>
    outline.exports.find(e => e.name === name && e.kind === 0)?.index;
  const entryIndex = indexOf(entry);
  if (memory === null || entryIndex === undefined) throw new Error(`rewriteModule needs a memory and ${entry}`);
  const images = mergeImages(bytes, outline.images, memory.min * PAGE_BYTES);
  // The type `() -> ()` of the added function: an existing type of the module, or a new one.
  const known = outline.types.indexOf('->');
  const typeIndex = known < 0 ? outline.types.length : known;
  const added = outline.importedFunctions.length + outline.functionTypes.length;
  const body = runBody([outline.start ?? undefined, indexOf('_initialize')], entryIndex);
  const { entriesAt } = outline;
  const declared = outline.namesFunctions ? declaration(outline) : null;

  const sections: Array<{ id: number; parts: Uint8Array[] }> = [];
  for (const s of outline.sections) {
    const put = (...parts: Uint8Array[]): void => void sections.push({ id: s.id, parts });
    const oneMore = (from: number, count: number, entry: number[]): void =>
      put(Uint8Array.from(leb(count + 1)), bytes.subarray(from, s.end), Uint8Array.from(entry));
    if (s.id === SECTION.custom) {
      // Keeps function names, which make the stack of a trap readable; drops all other custom sections.
      if (s.name === 'name' && s.end - s.start <= NAME_BYTES_MAX) put(bytes.subarray(s.start, s.end));
    } else if (s.id === SECTION.type && known < 0) oneMore(entriesAt.types, outline.types.length, [0x60, 0, 0]);
    else if (s.id === SECTION.function) oneMore(entriesAt.functions, outline.functionTypes.length, leb(typeIndex));
    else if (s.id === SECTION.code)
      oneMore(entriesAt.code, outline.functionTypes.length, [...leb(body.length), ...body]);
    else if (s.id === SECTION.element && declared !== null)
      oneMore(entriesAt.elements, outline.elementSegments, declared);
    else if (s.id === SECTION.table && outline.tableSection !== null) put(Uint8Array.from(outline.tableSection));
    else if (s.id === SECTION.data && images !== null)
      put(Uint8Array.from(leb(images.length)), ...images.map(i => i.segment));
    else if (s.id === SECTION.dataCount && images !== null) put(Uint8Array.from(leb(images.length)));
    // These sections are written again below, or replaced by imports and the added function.
    else if (![SECTION.import, SECTION.memory, SECTION.export, SECTION.start].some(id => id === s.id))
      put(bytes.subarray(s.start, s.end));
  }
  insertOrdered(sections, SECTION.import, importSection(bytes, outline, memory));
  insertOrdered(sections, SECTION.start, [Uint8Array.from(leb(added))]);
  const insertAbsent = (id: number, entry: number[]): void => {
    if (!outline.sections.some(s => s.id === id)) insertOrdered(sections, id, [Uint8Array.from([1, ...entry])]);
  };
  // The section is absent if every function is imported, even the entry.
  insertAbsent(SECTION.function, leb(typeIndex));
  insertAbsent(SECTION.code, [...leb(body.length), ...body]);
  if (declared !== null) insertAbsent(SECTION.element, declared);

  // V8 reads the hints only between the function section and the code section.
  const code = sections.findIndex(s => s.id === SECTION.code);
  sections.splice(code, 0, {
    id: SECTION.custom,
    parts: [Uint8Array.from(compilationHints([...outline.optimized, true]))],
  });

  const out: Uint8Array[] = [bytes.subarray(0, 8)];
  for (const { id, parts } of sections) {
    const length = parts.reduce((sum, p) => sum + p.length, 0);
    out.push(Uint8Array.from([id, ...leb(length)]), ...parts);
  }
  return Buffer.concat(out);
}

/**
 * A declarative element segment of the exported functions, so that code may still name functions that only an export
 * declared.
 */
function declaration(outline: ModuleOutline): number[] {
  const indices = [...new Set(outline.exports.filter(e => e.kind === 0).map(e => e.index))];
  return [3, 0, ...leb(indices.length), ...indices.flatMap(leb)];
}

/**
 * Body of the added function: calls the functions before the entry, notes that in the control memory, calls the entry
 * and stores its result there.
 */
function runBody(before: Array<number | undefined>, entry: number): number[] {
  const call = (index: number): number[] => [0x10, ...leb(index)];
  const constant = (value: number): number[] => [0x41, value];
  /** `i32.store` into memory 1 at a word. */
  const store = (word: number): number[] => [0x36, 0x42, 1, ...leb(word * 4)];
  return [
    0,
    ...before.flatMap(index => (index === undefined ? [] : call(index))),
    ...[...constant(0), ...constant(1), ...store(CONTROL.entered)],
    ...[...constant(0), ...call(entry), ...store(CONTROL.code)],
    0x0b,
  ];
}

/** Inserts a section before the first one that must follow it; custom sections may be anywhere. */
function insertOrdered(sections: Array<{ id: number; parts: Uint8Array[] }>, id: number, parts: Uint8Array[]): void {
  // Compares by required order, not by id: data count (12) comes before code (10), tags (13) before globals (6).
  const place = (n: number): number => (n === 12 ? 9.5 : n === 13 ? 5.5 : n);
  const at = sections.findIndex(s => s.id !== SECTION.custom && place(s.id) > place(id));
  sections.splice(at < 0 ? sections.length : at, 0, { id, parts });
}

function importSection(bytes: Uint8Array, outline: ModuleOutline, memory: { min: number; max: number }): Uint8Array[] {
  const old = outline.sections.find(s => s.id === SECTION.import);
  const text = (s: string): number[] => [...leb(s.length), ...Buffer.from(s)];
  const memoryImport = (name: string, min: number, max: number): number[] => [
    ...[...text(HOST_MODULE), ...text(name)],
    ...[2, 1, ...leb(min), ...leb(max)],
  ];
  return [
    Uint8Array.from(leb(outline.importedFunctions.length + 2)),
    old === undefined ? new Uint8Array(0) : bytes.subarray(outline.entriesAt.imports, old.end),
    Uint8Array.from([...memoryImport(GUEST_MEMORY, memory.min, memory.max), ...memoryImport(CONTROL_MEMORY, 1, 1)]),
  ];
}

/**
 * Joins active data segments that are close to each other. Null if that would change the behaviour: passive or computed
 * segments, overlaps, or a segment beyond the initial memory (which must still trap).
 */
function mergeImages(
  bytes: Uint8Array,
  images: DataImage[] | null,
  memoryBytes: number,
): Array<{ segment: Uint8Array }> | null {
  if (images === null) return null;
  const merged: Array<{ address: number; parts: Uint8Array[]; end: number }> = [];
  for (const image of images) {
    const content = bytes.subarray(image.start, image.end);
    const end = image.address + content.length;
    const last = merged.at(-1);
    if (end > memoryBytes || (last !== undefined && image.address < last.end)) return null;
    if (last !== undefined && image.address - last.end <= GAP_BYTES_MAX) {
      last.parts.push(new Uint8Array(image.address - last.end), content);
      last.end = end;
    } else merged.push({ address: image.address, parts: [content], end });
  }
  return merged.map(m => ({
    segment: Buffer.concat([
      Uint8Array.from([0, 0x41, ...signedLeb(m.address), 0x0b, ...leb(m.end - m.address)]),
      ...m.parts,
    ]),
  }));
}
