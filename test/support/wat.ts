import wabtInit from 'wabt';
import { withCustomSection } from '../../src/abi/custom-section.ts';
import { ABI_NEWEST, HOST_FUNCTION_BY_NAME, wasmParametersOf } from '../../src/abi/host-functions.ts';

const wabt = await wabtInit();

const FEATURES = {
  exceptions: true,
  bulk_memory: true,
  simd: true,
  sign_extension: true,
  mutable_globals: true,
  multi_value: true,
  reference_types: true,
  tail_call: true,
  threads: true,
  multi_memory: true,
  memory64: true,
  gc: false,
};

/** A module from text; `check: false` lets through what only the gate is to refuse. */
export function assemble(wat: string, check = true): Uint8Array {
  const module = wabt.parseWat('test.wat', wat, FEATURES);
  if (check) module.validate();
  return new Uint8Array(module.toBinary({}).buffer);
}

/** Import lines for host functions, each known in the module as `$name`. */
export function hostImports(...names: string[]): string {
  return names
    .map(name => {
      const row = HOST_FUNCTION_BY_NAME.get(name);
      if (row === undefined) throw new Error(`no host function ${name}`);
      const params = wasmParametersOf(row).join(' ');
      return `(import "plugin_host" "${name}" (func $${name} ${params === '' ? '' : `(param ${params})`} (result i32)))`;
    })
    .join('\n');
}

export type WatPlugin = {
  id?: string;
  name?: string;
  version?: string;
  abi?: number;
  imports?: string[];
  /** Further imports as text. */
  moreImports?: string;
  requirements?: Array<Record<string, unknown>>;
  triggers?: Array<Record<string, unknown>>;
  /** The manifest's `start`. */
  start?: unknown;
  memory?: string;
  /** Definitions in addition to the handler. */
  body?: string;
  /** Instructions of `plugin_handle`; must leave an i32. */
  handle: string;
};

export const manifestOf = (
  p: Pick<WatPlugin, 'id' | 'name' | 'version' | 'abi' | 'requirements' | 'triggers' | 'start'>,
): Record<string, unknown> => ({
  abi: p.abi ?? ABI_NEWEST,
  id: p.id ?? 'test',
  name: p.name ?? 'Test',
  version: p.version ?? '1.0.0',
  requirements: p.requirements ?? [],
  ...(p.start === undefined ? {} : { start: p.start }),
  triggers: p.triggers ?? [{ name: 'run', type: 'http', path: '/run', methods: ['GET', 'POST'] }],
});

export function withManifest(module: Uint8Array, manifest: unknown): Uint8Array {
  return withCustomSection(module, 'plugin.manifest', new TextEncoder().encode(JSON.stringify(manifest)));
}

/** A plugin from WAT: memory exported, manifest in its section. */
export function watPlugin(p: WatPlugin): Uint8Array {
  const wat = `(module
    ${hostImports(...(p.imports ?? []))}
    ${p.moreImports ?? ''}
    (memory (export "memory") ${p.memory ?? '1'})
    ${p.body ?? ''}
    (func (export "plugin_handle") (result i32) ${p.handle}))`;
  return withManifest(assemble(wat), manifestOf(p));
}

/**
 * A plugin that does one of several things: the number in the first byte of the request's body picks it. One upload
 * instead of one for each.
 *
 * @param choices instructions of `plugin_handle`, one way each; the byte at address 32 is used up
 */
export const choosingPlugin = (p: Omit<WatPlugin, 'handle'> & { choices: string[] }): Uint8Array =>
  watPlugin({
    ...p,
    imports: [...new Set([...(p.imports ?? []), 'input_read'])],
    handle: `(local $choice i32)
      (drop (call $input_read (i32.const 1) (i32.const 32) (i32.const 1)))
      (local.set $choice (i32.load8_u (i32.const 32)))
      ${p.choices.map((way, k) => `(if (i32.eq (local.get $choice) (i32.const ${k})) (then (return ${way})))`).join('\n')}
      unreachable`,
  });

/** The request that picks one. */
export const choice = (k: number): RequestInit => ({ method: 'POST', body: new Uint8Array([k]) });

/** Instructions that answer 200 with the text at an address; needs the import `respond` and the data placed there. */
export function respondText(address: number, length: number): string {
  return `(drop (call $respond (i32.const 200) (i32.const 0) (i32.const 0) (i32.const ${address}) (i32.const ${length})))`;
}

/** A plugin that answers `ok`, for watching the neighbours of hostile ones. */
export const okPlugin = (id = 'neighbour', more: Pick<WatPlugin, 'requirements'> = {}): Uint8Array =>
  watPlugin({
    ...more,
    id,
    imports: ['respond'],
    body: '(data (i32.const 64) "ok")',
    handle: `${respondText(64, 2)} (i32.const 0)`,
  });
