import fs from 'node:fs';
import path from 'node:path';
import { withCustomSection } from '../../src/abi/custom-section.ts';
import {
  encodePositions,
  type Place,
  POSITIONS_BYTES_MAX,
  POSITIONS_SECTION,
  type Positions,
} from '../../src/abi/positions.ts';
import { messageOf } from '../../src/base/errors.ts';
import { type ModuleOutline, readModule } from '../../src/plugins/gate/module.ts';
import { type InlinedCall, type InlinedRange, readFunctions } from './debug-functions.ts';
import { type LineRow, type LineSequence, readLinePrograms } from './line-programs.ts';

/** Makes the section `plugin.positions` (docs/abi.md "Positions") from the debug information of a compiler. */

const EMPTY = new Uint8Array(0);
const MODULE_HEAD_BYTES = 8;
const CODE_SECTION = 10;

/** Whether a source is the author's: it lies below the author's folder. Libraries have relative paths at times, too. */
const isBelow = (folder: string, file: string): boolean =>
  file !== '' && !path.isAbsolute(file) && !file.startsWith('..') && fs.existsSync(path.join(folder, file));

/** A frame of an instruction: a line, and the name of the function it lies in. */
type Frame = { file: string; line: number; name: string | null };

/** The frames of a row, innermost first. `name`: of the function of the module. */
function framesOf(row: LineRow, call: InlinedCall | null, name: string | null): Frame[] {
  const frames: Frame[] = [];
  let { file, line } = row;
  for (let inner = call; inner !== null; inner = inner.within) {
    frames.push({ file, line, name: inner.name });
    ({ file, line } = inner);
  }
  frames.push({ file, line, name });
  return frames;
}

/** The list of places, each of them once. */
class PlaceList {
  readonly places: Place[] = [];
  readonly #known = new Map<string, number>();
  readonly #folder: string;
  readonly #isAuthors = new Map<string, boolean>();

  /** @param folder the author's; frames of other sources are left out */
  constructor(folder: string) {
    this.#folder = folder;
  }

  #isShown(file: string): boolean {
    const known = this.#isAuthors.get(file);
    if (known !== undefined) return known;
    const isShown = isBelow(this.#folder, file);
    this.#isAuthors.set(file, isShown);
    return isShown;
  }

  /** @returns the index of the innermost place; -1 when none of the frames is the author's */
  add(frames: readonly Frame[]): number {
    let caller = -1;
    for (const { file, line, name } of frames.toReversed()) {
      if (!this.#isShown(file)) continue;
      const key = `${caller} ${line} ${name ?? ''}\0${file}`;
      const known = this.#known.get(key);
      if (known === undefined) {
        this.#known.set(key, this.places.length);
        this.places.push({ file, line, name, caller });
      }
      caller = known ?? this.places.length - 1;
    }
    return caller;
  }
}

/** Cuts a sequence where a row or an inlined call begins or ends. `within`: the ranges in it, by their first address. */
function* piecesOf(
  { end, rows }: LineSequence,
  within: readonly InlinedRange[],
): Generator<{ address: number; row: LineRow; call: InlinedCall | null }> {
  const cuts = new Set([...rows.map(r => r.address), ...within.flatMap(r => [r.low, r.high])]);
  const first = rows[0]?.address ?? end;
  let [row, next] = [0, 0];
  let open: InlinedRange[] = [];
  for (const address of [...cuts].filter(a => a >= first && a < end).sort((a, b) => a - b)) {
    while ((rows[row + 1]?.address ?? end) <= address) row++;
    open = open.filter(r => r.high > address);
    for (let range = within[next]; range !== undefined && range.low <= address; range = within[++next])
      if (range.high > address) open.push(range);
    const deepest = open.reduce<InlinedRange | null>((a, b) => (a === null || b.depth > a.depth ? b : a), null);
    const here = rows[row];
    if (here !== undefined) yield { address, row: here, call: deepest?.call ?? null };
  }
}

function debugSections(module: Uint8Array, outline: ModuleOutline): (name: string) => Uint8Array {
  const sections = new Map(outline.custom.map(({ end, name, start }) => [name, module.subarray(start, end)]));
  return name => sections.get(`.debug_${name}`) ?? EMPTY;
}

/** @returns null when the module has no debug information */
function positionsIn(module: Uint8Array, outline: ModuleOutline, folder: string): Positions | null {
  const section = debugSections(module, outline);
  const code = outline.sections.find(s => s.id === CODE_SECTION);
  if (code === undefined || section('line').length === 0) return null;
  // The lines of a function begin at its body, or behind its locals: newer compilers do the latter.
  const bodies = outline.bodies.map(b => ({ start: b.offset - code.start, end: b.offset - code.start + b.bytes }));
  const startOf = (address: number): number | undefined => {
    let [low, high] = [0, bodies.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((bodies[middle]?.start ?? 0) <= address) low = middle + 1;
      else high = middle;
    }
    const body = bodies[low - 1];
    return body !== undefined && address < body.end ? body.start : undefined;
  };
  const programs = readLinePrograms(section('line'));
  const debug = { info: section('info'), abbrev: section('abbrev'), str: section('str'), ranges: section('ranges') };
  const { names, ranges } = readFunctions(debug, programs, address => startOf(address) !== undefined);
  const inlined = ranges.sort((a, b) => a.low - b.low);
  const sequences = [...programs.values()]
    .flatMap(p => p.sequences)
    // The linker leaves the lines of functions it has left out at an address outside of all others.
    .filter(s => startOf(s.rows[0]?.address ?? -1) !== undefined)
    .sort((a, b) => (a.rows[0]?.address ?? 0) - (b.rows[0]?.address ?? 0));
  const list = new PlaceList(folder);
  const addresses: number[] = [];
  const placeOf: number[] = [];
  let next = 0;
  for (const sequence of sequences) {
    const first = sequence.rows[0]?.address ?? 0;
    while ((inlined[next]?.low ?? Number.POSITIVE_INFINITY) < first) next++;
    const from = next;
    while ((inlined[next]?.low ?? Number.POSITIVE_INFINITY) < sequence.end) next++;
    // A row counts to the end of its function at most, so that the first one of each function is needed.
    let before: number | null = null;
    for (const { address, call, row } of piecesOf(sequence, inlined.slice(from, next))) {
      const place = list.add(framesOf(row, call, names.get(first) ?? names.get(startOf(first) ?? -1) ?? null));
      if (place === before) continue;
      before = place;
      addresses.push(address);
      placeOf.push(place);
    }
  }
  return { places: list.places, addresses, placeOf };
}

/** The module without what only debuggers read. */
function withoutDebugSections(module: Uint8Array, { sections }: ModuleOutline): Uint8Array {
  const parts = [module.subarray(0, MODULE_HEAD_BYTES)];
  let from = MODULE_HEAD_BYTES;
  for (const { end, name } of sections) {
    if (!name.startsWith('.debug_') && name !== 'producers') parts.push(module.subarray(from, end));
    from = end;
  }
  return Buffer.concat(parts);
}

/**
 * Replaces the debug information of a module by the lines of its author's sources.
 *
 * @param module as the linker wrote it, with DWARF 4 for the author's sources
 * @param folder the author's folder, in which the compiler ran; its sources are shown in failures
 * @returns the module, and what is to be said to the author
 */
export function withPositions(module: Uint8Array, folder: string): { module: Uint8Array; warnings: string[] } {
  const outline = readModule(module);
  const bare = withoutDebugSections(module, outline);
  const without = (why: string) => ({ module: bare, warnings: [`failures of this plugin have no lines: ${why}`] });
  let positions: Positions | null;
  try {
    positions = positionsIn(module, outline, folder);
  } catch (error) {
    return without(`the debug information of the compiler cannot be read: ${messageOf(error)}`);
  }
  if (positions === null || positions.addresses.length === 0)
    return without('the compiler has left no debug information of version 2 to 4');
  const content = encodePositions(positions);
  if (content.length > POSITIONS_BYTES_MAX)
    return without(`they take ${content.length} bytes, and at most ${POSITIONS_BYTES_MAX} are allowed`);
  return { module: withCustomSection(bare, POSITIONS_SECTION, content), warnings: [] };
}
