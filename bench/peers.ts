import { type ChildProcess, execFileSync, fork, spawn } from 'node:child_process';
import fs from 'node:fs';
import { createRequire } from 'node:module';
import net from 'node:net';
import path from 'node:path';
import { freePort } from '../src/supervisor/embedded-postgres.ts';
import { buildExample } from '../test/support/sdk.ts';

const here = import.meta.dirname;
const children: ChildProcess[] = [];

/** A server of `peer.ts` in a process of its own. @returns its port */
export async function startPeer(kind: 'bare' | 'extism' | 'extism-wasi', module = ''): Promise<number> {
  const port = await freePort();
  const child = fork(path.join(here, 'peer.ts'), [kind, String(port), module], {
    stdio: ['ignore', 'pipe', 'inherit', 'ipc'],
  });
  children.push(child);
  await new Promise(resolve => child.stdout?.once('data', resolve));
  return port;
}

/** The logic of the sample on the Extism kit. */
export function buildExtism(directory: string): string {
  const out = path.join(directory, 'extism.wasm');
  execFileSync(
    process.execPath,
    [
      path.join(here, '../node_modules/assemblyscript/bin/asc.js'),
      'extism/greet.ts',
      '--outFile',
      out,
      '-O3',
      '--runtime',
      'stub',
      '--use',
      'abort=extism/greet/myAbort',
    ],
    { cwd: here, stdio: 'inherit' },
  );
  return out;
}

async function untilItListens(port: number): Promise<void> {
  for (let k = 0; k < 500; k++) {
    const open = await new Promise<boolean>(resolve => {
      const socket = net.connect(port, '127.0.0.1');
      socket.once('connect', () => resolve(true)).once('error', () => resolve(false));
      socket.once('connect', () => socket.destroy());
    });
    if (open) return;
    await new Promise(resolve => setTimeout(resolve, 20));
  }
  throw new Error('workerd does not listen');
}

function workerdBinary(): string | null {
  try {
    return createRequire(import.meta.url).resolve('@cloudflare/workerd-linux-64/bin/workerd');
  } catch {
    return null;
  }
}

/** The module of the sample itself, instantiated for every request by workerd. @returns its port, null where it does not run */
export async function startWorkerd(directory: string): Promise<number | null> {
  const binary = workerdBinary();
  if (binary === null) return null;
  const port = await freePort();
  const at = path.join(directory, 'workerd');
  fs.mkdirSync(at, { recursive: true });
  fs.writeFileSync(path.join(at, 'greet.wasm'), await buildExample('hello'));
  fs.copyFileSync(path.join(here, 'workerd/greet.js'), path.join(at, 'greet.js'));
  fs.writeFileSync(
    path.join(at, 'config.capnp'),
    `using Workerd = import "/workerd/workerd.capnp";
const config :Workerd.Config = (
  services = [(name = "main", worker = .greet)],
  sockets = [(name = "http", address = "127.0.0.1:${port}", http = (), service = "main")]
);
const greet :Workerd.Worker = (
  modules = [(name = "greet.js", esModule = embed "greet.js"), (name = "greet.wasm", wasm = embed "greet.wasm")],
  compatibilityDate = "2026-01-01"
);
`,
  );
  children.push(spawn(binary, ['serve', path.join(at, 'config.capnp')], { stdio: 'inherit' }));
  await untilItListens(port);
  return port;
}

export function stopPeers(): void {
  for (const child of children) child.kill();
}
