import { CONTROL, CONTROL_MEMORY, GUEST_MEMORY, HOST_MODULE } from '../src/abi/host-memory.ts';
import type { LoadedModule } from '../src/abi/lane-messages.ts';
import { LIMITS, PAGE_BYTES } from '../src/base/limits.ts';
import type { GuestMemory } from './guest-memory.ts';

export type SharedImports = {
  plugin_host: WebAssembly.ModuleImports;
  wasi_snapshot_preview1: WebAssembly.ModuleImports;
  control: WebAssembly.Memory;
  /** The words of the control memory. */
  controlWords: Int32Array;
};

/** Executions after which memories that are larger than needed become smaller. */
const LOOK_AFTER = 1000;

/** A memory with its views and the imports object that names it. */
type Holder = { memory: WebAssembly.Memory; bytes: Uint8Array; view: DataView; imports: WebAssembly.Imports };

/**
 * One plugin version on one lane. Every execution gets a new instance with new globals, tables and data segments. Only
 * the memory is reused, for the same plugin on the same thread, and only if the execution before ended normally and did
 * not grow it beyond its real size. Before it is used again everything is zeroed but what making the instance
 * overwrites (docs/RATIONALE.md).
 */
export class PluginRuntime {
  readonly loaded: LoadedModule;
  readonly #shared: SharedImports;
  readonly #recycle: boolean;
  #spare: Holder | null = null;
  #current: Holder | null = null;
  /** Recent run time in ms; a plugin that has not run yet counts as slow. */
  #expectedMs = 10;
  /** Pages that the executions since the last look needed at most, and how many are left until the next look. */
  #peak: number;
  #untilLook = LOOK_AFTER;
  /** Real size of new memories: at least what the guest begins with, and what recent executions needed. */
  #pages: number;
  /** The ranges to zero of a memory of that size, as `from, to` pairs; null if such a memory is not used again. */
  #zeroed: number[] | null;

  constructor(loaded: LoadedModule, shared: SharedImports, recycle: boolean) {
    this.loaded = loaded;
    this.#shared = shared;
    this.#recycle = recycle;
    this.#pages = loaded.memoryPages.min;
    this.#peak = this.#pages;
    this.#zeroed = this.#toZero();
  }

  #toZero(): number[] | null {
    const size = this.#pages * PAGE_BYTES;
    if (!this.#recycle || size > LIMITS.recycleBytesMax) return null;
    const zeroed: number[] = [];
    let at = 0;
    let bytes = 0;
    for (const { end, start } of [...this.loaded.overwritten, { start: size, end: size }]) {
      if (start > at) zeroed.push(at, start);
      bytes += Math.max(0, start - at);
      at = end;
    }
    return bytes > LIMITS.recycleZeroedBytesMax ? null : zeroed;
  }

  #newHolder(): Holder {
    const { control, plugin_host, wasi_snapshot_preview1 } = this.#shared;
    const memory = new WebAssembly.Memory({ initial: this.#pages, maximum: this.loaded.memoryPages.max });
    return {
      memory,
      bytes: new Uint8Array(memory.buffer),
      view: new DataView(memory.buffer),
      imports: {
        plugin_host,
        wasi_snapshot_preview1,
        [HOST_MODULE]: { [GUEST_MEMORY]: memory, [CONTROL_MEMORY]: control },
      },
    };
  }

  /**
   * Makes the instance on its bound memory. That is the whole execution: the rewritten module's start function runs the
   * module's own start function and `_initialize`, unless they are remembered, and the entry.
   *
   * @throws the error that the guest or its data segments raise
   */
  run(guest: GuestMemory): void {
    const holder = this.#spare ?? this.#newHolder();
    this.#spare = null;
    this.#current = holder;
    this.#shared.controlWords[CONTROL.pages] = this.loaded.memoryPages.min;
    guest.bind(holder.memory, holder.bytes, holder.view);
    new WebAssembly.Instance(this.loaded.module, holder.imports);
  }

  /** Notes how long an execution took; a long one affects the average for about twenty short ones. */
  took(ms: number): void {
    this.#expectedMs = Math.max(ms, this.#expectedMs * 0.8);
  }

  get expectedMs(): number {
    return this.#expectedMs;
  }

  /**
   * Ends the execution: zeroes and keeps its memory, or drops it.
   *
   * @param clean whether the guest returned normally
   * @returns whether the memory was kept
   */
  release(clean: boolean): boolean {
    const holder = this.#current;
    this.#current = null;
    if (holder === null || !clean) return false;
    const pages = this.#shared.controlWords[CONTROL.pages]!;
    if (pages > this.#peak) this.#peak = pages;
    // Growing the memory has detached the buffer of its first views.
    if (holder.bytes.length === 0) {
      this.#followPeak();
      return false;
    }
    if (--this.#untilLook === 0 && this.#follows()) return false;
    if (this.#zeroed === null) return false;
    for (let k = 0; k < this.#zeroed.length; k += 2) holder.bytes.fill(0, this.#zeroed[k], this.#zeroed[k + 1]);
    this.#spare = holder;
    return true;
  }

  /**
   * Looks whether recent executions needed less than before. @returns whether new memories have another size now
   */
  #follows(): boolean {
    const before = this.#pages;
    this.#followPeak();
    this.#peak = this.loaded.memoryPages.min;
    return this.#pages !== before;
  }

  /**
   * Makes new memories as large as recent executions needed. In steps of powers of two, so that what one execution
   * needed is hidden from the next.
   */
  #followPeak(): void {
    const { max, min } = this.loaded.memoryPages;
    const before = this.#pages;
    const more = this.#peak - min;
    this.#untilLook = LOOK_AFTER;
    this.#pages = more <= 0 ? min : Math.min(max, min + 2 ** Math.ceil(Math.log2(more)));
    this.#zeroed = this.#toZero();
    if (this.#zeroed !== null) return;
    // A memory that is not used again need not be larger: growing it is as cheap.
    this.#pages = before;
    this.#zeroed = this.#toZero();
  }

  /** Bytes of the memory kept for the next execution. */
  get warmBytes(): number {
    return this.#spare === null ? 0 : this.#spare.bytes.length;
  }

  /** Drops the memory kept for the next execution. */
  giveUp(): void {
    this.#spare = null;
  }
}
