import { HOST_FUNCTION_BY_NAME } from '../../../src/abi/host-functions.ts';
import { leb } from '../../../src/abi/leb.ts';
import { Reader } from '../../../src/plugins/gate/reader.ts';
import { CODE_MARK, POSITIONS_MARK } from './segments.ts';

/** Puts the code of a plugin into the engine, and takes out what the plugin does not require. */

type Section = { id: number; content: Uint8Array };
type Import = { name: string; permission: string | null; bytes: Uint8Array; type: number };

const IMPORTS = 2;
const FUNCTIONS = 3;
const CODE = 10;
const DATA = 11;
/** Body of a function that answers -1, "permission denied": no variables, `i32.const -1`, `end`. */
const DENIED_BODY = Uint8Array.of(4, 0, 0x41, 0x7f, 0x0b);
const CALL = 0x10;
const END = 0x0b;
const PASSIVE = 1;

function sectionsOf(module: Uint8Array): Section[] {
  const r = new Reader(module, 8);
  const sections: Section[] = [];
  while (r.at < module.length) {
    const id = r.byte();
    const length = r.u32();
    sections.push({ id, content: module.subarray(r.at, r.at + length) });
    r.advance(length);
  }
  return sections;
}

/** Writes entries with their number before them. */
const listOf = (entries: readonly Uint8Array[]): Uint8Array =>
  Buffer.concat([Uint8Array.from(leb(entries.length)), ...entries]);

/** Content with its length before it. */
const sized = (content: Uint8Array): Uint8Array => Buffer.concat([Uint8Array.from(leb(content.length)), content]);

function readImports(content: Uint8Array): Import[] {
  const r = new Reader(content);
  return Array.from({ length: r.u32() }, () => {
    const from = r.at;
    const module = r.name();
    const name = r.name();
    r.advance(1);
    const type = r.u32();
    const permission = module === 'plugin_host' ? (HOST_FUNCTION_BY_NAME.get(name)?.permission ?? null) : null;
    return { name, permission, bytes: content.subarray(from, r.at), type };
  });
}

function readEntries(content: Uint8Array): Uint8Array[] {
  const r = new Reader(content);
  return Array.from({ length: r.u32() }, () => {
    const from = r.at;
    r.advance(r.u32());
    return content.subarray(from, r.at);
  });
}

/** Number of the function that a bridge calls; null when the body is no bridge: it passes its parameters on, and ends. */
function calledByBridge(body: Uint8Array): number | null {
  const r = new Reader(body);
  r.u32();
  if (r.byte() !== 0) return null;
  for (let k = 0; r.peek() === 0x20; k++) {
    r.byte();
    if (r.byte() !== k) return null;
  }
  if (r.byte() !== CALL) return null;
  const callee = r.byte();
  return callee < 128 && r.byte() === END && r.at === body.length ? callee : null;
}

/** The body of a bridge that calls another function. */
function callingInstead(body: Uint8Array, callee: number): Uint8Array {
  const changed = Uint8Array.from(body);
  changed[changed.length - 2] = callee;
  return changed;
}

type Linked = { imports: Import[]; denied: Import[]; numbers: Map<number, number> };

/** Which imports stay; a denied one becomes the function of the module with the number behind the last import. */
function divide(imports: readonly Import[], permissions: ReadonlySet<string>): Linked {
  const isKept = (i: Import): boolean => i.permission === null || permissions.has(i.permission);
  const kept = imports.filter(isKept);
  const denied = imports.filter(i => !isKept(i));
  const order = [...kept, ...denied];
  return { imports: kept, denied, numbers: new Map(imports.map((i, k) => [k, order.indexOf(i)])) };
}

function replaceSegment(entries: Uint8Array, mark: string, content: Uint8Array): Uint8Array {
  const length = new Uint8Array(4);
  new DataView(length.buffer).setUint32(0, content.length, true);
  const old = Buffer.concat([Uint8Array.of(PASSIVE), sized(new TextEncoder().encode(mark))]);
  const at = Buffer.from(entries).indexOf(old);
  if (at < 0) throw new Error(`bug: the engine has no segment "${mark}"`);
  const segment = Buffer.concat([Uint8Array.of(PASSIVE), sized(Buffer.concat([length, content]))]);
  return Buffer.concat([entries.subarray(0, at), segment, entries.subarray(at + old.length)]);
}

/** A section as it is written: its id, its length, its content. */
const written = ({ content, id }: Section): Uint8Array => Buffer.concat([Uint8Array.of(id), sized(content)]);

/**
 * @param engine what `buildEngine` made
 * @param permissions kinds of the plugin's requirements, as in the table of host functions
 * @param code the bundle of the plugin, a script
 * @param positions where its lines come from, see `positionsOf`
 * @returns the module; the host functions of other permissions answer -1 in it and are not imported
 */
export function linkPlugin(
  engine: Uint8Array,
  permissions: ReadonlySet<string>,
  code: Uint8Array,
  positions: Uint8Array,
): Uint8Array {
  const sections = sectionsOf(engine);
  const imported = sections.find(s => s.id === IMPORTS);
  if (imported === undefined) throw new Error('bug: the engine imports nothing');
  const { denied, imports, numbers } = divide(readImports(imported.content), permissions);
  const change: Record<number, (content: Uint8Array) => Uint8Array> = {
    [IMPORTS]: () => listOf(imports.map(i => i.bytes)),
    [FUNCTIONS]: content => {
      const r = new Reader(content);
      const types = Array.from({ length: r.u32() }, () => Uint8Array.from(leb(r.u32())));
      return listOf([...denied.map(i => Uint8Array.from(leb(i.type))), ...types]);
    },
    [CODE]: content => {
      const bodies = readEntries(content).map(body => {
        const callee = calledByBridge(body);
        const now = callee === null ? undefined : numbers.get(callee);
        return now === undefined ? body : callingInstead(body, now);
      });
      return listOf([...denied.map(() => DENIED_BODY), ...bodies]);
    },
    [DATA]: content => replaceSegment(replaceSegment(content, CODE_MARK, code), POSITIONS_MARK, positions),
  };
  return Buffer.concat([
    engine.subarray(0, 8),
    ...sections.map(s => written({ id: s.id, content: change[s.id]?.(s.content) ?? s.content })),
  ]);
}
