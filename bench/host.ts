import { spawn } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { takePort } from '../test/support/ports.ts';

/** A service as an operator starts it, in processes of its own. */
export type Host = {
  port: number;
  /** Process id of the supervisor. */
  pid: number;
  /** From the start of the command to its word that it is ready. */
  startMs: number;
  data: string;
  stop(): Promise<void>;
};

const MAIN = path.resolve(import.meta.dirname, '../src/main.ts');
const TOKEN = 'bench';

export async function startHost(directory: string, env: Record<string, string> = {}): Promise<Host> {
  const port = await takePort();
  const data = path.join(directory, 'data');
  const at = performance.now();
  const child = spawn(process.execPath, [MAIN, 'serve', '--sample'], {
    env: {
      PATH: process.env.PATH,
      BOT_DATA_DIR: data,
      BOT_HTTP_PORT: String(port),
      BOT_ADMIN_SETUP_TOKEN: TOKEN,
      BOT_LOG_LEVEL: 'error',
      ...env,
    },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  let text = '';
  await new Promise<void>((resolve, reject) => {
    child.stdout.on('data', (c: Buffer) => {
      text += c.toString();
      if (text.includes('is ready')) resolve();
    });
    child.once('exit', code => reject(new Error(`the service ended with code ${code}: ${text}`)));
  });
  const startMs = performance.now() - at;
  return {
    port,
    pid: child.pid ?? 0,
    startMs,
    data,
    async stop() {
      if (child.exitCode !== null || child.signalCode !== null) return;
      const gone = new Promise(resolve => child.once('exit', resolve));
      child.kill('SIGTERM');
      await gone;
    },
  };
}

/** The embedded database of a service with that data directory. */
export function embeddedDatabaseUrl(data: string): string {
  const password = fs.readFileSync(path.join(data, 'postgres.password'), 'utf8').trim();
  const socket = encodeURIComponent(path.join(data, 'postgres-run'));
  return `postgresql://plugin_host:${password}@localhost:5432/plugin_host?host=${socket}`;
}

/** A request to the admin API. */
export async function admin(port: number, method: string, where: string, body?: unknown): Promise<Response> {
  return await fetch(`http://127.0.0.1:${port}/api/admin${where}`, {
    method,
    headers: {
      authorization: `Bearer ${TOKEN}`,
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
}

export async function install(port: number, bytes: Uint8Array, config: object = {}): Promise<void> {
  const form = new FormData();
  form.append('file', new Blob([new Uint8Array(bytes)]), 'p.wasm');
  const uploaded = (await (
    await fetch(`http://127.0.0.1:${port}/api/admin/plugins/upload`, {
      method: 'POST',
      headers: { authorization: `Bearer ${TOKEN}` },
      body: form,
    })
  ).json()) as { id: string; wasm_key: string; access: Array<{ trigger: string; new: boolean }> };
  // Load generators send no credential: what is new is opened to every caller.
  const open = uploaded.access.filter(a => a.new).map(a => [a.trigger, { allow_user_session: false }]);
  const r = await admin(port, 'POST', `/plugins/${uploaded.id}/install`, {
    wasm_key: uploaded.wasm_key,
    config,
    triggers: Object.fromEntries(open),
    accept_public: true,
  });
  if (r.status !== 200) throw new Error(await r.text());
}

/** Process ids of the children of a process. */
export const childrenOf = (pid: number): number[] =>
  fs
    .readFileSync(`/proc/${pid}/task/${pid}/children`, 'latin1')
    .split(' ')
    .filter(p => p !== '')
    .map(Number);

/** The child that listens on a port: the serving process, not the one that stands by. */
export function servingPid(host: Host): number {
  const wanted = `:${host.port.toString(16).toUpperCase().padStart(4, '0')} `;
  const line = fs
    .readFileSync('/proc/net/tcp', 'latin1')
    .split('\n')
    .find(l => l.includes(wanted) && l.includes(' 0A '));
  const inode = line?.trim().split(/\s+/)[9];
  for (const pid of childrenOf(host.pid))
    try {
      for (const fd of fs.readdirSync(`/proc/${pid}/fd`))
        if (fs.readlinkSync(`/proc/${pid}/fd/${fd}`) === `socket:[${inode}]`) return pid;
    } catch {
      // It has just ended, or one of its files was closed.
    }
  return 0;
}

/** Resident memory of a process. */
export const memoryMb = (pid: number): number =>
  Number(/VmRSS:\s+(\d+)/.exec(fs.readFileSync(`/proc/${pid}/status`, 'latin1'))?.[1]) / 1024;
