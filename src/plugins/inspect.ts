import { ABI_NEWEST, HOST_FUNCTION_BY_NAME, WASI_SIGNATURES, wasmParametersOf } from '../abi/host-functions.ts';
import { LIMITS } from '../base/limits.ts';
import { type Finding, type FindingRule, unknownMemberFindings } from './finding.ts';
import { type ModuleOutline, readModule } from './gate/module.ts';
import { GateRefusal } from './gate/reader.ts';
import { makeStartModule, type RewrittenModule, rewriteModule, type StartModule } from './gate/rewrite.ts';
import type { StartImage } from './gate/start-image.ts';
import { type Manifest, parseManifest } from './manifest.ts';
import { type ModuleSignature, readSignature } from './module-signature.ts';
import { rememberStart, START_RULE, type StartOutcome } from './remembered-start.ts';

export type Inspection = {
  findings: Finding[];
  /** Null if the module has no manifest section or the manifest is refused. */
  manifest: Manifest | null;
  /** What its author signed; null without a signature. */
  signature: ModuleSignature | null;
  /** Whether the manifest comes from the module's export `plugin_describe`. */
  mustDescribe: boolean;
  /** The module to compile; null if there is a refusal, or its start is still to be run. */
  rewritten: RewrittenModule | null;
  /** The module to run first, if the start of the plugin is unknown. */
  startModule: StartModule | null;
};

/**
 * What is known of the start of a module: nothing yet, so that it is to be run once; or how that went; or that it runs
 * in every execution anyway.
 */
export type KnownStart = 'unknown' | 'repeated' | StartOutcome;

const ENTRY_TYPES: Readonly<Record<string, string>> = {
  plugin_handle: '->i32',
  plugin_describe: '->i32',
  _initialize: '->',
};

function wasiType(name: string): string | undefined {
  const parameters = WASI_SIGNATURES[name];
  if (parameters === undefined) return undefined;
  const text = [...parameters].map(c => (c === 'I' ? 'i64' : 'i32')).join(',');
  return `${text}->${name === 'proc_exit' ? '' : 'i32'}`;
}

function checkImports(outline: ModuleOutline, abi: number, out: Finding[]): void {
  const refuse = (rule: FindingRule, message: string, where: string): void => {
    out.push({ level: 'refusal', rule, message, where });
  };
  for (const f of outline.importedFunctions) {
    const where = `import ${f.module}.${f.name}`;
    if (f.module === 'wasi_snapshot_preview1') {
      const expected = wasiType(f.name);
      if (expected === undefined) refuse('import-unknown', `WASI preview1 has no function "${f.name}"`, where);
      else if (expected !== f.type)
        refuse('import-signature', `has type (${f.type}); WASI preview1 says (${expected})`, where);
      continue;
    }
    if (f.module !== 'plugin_host') {
      refuse(
        'import-unknown',
        `"${f.module}" is not a module of this host; only plugin_host and wasi_snapshot_preview1 are`,
        where,
      );
      continue;
    }
    const row = HOST_FUNCTION_BY_NAME.get(f.name);
    if (row === undefined) {
      refuse('import-unknown', `this host has no function "${f.name}"`, where);
      continue;
    }
    const expected = `${wasmParametersOf(row).join(',')}->i32`;
    if (expected !== f.type)
      refuse('import-signature', `has type (${f.type}); the host function has (${expected})`, where);
    if (row.since > abi)
      refuse('import-newer', `exists since protocol version ${row.since}, but the manifest declares ${abi}`, where);
    if (f.name === 'file_read' && abi >= 4)
      out.push({ level: 'warning', rule: 'deprecated', message: 'file_read is deprecated; use file_read_into', where });
  }
}

function checkExports(outline: ModuleOutline, out: Finding[]): void {
  const refuse = (rule: FindingRule, message: string): void => {
    out.push({ level: 'refusal', rule, message });
  };
  const byName = new Map(outline.exports.map(e => [e.name, e]));
  if (byName.get('_start')?.kind === 0)
    refuse(
      'command',
      'this is a command (it exports _start); build a reactor: -mexec-model=reactor (C), crate-type cdylib (Rust), -buildmode=c-shared (Go)',
    );
  if (outline.memory === null) refuse('no-memory', 'the module has no memory of its own');
  else if (byName.get('memory')?.kind !== 2)
    refuse('memory-not-exported', 'the module must export its memory as "memory"');
  for (const [name, type] of Object.entries(ENTRY_TYPES)) {
    const e = byName.get(name);
    if (e === undefined) {
      if (name === 'plugin_handle') refuse('no-entry', 'the module does not export plugin_handle');
      continue;
    }
    const own = e.kind === 0 ? typeOfFunction(outline, e.index) : undefined;
    if (own !== type)
      refuse('entry-signature', `export ${name} must be a function of type (${type}), not (${own ?? 'no function'})`);
  }
}

function typeOfFunction(outline: ModuleOutline, index: number): string | undefined {
  const imported = outline.importedFunctions;
  return index < imported.length ? imported[index]?.type : outline.functionTypes[index - imported.length];
}

/** The permission in what the gate says of host functions that are not required. */
export const UNDECLARED = /^uses host functions of "(.+)" without requiring it/;

/**
 * Warns of imports without a requirement, which will be denied, and of requirements without an import, which are
 * useless.
 */
export function comparePermissions(imports: readonly string[], manifest: Manifest): Finding[] {
  const used = new Set<string>();
  for (const name of imports) {
    const permission = HOST_FUNCTION_BY_NAME.get(name)?.permission;
    if (permission) used.add(permission);
  }
  const declared = new Set<string>(manifest.requirements.map(r => r.kind));
  const findings: Finding[] = [];
  for (const p of used)
    if (!declared.has(p))
      findings.push({
        level: 'warning',
        rule: 'undeclared',
        message: `uses host functions of "${p}" without requiring it: those calls will be denied`,
      });
  for (const p of declared)
    if (!used.has(p))
      findings.push({
        level: 'note',
        rule: 'unused',
        message: `requires "${p}" but imports none of its host functions`,
      });
  return findings;
}

function readManifest(bytes: Uint8Array, outline: ModuleOutline, out: Finding[]): Manifest | null {
  const sections = outline.custom.filter(c => c.name === 'plugin.manifest');
  const [section] = sections;
  if (section === undefined) return null;
  const refuse = (message: string, where?: string): null => {
    out.push({ level: 'refusal', rule: 'manifest', message, ...(where === undefined ? {} : { where }) });
    return null;
  };
  if (sections.length > 1) return refuse('the module has several plugin.manifest sections');
  if (section.end - section.start > LIMITS.manifestBytesMax)
    return refuse(`the manifest is larger than ${LIMITS.manifestBytesMax} bytes`);
  let text: string;
  try {
    text = new TextDecoder('utf-8', { fatal: true }).decode(bytes.subarray(section.start, section.end));
  } catch {
    return refuse('the manifest is not valid UTF-8');
  }
  const parsed = parseManifest(text);
  if (parsed.ok) {
    out.push(...unknownMemberFindings(parsed.unknown));
    return parsed.manifest;
  }
  for (const e of parsed.errors) refuse(e.message, `manifest ${e.pointer || '/'}`);
  return null;
}

/** Names of the `plugin_host` functions a module imports. */
export function hostImportsOf(outline: ModuleOutline): string[] {
  return outline.importedFunctions.filter(f => f.module === 'plugin_host').map(f => f.name);
}

/**
 * The gate: reads an uploaded binary without running it (docs/plugins.md "Sandbox", docs/abi.md).
 *
 * @param bytes the module as uploaded
 * @param start what is known of its start
 * @returns every finding; `rewritten` or `startModule` is set only when none is a refusal
 */
export function inspectModule(bytes: Uint8Array, start: KnownStart = 'repeated'): Inspection {
  const findings: Finding[] = [];
  const refused = (): Inspection => ({
    findings,
    manifest: null,
    signature: null,
    mustDescribe: false,
    rewritten: null,
    startModule: null,
  });
  const outline = readOutline(bytes, findings);
  if (outline === null) return refused();
  checkExports(outline, findings);
  const signature = signatureIn(bytes, findings);
  const manifest = readManifest(bytes, outline, findings);
  const hasSection = outline.custom.some(c => c.name === 'plugin.manifest');
  const mustDescribe = !hasSection && outline.exports.some(e => e.name === 'plugin_describe' && e.kind === 0);
  if (!hasSection && !mustDescribe)
    findings.push({
      level: 'refusal',
      rule: 'manifest',
      message:
        'the module has neither a plugin.manifest section nor an export plugin_describe; build it with one of the kits in sdk/',
    });
  checkImports(outline, manifest?.abi ?? ABI_NEWEST, findings);
  if (manifest !== null) findings.push(...comparePermissions(hostImportsOf(outline), manifest));
  if (findings.some(f => f.level === 'refusal')) return refused();
  if (manifest !== null)
    return { findings, manifest, signature, mustDescribe, ...rewritten(bytes, outline, manifest, start, findings) };
  return {
    findings,
    manifest,
    signature,
    mustDescribe,
    rewritten: rewriteModule(bytes, outline, 'plugin_describe', null),
    startModule: null,
  };
}

/** The module to compile, or the one to run first. */
function rewritten(
  bytes: Uint8Array,
  outline: ModuleOutline,
  manifest: Manifest,
  start: KnownStart,
  findings: Finding[],
): Pick<Inspection, 'rewritten' | 'startModule'> {
  const made = (image: StartImage | null) => ({
    rewritten: rewriteModule(bytes, outline, 'plugin_handle', image),
    startModule: null,
  });
  if (start === 'repeated') return made(null);
  if (start === 'unknown') {
    const startModule = makeStartModule(bytes, outline);
    if (startModule !== null) return { rewritten: null, startModule };
    if (manifest.start === 'once')
      findings.push({
        level: 'note',
        rule: START_RULE,
        message: 'the manifest says "start": "once", but the module has no start function and no _initialize',
      });
    return made(null);
  }
  const { finding, image } = rememberStart(start, outline, manifest.start === 'once');
  findings.push(finding);
  return made(image);
}

/**
 * The rest of the gate for a module whose manifest came from `plugin_describe`.
 *
 * @param start what is known of its start
 * @returns findings about the imports and the manifest, and the module to compile or to run first
 */
export function inspectDescribed(bytes: Uint8Array, manifest: Manifest, start: KnownStart = 'repeated'): Inspection {
  const findings: Finding[] = [];
  const base = { findings, manifest, signature: null, mustDescribe: false };
  const outline = readOutline(bytes, findings);
  if (outline !== null) {
    checkImports(outline, manifest.abi, findings);
    findings.push(...comparePermissions(hostImportsOf(outline), manifest));
  }
  if (outline === null || findings.some(f => f.level === 'refusal'))
    return { ...base, rewritten: null, startModule: null };
  return { ...base, ...rewritten(bytes, outline, manifest, start, findings) };
}

/** The signature of a module; one that cannot be read is a refusal. */
function signatureIn(bytes: Uint8Array, findings: Finding[]): ModuleSignature | null {
  const signature = readSignature(bytes);
  if (typeof signature !== 'string') return signature;
  findings.push({ level: 'refusal', rule: 'signature', message: signature });
  return null;
}

/** Reads the module; null if the gate refuses it, with the reason in the findings. */
function readOutline(bytes: Uint8Array, findings: Finding[]): ModuleOutline | null {
  try {
    return readModule(bytes);
  } catch (error) {
    if (!(error instanceof GateRefusal)) throw error;
    findings.push({ level: 'refusal', rule: error.rule, message: error.message, where: `byte ${error.offset}` });
    return null;
  }
}
