#!/usr/bin/env node
import fs from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { findOptional, missingPackage } from '../../src/base/optional-package.ts';

/**
 * Builds a plugin from AssemblyScript: compiles it against the kit, asks the module for its manifest with every host
 * function denied, and writes the manifest into the custom section `plugin.manifest`.
 *
 *   node sdk/assemblyscript/build.ts INPUT.ts OUTPUT.wasm
 */

const KIT = fileURLToPath(new URL('./assembly/', import.meta.url));

/** The compiler asks for files by name; the kit answers to the module name `plugin-host`. */
function readSource(name: string, base: string): string | null {
  const kit = /^(?:~lib|node_modules)\/plugin-host(?:\/(.+?))?\.ts$/.exec(name.replace(/\/index\.ts$/, '/index.ts'));
  const file = kit !== null ? path.join(KIT, `${kit[1] ?? 'index'}.ts`) : path.resolve(base, name);
  try {
    return fs.readFileSync(file, 'utf8');
  } catch {
    return null;
  }
}

function leb(value: number): number[] {
  const out: number[] = [];
  let rest = value;
  do {
    const low = rest & 127;
    rest >>>= 7;
    out.push(rest > 0 ? low | 128 : low);
  } while (rest > 0);
  return out;
}

/** Appends a custom section (core specification 5.5.3). */
export function withCustomSection(module: Uint8Array, name: string, content: Uint8Array): Uint8Array {
  const label = new TextEncoder().encode(name);
  const nameBytes = [...leb(label.length), ...label];
  return Buffer.concat([
    module,
    Uint8Array.from([0, ...leb(nameBytes.length + content.length), ...nameBytes]),
    content,
  ]);
}

/** The manifest that `plugin_describe` hands to `output`. */
export function describeModule(bytes: Uint8Array): string {
  const module = new WebAssembly.Module(bytes);
  let memory: WebAssembly.Memory | null = null;
  let manifest = '';
  const deny = (): number => -1;
  const host: Record<string, (...args: number[]) => number> = {
    output(at = 0, length = 0) {
      if (memory !== null) manifest = new TextDecoder().decode(new Uint8Array(memory.buffer, at, length));
      return 0;
    },
    fail(at = 0, length = 0) {
      if (memory !== null) throw new Error(new TextDecoder().decode(new Uint8Array(memory.buffer, at, length)));
      return 0;
    },
  };
  const imports: WebAssembly.Imports = {};
  for (const i of WebAssembly.Module.imports(module)) {
    imports[i.module] ??= {};
    imports[i.module]![i.name] = (i.module === 'plugin_host' ? host[i.name] : undefined) ?? deny;
  }
  const { exports } = new WebAssembly.Instance(module, imports);
  if (!(exports.memory instanceof WebAssembly.Memory)) throw new Error('the module does not export its memory');
  memory = exports.memory;
  for (const entry of ['_initialize', 'plugin_describe']) {
    const f = exports[entry];
    if (typeof f === 'function') f();
  }
  if (manifest === '') throw new Error('the module declares no plugin; call Plugin(id, name, version) at its top');
  return manifest;
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
 * @param input path of the plugin's entry file
 * @returns the module with its manifest
 * @throws Error with the compiler's messages, OperatorError without a compiler
 */
export async function buildPlugin(input: string): Promise<Uint8Array> {
  const base = path.dirname(path.resolve(input));
  const entry = path.basename(input);
  assertCompiler(`${entry} is to be compiled`);
  const { default: asc } = await import('assemblyscript/asc');
  // The entry points are the kit's; the plugin's own file only declares and handles.
  const main = `export { plugin_handle, plugin_describe } from "plugin-host";\nimport "./${entry.replace(/\.ts$/, '')}";\n`;
  let binary: Uint8Array | undefined;
  const messages: string[] = [];
  const { error } = await asc.main(
    [
      '__main.ts',
      '--outFile',
      'out.wasm',
      '-O3',
      '--runtime',
      'stub',
      '--exportStart',
      '_initialize',
      '--use',
      'abort=~lib/plugin-host/index/__abort',
    ],
    {
      readFile: (name: string) => (name === '__main.ts' ? main : readSource(name, base)),
      writeFile(_name: string, content: string | Uint8Array) {
        if (typeof content !== 'string') binary = content;
      },
      listFiles: () => [],
      stdout: { write: () => {} },
      stderr: { write: (text: string) => void messages.push(text) },
    },
  );
  if (error || binary === undefined)
    throw new Error(`${entry} does not compile:\n${messages.join('')}${error?.message ?? ''}`);
  return withCustomSection(binary, 'plugin.manifest', new TextEncoder().encode(describeModule(binary)));
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const [input, output] = process.argv.slice(2);
  if (input === undefined || output === undefined) {
    process.stderr.write('usage: node_modules/.bin/node sdk/assemblyscript/build.ts INPUT.ts OUTPUT.wasm\n');
    process.exit(2);
  }
  try {
    const bytes = await buildPlugin(input);
    fs.writeFileSync(output, bytes);
    process.stdout.write(`${output}: ${bytes.length} bytes\n`);
  } catch (error) {
    process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
    process.exit(1);
  }
}
