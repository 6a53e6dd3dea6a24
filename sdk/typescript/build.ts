#!/usr/bin/env node
import fs from 'node:fs';
import { builtinModules, type SourceMapPayload } from 'node:module';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { withCustomSection } from '../../src/abi/custom-section.ts';
import { findOptional, missingPackage } from '../../src/base/optional-package.ts';
import { parseManifest } from '../../src/plugins/manifest.ts';
import { manifestPlace } from '../../src/plugins/manifest-place.ts';
import { missingRequirements, type Source } from '../source-warnings.ts';
import { BRIDGED, numberOf, SPECIAL_FUNCTIONS } from './engine/glue.ts';
import { linkPlugin } from './engine/link-plugin.ts';
import { positionsOf, readMappings } from './engine/positions-of.ts';
import { type Asked, NO_PLUGIN, runStart } from './engine/run-engine.ts';
import { readEngine } from './engine/stored-engine.ts';
import { adviceFor } from './kit/missing-names.ts';

/**
 * Builds a plugin from TypeScript: bundles its files with the kit, runs their top level once to learn the manifest, and
 * puts the bundle into the engine.
 *
 *   node sdk/typescript/build.ts INPUT.ts OUTPUT.wasm
 */

const KIT = fileURLToPath(new URL('./kit/', import.meta.url));
/** What the names of the kit's files begin with. */
const OF_KIT = 'plugin-host/';
/** The name the bundle has in the engine; source files are named as they lie next to it. */
const BUNDLE = 'plugin.js';

/** What is wrong with a plugin's sources: one line for each mistake, with file, line and column where they are known. */
export class BuildError extends Error {
  override readonly name = 'BuildError';
}

export type BuiltPlugin = {
  module: Uint8Array;
  /** What does no harm but should be known, one line each. */
  warnings: string[];
};

const nameOf = (host: string): string => String.fromCharCode(numberOf(host));

/** The module behind `kit/host-functions.d.ts`: the engine gives the functions in one object, which is taken away. */
function hostFunctions(): string {
  const names = [...SPECIAL_FUNCTIONS, ...BRIDGED.map(f => f.name)];
  const lines = names.map(name => `export const ${name} = host[${JSON.stringify(nameOf(name))}];`);
  return `const host = globalThis.__host;\ndelete globalThis.__host;\n${lines.join('\n')}\n`;
}

/** What a program for Node imports, also without the prefix `node:`. */
const NODE_MODULE = new RegExp(`^(node:.*|(${builtinModules.map(name => name.replaceAll('/', '\\/')).join('|')}))$`);
/** What a plugin does instead of what modules of Node are for. */
const INSTEAD: ReadonlyArray<[modules: RegExp, advice: string]> = [
  [/^fs(\/|$)/, '; use ctx.FileRead and ctx.FileStore, or the key-value store'],
  [/^(https?|http2|net|tls|dns)(\/|$)/, '; use ctx.HTTPRequest'],
  [/^crypto$/, '; crypto.getRandomValues is there without an import'],
  [/^(child_process|worker_threads|cluster)$/, '; an execution is one thread'],
];
const absent = (name: string): string => {
  const advice = INSTEAD.find(([modules]) => modules.test(name.replace(/^node:/, '')))?.[1] ?? '';
  return `"${name}" is a module of Node; a plugin has the language and the kit, not Node's API${advice}`;
};
/** Says that a name is being looked up among packages. */
const LOOKED_UP = 'looked up';

type Bundle = { code: string; map: SourceMapPayload; warnings: string[] };

type Message = { text: string; location: { file: string; line: number; column: number; lineText: string } | null };

/** Words of the bundler that say nothing to an author of a plugin, and what they mean. */
const MEANING: ReadonlyArray<[words: RegExp, meaning: string]> = [
  [/^Top-level await is .*/, 'the top level of a plugin cannot wait: move what waits into a handler'],
  [/^No matching export in ".*" for import "(.+)"$/, 'there is no "$1" in what is imported here'],
  [/^(Could not resolve "((?:@[\w.-]+\/)?[\w-][\w.-]*)")$/, '$1: run npm install $2 in the folder of the plugin'],
];

const meaningOf = (text: string): string =>
  MEANING.reduce((said, [words, meaning]) => said.replace(words, meaning), text);

function lineOf({ location, text }: Message): string {
  if (location === null) return meaningOf(text);
  const shown = location.lineText.trim();
  const place = `${location.file}:${location.line}:${location.column + 1}`;
  return `${place}: ${meaningOf(text)}${shown === '' ? '' : `\n    ${shown}`}`;
}

/** The package a file belongs to; the innermost of nested ones. */
const packageOf = (file: string): string | undefined =>
  /.*(?:^|[/\\])node_modules[/\\]((?:@[^/\\]+[/\\])?[^/\\]+)/.exec(file)?.[1];

/** Mistakes, a line each; what one package lacks of Node is one mistake. */
function mistakesOf(errors: readonly Message[]): string[] {
  const lacking = new Map<string, Set<string>>();
  const own = errors.filter(({ location, text }) => {
    const [, module = ''] = /^"([^"]+)" is a module of Node;/.exec(text) ?? [];
    const needs = packageOf(location?.file ?? '');
    if (module === '' || needs === undefined) return true;
    lacking.set(needs, (lacking.get(needs) ?? new Set()).add(module));
    return false;
  });
  const packages = [...lacking].map(
    ([name, modules]) =>
      `the package "${name}" needs modules of Node (${[...modules].join(', ')}), which a plugin does not have: use what a plugin has (ctx.HTTPRequest, ctx.FileRead, crypto), or another package`,
  );
  return [...own.map(lineOf), ...packages];
}

async function bundle(input: string, root: string): Promise<Bundle> {
  if (findOptional('esbuild/package.json') === null)
    throw missingPackage('esbuild', `${path.basename(input)} is to be bundled`);
  const esbuild = await import('esbuild');
  const kit = {
    name: 'plugin-host',
    setup(build: import('esbuild').PluginBuild) {
      build.onResolve({ filter: /^@plugin-host\/sdk$/ }, () => ({ path: path.join(KIT, 'index.ts') }));
      build.onResolve({ filter: /^(@plugin-host\/|plugin-host(\/|$))/ }, ({ path: name }) => ({
        errors: [{ text: `there is no "${name}": a plugin imports its kit from "@plugin-host/sdk"` }],
      }));
      build.onResolve({ filter: /^\.\/host-functions\.js$/ }, () => ({ path: 'host-functions', namespace: 'engine' }));
      build.onLoad({ filter: /.*/, namespace: 'engine' }, () => ({ contents: hostFunctions(), loader: 'js' }));
      // A package may have the name of one of Node's modules ("events"): it is asked for first.
      build.onResolve({ filter: NODE_MODULE }, async ({ importer, kind, path: name, pluginData, resolveDir }) => {
        if (pluginData === LOOKED_UP) return undefined;
        const found = await build.resolve(name, { importer, kind, resolveDir, pluginData: LOOKED_UP });
        if (found.errors.length === 0) return found;
        // Libraries ask for a module of Node where there is one, and may never call what needs it.
        if (kind === 'require-call' && packageOf(importer) !== undefined) return { path: name, namespace: 'absent' };
        return { errors: [{ text: absent(name) }] };
      });
      build.onLoad({ filter: /.*/, namespace: 'absent' }, ({ path: name }) => ({
        contents: `throw new Error(${JSON.stringify(absent(name))})`,
        loader: 'js',
      }));
    },
  };
  try {
    const { outputFiles, warnings } = await esbuild.build({
      entryPoints: [input],
      absWorkingDir: root,
      bundle: true,
      write: false,
      format: 'iife',
      target: 'es2023',
      platform: 'neutral',
      // Of a package whose exports or main fields name files for Node and for a browser, those for a browser: a plugin has
      // `crypto`, and neither Buffer nor node:crypto.
      mainFields: ['browser', 'module', 'main'],
      conditions: ['import', 'worker', 'browser'],
      // Libraries ask for it at their top level.
      define: { 'process.env.NODE_ENV': '"production"' },
      sourcemap: 'external',
      sourcesContent: false,
      keepNames: true,
      outfile: path.join(root, BUNDLE),
      logLevel: 'silent',
      plugins: [kit],
    });
    const text = (ending: string): string => outputFiles.find(f => f.path.endsWith(ending))?.text ?? '';
    return { code: text('.js'), map: JSON.parse(text('.map')), warnings: warnings.map(lineOf) };
  } catch (error) {
    if (!(error instanceof Error) || !('errors' in error) || !Array.isArray(error.errors)) throw error;
    throw new BuildError(mistakesOf(error.errors).join('\n'), { cause: error });
  }
}

/** Names of source files as they are shown: below the folder of the plugin, or of the kit. */
function sourceName(source: string, root: string): string {
  const file = path.resolve(root, source);
  return file.startsWith(KIT) || /^(?:engine|absent):/.test(source) ? `${OF_KIT}${path.basename(file)}` : source;
}

/** The author's places in a stack of the engine, the innermost first. */
function authorPlaces(stack: string, map: SourceMapPayload): string[] {
  const lines = readMappings(map.mappings);
  return [...stack.matchAll(/plugin\.js:(\d+):(\d+)/g)].flatMap(([, line, column]) => {
    const place = lines[Number(line) - 1]?.findLast(([from]) => from < Number(column));
    const source = place === undefined ? undefined : map.sources[place[1]];
    return place === undefined || source === undefined || source.startsWith(OF_KIT)
      ? []
      : [`${source}:${place[2] + 1}:${place[3] + 1}`];
  });
}

function startWarnings(asked: readonly Asked[], map: SourceMapPayload): string[] {
  const what = { random: 'draws random numbers', clock: 'reads the clock' };
  const lines = asked.map(
    a =>
      `${authorPlaces(a.stack, map)[0] ?? 'a library'}: ${what[a.what]} at the top level, so that the top level runs in every execution; do it in a handler, or declare Start: 'once' if all executions may share it`,
  );
  return [...new Set(lines)];
}

/** The author's files in a bundle. */
const ownSources = (sources: readonly string[], root: string): Source[] =>
  sources
    .filter(s => !s.startsWith(OF_KIT) && !s.includes('node_modules'))
    .map(name => ({ name, text: fs.readFileSync(path.resolve(root, name), 'utf8') }));

/**
 * @param input path of the plugin's entry file
 * @returns the module with its manifest, and what should be known about it
 * @throws BuildError with every mistake and where it is; OperatorError when the bundler is not installed
 */
export async function buildPlugin(input: string): Promise<BuiltPlugin> {
  const root = path.dirname(path.resolve(input));
  const { code, map, warnings } = await bundle(path.resolve(input), root);
  const named = { ...map, sources: map.sources.map(s => sourceName(s, root)) };
  const positions = positionsOf(named, source => !source.startsWith(OF_KIT));
  const engine = await readEngine();
  const names = {
    deadline: nameOf('deadline'),
    entries: nameOf('entries'),
    log: nameOf('log'),
    random: nameOf('random'),
    randomBytes: nameOf('random_bytes'),
  };
  const { asked, failure, manifest, stack } = runStart(engine, names, code, positions);
  if (failure !== null) {
    const places = authorPlaces(stack, named).map(place => `\n    at ${place}`);
    if (failure === NO_PLUGIN)
      throw new BuildError(`${path.basename(input)}: ${NO_PLUGIN}: call definePlugin({...}) at its top level`);
    throw new BuildError(`the top level failed: ${failure}${adviceFor(failure)}${places.join('')}`);
  }
  const read = parseManifest(manifest);
  if (!read.ok)
    throw new BuildError(read.errors.map(e => `${manifestPlace(e.pointer, manifest)}: ${e.message}`).join('\n'));
  const permissions = new Set<string>(read.manifest.requirements.map(r => r.kind));
  const linked = linkPlugin(engine, permissions, new TextEncoder().encode(code), positions);
  const module = withCustomSection(linked, 'plugin.manifest', new TextEncoder().encode(manifest));
  const start = read.manifest.start === 'once' ? [] : startWarnings(asked, named);
  return {
    module,
    warnings: [...warnings, ...start, ...missingRequirements(ownSources(named.sources, root), 'ts', permissions)],
  };
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const [input, output] = process.argv.slice(2);
  if (input === undefined || output === undefined) {
    process.stderr.write('usage: node_modules/.bin/node sdk/typescript/build.ts INPUT.ts OUTPUT.wasm\n');
    process.exit(2);
  }
  try {
    const { module, warnings } = await buildPlugin(input);
    fs.writeFileSync(output, module);
    for (const warning of warnings) process.stderr.write(`warning: ${warning}\n`);
    process.stdout.write(`${output}: ${module.length} bytes\n`);
  } catch (error) {
    process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
    process.exit(1);
  }
}
