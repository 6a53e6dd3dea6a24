import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { OperatorError } from '../../base/errors.ts';
import type { Program } from '../../supervisor/handover/program.ts';
import { ask, type Remote, remoteOf } from '../remote/remote.ts';

/** A service of its own for `plugin-host bench`: the real one, on embedded stores in a folder that goes with it. */

export type BenchService = {
  url: string;
  /** Process id of its supervisor. */
  pid: number;
  remote: Remote;
  stop(): Promise<void>;
};

const SAID_CHARS = 2000;
/** How long the service has to stop by itself. */
const STOP_MS = 20_000;
const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;
/** Variables by which systemd tells a service about itself are not for this one. */
const OF_SYSTEMD = ['NOTIFY_SOCKET', 'WATCHDOG_USEC', 'WATCHDOG_PID', 'CREDENTIALS_DIRECTORY', 'JOURNAL_STREAM'];

/** @throws OperatorError with what the service says when it does not start */
export async function startBenchService(program: Program, environment: NodeJS.ProcessEnv): Promise<BenchService> {
  const directory = fs.mkdtempSync(path.join(os.tmpdir(), 'plugin-host-bench-'));
  // Started as root, the service runs under an account of its own, which has to reach its data.
  fs.chmodSync(directory, 0o711);
  const token = randomBytes(24).toString('hex');
  const own = Object.entries(environment).filter(([name]) => !name.startsWith('BOT_') && !OF_SYSTEMD.includes(name));
  const child = spawn(program.node, [...program.nodeArgs, program.entry, 'serve'], {
    env: {
      ...Object.fromEntries(own),
      BOT_DATA_DIR: path.join(directory, 'data'),
      BOT_HTTP_HOST: '127.0.0.1',
      BOT_HTTP_PORT: '0',
      BOT_ADMIN_SETUP_TOKEN: token,
      BOT_LOG_FORMAT: 'json',
      BOT_LOG_LEVEL: 'error',
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const gone = new Promise<void>(resolve => {
    child.once('exit', () => resolve());
    child.once('error', () => resolve());
  });
  const stop = async (): Promise<void> => {
    for (const signal of SIGNALS) process.off(signal, interrupted);
    child.kill('SIGTERM');
    const late = setTimeout(() => child.kill('SIGKILL'), STOP_MS);
    await gone;
    clearTimeout(late);
    fs.rmSync(directory, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 });
  };
  const interrupted = (): void => void stop().then(() => process.exit(1));
  for (const signal of SIGNALS) process.once(signal, interrupted);
  let said = '';
  try {
    const url = await new Promise<string>((resolve, reject) => {
      const read = (chunk: string): void => {
        said = (said + chunk).slice(-SAID_CHARS);
        const [, ready] = /plugin host is ready: (http:\/\/127\.0\.0\.1:\d+)/.exec(said) ?? [];
        if (ready !== undefined) resolve(ready);
      };
      for (const stream of [child.stdout, child.stderr]) stream.setEncoding('utf8').on('data', read);
      child.once('error', reject);
      child.once('close', () =>
        reject(new OperatorError(`the service to measure with has not started: ${said.trim().split('\n').at(-1)}`)),
      );
    });
    return { url, pid: child.pid ?? 0, remote: remoteOf({ url, from: 'its own' }, token, false), stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

/**
 * Uploads and installs a module, open to every caller.
 *
 * @throws OperatorError with what the service finds wrong
 */
export async function installOpenly(
  { host }: Remote,
  module: Uint8Array<ArrayBuffer>,
  config: Record<string, unknown>,
): Promise<void> {
  const form = new FormData();
  form.append('file', new Blob([module]), 'plugin.wasm');
  const uploaded = await ask(() =>
    host.POST('/api/admin/plugins/upload', { body: form, bodySerializer: body => body }),
  );
  const { access, id, wasm_key } = uploaded;
  const open = { allow_user_session: false, allow_service_key: false, policy_expression: '' };
  const body = {
    wasm_key,
    config,
    triggers: Object.fromEntries(access.map(a => [a.trigger, open])),
    accept_public: true,
    accept_widening: true,
  };
  await ask(() => host.POST('/api/admin/plugins/{id}/install', { params: { path: { id } }, body }), {
    'the configuration is not complete': 'the configuration is not complete (give it with --config-file)',
    'the configuration is wrong': 'the configuration is wrong (given with --config-file)',
  });
}

/** Processor time in ms that a service has used, by what used it. */
export type CpuParts = { main_ms: number; lanes_ms: number; database_ms: number };

const TICK_MS = 10;

/** Name, and ticks of processor time, of a thread or process. */
function statOf(file: string): { name: string; ms: number } | null {
  try {
    const text = fs.readFileSync(file, 'latin1');
    const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
    const name = text.slice(text.indexOf('(') + 1, text.lastIndexOf(')'));
    return { name, ms: (Number(fields[11]) + Number(fields[12])) * TICK_MS };
  } catch {
    return null;
  }
}

function listOf(folder: string): string[] {
  try {
    return fs.readdirSync(folder);
  } catch {
    return [];
  }
}

/** The process and all below it. */
function treeOf(pid: number): number[] {
  const below = listOf(`/proc/${pid}/task`).flatMap(task => {
    try {
      return fs.readFileSync(`/proc/${pid}/task/${task}/children`, 'latin1').split(' ').filter(Boolean).map(Number);
    } catch {
      return [];
    }
  });
  return [pid, ...below.flatMap(treeOf)];
}

/**
 * What a service has used so far: the main threads, which read, decide and answer; the other threads, which run plugins, compile and
 * collect (those of the graph store too, which a plugin does not use); and PostgreSQL. Threads that end between two looks take their
 * time with them. All zero where the system does not say it (no Linux).
 */
export function cpuOf(pid: number): CpuParts {
  const parts = { main_ms: 0, lanes_ms: 0, database_ms: 0 };
  for (const one of treeOf(pid)) {
    if (statOf(`/proc/${one}/stat`)?.name === 'postgres') {
      parts.database_ms += statOf(`/proc/${one}/stat`)?.ms ?? 0;
      continue;
    }
    for (const task of listOf(`/proc/${one}/task`)) {
      const ms = statOf(`/proc/${one}/task/${task}/stat`)?.ms ?? 0;
      parts[Number(task) === one ? 'main_ms' : 'lanes_ms'] += ms;
    }
  }
  return parts;
}
