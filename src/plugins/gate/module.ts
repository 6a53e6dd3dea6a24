import { leb } from '../../abi/leb.ts';
import { decodePositions, POSITIONS_BYTES_MAX, POSITIONS_SECTION, type Positions } from '../../abi/positions.ts';
import { LIMITS } from '../../base/limits.ts';
import { BodyReader } from './body-reader.ts';
import { type BodyCounts, planCompilation, type Signatures } from './compile-cost.ts';
import { GATE } from './gate-limits.ts';
import { type DataSegment, type GlobalVariable, readData, readElements, readGlobals } from './initial-values.ts';
import { readValueType } from './instructions.ts';
import { GateRefusal, Reader } from './reader.ts';

export type ImportedFunction = { module: string; name: string; type: string };
/** `name`: name of a custom section, otherwise empty. */
export type Section = { id: number; start: number; end: number; name: string };

/** The parts of a module that the gate reads; offsets point into the original bytes. */
export type ModuleOutline = {
  sections: Section[];
  /** Function types as text, `i32,i32->i32`. */
  types: string[];
  importedFunctions: ImportedFunction[];
  /** Offsets of the entries of sections, after the count (which may be padded). */
  entriesAt: { types: number; imports: number; functions: number; elements: number; code: number };
  elementSegments: number;
  /**
   * Whether code names functions (`ref.func`). Each such function must be declared outside the code, for example by an
   * export.
   */
  namesFunctions: boolean;
  /** Type of each function the module defines. */
  functionTypes: string[];
  signatures: Signatures;
  /** Counts of the body of each function the module defines. */
  bodies: BodyCounts[];
  /** Whether the optimizing compiler compiles each of them. */
  optimized: boolean[];
  exports: Array<{ name: string; kind: number; index: number }>;
  custom: Array<{ name: string; start: number; end: number }>;
  /** Lines of the author's sources, or null if the module brings none. */
  positions: Positions | null;
  memory: { min: number; max: number } | null;
  globals: GlobalVariable[];
  dataSegments: DataSegment[];
  /** Whether code names data segments by index, so that their order must be kept. */
  namesDataSegments: boolean;
  /** Whether code drops segments. */
  dropsSegments: boolean;
  /** Offsets of memory.size and memory.grow in the code. */
  memorySites: number[];
  /** The start function. */
  start: number | null;
  tables: number;
  /** The table section with every maximum capped, or null if the module has none. */
  tableSection: number[] | null;
};

/** Required order of sections; custom sections (0) may be anywhere. */
const ORDER = [0, 1, 2, 3, 4, 5, 7, 8, 9, 10, 12, 13, 11, 6];

/** Limits of a memory or table: flags 0 and 1 only. */
function readLimits(r: Reader, what: string): { min: number; max: number | undefined } {
  const flags = r.byte();
  if (flags & 4) r.refuse('memory64', `the ${what} is 64-bit; only 32-bit is allowed`);
  if (flags & 2) r.refuse('shared-memory', `the ${what} is shared; shared memory is not allowed`);
  if (flags > 1) r.refuse('malformed', `the ${what} has unknown limits 0x${flags.toString(16)}`);
  const min = r.u32();
  const max = flags === 1 ? r.u32() : undefined;
  if (max !== undefined && max < min) r.refuse('malformed', `the ${what} has a maximum below its minimum`);
  return { min, max };
}

function readTypes(r: Reader, out: ModuleOutline): void {
  const count = r.count(GATE.types, 'types');
  out.entriesAt.types = r.at;
  let values = 0;
  for (let i = 0; i < count; i++) {
    const form = r.byte();
    if (form !== 0x60)
      r.refuse(
        'gc-type',
        `type ${i} is not a function type (0x${form.toString(16)}); garbage-collected types are not allowed`,
      );
    const side = (counts: number[]): string => {
      const n = r.count(GATE.params, `values in type ${i}`);
      values += n;
      counts.push(n);
      if (values > GATE.typeValues) r.refuse('too-many', `the types have more than ${GATE.typeValues} values together`);
      return Array.from({ length: n }, () => readValueType(r)).join(',');
    };
    const parameters = side(out.signatures.parameters);
    out.types.push(`${parameters}->${side(out.signatures.results)}`);
  }
}

const KINDS = ['function', 'table', 'memory', 'global', 'tag'];

function readImports(r: Reader, out: ModuleOutline): void {
  const count = r.count(GATE.imports, 'imports');
  out.entriesAt.imports = r.at;
  for (let i = 0; i < count; i++) {
    const module = r.name();
    const name = r.name();
    const kind = r.byte();
    if (kind !== 0)
      r.refuse(
        'import-kind',
        `imports the ${KINDS[kind] ?? `kind ${kind}`} "${module}"."${name}"; only functions may be imported`,
      );
    out.importedFunctions.push({ module, name, type: functionType(r, out) });
  }
}

/** Reads the type index of the next function. */
function functionType(r: Reader, out: ModuleOutline): string {
  const index = r.u32();
  const type = typeAt(r, out, index);
  out.signatures.functions.push(index);
  return type;
}

function typeAt(r: Reader, out: ModuleOutline, index: number): string {
  return out.types[index] ?? r.refuse('malformed', `type ${index} does not exist`);
}

function readTables(r: Reader, out: ModuleOutline): void {
  const count = r.count(GATE.tables, 'tables');
  out.tables = count;
  const body = leb(count);
  let entries = 0;
  for (let i = 0; i < count; i++) {
    const type = r.byte();
    if (type !== 0x70 && type !== 0x6f)
      r.refuse('gc-type', `table ${i} has element type 0x${type.toString(16)}; only funcref and externref are allowed`);
    const { min, max } = readLimits(r, 'table');
    entries += min;
    if (entries > GATE.tableEntries)
      r.refuse('table-size', `the tables have ${entries} entries at start; at most ${GATE.tableEntries}`);
    const capped = Math.max(min, Math.min(max ?? GATE.tableEntries, GATE.tableEntries));
    body.push(type, 1, ...leb(min), ...leb(capped));
  }
  out.tableSection = body;
}

function readMemory(r: Reader, out: ModuleOutline): void {
  const count = r.u32();
  if (count > 1)
    r.refuse('multi-memory', `the module has ${count} memories; exactly one is allowed, because the cap is per memory`);
  if (count === 0) return;
  const { min, max } = readLimits(r, 'memory');
  if (min > LIMITS.memoryPagesMax)
    r.refuse(
      'memory-initial',
      `the memory starts with ${min} pages; at most ${LIMITS.memoryPagesMax} (512 MB) are allowed`,
    );
  out.memory = { min, max: Math.min(max ?? LIMITS.memoryPagesMax, LIMITS.memoryPagesMax) };
}

function readExports(r: Reader, out: ModuleOutline): void {
  const count = r.count(GATE.exports, 'exports');
  for (let i = 0; i < count; i++) {
    const name = r.name();
    const kind = r.byte();
    out.exports.push({ name, kind, index: r.u32() });
  }
}

/** A section that is wrong comes from a build that is wrong; better no module than failures with wrong lines. */
function readPositions(r: Reader, out: ModuleOutline): void {
  const bytes = r.bytes.subarray(r.at, r.end);
  if (out.positions !== null) r.refuse('malformed', `the module has several sections ${POSITIONS_SECTION}`);
  if (bytes.length > POSITIONS_BYTES_MAX)
    r.refuse(
      'too-many',
      `the section ${POSITIONS_SECTION} has ${bytes.length} bytes; at most ${POSITIONS_BYTES_MAX} are allowed`,
    );
  try {
    out.positions = decodePositions(bytes);
  } catch (error) {
    r.refuse('malformed', `the section ${POSITIONS_SECTION} is wrong: ${error instanceof Error ? error.message : ''}`);
  }
}

function readSection(id: number, r: Reader, out: ModuleOutline): void {
  switch (id) {
    case 1:
      return readTypes(r, out);
    case 2:
      return readImports(r, out);
    case 3: {
      const count = r.count(GATE.functions, 'functions');
      out.entriesAt.functions = r.at;
      for (let i = 0; i < count; i++) out.functionTypes.push(functionType(r, out));
      return;
    }
    case 4:
      return readTables(r, out);
    case 5:
      return readMemory(r, out);
    case 6:
      out.globals = readGlobals(r);
      return;
    case 7:
      return readExports(r, out);
    case 9:
      ({ count: out.elementSegments, entriesAt: out.entriesAt.elements } = readElements(r));
      return;
    case 10: {
      const count = r.u32();
      out.entriesAt.code = r.at;
      if (count !== out.functionTypes.length)
        r.refuse('malformed', `${count} function bodies for ${out.functionTypes.length} functions`);
      const bodies = new BodyReader(r, out.signatures);
      for (let i = 0; i < count; i++) out.bodies.push(bodies.read(out.importedFunctions.length + i));
      out.namesFunctions = r.namesFunctions;
      out.namesDataSegments = r.namesDataSegments;
      out.dropsSegments = r.dropsSegments;
      out.memorySites = r.memorySites;
      const plan = planCompilation(out.bodies);
      if (!Array.isArray(plan)) throw new GateRefusal(plan.rule, plan.message, plan.offset);
      out.optimized = plan;
      return;
    }
    case 11:
      out.dataSegments = readData(r);
      return;
    case 8:
      out.start = r.u32();
      return;
    case 13: {
      const count = r.count(GATE.tags, 'tags');
      for (let i = 0; i < count; i++) {
        r.advance(1);
        const type = r.u32();
        typeAt(r, out, type);
        out.signatures.tags.push(type);
      }
      return;
    }
    default:
      // The compiler checks the data count against the data section.
      r.at = r.end;
  }
}

/** What a file is that is no module. */
function whatItIs(bytes: Uint8Array): string {
  if (bytes.length === 0) return 'is empty';
  // The signature of an entry of a ZIP file (APPNOTE 4.3.7).
  if (Buffer.from(bytes.subarray(0, 4)).toString('latin1') === 'PK\x03\x04')
    return 'is a ZIP file; the pages of a plugin go along as a file that ends with .zip';
  return 'does not start with \\0asm';
}

/**
 * Reads a whole core module and enforces the limits that V8 does not enforce. It does not validate the module; the
 * compiler does that.
 *
 * @param bytes the module as uploaded
 * @returns its outline
 * @throws GateRefusal at the first broken rule
 */
export function readModule(bytes: Uint8Array): ModuleOutline {
  const r = new Reader(bytes);
  if (bytes.length < 8 || bytes[0] !== 0 || bytes[1] !== 0x61 || bytes[2] !== 0x73 || bytes[3] !== 0x6d)
    throw new GateRefusal('not-wasm', `this is not a WebAssembly file: it ${whatItIs(bytes)}`, 0);
  if (bytes[4] !== 1 || bytes[5] !== 0 || bytes[6] !== 0 || bytes[7] !== 0)
    throw new GateRefusal(
      'not-core-module',
      'this is not a core module of version 1; a component must be built as a core module (WASI preview1, reactor)',
      4,
    );
  const out: ModuleOutline = {
    sections: [],
    types: [],
    importedFunctions: [],
    entriesAt: { types: 0, imports: 0, functions: 0, elements: 0, code: 0 },
    elementSegments: 0,
    namesFunctions: false,
    functionTypes: [],
    signatures: { parameters: [], results: [], functions: [], tags: [] },
    bodies: [],
    optimized: [],
    exports: [],
    custom: [],
    positions: null,
    memory: null,
    globals: [],
    dataSegments: [],
    namesDataSegments: false,
    dropsSegments: false,
    memorySites: [],
    start: null,
    tables: 0,
    tableSection: null,
  };
  r.at = 8;
  let last = 0;
  while (r.at < bytes.length) {
    r.end = bytes.length;
    const id = r.byte();
    const length = r.u32();
    const start = r.at;
    if (length > bytes.length - start) r.refuse('truncated', `section ${id} reaches beyond the end of the file`);
    const end = start + length;
    r.end = end;
    if (id === 0) {
      const name = r.name();
      out.sections.push({ id, start, end, name });
      if (out.custom.length >= GATE.customSections)
        r.refuse('too-many', `more than ${GATE.customSections} custom sections`);
      out.custom.push({ name, start: r.at, end });
      if (name === POSITIONS_SECTION) readPositions(r, out);
      r.at = end;
      continue;
    }
    out.sections.push({ id, start, end, name: '' });
    const place = ORDER[id];
    if (place === undefined) return r.refuse('unknown-section', `section ${id} is not known to this host`);
    if (place <= last) r.refuse('malformed', `section ${id} is repeated or in the wrong order`);
    last = place;
    readSection(id, r, out);
    if (r.at !== end) r.refuse('malformed', `section ${id} does not end where its length says`);
  }
  return out;
}
