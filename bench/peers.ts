import { type ChildProcess, execFileSync, fork, spawn } from 'node:child_process';
import fs from 'node:fs';
import { createRequire } from 'node:module';
import net from 'node:net';
import path from 'node:path';
import { takePort } from '../test/support/ports.ts';
import { buildExample } from '../test/support/sdk.ts';

const here = import.meta.dirname;
const children: ChildProcess[] = [];

/** A server of `peer.ts` in a process of its own. @param given the module or database it needs @returns its port */
export async function startPeer(
  kind: 'bare' | 'by-hand' | 'extism' | 'extism-wasi' | 'extism-pool',
  given = '',
): Promise<number> {
  const port = await takePort();
  const child = fork(path.join(here, 'peer.ts'), [kind, String(port), given], {
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

async function untilItListens(port: number, name: string): Promise<void> {
  for (let k = 0; k < 500; k++) {
    const open = await new Promise<boolean>(resolve => {
      const socket = net.connect(port, '127.0.0.1');
      socket.once('connect', () => resolve(true)).once('error', () => resolve(false));
      socket.once('connect', () => socket.destroy());
    });
    if (open) return;
    await new Promise(resolve => setTimeout(resolve, 20));
  }
  throw new Error(`${name} does not listen`);
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
  const port = await takePort();
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
  await untilItListens(port, 'workerd');
  return port;
}

/**
 * The answer of the sample as a component in Rust, under `wasmtime serve`, which makes a new instance for each request.
 *
 * @param pooling whether instances come from its pooling allocator
 * @returns its port, or why it cannot be started here
 */
export async function startWasmtime(directory: string, pooling: boolean): Promise<number | string> {
  const source = path.join(directory, 'wasmtime');
  try {
    fs.cpSync(path.join(here, 'wasmtime'), source, { recursive: true });
    const build = ['build', '--release', '--target', 'wasm32-wasip2', '--quiet'];
    execFileSync('cargo', build, { cwd: source, stdio: ['ignore', 'ignore', 'pipe'] });
    execFileSync('wasmtime', ['--version'], { stdio: 'ignore' });
  } catch (error) {
    return error instanceof Error ? (error.message.split('\n')[0] ?? '') : String(error);
  }
  const port = await takePort();
  const component = path.join(source, 'target/wasm32-wasip2/release/greeter.wasm');
  const allocator = pooling ? ['-O', 'pooling-allocator=y'] : ['-O', 'pooling-allocator=n'];
  children.push(
    spawn('wasmtime', ['serve', ...allocator, '-S', 'cli', '--addr', `127.0.0.1:${port}`, component], {
      stdio: 'ignore',
    }),
  );
  await untilItListens(port, 'wasmtime');
  return port;
}

export function stopPeers(): void {
  for (const child of children) child.kill();
}
