import { Buffer } from 'node:buffer';
import { PAGE_BYTES } from '../../limits.ts';
import type { DataImage, ModuleOutline, Section } from './module.ts';
import { leb, signedLeb } from './reader.ts';

/** Where a rewritten module takes its memory from. No uploaded module can name it: imports are checked before. */
export const MEMORY_IMPORT = { module: '$host', name: 'mem' } as const;

/** Names are copied once per frame of a stack: a large section would fill the heap of the thread. */
const NAME_BYTES_MAX = 256 * 1024;

/** Zeros between two data segments that are cheaper to copy than a segment of their own. */
const GAP_BYTES_MAX = 256;

export type Rewritten = {
  bytes: Uint8Array;
  /** Whether `_initialize` still has to be called: the module has a start function of its own beside it. */
  hasInitialize: boolean;
};

const SECTION = { custom: 0, import: 2, table: 4, memory: 5, export: 7, start: 8, data: 11, dataCount: 12 } as const;

/**
 * Rewrites a module that passed the gate: its memory becomes an import with a capped maximum, table maxima are capped,
 * `_initialize` becomes the start function, neighbouring data segments become one, and of the exports only the entry is
 * left. Each of these is time per instance (an export 3.5 us, an import 0.5, a data segment 0.02). Function, table,
 * global and type indices do not move; memory index 0 stays.
 *
 * @param bytes the module as uploaded
 * @param outline what `readModule` returned for these bytes, with a memory
 * @param entry the export to keep
 */
export function rewriteModule(
  bytes: Uint8Array,
  outline: ModuleOutline,
  entry: 'plugin_handle' | 'plugin_describe',
): Rewritten {
  const memory = outline.memory;
  if (memory === null) throw new Error('rewriteModule needs a module with a memory');
  const initialize = outline.exports.find(e => e.name === '_initialize' && e.kind === 0);
  const asStart = initialize !== undefined && !outline.hasStart;
  const hasInitialize = initialize !== undefined && !asStart;
  const kept = outline.exports.filter(
    e => e.kind === 0 && (e.name === entry || (hasInitialize && e.name === '_initialize')),
  );
  const images = mergeImages(bytes, outline.images, memory.min * PAGE_BYTES);

  const sections: Array<{ id: number; parts: Uint8Array[] }> = [];
  const keep = (s: Section): void => void sections.push({ id: s.id, parts: [bytes.subarray(s.start, s.end)] });
  for (const s of outline.sections) {
    if (s.id === SECTION.custom) {
      // Function names make the stack of a trap readable; other custom sections are dead weight.
      if (s.end - s.start <= NAME_BYTES_MAX && outline.custom.some(c => c.name === 'name' && c.end === s.end)) keep(s);
    } else if (s.id === SECTION.import || s.id === SECTION.memory) {
      // Made anew, or gone into the imports.
    } else if (s.id === SECTION.table && outline.tableSection !== null)
      sections.push({ id: s.id, parts: [Uint8Array.from(outline.tableSection)] });
    else if (s.id === SECTION.export)
      sections.push({
        id: s.id,
        parts: [Uint8Array.from(leb(kept.length)), ...kept.map(e => bytes.subarray(e.start, e.end))],
      });
    else if (s.id === SECTION.data && images !== null)
      sections.push({ id: s.id, parts: [Uint8Array.from(leb(images.length)), ...images.map(i => i.segment)] });
    else if (s.id === SECTION.dataCount && images !== null)
      sections.push({ id: s.id, parts: [Uint8Array.from(leb(images.length))] });
    else keep(s);
  }
  insertOrdered(sections, SECTION.import, importSection(bytes, outline, memory));
  if (asStart) insertOrdered(sections, SECTION.start, [Uint8Array.from(leb(initialize.index))]);

  const out: Uint8Array[] = [bytes.subarray(0, 8)];
  for (const { id, parts } of sections) {
    const length = parts.reduce((sum, p) => sum + p.length, 0);
    out.push(Uint8Array.from([id, ...leb(length)]), ...parts);
  }
  return { bytes: Buffer.concat(out), hasInitialize };
}

/** Puts a section before the first one that must stand behind it; custom sections stand anywhere. */
function insertOrdered(sections: Array<{ id: number; parts: Uint8Array[] }>, id: number, parts: Uint8Array[]): void {
  // Data count (12) stands before code (10), tags (13) before globals (6): compared by their place, not their number.
  const place = (n: number): number => (n === 12 ? 9.5 : n === 13 ? 5.5 : n);
  const at = sections.findIndex(s => s.id !== SECTION.custom && place(s.id) > place(id));
  sections.splice(at < 0 ? sections.length : at, 0, { id, parts });
}

function importSection(bytes: Uint8Array, outline: ModuleOutline, memory: { min: number; max: number }): Uint8Array[] {
  const old = outline.sections.find(s => s.id === SECTION.import);
  const text = (s: string): number[] => [...leb(s.length), ...Buffer.from(s)];
  return [
    Uint8Array.from(leb(outline.importedFunctions.length + 1)),
    old === undefined ? new Uint8Array(0) : bytes.subarray(outline.importEntriesAt, old.end),
    Uint8Array.from([
      ...text(MEMORY_IMPORT.module),
      ...text(MEMORY_IMPORT.name),
      2,
      1,
      ...leb(memory.min),
      ...leb(memory.max),
    ]),
  ];
}

/**
 * Joins active data segments that stand close to each other, in order and apart. Null when that would not be the same:
 * passive or computed segments, overlaps, or one beyond the initial memory (which must trap as it always did).
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
