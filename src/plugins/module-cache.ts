import type { LoadedModule } from '../abi/lane-messages.ts';

/**
 * What a compiled module takes, roughly: measured 4 bytes for each byte of a large module (Go, 3 MB), 6 of one on
 * QuickJS, and 0.6 MB for a small one.
 */
const BYTES_PER_BYTE = 5;
const BYTES_MIN = 512 * 1024;

/** `codeBytes`: of the module without the large parts of its data; `imageBytes`: those parts. */
export type CompiledModule = { loaded: LoadedModule; codeBytes: number; imageBytes: number };

type Entry = { loaded: Promise<LoadedModule>; bytes: number; usedAt: number };

/**
 * The compiled modules in memory, bounded by what they take. A module that was not used for longest goes first, and is
 * compiled again at its next use.
 */
export class ModuleCache {
  readonly #compile: (id: number) => Promise<CompiledModule>;
  readonly #bytesMax: number;
  readonly #removed: () => void;
  readonly #entries = new Map<number, Entry>();
  #bytes = 0;
  #uses = 0;

  /**
   * @param bytesMax of all modules together
   * @param removed called when modules were removed for lack of room
   */
  constructor(compile: (id: number) => Promise<CompiledModule>, bytesMax: number, removed: () => void) {
    this.#compile = compile;
    this.#bytesMax = bytesMax;
    this.#removed = removed;
  }

  /** The compiled module; compiles it at its first use. */
  get(id: number): Promise<LoadedModule> {
    const known = this.#entries.get(id);
    if (known !== undefined) {
      known.usedAt = ++this.#uses;
      return known.loaded;
    }
    const compiled = this.#compile(id);
    const entry: Entry = { loaded: compiled.then(c => c.loaded), bytes: 0, usedAt: ++this.#uses };
    this.#entries.set(id, entry);
    compiled.then(
      ({ codeBytes, imageBytes }) => {
        if (this.#entries.get(id) !== entry) return;
        entry.bytes = BYTES_MIN + codeBytes * BYTES_PER_BYTE + imageBytes;
        this.#bytes += entry.bytes;
        this.#makeRoom(entry);
      },
      () => {
        if (this.#entries.get(id) === entry) this.#entries.delete(id);
      },
    );
    return entry.loaded;
  }

  /** Notes that a module is used, by a thread that has it already. */
  use(id: number): void {
    const entry = this.#entries.get(id);
    if (entry !== undefined) entry.usedAt = ++this.#uses;
  }

  /** Whether as much again as the modules take now would still fit. */
  get isHalfEmpty(): boolean {
    return this.#bytes * 2 <= this.#bytesMax;
  }

  forget(id: number): void {
    const entry = this.#entries.get(id);
    if (entry === undefined) return;
    this.#entries.delete(id);
    this.#bytes -= entry.bytes;
  }

  /** Removes what was not used for longest until a quarter of the room is free, so that this is rare. */
  #makeRoom(newest: Entry): void {
    if (this.#bytes <= this.#bytesMax) return;
    const oldest = [...this.#entries].filter(([, e]) => e !== newest && e.bytes > 0);
    oldest.sort(([, a], [, b]) => a.usedAt - b.usedAt);
    for (const [id] of oldest) {
      if (this.#bytes <= this.#bytesMax * 0.75) break;
      this.forget(id);
    }
    this.#removed();
  }
}
