import fs from 'node:fs';
import net from 'node:net';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { z } from 'zod';
import { messageOf, OperatorError } from '../base/errors.ts';

/** The socket on which a running service takes commands: one request line, lines of progress, one answer. */
const SOCKET_FILE = 'supervisor.sock';
/** A unix socket address holds 107 bytes (unix(7)). */
const ADDRESS_MAX = 107;

const REQUEST_BYTES_MAX = 4096;

const request = z.object({ command: z.literal('reload') });
const answer = z.union([
  z.object({ progress: z.string() }),
  z.object({ done: z.literal(true) }),
  z.object({ error: z.string() }),
]);
type Answer = z.infer<typeof answer>;

/** What a running service does on request. @throws Error why it could not */
export type ControlCommands = { reload(progress: (text: string) => void): Promise<void> };

export type ControlSocket = { close(): void };

/** An address for the socket that is short enough however long the path is: a link to the open directory. */
function withAddress<T>(directory: string, use: (address: string) => T): T {
  const direct = path.join(directory, SOCKET_FILE);
  if (Buffer.byteLength(direct) <= ADDRESS_MAX || process.platform !== 'linux') return use(direct);
  const fd = fs.openSync(directory, fs.constants.O_RDONLY | fs.constants.O_DIRECTORY);
  try {
    return use(`/proc/self/fd/${fd}/${SOCKET_FILE}`);
  } finally {
    fs.closeSync(fd);
  }
}

function isReload(line: string): boolean {
  try {
    return request.safeParse(JSON.parse(line)).success;
  } catch {
    return false;
  }
}

/** Serves one client. */
function serveClient(client: net.Socket, commands: ControlCommands): void {
  const send = (line: Answer): void => void client.write(`${JSON.stringify(line)}\n`);
  client.on('error', () => client.destroy());
  let bytes = 0;
  client.on('data', chunk => {
    bytes += chunk.length;
    if (bytes > REQUEST_BYTES_MAX) client.destroy();
  });
  createInterface({ input: client }).once('line', line => {
    const run = async (): Promise<void> => {
      if (!isReload(line)) throw new Error('this release knows the command "reload" alone');
      await commands.reload(text => send({ progress: text }));
    };
    run()
      .then(
        () => send({ done: true }),
        (error: unknown) => send({ error: messageOf(error) }),
      )
      .finally(() => client.end());
  });
}

/**
 * Listens for commands in the data directory, which this process has locked. Only its own account and root may connect.
 *
 * @throws Error when the socket cannot be made
 */
export async function openControlSocket(directory: string, commands: ControlCommands): Promise<ControlSocket> {
  // Left by a service that was killed; the lock of the directory says that no other one runs.
  fs.rmSync(path.join(directory, SOCKET_FILE), { force: true });
  const server = net.createServer(client => serveClient(client, commands));
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    // The socket is made before `listen` returns.
    const before = process.umask(0o177);
    withAddress(directory, address => server.listen(address, resolve));
    process.umask(before);
  });
  server.unref();
  return {
    close() {
      server.close();
      fs.rmSync(path.join(directory, SOCKET_FILE), { force: true });
    },
  };
}

const connect = (directory: string): Promise<net.Socket> =>
  new Promise((resolve, reject) => {
    withAddress(directory, address => {
      const client = net.connect(address, () => resolve(client));
      client.once('error', reject);
    });
  });

/**
 * Sends a command to the service that runs on a data directory, and waits until it is done.
 *
 * @throws OperatorError when no service runs there, or why the command failed
 */
export async function askService(
  directory: string,
  command: 'reload',
  progress: (text: string) => void,
): Promise<void> {
  const socket = await connect(directory).catch((error: unknown) => {
    const code = error instanceof Error && 'code' in error ? error.code : '';
    const why =
      code === 'EACCES'
        ? 'this account may not give it commands; use the account that started it, or root'
        : 'no service runs there; start one with plugin-host serve, or name its directory with data.dir (BOT_DATA_DIR)';
    throw new OperatorError(`the service on ${directory} cannot be reached: ${why}`, { cause: error });
  });
  socket.write(`${JSON.stringify({ command })}\n`);
  for await (const line of createInterface({ input: socket })) {
    const said = answer.parse(JSON.parse(line));
    if ('progress' in said) progress(said.progress);
    else if ('error' in said) throw new OperatorError(`the service could not ${command}: ${said.error}`);
    else return;
  }
  throw new OperatorError(`the service ended before it had answered "${command}"; its log says why`);
}
