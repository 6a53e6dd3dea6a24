import { CONTROL_MEMORY, GUEST_MEMORY, HOST_MODULE } from '../src/abi/host-memory.ts';
import type { LoadedModule } from '../src/abi/lane-messages.ts';
import { LIMITS, PAGE_BYTES } from '../src/base/limits.ts';
import type { GuestMemory } from './guest-memory.ts';

export type SharedImports = {
  plugin_host: WebAssembly.ModuleImports;
  wasi_snapshot_preview1: WebAssembly.ModuleImports;
  control: WebAssembly.Memory;
};

/** A zero-filled memory with its views and the imports object that names it. */
type Holder = { memory: WebAssembly.Memory; bytes: Uint8Array; view: DataView; imports: WebAssembly.Imports };

/**
 * One plugin version on one lane. Every execution gets a new instance with new globals, tables and data segments. Only
 * the memory's zero-filled backing store is reused, for the same plugin on the same thread, and only if the execution
 * before ended normally and did not grow it (docs/RATIONALE.md).
 */
export class PluginRuntime {
  readonly loaded: LoadedModule;
  readonly #shared: SharedImports;
  readonly #recycle: boolean;
  #spare: Holder | null = null;
  #current: Holder | null = null;
  /** Recent run time in ms; a plugin that has not run yet counts as slow. */
  #expectedMs = 10;

  constructor(loaded: LoadedModule, shared: SharedImports, recycle: boolean) {
    this.loaded = loaded;
    this.#shared = shared;
    this.#recycle = recycle && loaded.memoryPages.min * PAGE_BYTES <= LIMITS.recycleBytesMax;
  }

  #newHolder(): Holder {
    const { min, max } = this.loaded.memoryPages;
    const { control, plugin_host, wasi_snapshot_preview1 } = this.#shared;
    const memory = new WebAssembly.Memory({ initial: min, maximum: max });
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
   * module's own start function, `_initialize` and the entry.
   *
   * @throws the error that the guest or its data segments raise
   */
  run(guest: GuestMemory): void {
    const holder = this.#spare ?? this.#newHolder();
    this.#spare = null;
    this.#current = holder;
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

  /** Ends the execution: zeroes and keeps the memory, or drops it. */
  release(clean: boolean): void {
    const holder = this.#current;
    this.#current = null;
    // Growing the memory has detached the buffer of its first views.
    if (holder === null || !clean || !this.#recycle || holder.bytes.length === 0) return;
    holder.bytes.fill(0);
    this.#spare = holder;
  }
}
