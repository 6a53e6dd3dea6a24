import { execFile } from 'node:child_process';
import fs from 'node:fs';
import { createRequire } from 'node:module';
import os from 'node:os';
import path from 'node:path';
import { insteadOf } from '../../sdk/typescript/kit/missing-names.ts';
import type { Project } from '../projects/project.ts';

/** Path of the type checker: that of the plugin's folder, or the one that comes with this program; null for none. */
function findChecker(root: string): string | null {
  for (const from of [path.join(root, 'index.js'), import.meta.filename])
    try {
      return path.join(path.dirname(createRequire(from).resolve('typescript/package.json')), 'bin/tsc');
    } catch {}
  return null;
}

const isChecked = ({ language, root }: Project): boolean =>
  language === 'ts' && fs.existsSync(path.join(root, 'tsconfig.json'));

/** Says that types cannot be checked where there is no checker: a release brings none. */
export const noChecker = (project: Project): string[] =>
  isChecked(project) && findChecker(project.root) === null
    ? [`types are not checked: run npm install --save-dev typescript in ${project.root}`]
    : [];

/** Advice of the checker that would let a plugin compile and fail when it runs, and what is true of a plugin. */
const WRONG_ADVICE: ReadonlyArray<[advice: RegExp, truth: string]> = [
  [/ Do you need to change your target library\? Try changing .* to include 'dom'\.$/, ' A plugin has no DOM.'],
  [
    / Do you need to install type definitions for node\? .*$/,
    " A plugin has the language and the kit, not Node's API.",
  ],
];

/** A line of the checker with its place as editors write it. */
const placed = (line: string): string => line.replace(/^(.+?)\((\d+),(\d+)\): error /, '$1:$2:$3: ');

/** What is true of a plugin, in the place of what the checker would do. */
const withAdvice = (line: string): string =>
  WRONG_ADVICE.reduce(
    (text, [advice, truth]) => text.replace(advice, truth),
    line.replace(/Cannot find name '(\w+)'\.$/, (said, name: string) => {
      const instead = insteadOf(name);
      return instead === undefined ? said : `${said} ${instead[0]?.toUpperCase()}${instead.slice(1)}.`;
    }),
  );

/** Runs the checker in a folder with a `tsconfig.json`. @returns its lines */
function linesOfChecker(checker: string, root: string, folder: string): Promise<string[]> {
  return new Promise(resolve => {
    const child = execFile(
      process.execPath,
      [checker, '--noEmit', '--pretty', 'false', '-p', folder],
      { cwd: root },
      (_, output) => resolve(output.split('\n').filter(line => line.trim() !== '')),
    );
    // The first requests to a new build go first.
    if (child.pid !== undefined) os.setPriority(child.pid, os.constants.priority.PRIORITY_LOW);
  });
}

/**
 * Checks the types of a TypeScript plugin, as an editor does.
 *
 * @returns mistakes as lines of `file:line:column: text`; none when there is no checker, or nothing to check
 */
export async function checkTypes(project: Project): Promise<string[]> {
  const { root } = project;
  const checker = isChecked(project) ? findChecker(root) : null;
  return checker === null ? [] : (await linesOfChecker(checker, root, root)).map(line => withAdvice(placed(line)));
}

/** Names and modules that the checker does not know: tests run in Node, whose types the folder need not have. */
const UNKNOWN = /: TS(?:2304|2307|2552|2580|2591): /;

/**
 * Checks the types of its tests, where `test/tsconfig.json` says how.
 *
 * @returns as `checkTypes`; a name that the checker does not know is no mistake there
 */
export async function checkTestTypes(project: Project): Promise<string[]> {
  const folder = path.join(project.root, 'test');
  const checker =
    isChecked(project) && fs.existsSync(path.join(folder, 'tsconfig.json')) ? findChecker(project.root) : null;
  if (checker === null) return [];
  const lines = (await linesOfChecker(checker, project.root, folder)).map(placed);
  return lines.filter(line => line.startsWith('test/') && !UNKNOWN.test(line));
}
