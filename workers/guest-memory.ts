import { CONTROL } from '../src/abi/host-memory.ts';
import { PAGE_BYTES } from '../src/base/limits.ts';

const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });
const lenient = new TextDecoder('utf-8', { ignoreBOM: true });

/**
 * The memory of the running guest. Makes new views whenever the guest may have grown it. Check every (pointer, length)
 * pair with `holds` before copying, because `subarray` of a typed array clamps silently (docs/SECURITY.md).
 */
export class GuestMemory {
  readonly #control: Int32Array;
  #memory: WebAssembly.Memory | null = null;
  #bytes: Uint8Array = new Uint8Array(0);
  #view: DataView = new DataView(new ArrayBuffer(0));

  /** @param control words of the control memory (src/abi/host-memory) */
  constructor(control: Int32Array) {
    this.#control = control;
  }

  bind(memory: WebAssembly.Memory, bytes: Uint8Array, view: DataView): void {
    this.#memory = memory;
    this.#bytes = bytes;
    this.#view = view;
  }

  /** Drops the memory of an ended execution; a reference here would keep it from being collected. */
  unbind(): void {
    this.#memory = null;
    this.#bytes = new Uint8Array(0);
    this.#view = new DataView(new ArrayBuffer(0));
  }

  /** Size as the guest knows it. The memory may be larger, and is never smaller. */
  get pages(): number {
    return this.#control[CONTROL.pages]!;
  }

  /** Makes new views if the memory has grown: growing detaches the old buffer, whose views then have length 0. */
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

  /**
   * Whether [pointer, pointer + length) lies inside the memory as the guest knows it now. Computed with unsigned values
   * as doubles, so nothing overflows.
   */
  holds(pointer: number, length: number): boolean {
    return (pointer >>> 0) + (length >>> 0) <= this.pages * PAGE_BYTES;
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

  /** Text for logs and messages: invalid bytes become U+FFFD. */
  lenientText(pointer: number, length: number): string {
    return lenient.decode(this.range(pointer, length));
  }

  /** Copies as much of `source` as fits into a checked range; returns the number of bytes. */
  write(source: Uint8Array, pointer: number, length: number): number {
    const room = length >>> 0;
    const part = source.length <= room ? source : source.subarray(0, room);
    this.bytes.set(part, pointer >>> 0);
    return part.length;
  }
}
