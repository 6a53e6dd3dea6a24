#!/usr/bin/env node
import fs from 'node:fs';
import path from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { withCustomSection } from '../../src/abi/custom-section.ts';
import { POSITIONS_BYTES_MAX, POSITIONS_SECTION } from '../../src/abi/positions.ts';
import { OperatorError } from '../../src/base/errors.ts';
import { findOptional, missingPackage, pinnedVersion } from '../../src/base/optional-package.ts';
import { describeModule } from '../describe-module.ts';
import { kindsOf, missingRequirements, type Source } from '../source-warnings.ts';
import { adviceOn } from './advice.ts';
import { type CodeMap, placesOf, positionsSection, readCodeMap } from './code-map.ts';

/**
 * Builds a plugin from AssemblyScript: compiles it against the kit, asks the module for its manifest with every host
 * function denied, and writes the manifest into the custom section `plugin.manifest`.
 *
 *   node sdk/assemblyscript/build.ts INPUT.ts OUTPUT.wasm
 */

const KIT = fileURLToPath(new URL('./assembly/', import.meta.url));
/** The file that says where a plugin's folder begins. */
const PROJECT_FILE = 'plugin-host.json';
const CONFIG_FILE = 'asconfig.json';
const MAIN = '__main.ts';
const OUT = 'out.wasm';

/** What the compiler takes from the kit in the place of its own, which imports what no host has. */
const USES = Object.entries({
  abort: 'abort',
  trace: 'trace',
  seed: 'seed',
  Date: 'PluginDate',
  console: 'console',
  crypto: 'crypto',
  performance: 'performance',
}).map(([name, ours]) => `${name}=~lib/@plugin-host/sdk/standard/${ours}`);

/** What a module must have; everything else an author may set in `asconfig.json`. Names make stacks of traps readable. */
const FLAGS = ['--outFile', OUT, '--sourceMap', '--debug', '--exportStart', '_initialize', '--use', USES.join(',')];

export type BuiltPlugin = {
  module: Uint8Array;
  /** What does no harm but should be known, one line each. */
  warnings: string[];
};

/** The folder of the plugin: positions are shown as they are below it. */
function rootOf(input: string): string {
  const folder = path.dirname(path.resolve(input));
  for (let at = folder; ; at = path.dirname(at)) {
    if (fs.existsSync(path.join(at, PROJECT_FILE))) return at;
    if (at === path.dirname(at)) return folder;
  }
}

function read(file: string): string | null {
  try {
    return fs.readFileSync(file, 'utf8');
  } catch {
    return null;
  }
}

/** The file of the kit behind a name by which the compiler looks for a package; null for another name. */
function kitFile(name: string): string | null {
  const [, inKit] = /^(?:~lib|node_modules)\/@plugin-host\/sdk\/(.+\.ts)$/.exec(name) ?? [];
  return inKit === undefined ? null : path.join(KIT, inKit);
}

/**
 * The compiler is installed.
 *
 * @param neededBecause what needs it, as the first half of a sentence
 * @param instead what helps without it; empty when nothing does
 * @throws OperatorError that says what to install
 */
export function assertCompiler(neededBecause: string, instead = ''): void {
  if (findOptional('assemblyscript/package.json') === null)
    throw missingPackage('assemblyscript', neededBecause, instead);
}

/**
 * The compiler of this installation, or one that was installed in the plugin's folder.
 *
 * @throws OperatorError that says how to install it there
 */
async function loadCompiler(root: string, input: string): Promise<typeof import('assemblyscript/asc')> {
  const found = findOptional('assemblyscript/package.json', root);
  if (found === null)
    throw new OperatorError(
      `${path.basename(input)} is to be compiled, and AssemblyScript is not installed: run npm install --save-dev assemblyscript@${pinnedVersion('assemblyscript')} in ${root}`,
    );
  return await import(pathToFileURL(path.join(path.dirname(found), 'dist/asc.js')).href);
}

/** What the compiler reports about a place. */
type Range = { start: number; source: { normalizedPath: string } };
type Diagnostic = { code: number; category: number; message: string; range: Range | null; relatedRange: Range | null };

const WARNING = 2;
const ERROR = 3;

/** A diagnostic as `file:line:column: text`, with the line it is about. */
function diagnosticLine({ code, message, range, relatedRange }: Diagnostic, root: string): string {
  // Types by the names authors import them by.
  const said = message.replace(/~lib\/(?:[\w@-]+\/)+(?=[A-Z])/g, '');
  const textOf = (line: string): string => `${code < 1000 ? 'AS' : 'TS'}${code}: ${said}${adviceOn(code, said, line)}`;
  // What the library does not allow is a mistake of the file that asks for it.
  const isAuthors = (r: Range | null): boolean => r !== null && !r.source.normalizedPath.startsWith('~lib/');
  const place = isAuthors(range) ? range : isAuthors(relatedRange) ? relatedRange : range;
  if (place === null) return textOf('');
  const name = place.source.normalizedPath;
  const source = read(kitFile(name) ?? path.join(root, name));
  if (source === null) return `${name}: ${textOf('')}`;
  const before = source.slice(0, place.start).split('\n');
  const line = source.split('\n')[before.length - 1] ?? '';
  return `${name}:${before.length}:${(before.at(-1) ?? '').length + 1}: ${textOf(line)}\n    ${line.trim()}`;
}

type Compiled = { binary: Uint8Array; map: CodeMap; warnings: string[]; sources: Source[] };

async function compile(input: string, root: string): Promise<Compiled> {
  const { default: asc } = await loadCompiler(root, input);
  const entry = path.relative(root, path.resolve(input)).replace(/\.ts$/, '').split(path.sep).join('/');
  // The entry points are the kit's; the plugin's own files only declare and handle.
  const main = [
    'export { plugin_handle, plugin_describe } from "@plugin-host/sdk/run";',
    'import "@plugin-host/sdk/standard";',
    `import "./${entry}";\n`,
  ].join('\n');
  const readFile = (name: string, base: string): string | null => {
    if (name === MAIN) return main;
    const inKit = kitFile(name);
    if (inKit !== null) return read(inKit);
    const file = path.resolve(root, base, name);
    // The options of the kit: those a plugin's own file extends, and those of a plugin without one.
    if (file === path.join(root, 'kit', CONFIG_FILE)) return read(path.join(KIT, CONFIG_FILE));
    const text = read(file);
    const shown = path.relative(root, file);
    if (text !== null && file.endsWith('.ts') && !shown.includes('node_modules')) sources.push({ name: shown, text });
    return text ?? (file === path.join(root, CONFIG_FILE) ? read(path.join(KIT, CONFIG_FILE)) : null);
  };
  const sources: Source[] = [];
  const written = new Map<string, string | Uint8Array>();
  const messages: string[] = [];
  const diagnostics: Diagnostic[] = [];
  const { error } = await asc.main([MAIN, '--baseDir', root, ...FLAGS], {
    readFile,
    writeFile: (name: string, content: string | Uint8Array) => void written.set(name, content),
    listFiles: () => [],
    stdout: { write: () => {} },
    stderr: { write: text => void messages.push(String(text)) },
    reportDiagnostic: d => void diagnostics.push(d),
  });
  const lines = (category: number): string[] => [
    ...new Set(diagnostics.filter(d => d.category === category).map(d => diagnosticLine(d, root))),
  ];
  const binary = written.get(OUT);
  const map = written.get(`${OUT}.map`);
  if (error || !(binary instanceof Uint8Array) || typeof map !== 'string') {
    const mistakes = lines(ERROR);
    throw new Error(mistakes.length > 0 ? mistakes.join('\n') : `${messages.join('')}${error?.message ?? ''}`);
  }
  return { binary, map: readCodeMap(binary, map), warnings: lines(WARNING), sources };
}

/** Asks for the manifest. @throws Error with the author's lines where the top level of the plugin fails */
async function describe({ binary, map }: Compiled): Promise<string> {
  try {
    return await describeModule(binary);
  } catch (error) {
    if (!(error instanceof Error)) throw error;
    const places = placesOf(error.stack ?? '', map);
    if (places.length === 0) throw error;
    throw new Error(`the top level failed: ${error.message}\n${places.map(p => `    at ${p}`).join('\n')}`, {
      cause: error,
    });
  }
}

/**
 * @param input path of the plugin's entry file
 * @returns the module with its manifest, and what should be known about it
 * @throws Error with every mistake and where it is, OperatorError without a compiler
 */
export async function compilePlugin(input: string): Promise<BuiltPlugin> {
  const compiled = await compile(input, rootOf(input));
  const manifest = await describe(compiled);
  const module = withCustomSection(compiled.binary, 'plugin.manifest', new TextEncoder().encode(manifest));
  const denied = missingRequirements(compiled.sources, 'as', kindsOf(manifest));
  const positions = positionsSection(compiled.map);
  // A plugin of so many lines is named by its functions alone.
  const isShort = positions.length <= POSITIONS_BYTES_MAX;
  return {
    module: isShort ? withCustomSection(module, POSITIONS_SECTION, positions) : module,
    warnings: [...compiled.warnings, ...denied],
  };
}

/** `compilePlugin` where no warnings are shown. */
export const buildPlugin = async (input: string): Promise<Uint8Array> => (await compilePlugin(input)).module;

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const [input, output] = process.argv.slice(2);
  if (input === undefined || output === undefined) {
    process.stderr.write('usage: node_modules/.bin/node sdk/assemblyscript/build.ts INPUT.ts OUTPUT.wasm\n');
    process.exit(2);
  }
  try {
    const { module, warnings } = await compilePlugin(input);
    fs.writeFileSync(output, module);
    for (const warning of warnings) process.stderr.write(`warning: ${warning}\n`);
    process.stdout.write(`${output}: ${module.length} bytes\n`);
  } catch (error) {
    process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
    process.exit(1);
  }
}
