import fs from 'node:fs';
import net from 'node:net';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { z } from 'zod';
import { accessDenied } from '../../base/access-denied.ts';
import { messageOf, OperatorError } from '../../base/errors.ts';
import { streamFd } from '../children/adopted-child.ts';
import { isServed } from './data-lock.ts';

/** The socket on which a running service takes commands: one request line, lines of progress, one answer. */
const SOCKET_FILE = 'supervisor.sock';
/** A unix socket address holds 107 bytes (unix(7)). */
const ADDRESS_MAX = 107;

const REQUEST_BYTES_MAX = 4096;
/** How long a service may take until it listens again, as another program. */
const TAKEOVER_MS = 10_000;
const LOOK_AGAIN_MS = 100;

/** `file`: the configuration its sender has named. */
const request = z.object({ command: z.literal('reload'), file: z.string().optional() });
type ControlRequest = z.infer<typeof request>;
const answer = z.union([
  z.object({ progress: z.string() }),
  z.object({ done: z.literal(true) }),
  z.object({ error: z.string() }),
]);
type Answer = z.infer<typeof answer>;

/** The command that waits for an answer. */
export type ControlClient = {
  progress(text: string): void;
  /** @param problem why it could not be done; null when it was */
  answer(problem: string | null): void;
  /** Descriptor of its connection, for a program that takes over; null when it has left. */
  fd(): number | null;
};

/** What a running service does on request. @throws Error why it could not */
export type ControlCommands = { reload(client: ControlClient, file: string | null): Promise<void> };

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

function requestOf(line: string): ControlRequest | undefined {
  try {
    return request.safeParse(JSON.parse(line)).data;
  } catch {
    return undefined;
  }
}

function clientOn(connection: net.Socket): ControlClient {
  const send = (line: Answer): void => void connection.write(`${JSON.stringify(line)}\n`);
  // A command that was interrupted does not keep the service from finishing.
  connection.on('error', () => connection.destroy());
  return {
    progress: text => send({ progress: text }),
    answer(problem) {
      send(problem === null ? { done: true } : { error: problem });
      connection.end();
    },
    fd: () => (connection.destroyed ? null : streamFd(connection)),
  };
}

/** The client that the program before was serving. */
export const resumeClient = (fd: number): ControlClient => clientOn(new net.Socket({ fd }));

/** Serves one client. */
function serveClient(connection: net.Socket, commands: ControlCommands): void {
  const client = clientOn(connection);
  let bytes = 0;
  connection.on('data', chunk => {
    bytes += chunk.length;
    if (bytes > REQUEST_BYTES_MAX) connection.destroy();
  });
  createInterface({ input: connection }).once('line', line => {
    const run = async (): Promise<void> => {
      const asked = requestOf(line);
      if (asked === undefined) throw new Error('this release knows the command "reload" alone');
      await commands.reload(client, asked.file ?? null);
    };
    run().then(
      () => client.answer(null),
      (error: unknown) => client.answer(messageOf(error)),
    );
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

const codeOf = (error: unknown): string => (error instanceof Error && 'code' in error ? String(error.code) : '');

/** While a service becomes another program it does not listen; the lock of its directory says that it is there. */
async function connectSoon(directory: string): Promise<net.Socket> {
  for (const until = performance.now() + TAKEOVER_MS; ; await sleep(LOOK_AGAIN_MS))
    try {
      return await connect(directory);
    } catch (error) {
      const isAway = ['ECONNREFUSED', 'ENOENT'].includes(codeOf(error));
      if (!isAway || performance.now() > until || !isServed(directory)) throw error;
    }
}

/**
 * Sends a command to the service that runs on a data directory, and waits until it is done.
 *
 * @throws OperatorError when no service runs there, or why the command failed
 */
export async function askService(
  directory: string,
  asked: ControlRequest,
  progress: (text: string) => void,
): Promise<void> {
  const socket = await connectSoon(directory).catch((error: unknown) => {
    const why =
      accessDenied(error, path.join(directory, SOCKET_FILE)) ??
      'no service runs there; start one with plugin-host serve, or name its directory with data.dir (BOT_DATA_DIR)';
    throw new OperatorError(`the service on ${directory} cannot be reached: ${why}`, { cause: error });
  });
  socket.write(`${JSON.stringify(asked)}\n`);
  for await (const line of createInterface({ input: socket })) {
    const said = answer.parse(JSON.parse(line));
    if ('progress' in said) progress(said.progress);
    else if ('error' in said) throw new OperatorError(`the service could not ${asked.command}: ${said.error}`);
    else return;
  }
  throw new OperatorError(`the service ended before it had answered "${asked.command}"; its log says why`);
}
