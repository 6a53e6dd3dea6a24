import { leb, signedLeb } from './leb.ts';

/**
 * Lines of the author's sources for the instructions of a module, whatever language it was written in: the content of
 * the custom section `plugin.positions` (docs/abi.md "Positions"). A build makes it, the gate moves its addresses to
 * where the instructions are in the module that runs, and a lane reads it when an execution traps.
 */

export const POSITIONS_SECTION = 'plugin.positions';
/** Largest section of an upload: a lane reads it whole at each trap. */
export const POSITIONS_BYTES_MAX = 256 * 1024;

const VERSION = 1;
const NAME_BYTES_MAX = 1024;
/** Longer names, which compilers of generic code write, are cut; in UTF-8 that fits. */
const NAME_CHARACTERS_MAX = 200;
/** Functions inlined into each other that are shown for one instruction. */
const DEPTH_MAX = 16;

/** A line of a source. */
export type Place = {
  /** Path of the source below the author's folder. */
  file: string;
  /** 0 when the compiler does not know it. */
  line: number;
  /** Name of its function; null for the name the function has in the module, which one that was inlined has not. */
  name: string | null;
  /** Index of the place it was inlined at, which stands before this one in the list; -1 for none. */
  caller: number;
};

/** Rows are in order of their addresses; each counts up to the next one or to the end of its function. */
export type Positions = {
  places: Place[];
  addresses: number[];
  /** Index of the place of each row; -1 for instructions without one. */
  placeOf: number[];
};

const utf8 = new TextDecoder('utf-8', { fatal: true });

/** Reads the numbers and names of a section. */
class SectionReader {
  readonly #bytes: Uint8Array;
  #at = 0;

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
  }

  byte(): number {
    const byte = this.#bytes[this.#at++];
    if (byte === undefined) throw new Error('it ends in the middle of a value');
    return byte;
  }

  unsigned(): number {
    let value = 0;
    let scale = 1;
    for (let k = 0; k < 5; k++) {
      const byte = this.byte();
      value += (byte & 127) * scale;
      if (byte < 128) return value;
      scale *= 128;
    }
    throw new Error('a number is longer than 5 bytes');
  }

  signed(): number {
    let value = 0;
    for (let shift = 0; shift < 35; shift += 7) {
      const byte = this.byte();
      value |= (byte & 127) << shift;
      if (byte < 128) return shift < 25 && (byte & 64) !== 0 ? value | (-1 << (shift + 7)) : value;
    }
    throw new Error('a number is longer than 5 bytes');
  }

  /** A number of items, each of which takes at least one byte. */
  count(): number {
    const count = this.unsigned();
    if (count > this.#bytes.length - this.#at) throw new Error('it ends before the last item of a list');
    return count;
  }

  name(): string {
    const length = this.count();
    const name = utf8.decode(this.#bytes.subarray(this.#at, this.#at + length));
    this.#at += length;
    if (length === 0 || length > NAME_BYTES_MAX || /[\x00-\x1f\x7f-\x9f]/.test(name))
      throw new Error(`a name is empty, longer than ${NAME_BYTES_MAX} bytes, or has control characters`);
    return name;
  }

  get isAtEnd(): boolean {
    return this.#at === this.#bytes.length;
  }
}

function readPlace(r: SectionReader, names: readonly string[], index: number): Place {
  const file = names[r.unsigned()];
  const line = r.unsigned();
  const named = r.unsigned();
  const name = named === 0 ? null : names[named - 1];
  const caller = r.unsigned() - 1;
  if (file === undefined || name === undefined) throw new Error('a place has a name that is not in the list');
  if (caller >= index) throw new Error('a place was inlined at one that stands behind it');
  return { file, line, name, caller };
}

/**
 * @param bytes content of the section
 * @returns null for a version this release does not know
 * @throws Error that says what is wrong with it
 */
export function decodePositions(bytes: Uint8Array): Positions | null {
  const r = new SectionReader(bytes);
  if (r.byte() !== VERSION) return null;
  const names = Array.from({ length: r.count() }, () => r.name());
  const places = Array.from({ length: r.count() }, (_, k) => readPlace(r, names, k));
  const addresses: number[] = [];
  const placeOf: number[] = [];
  let [address, place] = [0, -1];
  for (let rows = r.count(); rows > 0; rows--) {
    const more = r.unsigned();
    if (more === 0 && addresses.length > 0) throw new Error('two rows have the same address');
    address += more;
    place += r.signed();
    if (place < -1 || place >= places.length) throw new Error('a row has a place that is not in the list');
    addresses.push(address);
    placeOf.push(place);
  }
  if (!r.isAtEnd) throw new Error('something follows the last row');
  return { places, addresses, placeOf };
}

/** The content of the section. */
export function encodePositions({ addresses, placeOf, places }: Positions): Uint8Array {
  const names = new Map<string, number>();
  const index = (whole: string): number => {
    const name =
      whole.length > NAME_CHARACTERS_MAX ? `${whole.slice(0, NAME_CHARACTERS_MAX).toWellFormed()}...` : whole;
    const known = names.get(name);
    if (known !== undefined) return known;
    names.set(name, names.size);
    return names.size - 1;
  };
  const out: number[] = [];
  const add = (bytes: readonly number[]): void => {
    for (const byte of bytes) out.push(byte);
  };
  add(leb(places.length));
  for (const { caller, file, line, name } of places) {
    add(leb(index(file)));
    add(leb(line));
    add(leb(name === null ? 0 : index(name) + 1));
    add(leb(caller + 1));
  }
  add(leb(addresses.length));
  let [address, place] = [0, -1];
  for (const [k, next] of addresses.entries()) {
    const nextPlace = placeOf[k] ?? -1;
    add(leb(next - address));
    add(signedLeb(nextPlace - place));
    [address, place] = [next, nextPlace];
  }
  const encoder = new TextEncoder();
  const head = [VERSION, ...leb(names.size)];
  for (const name of names.keys()) {
    const bytes = encoder.encode(name);
    head.push(...leb(bytes.length), ...bytes);
  }
  const all = new Uint8Array(head.length + out.length);
  all.set(head);
  all.set(out, head.length);
  return all;
}

/** The place of an instruction and those it was inlined at, innermost first; none when it has no position. */
export function placesAt({ addresses, placeOf, places }: Positions, address: number): Place[] {
  let [low, high] = [0, addresses.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((addresses[middle] ?? 0) <= address) low = middle + 1;
    else high = middle;
  }
  const found: Place[] = [];
  for (let k = placeOf[low - 1] ?? -1; k >= 0 && found.length < DEPTH_MAX; ) {
    const place = places[k];
    if (place === undefined) break;
    found.push(place);
    k = place.caller;
  }
  return found;
}
