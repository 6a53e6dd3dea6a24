import { DebugReader } from './debug-reader.ts';
import type { LineProgram } from './line-programs.ts';

/** Reads `.debug_info` (DWARF 2 to 4, section 7.5): names of functions, and where the compiler inlined them. */

/** A call the compiler replaced by the function. */
export type InlinedCall = {
  /** Name of the function; null when it is not known. */
  name: string | null;
  /** Where it was called. */
  file: string;
  line: number;
  /** The inlined call this one lies in; null when it lies in the function of the module. */
  within: InlinedCall | null;
};

/** Instructions of an inlined call, its inner ones included. `depth`: how many calls it lies in. */
export type InlinedRange = { low: number; high: number; depth: number; call: InlinedCall };

export type DebugFunctions = {
  /** Names of the functions of the module by their addresses, as their author wrote them. */
  names: Map<number, string>;
  /** Instructions that come from other functions. */
  ranges: InlinedRange[];
};

export type DebugSections = {
  info: Uint8Array;
  abbrev: Uint8Array;
  str: Uint8Array;
  ranges: Uint8Array;
};

const TAG = { compileUnit: 0x11, inlinedSubroutine: 0x1d, subprogram: 0x2e } as const;
const AT = {
  name: 0x03,
  stmtList: 0x10,
  lowPc: 0x11,
  highPc: 0x12,
  abstractOrigin: 0x31,
  specification: 0x47,
  ranges: 0x55,
  callFile: 0x58,
  callLine: 0x59,
} as const;
const FORM_ADDRESS = 0x01;

type Abbreviation = { tag: number; hasChildren: boolean; attributes: Array<[name: number, form: number]> };
type Value = { form: number; value: number | string };
type Attributes = Map<number, Value>;
/** A function by the offset of its entry: its name, or the entry that has it. */
type Named = { name: string | null; origin: number | null };

function readAbbreviations(section: Uint8Array, offset: number): Map<number, Abbreviation> {
  const r = new DebugReader(section, offset);
  const all = new Map<number, Abbreviation>();
  for (let code = r.unsigned(); code !== 0; code = r.unsigned()) {
    const tag = r.unsigned();
    const hasChildren = r.u8() === 1;
    const attributes: Array<[number, number]> = [];
    for (;;) {
      const [name, form] = [r.unsigned(), r.unsigned()];
      if (name === 0 && form === 0) break;
      attributes.push([name, form]);
    }
    all.set(code, { tag, hasChildren, attributes });
  }
  return all;
}

/** Reads a value by its form; references are offsets in the section. */
function readValue(r: DebugReader, form: number, unitAt: number, strings: Uint8Array): number | string {
  const skip = (bytes: number): number => {
    r.at += bytes;
    return 0;
  };
  switch (form) {
    case FORM_ADDRESS:
    case 0x06: // data4
    case 0x10: // ref_addr
    case 0x17: // sec_offset
      return r.u32();
    case 0x03: // block2
      return skip(r.u16());
    case 0x04: // block4
      return skip(r.u32());
    case 0x05: // data2
      return r.u16();
    case 0x07: // data8
    case 0x20: // ref_sig8
      return skip(8);
    case 0x08: // string
      return r.text();
    case 0x09: // block
    case 0x18: // exprloc
      return skip(r.unsigned());
    case 0x0a: // block1
      return skip(r.u8());
    case 0x0b: // data1
    case 0x0c: // flag
      return r.u8();
    case 0x0d: // sdata
      return r.signed();
    case 0x0e: // strp
      return new DebugReader(strings, r.u32()).text();
    case 0x0f: // udata
      return r.unsigned();
    case 0x11: // ref1
      return unitAt + r.u8();
    case 0x12: // ref2
      return unitAt + r.u16();
    case 0x13: // ref4
      return unitAt + r.u32();
    case 0x14: {
      // ref8
      const low = r.u32();
      r.u32();
      return unitAt + low;
    }
    case 0x15: // ref_udata
      return unitAt + r.unsigned();
    case 0x16: // indirect
      return readValue(r, r.unsigned(), unitAt, strings);
    case 0x19: // flag_present
      return 1;
    default:
      throw new RangeError(`the debug information has a value of the unknown form 0x${form.toString(16)}`);
  }
}

const numberOf = (attributes: Attributes, name: number): number | null => {
  const value = attributes.get(name)?.value;
  return typeof value === 'number' ? value : null;
};

/** What an entry lies in: `live` within a function of the module, `call` the innermost inlined call. */
type Surrounding = { live: boolean; call: (InlinedCall & { origin: number | null }) | null; depth: number };
const OUTSIDE: Surrounding = { live: false, call: null, depth: 0 };

/** Reads all units, and then looks up the names of what was inlined, which may stand in any of them. */
class InfoReader {
  readonly #sections: DebugSections;
  readonly #programs: ReadonlyMap<number, LineProgram>;
  readonly #isFunction: (address: number) => boolean;
  readonly #named = new Map<number, Named>();
  readonly #calls: Array<NonNullable<Surrounding['call']>> = [];
  /** The entries of the functions of the module, by their addresses. */
  readonly #functions = new Map<number, number>();
  readonly #ranges: InlinedRange[] = [];
  #files: readonly string[] = [];
  #base = 0;

  constructor(
    sections: DebugSections,
    programs: ReadonlyMap<number, LineProgram>,
    isFunction: (address: number) => boolean,
  ) {
    this.#sections = sections;
    this.#programs = programs;
    this.#isFunction = isFunction;
  }

  readAll(): DebugFunctions {
    const r = new DebugReader(this.#sections.info);
    while (!r.isAtEnd) {
      const unitAt = r.at;
      const end = r.u32() + r.at;
      const version = r.u16();
      if (version >= 2 && version <= 4) this.#readUnit(r, unitAt, end);
      r.at = end;
    }
    for (const call of this.#calls) call.name = this.#nameOf(call.origin);
    const names = new Map<number, string>();
    for (const [address, entryAt] of this.#functions) {
      const name = this.#nameOf(entryAt);
      if (name !== null) names.set(address, name);
    }
    return { names, ranges: this.#ranges };
  }

  #readUnit(r: DebugReader, unitAt: number, end: number): void {
    const abbreviations = readAbbreviations(this.#sections.abbrev, r.u32());
    r.u8();
    const within: Surrounding[] = [];
    while (r.at < end) {
      const entryAt = r.at;
      const code = r.unsigned();
      if (code === 0) {
        within.pop();
        continue;
      }
      const abbreviation = abbreviations.get(code);
      if (abbreviation === undefined) throw new RangeError(`the debug information has no abbreviation ${code}`);
      const attributes: Attributes = new Map();
      for (const [name, form] of abbreviation.attributes)
        attributes.set(name, { form, value: readValue(r, form, unitAt, this.#sections.str) });
      const here = this.#enter(abbreviation.tag, entryAt, attributes, within.at(-1) ?? OUTSIDE);
      if (abbreviation.hasChildren) within.push(here);
    }
  }

  /** Takes an entry. @returns what its children lie in */
  #enter(tag: number, entryAt: number, attributes: Attributes, around: Surrounding): Surrounding {
    switch (tag) {
      case TAG.compileUnit:
        this.#base = numberOf(attributes, AT.lowPc) ?? 0;
        this.#files = this.#programs.get(numberOf(attributes, AT.stmtList) ?? -1)?.files ?? [];
        return OUTSIDE;
      case TAG.subprogram: {
        const name = attributes.get(AT.name)?.value;
        const origin = numberOf(attributes, AT.specification) ?? numberOf(attributes, AT.abstractOrigin);
        this.#named.set(entryAt, { name: typeof name === 'string' ? name : null, origin });
        const low = numberOf(attributes, AT.lowPc);
        const live = low !== null && this.#isFunction(low);
        if (live) this.#functions.set(low, entryAt);
        return { live, call: null, depth: 0 };
      }
      case TAG.inlinedSubroutine:
        return around.live ? this.#inlined(attributes, around) : around;
      default:
        return around;
    }
  }

  #inlined(attributes: Attributes, around: Surrounding): Surrounding {
    const call = {
      name: null,
      origin: numberOf(attributes, AT.abstractOrigin),
      file: this.#files[numberOf(attributes, AT.callFile) ?? 0] ?? '',
      line: numberOf(attributes, AT.callLine) ?? 0,
      within: around.call,
    };
    this.#calls.push(call);
    for (const [low, high] of this.#rangesOf(attributes)) this.#ranges.push({ low, high, depth: around.depth, call });
    return { live: true, call, depth: around.depth + 1 };
  }

  #rangesOf(attributes: Attributes): Array<[low: number, high: number]> {
    const low = numberOf(attributes, AT.lowPc);
    const high = attributes.get(AT.highPc);
    if (low !== null && typeof high?.value === 'number')
      // Since DWARF 4 the end may be a length.
      return [[low, high.form === FORM_ADDRESS ? high.value : low + high.value]];
    const offset = numberOf(attributes, AT.ranges);
    if (offset === null) return [];
    const r = new DebugReader(this.#sections.ranges, offset);
    const found: Array<[number, number]> = [];
    for (let base = this.#base; ; ) {
      const [from, to] = [r.u32(), r.u32()];
      if (from === 0 && to === 0) return found;
      if (from === 0xffffffff) base = to;
      else found.push([base + from, base + to]);
    }
  }

  #nameOf(origin: number | null): string | null {
    let named = origin === null ? undefined : this.#named.get(origin);
    for (let steps = 0; named !== undefined && steps < 8; steps++) {
      if (named.name !== null) return named.name;
      named = named.origin === null ? undefined : this.#named.get(named.origin);
    }
    return null;
  }
}

/**
 * @param programs of `.debug_line`, for the names of files
 * @param isFunction whether a function of the module begins at an address; what the linker has left out does not
 * @throws RangeError for debug information that cannot be read
 */
export const readFunctions = (
  sections: DebugSections,
  programs: ReadonlyMap<number, LineProgram>,
  isFunction: (address: number) => boolean,
): DebugFunctions => new InfoReader(sections, programs, isFunction).readAll();
