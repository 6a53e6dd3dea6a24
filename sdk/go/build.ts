import { execFile, spawn } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { withCustomSection } from '../../src/abi/custom-section.ts';
import { messageOf, OperatorError } from '../../src/base/errors.ts';
import { describeModule } from '../describe-module.ts';
import { NETWORK, sourceWarnings } from '../source-warnings.ts';

/** Builds a plugin from Go with the toolchain of the machine. */

const OVERLAY = fileURLToPath(new URL('./reseed.go.overlay', import.meta.url));
const run = promisify(execFile);

const buildEnvironment = (): NodeJS.ProcessEnv => ({ ...process.env, GOOS: 'wasip1', GOARCH: 'wasm' });

/** The oldest Go that exports functions of WebAssembly. */
const WANTED = [1, 24] as const;

const hasText = (error: unknown): error is { stderr: string } =>
  typeof error === 'object' && error !== null && 'stderr' in error && typeof error.stderr === 'string';

/** Words of the toolchain that do not say what to do, and words that do. */
const MEANING: ReadonlyArray<[words: RegExp, meaning: string]> = [
  [
    /^.*function main is undeclared in the main package$/,
    'package main has no function main: add func main() {}, which Go asks for and nothing calls',
  ],
  [
    /^-buildmode=c-shared requires exactly one main package$/,
    'the files of a plugin begin with "package main"; those of this folder do not',
  ],
  [
    /^(.*(?:package pluginhost is not in std|missing go\.sum entry for module providing package pluginhost|no required module provides package pluginhost|module pluginhost provides package pluginhost).*)$/,
    '$1\n    the kit lies in the folder kit: go.mod needs the lines "require pluginhost v0.0.0" and "replace pluginhost => ./kit"',
  ],
];

/** What Go would do about the kit, which lies in the folder. */
const isWrongAdvice = (line: string, before: string): boolean =>
  line.startsWith('\tgo get ') && /\bpluginhost\b/.test(before);

/** What the compiler says, without the lines that name packages. */
const mistakes = (text: string): string =>
  text
    .split('\n')
    .filter((line, k, all) => line !== '' && !line.startsWith('#') && !isWrongAdvice(line, all[k - 1] ?? ''))
    .map(line => MEANING.reduce((said, [words, meaning]) => said.replace(words, meaning), line.replace(/^\.\//, '')))
    .join('\n');

/**
 * @param folder of the plugin: its go.mod may ask for another Go than the one of the machine
 * @returns the root of the Go that builds it
 */
async function goRoot(folder: string): Promise<string> {
  const { stdout } = await run('go', ['env', 'GOROOT', 'GOVERSION', 'GOMODCACHE'], { cwd: folder }).catch(
    (error: unknown) => {
      if (hasText(error) && error.stderr !== '') throw new OperatorError(mistakes(error.stderr));
      throw new OperatorError(
        `Go is not installed (go ${WANTED.join('.')} or newer is needed, from https://go.dev/dl): ${messageOf(error)}`,
      );
    },
  );
  const [root = '', version = '', modules = ''] = stdout.split('\n');
  const [, major, minor] = /go(\d+)\.(\d+)/.exec(version) ?? [];
  if (Number(major) === WANTED[0] && Number(minor) < WANTED[1])
    throw new OperatorError(`this is ${version}; Go ${WANTED.join('.')} or newer is needed`);
  // The Go command downloads one that it lacks, and changes nothing in it, so that the kit's file cannot be added there.
  if (modules !== '' && root.startsWith(`${modules}/`))
    throw new OperatorError(
      `go.mod asks for ${version}, which is not installed: install it from https://go.dev/dl, or lower the line "go" of go.mod`,
    );
  return root;
}

/** As Go's runtime lists the functions of a module; linked only where something connects to another host. */
const DIAL = '\0net.(*Dialer).DialContext\0';
const CONNECTS = /^net(\/(http|rpc|smtp|textproto)(\/|$)|$)/;

/** A line where a library of the plugin connects to other hosts by itself. */
async function networkWarnings(folder: string, module: Buffer): Promise<string[]> {
  if (!module.includes(DIAL)) return [];
  const format = '{{if not .Standard}}{{.ImportPath}}{{range .Imports}} {{.}}{{end}}{{end}}';
  const { stdout } = await run('go', ['list', '-deps', '-tags=pluginhost', '-f', format, '.'], {
    ...{ cwd: folder, env: buildEnvironment(), maxBuffer: 1 << 24 },
  }).catch(() => ({ stdout: '' }));
  const users = stdout
    .split('\n')
    .map(line => line.split(' '))
    .filter(([, ...imported]) => imported.some(name => CONNECTS.test(name)))
    .map(([name]) => name);
  const who = users.length === 0 ? 'a library' : users.length === 1 ? users[0] : `one of ${users.join(', ')}`;
  return [`${who} connects to other hosts by itself, which does not work in a plugin: ${NETWORK}: use ctx.HTTPRequest`];
}

/**
 * @param input path of a file of the plugin's package
 * @returns the module with its manifest, and warnings about calls that cannot work, one line each
 * @throws Error with the mistakes of the compiler; OperatorError without a toolchain
 */
export async function buildPlugin(input: string): Promise<{ module: Uint8Array; warnings: string[] }> {
  const source = path.dirname(path.resolve(input));
  const root = await goRoot(source);
  const directory = fs.mkdtempSync(path.join(os.tmpdir(), 'plugin-host-go-'));
  try {
    const out = path.join(directory, 'plugin.wasm');
    const overlay = path.join(directory, 'overlay.json');
    const added = path.join(root, 'src/runtime/plugin_host_reseed.go');
    fs.writeFileSync(overlay, JSON.stringify({ Replace: { [added]: OVERLAY } }));
    const flags = [
      '-buildmode=c-shared',
      '-tags=pluginhost',
      '-trimpath',
      '-overlay',
      overlay,
      // The names of functions stay: an endless loop has nothing else to say where it is.
      '-ldflags=-w',
      '-o',
      out,
    ];
    await run('go', ['build', ...flags, '.'], {
      cwd: source,
      env: buildEnvironment(),
      maxBuffer: 1 << 24,
    }).catch((error: unknown) => {
      throw new Error(hasText(error) && error.stderr !== '' ? mistakes(error.stderr) : messageOf(error));
    });
    if (!fs.existsSync(out))
      throw new OperatorError(
        'go build ended well and wrote no module: is the "go" of the PATH the one from https://go.dev/dl?',
      );
    const built = fs.readFileSync(out);
    const own = fs.readdirSync(source, { recursive: true, encoding: 'utf8' }).filter(file => file.endsWith('.go'));
    const manifest = await describeModule(
      built,
      own.map(file => path.basename(file)),
    );
    const warnings = sourceWarnings(source, 'go', manifest);
    const isTold = warnings.some(line => line.includes(NETWORK));
    return {
      module: withCustomSection(built, 'plugin.manifest', new TextEncoder().encode(manifest)),
      warnings: isTold ? warnings : [...warnings, ...(await networkWarnings(source, built))],
    };
  } finally {
    fs.rmSync(directory, { recursive: true, force: true });
  }
}

/** Whether a plugin has tests in Go; those of the kit are no tests of it. */
export const hasTests = (root: string): boolean =>
  fs
    .readdirSync(root, { recursive: true, encoding: 'utf8' })
    .some(file => file.endsWith('_test.go') && !/(^|[/\\])(kit|build|node_modules)[/\\]/.test(file));

/** Names of the tests that a file declares. */
const testsIn = (source: string): string[] =>
  [...source.matchAll(/^func ((?:Test|Example|Fuzz)[\p{L}\p{N}_]*)\(/gmu)].map(found => found[1] ?? '');

/**
 * Runs the tests of a plugin with `go test`, which writes what they say.
 *
 * @param root folder of the plugin
 * @param files whose tests run, as seen from the folder; all without them
 * @param host command that `plugintest` of the kit starts
 * @returns with what `go test` ends
 * @throws OperatorError without a toolchain
 */
export async function testPlugin(root: string, files: readonly string[], host: readonly string[]): Promise<number> {
  await goRoot(root);
  const names = files.flatMap(file => testsIn(fs.readFileSync(path.resolve(root, file), 'utf8')));
  if (files.length > 0 && names.length === 0) throw new OperatorError(`${files.join(', ')}: there is no test in it`);
  const chosen =
    files.length === 0
      ? ['./...']
      : [
          `-run=^(${names.join('|')})$`,
          ...new Set(files.map(file => `./${path.relative(root, path.dirname(path.resolve(root, file)))}`)),
        ];
  // Go does not see that the module has changed that its tests run, and would show what they said before.
  const child = spawn('go', ['test', '-count=1', ...chosen], {
    cwd: root,
    stdio: 'inherit',
    env: { ...process.env, PLUGIN_HOST_TEST: JSON.stringify(host) },
  });
  return await new Promise((resolve, reject) => {
    child.once('error', reject);
    child.once('close', code => resolve(code ?? 1));
  });
}
