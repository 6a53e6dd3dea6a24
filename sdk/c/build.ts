import { execFile } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { withCustomSection } from '../../src/abi/custom-section.ts';
import { messageOf, OperatorError } from '../../src/base/errors.ts';
import { describeModule } from '../describe-module.ts';
import { withPositions } from '../dwarf/with-positions.ts';
import { sourceWarnings } from '../source-warnings.ts';
import { diagnostics, functionAdvice } from './lacking.ts';

/** Builds a plugin from C with the clang of the machine and wasi-libc. */

const KIT = fileURLToPath(new URL('./kit/', import.meta.url));
const HEADER = path.join(KIT, 'plugin_host.h');
const run = promisify(execFile);

/** Names of the target, the newer one first; wasi-libc has one of them. */
const TARGETS = ['wasm32-wasip1', 'wasm32-wasi'];
/** Each execution zeroes its stack, so that it is small. */
const STACK_BYTES = 64 * 1024;
/** Instructions the host's compiler knows. With the second, clang 14 needs the last one for `errno`. */
const FEATURES = ['-msign-ext', '-mbulk-memory', '-mnontrapping-fptoint', '-ftls-model=local-exec'];
/**
 * WebAssembly can read and write address 0, so a NULL pointer is no trap by itself. With these checks `*p`, `p->m` and
 * `p[0]` of a NULL pointer, and an index outside an array whose size the compiler knows, call the kit, which ends the
 * execution. Clang has no check for copies of whole structures and for `p[1]` (sdk/c/README.md "What is different").
 */
const CHECKS = [
  ...['-fsanitize=null,array-bounds', '-fsanitize-minimal-runtime', '-fno-sanitize-recover=all'],
  // Otherwise the checks of a function share one call, which has no line.
  ...['-mllvm', '-enable-tail-merge=false'],
];
/** What is hardly ever meant, and ends in a wrong call. */
const ERRORS = ['implicit-function-declaration', 'int-conversion', 'incompatible-pointer-types', 'return-type'];
const LINES = ['-fno-color-diagnostics', '-fno-caret-diagnostics', '-fmacro-backtrace-limit=0'];
/** Folders of a plugin without sources of it. */
const OTHER_FOLDERS = new Set(['kit', 'build', 'test', 'node_modules']);

const hasText = (error: unknown): error is { stderr: string } =>
  typeof error === 'object' && error !== null && 'stderr' in error && typeof error.stderr === 'string';

const printed = async (...args: string[]): Promise<string> => (await run('clang', args)).stdout.trim();

/** A target, and options without which clang would also look at the headers of the machine. */
type Target = { name: string; headers: string[] };

/** The first target that wasi-libc is there for; null for none. */
async function findTarget(): Promise<Target | null> {
  for (const name of TARGETS) {
    const start = await printed(`--target=${name}`, '-print-file-name=crt1-reactor.o');
    if (!path.isAbsolute(start)) continue;
    const folder = path.dirname(start);
    const headers = path.join(folder, '../../include', path.basename(folder));
    return { name, headers: fs.existsSync(headers) ? ['-nostdlibinc', '-isystem', headers] : [] };
  }
  return null;
}

const NO_TARGET: Target = { name: 'wasm32-wasi', headers: [] };

/** The target to build for, and the Debian packages without which nothing can be built. */
async function examineTools(): Promise<{ target: Target; missing: string[] }> {
  let found: Target | null;
  try {
    found = await findTarget();
  } catch {
    return { target: NO_TARGET, missing: ['clang', 'lld', 'wasi-libc', 'libclang-rt-dev-wasm32'] };
  }
  const target = found ?? NO_TARGET;
  const [linker, builtins] = await Promise.all([
    printed(`--target=${target.name}`, '-print-prog-name=wasm-ld'),
    printed(`--target=${target.name}`, '-print-libgcc-file-name'),
  ]);
  const missing = [
    ...(path.isAbsolute(linker) ? [] : ['lld']),
    ...(found === null ? ['wasi-libc'] : []),
    ...(fs.existsSync(builtins) ? [] : ['libclang-rt-dev-wasm32']),
  ];
  return { target, missing };
}

/** @returns what a machine without the tools for C needs, as a sentence; null when all of them are there */
export async function missingTools(): Promise<string | null> {
  const { missing } = await examineTools();
  return missing.length === 0
    ? null
    : `C is built with clang, lld, wasi-libc and the compiler's library for wasm32; on Debian: apt-get install ${missing.join(' ')}`;
}

let knownTarget: Target | null = null;

/** @throws OperatorError that says what to install */
async function targetOf(): Promise<Target> {
  if (knownTarget !== null) return knownTarget;
  const { missing, target } = await examineTools();
  if (missing.length > 0) throw new OperatorError((await missingTools()) ?? '');
  knownTarget = target;
  return target;
}

/** C files of a plugin, below its folder. */
function sourcesOf(root: string, folder = ''): string[] {
  const isOther = (name: string): boolean => name.startsWith('.') || (folder === '' && OTHER_FOLDERS.has(name));
  return fs
    .readdirSync(path.join(root, folder), { withFileTypes: true })
    .flatMap(entry => {
      const file = path.join(folder, entry.name);
      if (entry.isDirectory()) return isOther(entry.name) ? [] : sourcesOf(root, file);
      return entry.name.endsWith('.c') ? [file] : [];
    })
    .sort();
}

/** Runs clang in the plugin's folder, so that its lines name files as the author knows them. */
async function compile(root: string, args: readonly string[]): Promise<{ isDone: boolean; lines: string[] }> {
  try {
    const { stderr } = await run('clang', [...args], { cwd: root, maxBuffer: 1 << 24 });
    return { isDone: true, lines: diagnostics(stderr) };
  } catch (error) {
    const text = hasText(error) && error.stderr !== '' ? error.stderr : messageOf(error);
    return { isDone: false, lines: diagnostics(text) };
  }
}

/** The functions of the kit, compiled: the same for every plugin. */
let kitObject: Promise<Uint8Array> | null = null;

async function compileKit(target: Target): Promise<Uint8Array> {
  const directory = fs.mkdtempSync(path.join(os.tmpdir(), 'plugin-host-c-kit-'));
  try {
    const out = path.join(directory, 'kit.o');
    const flags = [`--target=${target.name}`, ...target.headers, '-std=gnu17', '-O2', ...FEATURES, ...LINES];
    const { isDone, lines } = await compile(KIT, [
      ...flags,
      '-DPLUGIN_HOST_IMPLEMENTATION',
      ...['-x', 'c', '-c', HEADER, '-o', out],
    ]);
    if (!isDone) throw new Error(lines.join('\n'));
    return fs.readFileSync(out);
  } finally {
    fs.rmSync(directory, { recursive: true, force: true });
  }
}

/** The line of a source that names something first; the linker does not say it. */
function lineOf(file: string, name: string): string {
  const lines = fs.readFileSync(file, 'utf8').split('\n');
  const word = new RegExp(`\\b${name.replace(/[^\w]/g, '\\$&')}\\b`);
  const index = lines.findIndex(line => word.test(line));
  return index < 0 ? '' : `:${index + 1}`;
}

/** Mistakes of the linker as those of a compiler, with the sources in place of their objects. */
function linkerLines(root: string, text: string, sources: ReadonlyMap<string, string>): string[] {
  const named = [...sources].reduce((all, [object, source]) => all.replaceAll(object, source), text);
  return named
    .split('\n')
    .filter(line => line !== '' && !line.includes('linker command failed'))
    .map(line => {
      const [, source = '', name = ''] = /error: (\S+): undefined symbol: (\S+)/.exec(line) ?? [];
      if (name === 'plugin')
        return 'error: the plugin declares nothing; write const ph_plugin plugin = { ... }; in one of its files';
      if (name === '' || !fs.existsSync(path.join(root, source))) return line.replace(/^wasm-ld\S*: /, '');
      const where = lineOf(path.join(root, source), name);
      const advice = functionAdvice(name);
      if (advice !== null) return `${source}${where}: error: ${advice}`;
      return `${source}${where}: error: ${name} is defined neither in the plugin nor in the C library (wasi-libc)`;
    });
}

type Unit = { source: string; object: string };

/** Compiles all sources, a few at a time. @returns warnings @throws Error with the mistakes in all of them */
async function compileAll(root: string, target: Target, units: readonly Unit[]): Promise<string[]> {
  const flags = [
    ...[`--target=${target.name}`, ...target.headers, '-std=gnu17', '-O2', ...FEATURES, ...CHECKS, ...LINES],
    // The lines of a failure come from it; compilers after clang 14 may write another version by themselves.
    ...['-gline-tables-only', '-gdwarf-4', '-fdebug-compilation-dir=.'],
    ...['-Wall', ...ERRORS.map(name => `-Werror=${name}`), '-isystem', KIT],
  ];
  const results: Array<{ isDone: boolean; lines: string[] }> = [];
  const waiting = [...units.entries()];
  const work = async (): Promise<void> => {
    for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) {
      const [k, { object, source }] = next;
      results[k] = await compile(root, [...flags, '-c', source, '-o', object]);
    }
  };
  await Promise.all(Array.from({ length: os.availableParallelism() }, work));
  const failed = results.filter(r => !r.isDone);
  if (failed.length > 0) throw new Error(failed.flatMap(r => r.lines).join('\n'));
  return results.flatMap(r => r.lines).map(line => line.replace(/^(\S+:\d+:\d+): warning: /, '$1: '));
}

/** @throws Error with the mistakes of the linker */
async function link(root: string, target: Target, units: readonly Unit[], directory: string): Promise<Uint8Array> {
  // One that could not be compiled, on a full disk for example, is tried again.
  kitObject ??= compileKit(target).catch((error: unknown) => {
    kitObject = null;
    throw error;
  });
  const kit = path.join(directory, 'kit.o');
  fs.writeFileSync(kit, await kitObject);
  const out = path.join(directory, 'plugin.wasm');
  const options = ['-z', `stack-size=${STACK_BYTES}`, '--stack-first', '--fatal-warnings', '--error-limit=0'];
  // Without -O: clang would run an optimizer of the machine that knows nothing of lines.
  await run('clang', [
    `--target=${target.name}`,
    '-mexec-model=reactor',
    ...options.map(option => `-Wl,${option}`),
    ...[...units.map(u => u.object), kit, '-o', out],
  ]).catch((error: unknown) => {
    const text = hasText(error) && error.stderr !== '' ? error.stderr : messageOf(error);
    const sources = new Map(units.map(u => [u.object, u.source]));
    throw new Error(linkerLines(root, text, sources).join('\n'));
  });
  return fs.readFileSync(out);
}

/**
 * @param input path of a file of the plugin; all C files of its folder belong to the plugin
 * @returns the module with its manifest and the lines of its sources, and warnings of the compiler
 * @throws Error with the mistakes of the compiler; OperatorError without a toolchain
 */
export async function buildPlugin(input: string): Promise<{ module: Uint8Array; warnings: string[] }> {
  const target = await targetOf();
  const root = path.dirname(path.resolve(input));
  const directory = fs.mkdtempSync(path.join(os.tmpdir(), 'plugin-host-c-'));
  try {
    const units = sourcesOf(root).map((source, k) => ({ source, object: path.join(directory, `${k}.o`) }));
    const warnings = await compileAll(root, target, units);
    const linked = withPositions(await link(root, target, units, directory), root);
    const manifest = await describeModule(linked.module);
    return {
      module: withCustomSection(linked.module, 'plugin.manifest', new TextEncoder().encode(manifest)),
      warnings: [...warnings, ...linked.warnings, ...sourceWarnings(root, 'c', manifest)],
    };
  } finally {
    fs.rmSync(directory, { recursive: true, force: true });
  }
}
