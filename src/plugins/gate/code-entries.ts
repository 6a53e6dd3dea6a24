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
