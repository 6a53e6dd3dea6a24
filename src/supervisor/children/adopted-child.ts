import { EventEmitter } from 'node:events';
import net from 'node:net';
import os from 'node:os';
import type { Writable } from 'node:stream';
import { z } from 'zod';
import { foreignFunctions } from '../../base/foreign-functions.ts';

/** What the supervisor uses of a process below it, whether it has started it or the program before has. */
export type Child = {
  readonly pid?: number | undefined;
  readonly exitCode: number | null;
  readonly signalCode: NodeJS.Signals | null;
  readonly connected: boolean;
  readonly stdin: Writable | null;
  readonly stdout?: object | null;
  readonly stderr?: object | null;
  readonly channel?: object | null | undefined;
  send(message: object): boolean;
  kill(signal: NodeJS.Signals): boolean;
  on(event: 'message', listener: (message: unknown) => void): unknown;
  once(event: 'exit', listener: (code: number | null, signal: NodeJS.Signals | null) => void): unknown;
};

/** Options of waitpid(2). */
const WNOHANG = 1;
/** Low bits of a status that hold the signal. */
const SIGNAL_BITS = 0x7f;
/** Interval at which a process is asked for whose pipe has closed, and one that is as it should be. */
const ENDING_MS = 20;
const ALIVE_MS = 1000;

const SIGNALS = Object.keys(os.constants.signals) as NodeJS.Signals[];

function makeWaitPid(): (pid: number) => { isOver: boolean; status: number } {
  const waitpid = foreignFunctions().load('libc.so.6').func('int waitpid(int pid, _Out_ int *status, int options)');
  return pid => {
    const status = [0];
    const answered: unknown = waitpid(pid, status, WNOHANG);
    return { isOver: answered !== 0, status: status[0] ?? 0 };
  };
}

let waitPid: ReturnType<typeof makeWaitPid> | null = null;

/** Descriptors of the pipes to a child: one for messages, or those of its standard input and output. */
export type ChildPipes = { messages: number } | { input: number; output: number; errors: number };

/**
 * A child that the program before started in this process. It is a child of this process still, but Node does not know it:
 * messages are lines of JSON, as Node itself sends them, and its end is asked of the kernel.
 */
export class AdoptedChild extends EventEmitter implements Child {
  readonly pid: number;
  readonly pipes: ChildPipes;
  readonly stdin: Writable | null;
  /** Pipe for messages. */
  readonly #messages: net.Socket | null;
  exitCode: number | null = null;
  signalCode: NodeJS.Signals | null = null;
  connected: boolean;
  #timer: NodeJS.Timeout | null = null;

  constructor(pid: number, pipes: ChildPipes) {
    super();
    this.pid = pid;
    this.pipes = pipes;
    this.connected = 'messages' in pipes;
    const open = (fd: number): net.Socket => {
      const socket = new net.Socket({ fd, readable: true, writable: true });
      // A child that ends closes its pipe in the middle of a message.
      socket.on('error', () => socket.destroy());
      socket.once('close', () => this.#closed());
      return socket;
    };
    if ('messages' in pipes) {
      this.stdin = null;
      this.#messages = open(pipes.messages);
      this.#hearLines(this.#messages);
    } else {
      this.stdin = open(pipes.input);
      this.#messages = null;
      for (const output of [pipes.output, pipes.errors]) open(output).resume();
    }
    // Listeners for its end are there by then.
    this.#timer = setTimeout(() => this.#look(ALIVE_MS), 0);
  }

  #hearLines(socket: net.Socket): void {
    let rest = '';
    socket.setEncoding('utf8').on('data', (chunk: string) => {
      const lines = (rest + chunk).split('\n');
      rest = lines.pop() ?? '';
      for (const line of lines) this.#hear(line);
    });
  }

  #hear(line: string): void {
    let message: unknown;
    try {
      message = JSON.parse(line);
    } catch {
      // It was killed in the middle of a message.
      return;
    }
    this.emit('message', message);
  }

  #closed(): void {
    this.connected = false;
    this.#look(ENDING_MS);
  }

  #look(ms: number): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    waitPid ??= makeWaitPid();
    const { isOver, status } = waitPid(this.pid);
    if (!isOver) {
      this.#timer = setTimeout(() => this.#look(ms), ms);
      return;
    }
    this.#timer = null;
    if (this.exitCode !== null || this.signalCode !== null) return;
    const signal = SIGNALS.find(name => os.constants.signals[name] === (status & SIGNAL_BITS));
    if (signal === undefined) this.exitCode = (status >> 8) & 0xff;
    else this.signalCode = signal;
    this.connected = false;
    this.emit('exit', this.exitCode, this.signalCode);
  }

  send(message: object): boolean {
    return this.#messages?.write(`${JSON.stringify(message)}\n`) ?? false;
  }

  kill(signal: NodeJS.Signals): boolean {
    if (this.exitCode !== null || this.signalCode !== null) return false;
    try {
      process.kill(this.pid, signal);
    } catch {
      return false;
    }
    // Its end is noticed soon.
    this.#look(ENDING_MS);
    return true;
  }
}

const withFd = z.object({ fd: z.number().int().min(0) });
const withHandle = z.object({ _handle: withFd });

/** Descriptor of the pipe for messages. @throws Error when it is closed */
export function messagesFd(child: Child): number {
  if (child instanceof AdoptedChild && 'messages' in child.pipes) return child.pipes.messages;
  return withFd.parse(child.channel).fd;
}

/** Descriptor of a stream over a pipe or a socket. @throws Error when it is closed */
export const streamFd = (stream: object | null | undefined): number => withHandle.parse(stream)._handle.fd;

/** Descriptors of the pipes to standard input and output. */
export function standardFds(child: Child): { input: number; output: number; errors: number } {
  if (child instanceof AdoptedChild && 'input' in child.pipes) return child.pipes;
  return { input: streamFd(child.stdin), output: streamFd(child.stdout), errors: streamFd(child.stderr) };
}
