import type { ModuleOutline } from './module.ts';
import { activeSegment, type StartImage } from './start-image.ts';

/** Bytes of the memory from `start` up to `end`. */
export type ByteRange = { start: number; end: number };

export type DataSection = {
  segments: Uint8Array[];
  /** Large parts of the memory that these segments overwrite when an instance is made, in order. */
  overwritten: ByteRange[];
};

/** Gap between two data segments up to which copying zeros is cheaper than a separate segment. */
const GAP_BYTES_MAX = 256;
/** Ranges shorter than this are not worth a note: zeroing them is as cheap. */
const NOTED_BYTES_MIN = 32 * 1024;
const NOTED_MAX = 64;

type Piece = { address: number; contents: Uint8Array[]; end: number };

function sectionOf(kept: Uint8Array[], pieces: readonly Piece[]): DataSection {
  const overwritten = pieces
    .filter(p => p.end - p.address >= NOTED_BYTES_MIN)
    .map(p => ({ start: p.address, end: p.end }))
    .slice(0, NOTED_MAX);
  return { segments: [...kept, ...pieces.map(p => activeSegment(p.address, p.contents))], overwritten };
}

/**
 * Joins active data segments that are close to each other. Null if that would change the behaviour: passive or computed
 * segments, segments named by code, overlaps, or a segment beyond the initial memory (which must still trap).
 */
export function mergedData(bytes: Uint8Array, outline: ModuleOutline, memoryBytes: number): DataSection | null {
  if (outline.namesDataSegments) return null;
  const pieces: Piece[] = [];
  for (const { active, address, end: to, start } of outline.dataSegments) {
    if (!active || address === null) return null;
    const content = bytes.subarray(start, to);
    const end = address + content.length;
    const last = pieces.at(-1);
    if (end > memoryBytes || (last !== undefined && address < last.end)) return null;
    if (last !== undefined && address - last.end <= GAP_BYTES_MAX) {
      last.contents.push(new Uint8Array(address - last.end), content);
      last.end = end;
    } else pieces.push({ address, contents: [content], end });
  }
  return sectionOf([], pieces);
}

/**
 * The parts of an image as segments. Where code names segments by index, those of the module stay before them, without
 * the bytes of the active ones, which count as dropped.
 */
export function imageData(bytes: Uint8Array, outline: ModuleOutline, extents: StartImage['extents']): DataSection {
  const kept = outline.namesDataSegments
    ? outline.dataSegments.map(s => (s.active ? activeSegment(0, []) : bytes.subarray(s.entryAt, s.end)))
    : [];
  return sectionOf(
    kept,
    extents.map(({ address, content }) => ({ address, contents: [content], end: address + content.length })),
  );
}
