import { spawn } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { hasTests, testPlugin } from '../../sdk/go/build.ts';
import { OperatorError } from '../base/errors.ts';
import { LIMITS } from '../base/limits.ts';
import { buildProject, endBuilds } from '../projects/build-project.ts';
import type { Project } from '../projects/project.ts';
import { checkTestTypes, checkTypes } from './check-types.ts';

const HOOKS = new URL(`./test-hooks${path.extname(import.meta.filename)}`, import.meta.url);
const MAIN = fileURLToPath(new URL(`../main${path.extname(import.meta.filename)}`, import.meta.url));
const FLAGS = ['--disable-warning=ExperimentalWarning', `--wasm-max-mem-pages=${LIMITS.memoryPagesMax}`];
const FILE = /\.(test\.[cm]?[jt]s|http)$/;
const GO_FILE = /_test\.go$/;
/** A file of tests that takes longer has failed: a test may wait for something that does not come. */
const FILE_MS_MAX = 300_000;
/** With what tests end that have passed although the types of the plugin do not fit: as its build. */
const TYPES_FAIL = 3;

/** Test files of a plugin. */
function testFiles(root: string): string[] {
  return fs
    .readdirSync(root, { recursive: true, encoding: 'utf8' })
    .filter(file => FILE.test(file) && !/(^|[/\\])(node_modules|kit|build|\.plugin-host)[/\\]/.test(file))
    .sort();
}

/** Whether the name is that of a test. */
export const isTestFile = (file: string): boolean => FILE.test(file) || GO_FILE.test(file);

/** @throws OperatorError for what is no test file of a plugin */
function checkTestFile({ language, root }: Project, file: string): void {
  if (!fs.existsSync(path.resolve(root, file)))
    throw new OperatorError(
      `there is no ${path.resolve(root, file)}: test files are named as seen from the plugin's folder`,
    );
  if (GO_FILE.test(file) && language !== 'go')
    throw new OperatorError(`${file} is a test in Go, and the plugin is not`);
  if (!isTestFile(file))
    throw new OperatorError(`${file} is no test: the name of one ends with .test.ts, .http or _test.go`);
}

/** What a test in another language starts to have a plugin in the sandbox. */
const served = (): string[] => [process.execPath, ...FLAGS, MAIN, 'plugin', 'test', '--serve'];

/**
 * Runs the tests of a plugin with Node's own runner, and with that of Go, which write what they say.
 *
 * @param only names of files to run; all without it
 * @param say writes types that do not fit: they stop no test, and with those of the plugin the command fails as its build
 * @returns with what the command ends: 0 when all have passed
 * @throws OperatorError when there are none, or one that is named is no test; SourceMistakes when the plugin
 *   does not build
 */
export async function runTests(
  project: Project,
  only: readonly string[],
  say: (text: string) => void,
): Promise<number> {
  const { language, root } = project;
  for (const file of only) checkTestFile(project, file);
  const isGo = (file: string): boolean => GO_FILE.test(file);
  const files = only.length > 0 ? only.filter(file => !isGo(file)) : testFiles(root);
  const goFiles = only.filter(isGo);
  const hasGoTests = language === 'go' && (goFiles.length > 0 || (only.length === 0 && hasTests(root)));
  if (files.length === 0 && !hasGoTests)
    throw new OperatorError(
      `${root} has no tests: write test/plugin.http, or test/plugin.test.ts with testHost of "@plugin-host/sdk/test"`,
    );
  // What does not build is said once, and not by each test.
  await buildProject(project).finally(endBuilds);
  const types = checkTypes(project);
  const typesOfTests = checkTestTypes(project);
  const code = files.length === 0 ? 0 : await runNode(root, files);
  const mistakes = await types;
  for (const mistake of [...mistakes, ...(await typesOfTests)]) say(`types: ${mistake}`);
  if (code === 0 && mistakes.length > 0) return TYPES_FAIL;
  return code === 0 && hasGoTests ? await testPlugin(root, goFiles, served()) : code;
}

/** @returns with what the runner ends */
function runNode(root: string, files: readonly string[]): Promise<number> {
  // The threads of a test host would keep its process.
  const child = spawn(
    process.execPath,
    [
      ...[...FLAGS, '--import', fileURLToPath(HOOKS)],
      ...['--test', '--test-force-exit', `--test-timeout=${FILE_MS_MAX}`, ...files],
    ],
    { cwd: root, stdio: 'inherit' },
  );
  return new Promise((resolve, reject) => {
    child.once('error', reject);
    child.once('close', code => resolve(code ?? 1));
  });
}
