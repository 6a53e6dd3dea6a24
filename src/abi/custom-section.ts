import { leb } from './leb.ts';

/** Appends a custom section to a module (core specification 5.5.3). */
export function withCustomSection(module: Uint8Array, name: string, content: Uint8Array): Uint8Array {
  const label = new TextEncoder().encode(name);
  const nameBytes = [...leb(label.length), ...label];
  return Buffer.concat([
    module,
    Uint8Array.from([0, ...leb(nameBytes.length + content.length), ...nameBytes]),
    content,
  ]);
}

const HEADER_BYTES = 8;

/** An unsigned number at a place, and the place behind it (core specification 5.2.2). */
function lebAt(bytes: Uint8Array, from: number): [value: number, next: number] {
  let value = 0;
  for (let at = from; at < bytes.length && at < from + 5; at++) {
    const byte = bytes[at] ?? 0;
    value += (byte & 0x7f) * 2 ** (7 * (at - from));
    if (byte < 0x80) return [value, at + 1];
  }
  return [value, bytes.length];
}

/** A custom section: the byte it begins at, the one behind its end, and whether nothing follows it. */
export type CustomSection = { at: number; end: number; content: Uint8Array; isLast: boolean };

/**
 * The custom sections of a name, in the order of the module. Bytes that are no module end the walk early.
 *
 * @param module bytes of a module; its content is not copied
 */
export function* customSections(module: Uint8Array, name: string): Generator<CustomSection> {
  for (let at = HEADER_BYTES; at < module.length; ) {
    const [size, from] = lebAt(module, at + 1);
    const end = from + size;
    if (module[at] === 0) {
      const [length, label] = lebAt(module, from);
      if (Buffer.from(module.subarray(label, label + length)).toString() === name)
        yield { at, end, content: module.subarray(label + length, end), isLast: end >= module.length };
    }
    at = end;
  }
}
