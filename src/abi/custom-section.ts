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

/** The content of the first custom section of a name; null without one. The module is one that a build has made. */
export function customSection(module: Uint8Array, name: string): Uint8Array | null {
  for (let at = HEADER_BYTES; at < module.length; ) {
    const id = module[at];
    const [size, content] = lebAt(module, at + 1);
    const end = content + size;
    if (id === 0) {
      const [length, label] = lebAt(module, content);
      if (Buffer.from(module.subarray(label, label + length)).toString() === name)
        return module.subarray(label + length, end);
    }
    at = end;
  }
  return null;
}
