/**
 * Asks a module for its manifest, as a build does: runs its start and `plugin_describe` with every host function denied.
 *
 * @param bytes a module without a manifest section
 * @returns the manifest that `plugin_describe` hands to `output`, as JSON
 * @throws Error with the text of `fail`, or when the module declares nothing
 */
export async function describeModule(bytes: Uint8Array): Promise<string> {
  const module = new WebAssembly.Module(new Uint8Array(bytes));
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
  const instance = new WebAssembly.Instance(module, {
    wasi_snapshot_preview1: wasi?.wasiImport ?? {},
    plugin_host: Object.fromEntries(names.map(({ name }) => [name, host[name] ?? deny])),
  });
  const { exports } = instance;
  if (!(exports.memory instanceof WebAssembly.Memory)) throw new Error('the module does not export its memory');
  memory = exports.memory;
  if (wasi !== null) wasi.initialize(instance);
  else if (typeof exports._initialize === 'function') exports._initialize();
  if (typeof exports.plugin_describe === 'function') exports.plugin_describe();
  if (manifest === '')
    throw new Error('the module declares no plugin: nothing in its sources registers one with the kit');
  return manifest;
}
