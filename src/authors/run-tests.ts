import { spawn } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { OperatorError } from '../base/errors.ts';
import { LIMITS } from '../base/limits.ts';
import type { Project } from './project.ts';

const HOOKS = new URL(`./test-hooks${path.extname(import.meta.filename)}`, import.meta.url);
const FILE = /\.(test\.[cm]?[jt]s|http)$/;

/** Test files of a plugin. */
function testFiles(root: string): string[] {
  return fs
    .readdirSync(root, { recursive: true, encoding: 'utf8' })
    .filter(file => FILE.test(file) && !/(^|[/\\])(node_modules|kit|build|\.plugin-host)[/\\]/.test(file))
    .sort();
}

/**
 * Runs the tests of a plugin with Node's own runner, which writes what they say.
 *
 * @param only names of files to run; all without it
 * @returns with what the command ends: 0 when all have passed
 * @throws OperatorError when there are none
 */
export function runTests({ root }: Project, only: readonly string[]): Promise<number> {
  const files = only.length > 0 ? [...only] : testFiles(root);
  if (files.length === 0)
    throw new OperatorError(
      `${root} has no tests: write test/plugin.http, or test/plugin.test.ts with testHost of "plugin-host/test"`,
    );
  const flags = ['--disable-warning=ExperimentalWarning', `--wasm-max-mem-pages=${LIMITS.memoryPagesMax}`];
  // The threads of a test host would keep its process.
  const child = spawn(
    process.execPath,
    [...flags, '--import', fileURLToPath(HOOKS), '--test', '--test-force-exit', ...files],
    {
      cwd: root,
      stdio: 'inherit',
    },
  );
  return new Promise((resolve, reject) => {
    child.once('error', reject);
    child.once('close', code => resolve(code ?? 1));
  });
}
