import { leb } from '../../abi/leb.ts';
import type { ModuleOutline } from './module.ts';

const MEMORY_GROW = 0x40;
/** Bytes of `memory.size` and of `memory.grow`. */
const SITE_BYTES = 2;

/**
 * The functions of a module, with calls in place of `memory.size` and `memory.grow`.
 *
 * @param sizeIndex the function called for `memory.size`; the next one is called for `memory.grow`
 */
export function codeEntries(bytes: Uint8Array, outline: ModuleOutline, sizeIndex: number): Uint8Array[] {
  const { bodies, entriesAt, memorySites } = outline;
  const parts: Uint8Array[] = [];
  let copied = entriesAt.code;
  let end = copied;
  let next = 0;
  for (const body of bodies) {
    const start = end;
    end = body.offset + body.bytes;
    const first = next;
    while (next < memorySites.length && memorySites[next]! < end) next++;
    if (next === first) continue;
    parts.push(bytes.subarray(copied, start), withCalls(bytes, body, memorySites.slice(first, next), sizeIndex));
    copied = end;
  }
  parts.push(bytes.subarray(copied, end));
  return parts;
}

/** One function with its length before it. */
function withCalls(
  bytes: Uint8Array,
  body: { offset: number; bytes: number },
  sites: readonly number[],
  sizeIndex: number,
): Uint8Array {
  const [size, grow] = [sizeIndex, sizeIndex + 1].map(index => Uint8Array.from([0x10, ...leb(index)]));
  const callOf = (site: number): Uint8Array => (bytes[site] === MEMORY_GROW ? grow! : size!);
  const length = sites.reduce((sum, site) => sum + callOf(site).length - SITE_BYTES, body.bytes);
  const head = leb(length);
  const out = new Uint8Array(head.length + length);
  out.set(head);
  let to = head.length;
  let at = body.offset;
  const copy = (part: Uint8Array): void => {
    out.set(part, to);
    to += part.length;
  };
  for (const site of sites) {
    copy(bytes.subarray(at, site));
    copy(callOf(site));
    at = site + SITE_BYTES;
  }
  copy(bytes.subarray(at, body.offset + body.bytes));
  return out;
}

/** A function of the upload, and where it is in the module that runs. */
export type MovedBody = {
  /** Offset in the upload, behind its size. */
  from: number;
  bytes: number;
  /** Offset in the module that runs, behind its size. */
  to: number;
  /** The calls in place of `memory.size` and `memory.grow`: their offsets in the upload, and how much longer they are. */
  sites: Array<{ at: number; more: number }>;
};

/**
 * Where the functions are that `codeEntries` gives.
 *
 * @param entriesAt offset of the first entry in the module that runs
 * @param sizeIndex as for `codeEntries`
 */
export function movedBodies(
  bytes: Uint8Array,
  outline: ModuleOutline,
  entriesAt: number,
  sizeIndex: number,
): MovedBody[] {
  const { bodies, memorySites } = outline;
  const [sizeMore, growMore] = [sizeIndex, sizeIndex + 1].map(index => 1 + leb(index).length - SITE_BYTES);
  let entryAt = outline.entriesAt.code;
  let to = entriesAt;
  let next = 0;
  return bodies.map(({ bytes: length, offset }) => {
    const sites: MovedBody['sites'] = [];
    for (; next < memorySites.length && memorySites[next]! < offset + length; next++) {
      const at = memorySites[next]!;
      sites.push({ at, more: (bytes[at] === MEMORY_GROW ? growMore : sizeMore) ?? 0 });
    }
    const longer = length + sites.reduce((sum, s) => sum + s.more, 0);
    const moved = {
      from: offset,
      bytes: length,
      to: to + (sites.length > 0 ? leb(longer).length : offset - entryAt),
      sites,
    };
    to = moved.to + longer;
    entryAt = offset + length;
    return moved;
  });
}
