import { type ChildProcess, spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { WASM_FLAGS } from '../src/plugins/limited-child.ts';
import { commandOf, listProcesses, type ProcessEntry, readProcess } from './support/processes.ts';
import { killGroup, killLeftover } from './support/signals.ts';

/**
 * Runs test files, a few at a time, each in a process group of its own, which ends with the file: nothing a file starts outlives it, and
 * no signal of it reaches the others. The command `tap run` would load hooks for mocks and coverage into every process, which nothing
 * here uses, and which take as long as the tests.
 *
 * A file that failed runs once more, alone, after all others. If it passes then, it counts as passed and is named as flaky.
 */
const ROOT = path.resolve(import.meta.dirname, '..');
const END_IN_TIME = path.join(ROOT, 'test/support/end-in-time.ts');

/** How long a file may take; the library ends its tests then and says which one runs. */
const FILE_SECONDS_MAX = 600;
/** What a file may print: more is a loop. */
const OUTPUT_BYTES_MAX = 64 * 2 ** 20;
/** How often the processes below the files, and what they print, are looked at: each look reads all of `/proc`. */
const LOOK_MS = 1000;
/** The variable that names the file to all that it starts, so that a process is found whose parents have ended. */
const MARK = 'TEST_FILE_MARK';
/** For the end of a process that was sent a signal in the last moment of its file. */
const LEFTOVER_MS = 5000;

export type FileResult = {
  file: string;
  seconds: number;
  passed: number;
  failed: number;
  /** Tests that were left out, with the reason: a toolchain the machine does not have. */
  leftOut: string[];
  /** Why the file itself failed, next to its assertions; null when it did not. */
  problem: string | null;
  /** What it printed. */
  log: string;
};

export type RunOptions = {
  /** How many files run at a time. */
  jobs: number;
  /** Variables of every file. */
  env: NodeJS.ProcessEnv;
  /** Called with each file that has ended, in that order. */
  ended(result: FileResult): void;
  /** Seconds the last run took, by file; those not named are new, and start first. */
  times?: Readonly<Record<string, number>>;
  secondsMax?: number;
  outputBytesMax?: number;
};

export type Flaky = { file: string; assertion: string; log: string };
export type RunResult = { results: FileResult[]; flaky: Flaky[] };

/** Whether a process was started with the mark of a file; a program may have been started without any variables. */
function isMarked(pid: number, mark: string): boolean {
  try {
    return fs.readFileSync(`/proc/${pid}/environ`, 'latin1').split('\0').includes(`${MARK}=${mark}`);
  } catch {
    return false;
  }
}

/** Files whose processes are looked at, by the pid of their first process. */
class Watched {
  readonly #below = new Map<number, Map<number, ProcessEntry>>();
  readonly #marks = new Map<number, string>();

  add(leader: number, mark: string): void {
    const first = readProcess(leader);
    this.#below.set(leader, new Map(first === null ? [] : [[leader, first]]));
    this.#marks.set(leader, mark);
  }

  /** Remembers what runs below each file now: a process whose parents have ended is known by then. */
  look(): void {
    const entries = listProcesses();
    for (const below of this.#below.values())
      for (let before = -1; before !== below.size; ) {
        before = below.size;
        for (const entry of entries) if (below.has(entry.parent)) below.set(entry.pid, entry);
      }
  }

  /** What of a file still runs. */
  alive(leader: number): ProcessEntry[] {
    const known = this.#below.get(leader) ?? new Map<number, ProcessEntry>();
    const mark = this.#marks.get(leader) ?? '';
    const isOf = (p: ProcessEntry): boolean =>
      p.group === leader || known.get(p.pid)?.startedAt === p.startedAt || isMarked(p.pid, mark);
    return listProcesses().filter(p => !p.isZombie && p.pid !== leader && isOf(p));
  }

  remove(leader: number): void {
    this.#below.delete(leader);
    this.#marks.delete(leader);
  }

  /** Ends all files at once, and what they started. */
  kill(): void {
    this.look();
    for (const leader of this.#below.keys()) {
      const left = this.alive(leader);
      killGroup(leader);
      for (const { pid, startedAt } of left) killLeftover(pid, startedAt);
    }
  }
}

/** Ends all that a file has left running. @returns their command lines, of those that did not end by themselves in time */
async function endLeftovers(watched: Watched, leader: number): Promise<string[]> {
  watched.look();
  const end = performance.now() + LEFTOVER_MS;
  while (watched.alive(leader).length > 0 && performance.now() < end) await sleep(50);
  const left = watched.alive(leader);
  const commands = left.map(p => commandOf(p.pid).slice(0, 200));
  killGroup(leader);
  for (const { pid, startedAt } of left) killLeftover(pid, startedAt);
  watched.remove(leader);
  return commands;
}

/** How the process ended: what is wrong with that, and null when it ended by itself. */
function ended(child: ChildProcess, log: string, secondsMax: number, bytesMax: number): Promise<string | null> {
  return new Promise((resolve, reject) => {
    let problem: string | null = null;
    const stop = (why: string): void => {
      problem = why;
      killGroup(child.pid);
    };
    // The library gives up at the same limit, says which test runs, and ends the process.
    const late = setTimeout(() => stop(`did not end within ${secondsMax} s`), (secondsMax * 1.05 + 1) * 1000);
    const look = setInterval(() => {
      if (fs.statSync(log).size > bytesMax) stop(`printed more than ${bytesMax} bytes`);
    }, LOOK_MS);
    child.once('error', reject);
    child.once('exit', (code, signal) => {
      clearTimeout(late);
      clearInterval(look);
      if (problem === null && signal !== null) problem = `ended by ${signal}`;
      else if (problem === null && code !== 0) problem = `ended with ${code}`;
      resolve(problem);
    });
  });
}

/** The end of a file, at most as much as its totals and last lines take. */
function tailOf(log: string, bytes: number): string {
  const fd = fs.openSync(log, 'r');
  try {
    const { size } = fs.fstatSync(fd);
    const part = Buffer.alloc(Math.min(size, bytes));
    fs.readSync(fd, part, 0, part.length, size - part.length);
    return part.toString('latin1');
  } finally {
    fs.closeSync(fd);
  }
}

/**
 * Names and reasons of the tests that were left out, as the library writes them: `ok 2 - a test # SKIP why`. The last
 * lines of a run show them, so that none is taken for one that passed.
 */
const leftOutIn = (log: string): string[] =>
  [...fs.readFileSync(log, 'utf8').matchAll(/^\s*ok \d+ - (.*?) # SKIP (.+)$/gm)].map(
    ([, name, why]) => `${name}: ${why}`,
  );

async function runFile(file: string, log: string, watched: Watched, options: RunOptions): Promise<FileResult> {
  const secondsMax = options.secondsMax ?? FILE_SECONDS_MAX;
  const began = performance.now();
  const out = fs.openSync(log, 'a');
  const mark = randomUUID();
  const child = spawn(process.execPath, [...WASM_FLAGS, '--import', END_IN_TIME, file], {
    cwd: ROOT,
    detached: true,
    stdio: ['ignore', out, out],
    env: { ...options.env, TAP_TIMEOUT: String(secondsMax), [MARK]: mark },
  });
  fs.closeSync(out);
  if (child.pid !== undefined) watched.add(child.pid, mark);
  let problem = await ended(child, log, secondsMax, options.outputBytesMax ?? OUTPUT_BYTES_MAX);
  const left = child.pid === undefined ? [] : await endLeftovers(watched, child.pid);
  const totals = /^# \{ total: (\d+)(.*)\}/m.exec(tailOf(log, 4096));
  const count = (name: string): number => Number(new RegExp(`${name}: (\\d+)`).exec(totals?.[2] ?? '')?.[1] ?? 0);
  const failed = count('fail');
  const leftOut = count('skip') === 0 ? [] : leftOutIn(log);
  if (problem === null && left.length > 0) problem = `left running: ${left.join('; ')}`;
  if (problem === null && Number(totals?.[1] ?? 0) === 0) problem = 'ended without a test';
  // The library takes both for passed: a test with its option `todo`, which is still to be written or mended, and one that
  // is switched off. Here they fail their file.
  if (problem === null && count('todo') > 0)
    problem = `tests with the option todo: ${count('todo')}; write or mend them`;
  if (problem === null && leftOut.length < count('skip')) problem = 'a test is left out without a reason';
  return {
    file,
    seconds: (performance.now() - began) / 1000,
    passed: count('pass'),
    failed: problem !== null && failed === 0 ? 1 : failed,
    leftOut,
    // Failed assertions say enough.
    problem: failed > 0 && problem === 'ended with 1' ? null : problem,
    log,
  };
}

/** What failed first in a file: the first assertion that did, or what is wrong with the file itself. */
export function firstFailure(result: FileResult): string {
  const failure = /^ *not ok \d+ - (.*?)(?: # time=.*)?$/m.exec(fs.readFileSync(result.log, 'latin1'));
  return failure?.[1] ?? result.problem ?? 'unknown';
}

/**
 * Runs files and tells of each as it ends.
 *
 * @param files from the project's root
 * @returns the last result of each file, in the order they ended, and those that passed only the second time
 */
export async function runFiles(files: readonly string[], options: RunOptions): Promise<RunResult> {
  const logs = fs.mkdtempSync(path.join(os.tmpdir(), 'plugin-host-test-logs-'));
  const watched = new Watched();
  const looking = setInterval(() => watched.look(), LOOK_MS);
  // A terminal sends its signals to the group in the foreground, which the files have left.
  const interrupted = (signal: NodeJS.Signals): void => {
    watched.kill();
    process.exit(128 + os.constants.signals[signal]);
  };
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.once(signal, interrupted);
  const logOf = (file: string, suffix: string): string =>
    path.join(logs, `${file.replaceAll(/[^\w.-]/g, '_')}${suffix}.log`);
  const expected = (file: string): number => options.times?.[file] ?? Number.POSITIVE_INFINITY;
  const queue = files.toSorted((a, b) => expected(b) - expected(a) || a.localeCompare(b));
  const results: FileResult[] = [];
  const failures: FileResult[] = [];
  const next = async (): Promise<void> => {
    for (let file = queue.shift(); file !== undefined; file = queue.shift()) {
      const result = await runFile(file, logOf(file, ''), watched, options);
      (result.failed === 0 ? results : failures).push(result);
      if (result.failed === 0) fs.rmSync(result.log);
      options.ended(result);
    }
  };
  await Promise.all(Array.from({ length: options.jobs }, next));
  const flaky: Flaky[] = [];
  for (const first of failures) {
    const again = await runFile(first.file, logOf(first.file, '.second'), watched, options);
    options.ended(again);
    results.push(again);
    if (again.failed === 0) flaky.push({ file: first.file, assertion: firstFailure(first), log: first.log });
  }
  clearInterval(looking);
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.removeListener(signal, interrupted);
  if (failures.length === 0) fs.rmSync(logs, { recursive: true });
  return { results, flaky };
}
