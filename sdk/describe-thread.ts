/** How the trace of a Go program names a place. */
const PLACE = /^\t(\S+):(\d+)/gm;

/**
 * A panic in one line, with the first place in the author's sources; null when the text says of none.
 *
 * @param own names of the author's files
 */
function panicIn(text: string, own: ReadonlySet<string>): string | null {
  const at = Math.max(text.lastIndexOf('panic: '), text.lastIndexOf('fatal error: '));
  if (at < 0) return null;
  const [first = ''] = text.slice(at).split('\n');
  const names = [...text.slice(at).matchAll(PLACE)].map(([, file = '', line]) => [file.replace(/^.*\//, ''), line]);
  const place = names.find(([file = '']) => own.has(file));
  return `${place === undefined ? '' : `${place.join(':')}: `}it ended at its start: ${first}`;
}

/** What a plugin may import from. */
const MODULES = new Set(['plugin_host', 'wasi_snapshot_preview1']);
const STDERR = 2;
/** WASI's `ERRNO_SUCCESS`. */
const DONE = 0;

/** A module without a manifest section, and names of the author's files. */
export type Described = { module: WebAssembly.Module; own: readonly string[] };

/**
 * The thread that asks a module for its manifest: runs its start and `plugin_describe` with every host function denied.
 *
 * @returns the manifest that `plugin_describe` hands to `output`, as JSON
 * @throws Error with the text of `fail`, or when the module declares nothing
 */
export default async function describeInThread({ module, own }: Described): Promise<string> {
  let memory: WebAssembly.Memory | null = null;
  let manifest = '';
  const text = (at: number, length: number): string =>
    memory === null ? '' : new TextDecoder().decode(new Uint8Array(memory.buffer, at, length));
  const deny = (): number => -1;
  const host: Record<string, (...args: number[]) => number> = {
    output(at = 0, length = 0) {
      manifest = text(at, length);
      return 0;
    },
    fail(at = 0, length = 0) {
      throw new Error(text(at, length));
    },
  };
  const imports = WebAssembly.Module.imports(module);
  const names = imports.filter(i => i.module === 'plugin_host');
  // Loading it warns that it is experimental, and small modules do without.
  const needsWasi = imports.some(i => i.module !== 'plugin_host');
  const wasi = needsWasi ? new (await import('node:wasi')).WASI({ version: 'preview1' }) : null;
  let said = '';
  const wasiOfBuild = {
    fd_write(fd: number, at: number, count: number, written: number): number {
      if (memory === null) return DONE;
      const view = new DataView(memory.buffer);
      let length = 0;
      for (let k = 0; k < count; k++) {
        const [from, size] = [view.getUint32(at + 8 * k, true), view.getUint32(at + 8 * k + 4, true)];
        if (fd === STDERR) said += text(from, size);
        length += size;
      }
      view.setUint32(written, length, true);
      return DONE;
    },
    proc_exit(code: number): never {
      throw new Error(`it ended with the code ${code}`);
    },
  };
  const foreign = WebAssembly.Module.imports(module).find(i => !MODULES.has(i.module));
  if (foreign !== undefined)
    throw new Error(
      `the plugin uses "${foreign.name}" of "${foreign.module}", which no host of plugins has: a plugin reaches its host through the kit alone`,
    );
  const instance = new WebAssembly.Instance(module, {
    wasi_snapshot_preview1: { ...wasi?.wasiImport, ...wasiOfBuild },
    plugin_host: Object.fromEntries(names.map(({ name }) => [name, host[name] ?? deny])),
  });
  const { exports } = instance;
  if (!(exports.memory instanceof WebAssembly.Memory)) throw new Error('the module does not export its memory');
  memory = exports.memory;
  try {
    if (wasi !== null) wasi.initialize(instance);
    else if (typeof exports._initialize === 'function') exports._initialize();
    if (typeof exports.plugin_describe === 'function') exports.plugin_describe();
  } catch (error) {
    const panic = panicIn(said, new Set(own));
    if (panic !== null) throw new Error(panic, { cause: error });
    throw said === ''
      ? error
      : new Error(`${error instanceof Error ? error.message : error}; it wrote: ${said.trim()}`);
  }
  process.stderr.write(said);
  if (manifest === '')
    throw new Error('the module declares no plugin: nothing in its sources registers one with the kit');
  return manifest;
}
