#!/usr/bin/env node
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import { createRequire } from 'node:module';
import os from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import {
  HOST_FUNCTION_BY_NAME,
  HOST_FUNCTIONS,
  type HostFunction,
  wasmParametersOf,
} from '../../../src/abi/host-functions.ts';
import { glueSource } from './glue.ts';
import { CODE_MARK, POSITIONS_MARK } from './segments.ts';

/**
 * Builds the engine that all TypeScript plugins share: QuickJS, the glue and the bridges to the host as one module. The
 * code of a plugin and its source positions are put into it later (`link-plugin`).
 *
 *   node sdk/typescript/engine/build-engine.ts OUTPUT.wasm
 */

const require = createRequire(import.meta.url);
/** The compact encoding of imports is newer than the host's compiler. */
const FEATURES = ['-all', '--disable-compact-imports'];
/** What WASI is called, while the parts are merged, for the module that stands between it and the engine. */
const REAL_WASI = 'real_wasi';

function segment(name: string, mark: string): string {
  return `(data $${name} "${mark}")
    (func (export "read_${name}") (param i32 i32 i32)
      (memory.init $${name} (local.get 0) (local.get 1) (local.get 2)))`;
}

const TEXT_MODULE = `(module (import "qjs" "memory" (memory 0))
  ${segment('code', CODE_MARK)} ${segment('positions', POSITIONS_MARK)})`;

/**
 * Until the engine has started it is given no time and no random numbers: its start must be the same in every execution,
 * so that the host can remember it. The engine needs both only for its own `Math.random`, which the kit replaces.
 */
const START_MODULE = `(module (import "qjs" "memory" (memory 0))
  (import "${REAL_WASI}" "clock_time_get" (func $ask_time (param i32 i64 i32) (result i32)))
  (import "${REAL_WASI}" "random_get" (func $ask_random (param i32 i32) (result i32)))
  (global $running (mut i32) (i32.const 0))
  (func (export "running") (global.set $running (i32.const 1)))
  (func (export "clock_time_get") (param i32 i64 i32) (result i32)
    (if (result i32) (global.get $running)
      (then (call $ask_time (local.get 0) (local.get 1) (local.get 2)))
      (else (i64.store (local.get 2) (i64.const 0)) (i32.const 0))))
  (func (export "random_get") (param i32 i32) (result i32)
    (if (result i32) (global.get $running)
      (then (call $ask_random (local.get 0) (local.get 1)))
      (else (memory.fill (local.get 0) (i32.const 1) (local.get 1)) (i32.const 0)))))`;

/**
 * A function that only calls the host function, for each of them: linking finds it by this form, and makes it answer
 * "permission denied" where the plugin does not require the permission.
 */
function bridgeModule(): string {
  const lines = HOST_FUNCTIONS.map(row => {
    const types = wasmParametersOf(row);
    const parameters = types.length === 0 ? '' : `(param ${types.join(' ')})`;
    const given = types.map((_, k) => `(local.get ${k})`).join(' ');
    return {
      asked: `(import "plugin_host" "${row.name}" (func $${row.name} ${parameters} (result i32)))`,
      answered: `(func (export "${row.name}") ${parameters} (result i32) (call $${row.name} ${given}))`,
    };
  });
  return `(module ${lines.map(l => l.asked).join('\n')}\n${lines.map(l => l.answered).join('\n')})`;
}

async function compileGlue(directory: string): Promise<string> {
  const { default: asc } = await import('assemblyscript/asc');
  const messages: string[] = [];
  let text = '';
  const options = ['--runtime', 'stub', '--importMemory', '--noExportMemory', '-O3', '--textFile', 'glue.wat'];
  const { error } = await asc.main(['glue.ts', ...options], {
    readFile: (name: string) => (name === 'glue.ts' ? glueSource() : null),
    writeFile(_name: string, content: string | Uint8Array) {
      if (typeof content === 'string') text = content;
    },
    listFiles: () => [],
    stderr: { write: (line: string) => void messages.push(line) },
  });
  if (error || text === '') throw new Error(`the glue does not compile:\n${messages.join('')}${error?.message ?? ''}`);
  const file = path.join(directory, 'glue.wat');
  fs.writeFileSync(file, text.replace('(import "env" "memory"', '(import "qjs" "memory"'));
  return file;
}

/** Whether linking may take the import out. */
function isOptional(line: string): boolean {
  const [, name = ''] = /^ \(import "plugin_host" "(\w+)"/.exec(line) ?? [];
  const row: HostFunction | undefined = HOST_FUNCTION_BY_NAME.get(name);
  return row?.permission != null;
}

/** Imports that linking may take out come last, so that the others keep their numbers. */
function orderImports(text: string): string {
  const lines = text.split('\n');
  const isImport = (line: string): boolean => line.startsWith(' (import ');
  const first = lines.findIndex(isImport);
  const imports = lines.filter(isImport).map(line => line.replace(`"${REAL_WASI}"`, '"wasi_snapshot_preview1"'));
  const others = lines.filter(line => !isImport(line));
  const ordered = [...imports.filter(line => !isOptional(line)), ...imports.filter(isOptional)];
  return [...others.slice(0, first), ...ordered, ...others.slice(first)].join('\n');
}

/**
 * @returns the engine, with the marks in its two segments; exports `memory`, `_initialize`, `plugin_handle` and
 *   `plugin_describe`
 * @throws Error when a part does not compile, or a package is missing
 */
export async function buildEngine(): Promise<Uint8Array> {
  const tools = path.join(path.dirname(require.resolve('binaryen')), 'bin');
  const directory = fs.mkdtempSync(path.join(os.tmpdir(), 'plugin-host-engine-'));
  const file = (name: string): string => path.join(directory, name);
  const run = (tool: string, ...args: string[]): void =>
    void execFileSync(process.execPath, [path.join(tools, tool), ...args, ...FEATURES], {
      stdio: ['ignore', 'ignore', 'pipe'],
      maxBuffer: 1 << 26,
    });
  const assemble = (name: string, text: string): string => {
    fs.writeFileSync(file(`${name}.wat`), text);
    run('wasm-as', file(`${name}.wat`), '-o', file(`${name}.wasm`));
    return file(`${name}.wasm`);
  };
  try {
    const glue = assemble('glue', fs.readFileSync(await compileGlue(directory), 'utf8'));
    const start = assemble('start', START_MODULE);
    const parts = [
      [require.resolve('quickjs-wasi/quickjs.wasm'), 'qjs'],
      [glue, 'env'],
      [start, 'wasi_snapshot_preview1'],
      [assemble('text', TEXT_MODULE), 'text'],
      [assemble('bridge', bridgeModule()), 'bridge'],
    ].flat();
    // Exports of several parts may have the same name.
    run('wasm-merge', ...parts, '--rename-export-conflicts', '-o', file('merged.wasm'));
    const kept = ['memory', 'plugin_handle', 'plugin_describe', 'boot'];
    fs.writeFileSync(file('roots.json'), JSON.stringify(kept.map(name => ({ name, root: true, export: name }))));
    run('wasm-metadce', file('merged.wasm'), '-f', file('roots.json'), '-o', file('kept.wasm'));
    run('wasm-dis', file('kept.wasm'), '-o', file('kept.wat'));
    const text = fs.readFileSync(file('kept.wat'), 'utf8').replace('(export "boot"', '(export "_initialize"');
    return new Uint8Array(fs.readFileSync(assemble('engine', orderImports(text))));
  } finally {
    fs.rmSync(directory, { recursive: true, force: true });
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const [output] = process.argv.slice(2);
  if (output === undefined) {
    process.stderr.write('usage: node_modules/.bin/node sdk/typescript/engine/build-engine.ts OUTPUT.wasm\n');
    process.exit(2);
  }
  const engine = await buildEngine();
  fs.writeFileSync(output, engine);
  process.stdout.write(`${output}: ${engine.length} bytes\n`);
}
