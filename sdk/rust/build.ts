import { execFile } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { promisify } from 'node:util';
import { z } from 'zod';
import { withCustomSection } from '../../src/abi/custom-section.ts';
import { messageOf, OperatorError } from '../../src/base/errors.ts';
import { describeModule } from '../describe-module.ts';
import { withPositions } from '../dwarf/with-positions.ts';
import { sourceWarnings } from '../source-warnings.ts';

/** Builds a plugin from Rust with the toolchain of the machine. */

const run = promisify(execFile);
const TARGET = 'wasm32-wasip1';
const OUTPUT_BYTES_MAX = 1 << 26;

/** A line of `cargo build --message-format=json` (The Cargo Book, "External tools"). */
const cargoLine = z.discriminatedUnion('reason', [
  z.object({
    reason: z.literal('compiler-message'),
    message: z.object({
      level: z.string(),
      message: z.string(),
      rendered: z.string().nullable(),
      spans: z.array(
        z.object({ file_name: z.string(), line_start: z.int(), column_start: z.int(), is_primary: z.boolean() }),
      ),
    }),
  }),
  z.object({
    reason: z.literal('compiler-artifact'),
    filenames: z.array(z.string()),
    target: z.object({ crate_types: z.array(z.string()) }),
  }),
]);
type CargoLine = z.infer<typeof cargoLine>;

/** Lines of other reasons are left out. */
function linesOf(output: string): CargoLine[] {
  return output.split('\n').flatMap(line => {
    if (!line.startsWith('{')) return [];
    const read = cargoLine.safeParse(JSON.parse(line));
    return read.success ? [read.data] : [];
  });
}

/** A warning on one line; errors are shown as the compiler writes them, with the line of the source. */
function warningsOf(lines: CargoLine[]): string[] {
  return lines.flatMap(line => {
    if (line.reason !== 'compiler-message' || line.message.level !== 'warning') return [];
    const at = line.message.spans.find(span => span.is_primary);
    return at === undefined ? [] : [`${at.file_name}:${at.line_start}:${at.column_start}: ${line.message.message}`];
  });
}

const errorsOf = (lines: CargoLine[]): string =>
  lines
    .flatMap(line =>
      line.reason === 'compiler-message' && line.message.level === 'error' ? [line.message.rendered ?? ''] : [],
    )
    .join('')
    .trimEnd();

async function assertToolchain(directory: string): Promise<void> {
  const arguments_ = ['--print', 'target-libdir', '--target', TARGET];
  const { stdout } = await run('rustc', arguments_, { cwd: directory }).catch((error: unknown) => {
    throw new OperatorError(
      `Rust is not installed, or too old (1.81 or newer is needed; https://rustup.rs): ${messageOf(error)}`,
    );
  });
  if (!fs.existsSync(stdout.trim()))
    throw new OperatorError(`Rust has no standard library for ${TARGET} here; run: rustup target add ${TARGET}`);
}

/** The folder with `Cargo.toml` that a source file belongs to. */
function packageOf(file: string): string {
  for (let folder = path.dirname(file); ; folder = path.dirname(folder)) {
    if (fs.existsSync(path.join(folder, 'Cargo.toml'))) return folder;
    if (folder === path.dirname(folder)) throw new Error(`no folder above ${file} has a Cargo.toml`);
  }
}

type Outcome = { stdout: string; stderr: string; failed: boolean };

const failedOutcome = z.object({ stdout: z.string(), stderr: z.string() });

async function cargo(directory: string, words: string[]): Promise<Outcome> {
  try {
    const outcome = await run('cargo', words, { cwd: directory, maxBuffer: OUTPUT_BYTES_MAX });
    return { ...outcome, failed: false };
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT')
      throw new OperatorError('cargo is not installed; rustup brings it (https://rustup.rs)');
    const outcome = failedOutcome.safeParse(error);
    if (!outcome.success) throw error;
    return { ...outcome.data, failed: true };
  }
}

/**
 * @param input path of a source file of the plugin
 * @returns the module with its manifest, and the warnings of the compiler, one line each
 * @throws Error with the mistakes of the compiler; OperatorError without a toolchain
 */
export async function buildPlugin(input: string): Promise<{ module: Uint8Array; warnings: string[] }> {
  const directory = packageOf(path.resolve(input));
  await assertToolchain(directory);
  const words = ['build', '--release', '--target', TARGET, '--lib', '--message-format', 'json'];
  const { failed, stderr, stdout } = await cargo(directory, words);
  const lines = linesOf(stdout);
  if (failed) throw new Error(errorsOf(lines) || stderr.trim());
  const artifact = lines.findLast(
    line => line.reason === 'compiler-artifact' && line.target.crate_types.includes('cdylib'),
  );
  const file = artifact?.reason === 'compiler-artifact' ? artifact.filenames.find(f => f.endsWith('.wasm')) : undefined;
  if (file === undefined)
    throw new Error(
      `${path.join(directory, 'Cargo.toml')}: the package makes no module; it needs [lib] with crate-type = ["cdylib"]`,
    );
  const { module, warnings } = withPositions(new Uint8Array(fs.readFileSync(file)), directory);
  const manifest = await describeModule(module);
  return {
    module: withCustomSection(module, 'plugin.manifest', new TextEncoder().encode(manifest)),
    warnings: [...warningsOf(lines), ...warnings, ...sourceWarnings(directory, 'rust', manifest)],
  };
}
