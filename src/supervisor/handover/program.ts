import { spawn } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { messageOf } from '../../base/errors.ts';
import { StartError } from '../children/child.ts';
import { lowerOwnPriority, lowerStartPriority } from '../children/start-priority.ts';
import { keepOpen, TAKEOVER_VARIABLE } from './takeover-state.ts';

/** How this process was started. */
export type Program = {
  /** The file, with the links that lead to it. */
  entry: string;
  node: string;
  nodeArgs: readonly string[];
  args: readonly string[];
};

/** A program without links: it stays the same when a link is changed. */
export type ProgramFile = { node: string; entry: string };

const CHECK_MS = 60_000;

/** The program that the links lead to now, on the Node it brings. @throws StartError when there is none */
export function programFile({ entry, node }: Pick<Program, 'entry' | 'node'>): ProgramFile {
  try {
    const real = fs.realpathSync(entry);
    const own = path.join(path.dirname(real), '../bin/node');
    return { node: fs.existsSync(own) ? own : node, entry: real };
  } catch (error) {
    throw new StartError(`the program ${entry} cannot be found: ${messageOf(error)}`);
  }
}

const commandOf = (file: ProgramFile, { nodeArgs, args }: Program): string[] => [...nodeArgs, file.entry, ...args];

/**
 * Asks a program whether it can take over, before anything changes: it reads the configuration and the state.
 *
 * @param state as JSON
 * @throws StartError with what the program says
 */
export function checkProgram(
  file: ProgramFile,
  program: Program,
  environment: NodeJS.ProcessEnv,
  state: string,
): Promise<void> {
  const env = { ...environment, [TAKEOVER_VARIABLE]: 'check' };
  const child = spawn(file.node, commandOf(file, program), {
    env,
    stdio: ['pipe', 'ignore', 'pipe'],
    timeout: CHECK_MS,
  });
  lowerStartPriority(child);
  let said = '';
  child.stderr.setEncoding('utf8').on('data', (chunk: string) => {
    said = (said + chunk).slice(-2000);
  });
  // It may end before it has read everything.
  child.stdin.on('error', () => {});
  child.stdin.end(state);
  return new Promise((resolve, reject) => {
    child.once('error', error => reject(new StartError(`${file.node} cannot be started: ${messageOf(error)}`)));
    child.once('close', code => {
      if (code === 0) return resolve();
      const why = said.trim().split('\n').at(-1) ?? '';
      reject(
        new StartError(`${file.entry} cannot take over: ${why.replace(/^plugin-host: /, '') || `exit code ${code}`}`),
      );
    });
  });
}

/**
 * Replaces the program of this process. Its children, and the descriptors that are named, stay.
 *
 * @param state descriptor of the file with the state
 */
export function becomeProgram(
  file: ProgramFile,
  program: Program,
  environment: NodeJS.ProcessEnv,
  state: number,
  descriptors: readonly number[],
): never {
  if (process.execve === undefined) throw new StartError('this Node cannot replace its program; restart the service');
  for (const fd of [state, ...descriptors]) keepOpen(fd, true);
  const env = { ...environment, [TAKEOVER_VARIABLE]: String(state) };
  // It loads next to a service under load; `serve` raises it again.
  lowerOwnPriority();
  process.execve(file.node, [file.node, ...commandOf(file, program)], env);
  throw new Error('bug: execve has returned');
}
