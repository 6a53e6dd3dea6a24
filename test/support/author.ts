import { type ChildProcess, spawn } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import type { Test } from 'tap';
import { newProject } from '../../src/authors/new-project.ts';
import { buildProject } from '../../src/projects/build-project.ts';
import { isLanguage, readProject } from '../../src/projects/project.ts';
import { BARE_ENV } from './bare-env.ts';
import { MAIN, type Ran, runCommand } from './commands.ts';

/** An author at a terminal. */

/** Runs `plugin-host plugin ...`. */
export const run = (args: readonly string[], env: Record<string, string> = {}): Promise<Ran> =>
  runCommand(['plugin', ...args], { HOME: process.env.HOME ?? '/', ...env });

/** A new plugin in a folder of the test. */
export async function made(t: Test, name: string, ...more: string[]): Promise<string> {
  const folder = path.join(t.testdir({}), name);
  const { code, err } = await run(['new', folder, ...more]);
  if (code !== 0) throw new Error(err);
  return folder;
}

function changed(folder: string, from: string, to: string): string {
  const text = fs.readFileSync(path.join(folder, 'index.ts'), 'utf8');
  if (!text.includes(from)) throw new Error(`${from} is not in index.ts of ${folder}`);
  return text.replace(from, to);
}

/** Changes the source of a plugin as editors do that write another file and rename it. */
export function replace(folder: string, from: string, to: string): void {
  const file = path.join(folder, 'index.ts');
  fs.writeFileSync(`${file}~`, changed(folder, from, to));
  fs.renameSync(`${file}~`, file);
}

/** Changes the source of a plugin. */
export function edit(folder: string, from: string, to: string): void {
  fs.writeFileSync(path.join(folder, 'index.ts'), changed(folder, from, to));
}

/** Makes a plugin of a template or sample; it builds without a finding or a warning, and passes its tests. */
export async function tryTemplate(t: Test, lang: string, template: string, id = `new-${template}`) {
  if (!isLanguage(lang)) throw new Error(`${lang} is no language`);
  const folder = path.join(t.testdir({}), id);
  newProject(folder, lang, template);
  const built = await buildProject(readProject(folder));
  t.same([built.findings, built.warnings], [[], []]);
  const tested = await run(['test', folder]);
  t.equal(tested.code, 0, tested.out);
  t.match(tested.out, /pass [1-9]|^ok\s/m);
  const project = JSON.parse(fs.readFileSync(path.join(folder, 'plugin-host.json'), 'utf8'));
  t.ok(fs.existsSync(path.join(folder, project.$schema)), 'an editor finds the schema');
  return { folder, manifest: built.manifest, module: built.module };
}

/** A build of Rust takes half of it while other tests run. */
const SHOWN_MS = 120_000;

/** `plugin dev` in a process of its own, or `plugin new --dev`. */
export async function startDev(
  t: Test,
  folder: string,
  more: readonly string[] = ['--port', '0'],
  env: Record<string, string> = {},
  verb: 'dev' | 'new' = 'dev',
) {
  const child: ChildProcess = spawn(
    process.execPath,
    ['--disable-warning=ExperimentalWarning', MAIN, 'plugin', verb, folder, ...more],
    { env: { ...BARE_ENV, ...env } },
  );
  let out = '';
  child.stdout?.on('data', (c: Buffer) => (out += c.toString()));
  child.stderr?.on('data', (c: Buffer) => (out += c.toString()));
  const ended = new Promise<number | null>(resolve => child.once('close', resolve));
  t.teardown(async () => {
    child.kill('SIGTERM');
    await ended;
  });
  /** Waits until the terminal shows this. */
  const shows = async (what: RegExp): Promise<RegExpExecArray> => {
    for (const end = Date.now() + SHOWN_MS; Date.now() < end; ) {
      const found = what.exec(out);
      if (found !== null) {
        out = out.slice(found.index + found[0].length);
        return found;
      }
      if (child.exitCode !== null) throw new Error(`plugin dev has ended: ${out}`);
      await new Promise(resolve => setTimeout(resolve, 20));
    }
    throw new Error(`no ${what} within ${SHOWN_MS / 1000} s in: ${out}`);
  };
  const base = more.includes('--remote') ? '' : ((await shows(/listening on (http:\S+);/))[1] ?? '');
  const call = async (where: string, headers: Record<string, string> = {}) => {
    const answer = await fetch(`${base}/api/triggers/http/${where}`, { headers });
    return { status: answer.status, text: await answer.text() };
  };
  return { base, child, ended, shows, call };
}
