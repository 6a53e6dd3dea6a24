import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { ABI_NEWEST } from '../../src/abi/host-functions.ts';
import { withManifest } from '../../test/support/wat.ts';

/** A plugin of the benchmark: the same greeter in several languages. `missing`: why it could not be built here. */
export type LanguagePlugin = { language: string; id: string; bytes: Uint8Array | null; missing: string };

const here = import.meta.dirname;
const bin = (name: string): string => path.join(here, '../node_modules/binaryen/bin', name);
const run = (command: string, args: string[], cwd = here, env: Record<string, string> = {}): void =>
  void execFileSync(command, args, { cwd, env: { ...process.env, ...env }, stdio: ['ignore', 'ignore', 'pipe'] });

/** Triggers `greet`, `visit` (one `kv_get` and one `kv_set`) and `draw` (two random numbers below 2^53). */
const manifest = (id: string, once: boolean) => ({
  abi: ABI_NEWEST,
  id,
  name: `Greeter (${id})`,
  version: '1.0.0',
  requirements: [{ kind: 'kv', description: 'Counts visits' }],
  triggers: ['greet', 'visit', 'draw'].map(name => ({ name, type: 'http', path: `/${name}`, methods: ['GET'] })),
  ...(once ? { start: 'once' } : {}),
});

/** The runtime draws new random numbers in each execution: a file added to its source seeds it again. */
function buildGo(out: string): void {
  const root = execFileSync('go', ['env', 'GOROOT'], { encoding: 'utf8' }).trim();
  const overlay = `${out}.overlay.json`;
  const added = path.join(root, 'src/runtime/plugin_host_reseed.go');
  fs.writeFileSync(overlay, JSON.stringify({ Replace: { [added]: path.join(here, 'go/reseed.go.overlay') } }));
  const flags = ['-buildmode=c-shared', '-overlay', overlay, '-ldflags=-s -w', '-o', out];
  run('go', ['build', ...flags, '.'], path.join(here, 'go'), { GOOS: 'wasip1', GOARCH: 'wasm' });
}

function buildRust(out: string): void {
  const options = ['opt-level=3', 'lto', 'panic=abort', 'strip=debuginfo', 'link-arg=-zstack-size=65536'];
  const flags = ['--target', 'wasm32-wasip1', '--crate-type', 'cdylib', ...options.flatMap(o => ['-C', o])];
  run('rustc', [...flags, 'rust/greeter.rs', '-o', out]);
}

function buildC(out: string): void {
  run('clang', ['--target=wasm32-wasi', '-O2', '-mexec-model=reactor', '-Wl,--strip-debug', '-o', out, 'c/greeter.c']);
}

/** QuickJS, the glue in AssemblyScript and the bundle of the plugin, merged into one module. */
function buildTypeScript(out: string): void {
  const made = (ending: string): string => `${out}.${ending}`;
  const asc = path.join(here, '../../node_modules/assemblyscript/bin/asc.js');
  const glue = ['--runtime', 'stub', '--importMemory', '--noExportMemory', '-O3', '--textFile', made('glue.wat')];
  run(process.execPath, [asc, 'typescript/engine.ts', ...glue]);
  const text = fs.readFileSync(made('glue.wat'), 'utf8');
  fs.writeFileSync(made('glue.wat'), text.replace('(import "env" "memory"', '(import "qjs" "memory"'));
  const options = ['--bundle', '--format=iife', '--target=es2023', `--outfile=${made('bundle.js')}`];
  run(path.join(here, '../node_modules/esbuild/bin/esbuild'), ['typescript/greeter.ts', ...options]);
  const bundle = fs.readFileSync(made('bundle.js'));
  const escaped = [...bundle].map(b => `\\${b.toString(16).padStart(2, '0')}`).join('');
  fs.writeFileSync(
    made('bundle.wat'),
    `(module (import "qjs" "memory" (memory 0)) (data $code "${escaped}")
      (func (export "length") (result i32) (i32.const ${bundle.length}))
      (func (export "copy") (param i32) (memory.init $code (local.get 0) (i32.const 0) (i32.const ${bundle.length}))))`,
  );
  // The compact encoding of imports is newer than the host's compiler.
  const features = ['-all', '--disable-compact-imports'];
  const assemble = (part: string): void =>
    run(bin('wasm-as'), [made(`${part}.wat`), '-o', made(`${part}.wasm`), ...features]);
  assemble('glue');
  assemble('bundle');
  const quickjs = path.join(here, '../node_modules/quickjs-wasi/quickjs.wasm');
  const merge = (modules: string[], to: string): void => run(bin('wasm-merge'), [...modules, '-o', to, ...features]);
  const keep = (from: string, exports: string[], to: string): void => {
    const roots = exports.map(name => ({ name, root: true, export: name }));
    fs.writeFileSync(made('roots.json'), JSON.stringify(roots));
    run(bin('wasm-metadce'), [from, '-f', made('roots.json'), '-o', to, ...features]);
  };
  merge([quickjs, 'qjs', made('glue.wasm'), 'env', made('bundle.wasm'), 'bundle'], made('merged.wasm'));
  // QuickJS has an `_initialize` of its own, which must be gone before `boot` gets that name.
  keep(made('merged.wasm'), ['memory', 'plugin_handle', 'boot'], made('kept.wasm'));
  fs.writeFileSync(
    made('names.wat'),
    '(module (import "plugin" "boot" (func $boot)) (func (export "_initialize") (call $boot)))',
  );
  assemble('names');
  merge([made('kept.wasm'), 'plugin', made('names.wasm'), 'names'], made('named.wasm'));
  keep(made('named.wasm'), ['memory', 'plugin_handle', '_initialize'], out);
}

const LANGUAGES: Array<{ language: string; once: boolean; build(out: string): void }> = [
  { language: 'go', once: true, build: buildGo },
  { language: 'typescript', once: true, build: buildTypeScript },
  { language: 'rust', once: false, build: buildRust },
  { language: 'c', once: false, build: buildC },
];

/** Builds the greeter in every language whose tools are here. */
export function buildLanguagePlugins(directory: string): LanguagePlugin[] {
  return LANGUAGES.map(({ build, language, once }) => {
    const out = path.join(directory, `greeter-${language}.wasm`);
    const id = `greeter-${language}`;
    try {
      build(out);
    } catch (error) {
      const missing = error instanceof Error ? (error.message.split('\n')[0] ?? '') : String(error);
      return { language, id, bytes: null, missing };
    }
    return { language, id, bytes: withManifest(fs.readFileSync(out), manifest(id, once)), missing: '' };
  });
}
