import { type ChildProcess, spawn } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { commandOf, listProcesses } from './processes.ts';
import { shareCache } from './shared-cache.ts';

const PROJECT = path.resolve(import.meta.dirname, '../..');
const MAIN = path.join(PROJECT, 'src/main.ts');
export const ROOT = process.env.TEST_DIRECTORY ?? '/tmp';

export type Run = {
  /** What was written to standard output alone. */
  stdout(): string;
  child: ChildProcess;
  output(): string;
  until(text: RegExp, ms?: number): Promise<RegExpMatchArray>;
  exited: Promise<number | null>;
};

/** The service as a user starts it, in a directory of its own. */
export function start(
  directory: string,
  env: Record<string, string>,
  args: string[] = ['serve'],
  buildsSample = false,
): Run {
  return startProgram(process.execPath, [MAIN, ...args], directory, env, buildsSample);
}

/**
 * Puts what was built once for all tests where a service keeps it: building it again would take seconds of every test. All share the
 * same files, which no test may change.
 */
function shareBuilt(built: string | undefined, directory: string, name: 'pages' | 'sample'): void {
  const kept = path.join(directory, 'built', name);
  if (built === undefined || fs.existsSync(kept)) return;
  fs.mkdirSync(kept, { recursive: true });
  fs.symlinkSync(built, path.join(kept, path.basename(built)));
}

/**
 * Any command that starts the service, from the project's directory.
 *
 * @param buildsSample whether the service builds its sample plugin itself, as at a user's first start
 */
export function startProgram(
  command: string,
  args: string[],
  directory: string,
  env: Record<string, string>,
  buildsSample = false,
): Run {
  shareBuilt(process.env.TEST_PAGES, directory, 'pages');
  if (!buildsSample) shareBuilt(process.env.TEST_SAMPLE, directory, 'sample');
  shareCache(directory);
  const clean = Object.fromEntries(
    Object.entries(process.env).filter(([k]) => !k.startsWith('BOT_') && !k.startsWith('TAP')),
  );
  const child = spawn(command, args, {
    cwd: PROJECT,
    // At once: a reload takes ten seconds otherwise.
    env: { ...clean, BOT_DATA_DIR: directory, BOT_EXECUTION_LANES: '8', BOT_SERVING_TAKE_OVER: '0s', ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let text = '';
  let out = '';
  child.stdout.on('data', (c: Buffer) => {
    text += c.toString();
    out += c.toString();
  });
  child.stderr.on('data', (c: Buffer) => (text += c.toString()));
  const exited = new Promise<number | null>(resolve => child.once('exit', resolve));
  return {
    child,
    output: () => text,
    stdout: () => out,
    exited,
    async until(pattern, ms = 60_000) {
      for (const end = Date.now() + ms; Date.now() < end; ) {
        const m = pattern.exec(text);
        if (m !== null) return m;
        await new Promise(r => setTimeout(r, 20));
      }
      throw new Error(`no ${pattern} in:\n${text}`);
    },
  };
}

/** Processes whose command line or environment names the data directory. */
export function processesOf(directory: string): string[] {
  return fs
    .readdirSync('/proc')
    .filter(p => /^\d+$/.test(p) && Number(p) !== process.pid)
    .filter(p => {
      try {
        const text = fs.readFileSync(`/proc/${p}/cmdline`, 'latin1') + fs.readFileSync(`/proc/${p}/environ`, 'latin1');
        return text.includes(directory) && !/^State:\s+Z/m.test(fs.readFileSync(`/proc/${p}/status`, 'latin1'));
      } catch {
        return false;
      }
    });
}

/** A supervisor that is killed outright is missed after a while. Generous: the machine may be busy. */
const GONE_MS_MAX = 15_000;

/** Whether all processes of a data directory end in time. */
export async function gone(directory: string): Promise<boolean> {
  for (const end = Date.now() + GONE_MS_MAX; Date.now() < end; ) {
    if (processesOf(directory).length === 0) return true;
    await new Promise(r => setTimeout(r, 50));
  }
  return false;
}

/**
 * The child of a supervisor that runs as `verb`. Of several the oldest: a process that stands by for the serving one is younger, and
 * pids say nothing, because they start again at the lowest.
 */
export function childPid(supervisor: number | undefined, verb: 'serving' | 'spicedb'): number {
  const [oldest] = listProcesses()
    .filter(p => p.parent === supervisor && new RegExp(`main\\.ts ${verb}( |$)`).test(commandOf(p.pid)))
    .sort((a, b) => a.startedAt - b.startedAt);
  if (oldest === undefined) throw new Error(`no child of ${supervisor} runs as ${verb}`);
  return oldest.pid;
}
