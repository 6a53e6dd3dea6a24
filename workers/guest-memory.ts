import { PAGE_BYTES } from '../src/base/limits.ts';

const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });
const lenient = new TextDecoder('utf-8', { ignoreBOM: true });

/**
 * The memory of the running guest. New views are taken whenever the guest may have grown it; every (pointer, length)
 * pair passes `holds` before a byte moves (docs/SECURITY.md: a typed-array `subarray` clamps silently).
 */
export class GuestMemory {
  #memory: WebAssembly.Memory | null = null;
  #bytes: Uint8Array = new Uint8Array(0);
  #view: DataView = new DataView(new ArrayBuffer(0));

  bind(memory: WebAssembly.Memory, bytes: Uint8Array, view: DataView): void {
    this.#memory = memory;
    this.#bytes = bytes;
    this.#view = view;
  }

  /** Forgets the memory of an ended execution, which is kept alive as long as it is named here. */
  unbind(): void {
    this.#memory = null;
    this.#bytes = new Uint8Array(0);
    this.#view = new DataView(new ArrayBuffer(0));
  }

  get pages(): number {
    return this.#memory === null ? 0 : this.#memory.buffer.byteLength / PAGE_BYTES;
  }

  /** A grown memory detaches its old buffer, whose views then have length 0. */
  get bytes(): Uint8Array {
    if (this.#bytes.length === 0 && this.#memory !== null) this.#take(this.#memory);
    return this.#bytes;
  }

  get view(): DataView {
    if (this.#bytes.length === 0 && this.#memory !== null) this.#take(this.#memory);
    return this.#view;
  }

  #take(memory: WebAssembly.Memory): void {
    this.#bytes = new Uint8Array(memory.buffer);
    this.#view = new DataView(memory.buffer);
  }

  /** Whether [pointer, pointer + length) lies inside the memory as it is now. Unsigned, in doubles: nothing wraps. */
  holds(pointer: number, length: number): boolean {
    return (pointer >>> 0) + (length >>> 0) <= this.bytes.length;
  }

  /** A copy-free view of a checked range; only valid until the guest runs or waits. */
  range(pointer: number, length: number): Uint8Array {
    const from = pointer >>> 0;
    return this.bytes.subarray(from, from + (length >>> 0));
  }

  /** UTF-8 text of a checked range, or undefined when it is not valid UTF-8. */
  text(pointer: number, length: number): string | undefined {
    try {
      return decoder.decode(this.range(pointer, length));
    } catch {
      return undefined;
    }
  }

  /** Text for people: invalid bytes become U+FFFD. */
  lenientText(pointer: number, length: number): string {
    return lenient.decode(this.range(pointer, length));
  }

  /** Copies as much of `source` as fits into a checked range; returns the count. */
  write(source: Uint8Array, pointer: number, length: number): number {
    const room = length >>> 0;
    const part = source.length <= room ? source : source.subarray(0, room);
    this.bytes.set(part, pointer >>> 0);
    return part.length;
  }
}
