import { Buffer } from 'node:buffer';
import { compilationHints } from '../../abi/compilation-hints.ts';
import { withCustomSection } from '../../abi/custom-section.ts';
import {
  CONTROL_MEMORY,
  GLOBAL_VALUE_BYTES,
  GLOBAL_VALUES_AT,
  GUEST_MEMORY,
  HOST_MODULE,
  START_EXPORT,
  TABLE_EXPORT,
} from '../../abi/host-memory.ts';
import { leb } from '../../abi/leb.ts';
import { encodePositions, POSITIONS_SECTION } from '../../abi/positions.ts';
import { PAGE_BYTES } from '../../base/limits.ts';
import { type AddedFunction, growFunction, runFunction, SIZE_FUNCTION, startFunction } from './added-functions.ts';
import { codeEntries, movedBodies } from './code-entries.ts';
import { type ByteRange, type DataSection, imageData, mergedData } from './data-section.ts';
import type { ModuleOutline } from './module.ts';
import { movedPositions } from './moved-positions.ts';
import { globalEntry, type StartImage } from './start-image.ts';

/**
 * Increased with every change of the output of `rewriteModule`, and of what a start can see of the host, because images
 * keep that. Older stored modules are then rewritten again.
 */
export const RUNNABLE_FORMAT = 5;

/**
 * Largest name section kept. V8 copies names once per stack frame, so a large section would fill the heap of the
 * thread.
 */
const NAME_BYTES_MAX = 256 * 1024;

const SECTION = {
  custom: 0,
  type: 1,
  import: 2,
  function: 3,
  table: 4,
  memory: 5,
  global: 6,
  export: 7,
  start: 8,
  element: 9,
  code: 10,
  data: 11,
  dataCount: 12,
} as const;

export type RewrittenModule = {
  bytes: Uint8Array;
  memoryPages: { min: number; max: number };
  /** Large parts of the memory that making an instance overwrites. */
  overwritten: ByteRange[];
};

/**
 * Rewrites a module that passed the gate. The memory becomes an import with a capped maximum, table maxima are capped,
 * adjacent data segments are joined, and exports are removed. A new start function runs the whole execution: the
 * module's own start function, `_initialize` and the entry. With an image of what the start left, memory and globals
 * begin with that, and the start function runs the entry alone. `memory.size` and `memory.grow` become calls, so that
 * a larger memory can be used again. A custom section names the compiler for each function. This saves time per
 * instance (1 us for an export, 0.02 us for a data segment). Function, table, global and type indices and memory index
 * 0 stay the same.
 *
 * @param bytes the module as uploaded
 * @param outline what `readModule` returned for these bytes, with a memory and the entry
 * @param entry the export to run
 * @param image what its start left, or null to run the start in each execution
 */
export function rewriteModule(
  bytes: Uint8Array,
  outline: ModuleOutline,
  entry: 'plugin_handle' | 'plugin_describe',
  image: StartImage | null,
): RewrittenModule {
  const entryIndex = exportedFunction(outline, entry);
  if (outline.memory === null || entryIndex === undefined) throw new Error(`bug: no memory or no ${entry}`);
  const memoryPages = { min: image?.pages ?? outline.memory.min, max: outline.memory.max };
  const data =
    image === null
      ? mergedData(bytes, outline, memoryPages.min * PAGE_BYTES)
      : imageData(bytes, outline, image.extents);
  const run = runFunction(image === null ? startsOf(outline) : [], entryIndex);
  const rewriting = new Rewriting(bytes, outline, { run, data, image, memoryPages, controlPages: 1 });
  return {
    bytes: rewriting.assemble({ start: true, exports: [] }),
    memoryPages,
    overwritten: data?.overwritten ?? [],
  };
}

export type StartModule = { bytes: Uint8Array; memoryPages: { min: number; max: number }; controlPages: number };

/**
 * A module that runs only the start of another: its export `start` does, and leaves the values of the mutable globals
 * in the control memory; the exports `table0`, `table1`.. are its tables.
 *
 * @returns null if the module has neither a start function nor `_initialize`
 */
export function makeStartModule(bytes: Uint8Array, outline: ModuleOutline): StartModule | null {
  const { memory, tables } = outline;
  const starts = startsOf(outline);
  if (memory === null || starts.every(index => index === undefined)) return null;
  const values = outline.globals.filter(g => g.mutable).length;
  const controlPages = Math.ceil((GLOBAL_VALUES_AT + values * GLOBAL_VALUE_BYTES) / PAGE_BYTES);
  const rewriting = new Rewriting(bytes, outline, {
    run: startFunction(starts, outline.globals),
    data: mergedData(bytes, outline, memory.min * PAGE_BYTES),
    image: null,
    memoryPages: memory,
    controlPages,
  });
  const runnable = rewriting.assemble({
    start: false,
    exports: [
      { name: START_EXPORT, kind: 0, index: rewriting.runIndex },
      ...Array.from({ length: tables }, (_, index) => ({ name: `${TABLE_EXPORT}${index}`, kind: 1, index })),
    ],
  });
  return { bytes: runnable, memoryPages: memory, controlPages };
}

const exportedFunction = (outline: ModuleOutline, name: string): number | undefined =>
  outline.exports.find(e => e.name === name && e.kind === 0)?.index;

/** Functions that run before the entry: the start function and `_initialize`. */
const startsOf = (outline: ModuleOutline): Array<number | undefined> => [
  outline.start ?? undefined,
  exportedFunction(outline, '_initialize'),
];

type Plan = {
  /** The function that runs. */
  run: AddedFunction;
  /** Null to keep the data segments. */
  data: DataSection | null;
  /** First values of the mutable globals; null to keep their own. */
  image: StartImage | null;
  memoryPages: { min: number; max: number };
  controlPages: number;
};

type Export = { name: string; kind: number; index: number };
type NewSection = { id: number; parts: Uint8Array[] };

const text = (s: string): number[] => [...leb(s.length), ...Buffer.from(s)];
const vector = (entries: readonly number[][]): Uint8Array =>
  Uint8Array.from([...leb(entries.length), ...entries.flat()]);

class Rewriting {
  readonly #bytes: Uint8Array;
  readonly #outline: ModuleOutline;
  readonly #plan: Plan;
  readonly #added: AddedFunction[];
  /** Index of the first added function, the one that runs. */
  readonly runIndex: number;
  /** The types that the added functions need and the module does not have. */
  readonly #newTypes: string[];

  constructor(bytes: Uint8Array, outline: ModuleOutline, plan: Plan) {
    this.#bytes = bytes;
    this.#outline = outline;
    this.#plan = plan;
    this.#added = [plan.run];
    if (outline.memorySites.length > 0) this.#added.push(SIZE_FUNCTION, growFunction(plan.memoryPages.max));
    this.runIndex = outline.importedFunctions.length + outline.functionTypes.length;
    this.#newTypes = [...new Set(this.#added.map(f => f.type))].filter(type => !outline.types.includes(type));
  }

  assemble({ exports, start }: { start: boolean; exports: Export[] }): Uint8Array {
    const { sections: old } = this.#outline;
    const sections: NewSection[] = [];
    for (const s of old) {
      const parts = this.#rewritten(s) ?? [this.#bytes.subarray(s.start, s.end)];
      if (parts.length > 0) sections.push({ id: s.id, parts });
    }
    insertOrdered(sections, SECTION.import, this.#imports());
    if (start) insertOrdered(sections, SECTION.start, [Uint8Array.from(leb(this.runIndex))]);
    if (exports.length > 0)
      insertOrdered(sections, SECTION.export, [vector(exports.map(e => [...text(e.name), e.kind, ...leb(e.index)]))]);
    this.#insertAbsent(sections);
    // V8 reads the hints only between the function section and the code section.
    const code = sections.findIndex(s => s.id === SECTION.code);
    const optimized = [...this.#outline.optimized, ...this.#added.map(() => true)];
    sections.splice(code, 0, { id: SECTION.custom, parts: [Uint8Array.from(compilationHints(optimized))] });
    const out: Uint8Array[] = [this.#bytes.subarray(0, 8)];
    let [size, codeAt] = [8, 0];
    for (const { id, parts } of sections) {
      const length = parts.reduce((sum, p) => sum + p.length, 0);
      const head = Uint8Array.from([id, ...leb(length)]);
      if (id === SECTION.code) codeAt = size + head.length;
      size += head.length + length;
      out.push(head, ...parts);
    }
    return this.#withPositions(Buffer.concat(out), codeAt);
  }

  /** @param codeAt where the content of the code section begins in the module that runs */
  #withPositions(module: Uint8Array, codeAt: number): Uint8Array {
    const { functionTypes, positions, sections } = this.#outline;
    const code = sections.find(s => s.id === SECTION.code);
    if (positions === null || code === undefined) return module;
    const entriesAt = codeAt + leb(functionTypes.length + this.#added.length).length;
    const bodies = movedBodies(this.#bytes, this.#outline, entriesAt, this.runIndex + 1);
    const content = encodePositions(movedPositions(positions, code.start, bodies));
    return withCustomSection(module, POSITIONS_SECTION, content);
  }

  /** The new content of a section: empty to leave it out, null to keep it. */
  #rewritten(s: ModuleOutline['sections'][number]): Uint8Array[] | null {
    const { entriesAt, functionTypes, tableSection, types } = this.#outline;
    const { data, image } = this.#plan;
    const more = (from: number, count: number, entries: number[][]): Uint8Array[] => [
      Uint8Array.from(leb(count + entries.length)),
      this.#bytes.subarray(from, s.end),
      Uint8Array.from(entries.flat()),
    ];
    switch (s.id) {
      case SECTION.custom:
        // Keeps function names, which make the stack of a trap readable; drops all other custom sections. Positions are
        // added at the end.
        return s.name === 'name' && s.end - s.start <= NAME_BYTES_MAX ? null : [];
      case SECTION.type:
        return more(entriesAt.types, types.length, this.#typeEntries());
      case SECTION.function:
        return more(entriesAt.functions, functionTypes.length, this.#functionEntries());
      case SECTION.element:
        return this.#declared === null
          ? null
          : more(entriesAt.elements, this.#outline.elementSegments, [this.#declared]);
      case SECTION.table:
        return tableSection === null ? null : [Uint8Array.from(tableSection)];
      case SECTION.global:
        return image === null ? null : this.#globals(image);
      case SECTION.code:
        return this.#code();
      case SECTION.data:
        return data === null ? null : [Uint8Array.from(leb(data.segments.length)), ...data.segments];
      case SECTION.dataCount:
        return data === null ? null : [Uint8Array.from(leb(data.segments.length))];
      // Written again by `assemble`, or not at all.
      case SECTION.import:
      case SECTION.memory:
      case SECTION.export:
      case SECTION.start:
        return [];
      default:
        return null;
    }
  }

  /** Sections that the module does not have, for what is added. The one of functions is absent if all are imported. */
  #insertAbsent(sections: NewSection[]): void {
    const has = (id: number): boolean => this.#outline.sections.some(s => s.id === id);
    const insert = (id: number, parts: Uint8Array[]): void => {
      if (!has(id)) insertOrdered(sections, id, parts);
    };
    const { data } = this.#plan;
    if (this.#newTypes.length > 0) insert(SECTION.type, [vector(this.#typeEntries())]);
    insert(SECTION.function, [vector(this.#functionEntries())]);
    insert(SECTION.code, this.#code());
    if (this.#declared !== null) insert(SECTION.element, [vector([this.#declared])]);
    if (data !== null && data.segments.length > 0)
      insert(SECTION.data, [Uint8Array.from(leb(data.segments.length)), ...data.segments]);
  }

  #typeEntries(): number[][] {
    const values = (letters: string): number[] => (letters === '' ? [0] : [1, 0x7f]);
    return this.#newTypes.map(type => [0x60, ...type.split('->').flatMap(values)]);
  }

  #functionEntries(): number[][] {
    const { types } = this.#outline;
    const known = [...types, ...this.#newTypes];
    return this.#added.map(f => leb(known.indexOf(f.type)));
  }

  #code(): Uint8Array[] {
    const added = this.#added.map(({ body }) => Uint8Array.from([...leb(body.length), ...body]));
    const count = this.#outline.functionTypes.length + added.length;
    return [Uint8Array.from(leb(count)), ...codeEntries(this.#bytes, this.#outline, this.runIndex + 1), ...added];
  }

  #globals(image: StartImage): Uint8Array[] {
    const { globals } = this.#outline;
    let at = 0;
    const entries = globals.map(g => {
      if (!g.mutable) return this.#bytes.subarray(g.start, g.end);
      at += GLOBAL_VALUE_BYTES;
      return globalEntry(g, image.globals.subarray(at - GLOBAL_VALUE_BYTES, at));
    });
    return [Uint8Array.from(leb(globals.length)), ...entries];
  }

  /**
   * A declarative element segment of the exported functions, so that code may still name functions that only an export
   * declared.
   */
  get #declared(): number[] | null {
    if (!this.#outline.namesFunctions) return null;
    const indices = [...new Set(this.#outline.exports.filter(e => e.kind === 0).map(e => e.index))];
    return [3, 0, ...leb(indices.length), ...indices.flatMap(leb)];
  }

  #imports(): Uint8Array[] {
    const { entriesAt, importedFunctions, sections } = this.#outline;
    const { controlPages, memoryPages } = this.#plan;
    const old = sections.find(s => s.id === SECTION.import);
    const memory = (name: string, min: number, max: number): number[] => [
      ...[...text(HOST_MODULE), ...text(name)],
      ...[2, 1, ...leb(min), ...leb(max)],
    ];
    return [
      Uint8Array.from(leb(importedFunctions.length + 2)),
      old === undefined ? new Uint8Array(0) : this.#bytes.subarray(entriesAt.imports, old.end),
      Uint8Array.from([
        ...memory(GUEST_MEMORY, memoryPages.min, memoryPages.max),
        ...memory(CONTROL_MEMORY, controlPages, controlPages),
      ]),
    ];
  }
}

/** Inserts a section before the first one that must follow it; custom sections may be anywhere. */
function insertOrdered(sections: NewSection[], id: number, parts: Uint8Array[]): void {
  // Compares by required order, not by id: data count (12) comes before code (10), tags (13) before globals (6).
  const place = (n: number): number => (n === 12 ? 9.5 : n === 13 ? 5.5 : n);
  const at = sections.findIndex(s => s.id !== SECTION.custom && place(s.id) > place(id));
  sections.splice(at < 0 ? sections.length : at, 0, { id, parts });
}
