import { spawn, spawnSync } from 'node:child_process';
import fs from 'node:fs';
import net from 'node:net';
import os from 'node:os';
import path from 'node:path';

/**
 * What a load found. Latencies in ms; a request that failed or was not answered counts as endless. `generator`: share of
 * one core that the generator used; 0 where that is unknown.
 */
export type Load = {
  perSecond: number;
  p50: number;
  p99: number;
  p999: number;
  failed: number;
  generator: number;
};

/** A generator that uses more of a core is itself the limit, and the round says nothing about the server. */
export const GENERATOR_LIMIT = 0.95;
const TICKS_PER_SECOND = 100;
const CPU_LOOK_MS = 50;

const quantile = (sorted: Float64Array, q: number): number =>
  sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * q))] ?? 0;

/** @param failed how many requests failed or were not answered */
function summary(latencies: number[], seconds: number, failed: number): Load {
  const endless = Array.from({ length: failed }, () => Number.POSITIVE_INFINITY);
  const sorted = Float64Array.from([...latencies, ...endless]).sort();
  return {
    generator: 0,
    perSecond: latencies.length / seconds,
    p50: quantile(sorted, 0.5),
    p99: quantile(sorted, 0.99),
    p999: quantile(sorted, 0.999),
    failed,
  };
}

/** One keep-alive connection that answers one request at a time. */
class Connection {
  readonly #socket: net.Socket;
  #left = -1;
  #done: ((status: number) => void) | null = null;
  #status = 0;

  constructor(port: number) {
    this.#socket = net.connect(port, '127.0.0.1').setNoDelay(true);
    this.#socket.on('data', chunk => this.#data(chunk));
    this.#socket.on('error', () => this.#done?.(0));
  }

  #data(chunk: Buffer): void {
    if (this.#left < 0) {
      const text = chunk.latin1Slice(0, Math.min(chunk.length, 2048));
      const end = text.indexOf('\r\n\r\n');
      this.#status = Number(text.slice(9, 12));
      this.#left = Number(/content-length: (\d+)/i.exec(text)?.[1] ?? 0) - (chunk.length - end - 4);
    } else this.#left -= chunk.length;
    if (this.#left > 0) return;
    this.#left = -1;
    this.#done?.(this.#status);
  }

  send(request: Buffer, done: (status: number) => void): void {
    this.#done = done;
    this.#socket.write(request);
  }

  close(): void {
    this.#socket.destroy();
  }
}

const bytesOf = (port: number, where: string, headers: Readonly<Record<string, string>> = {}): Buffer =>
  Buffer.from(
    `GET ${where} HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\n${Object.entries(headers)
      .map(([name, value]) => `${name}: ${value}\r\n`)
      .join('')}\r\n`,
  );

const wrk = spawnSync('wrk', ['-v']).error === undefined;
export const generator = wrk ? 'wrk' : 'own generator (install wrk: a Node generator is slower than what it measures)';

const toMs = (text: string): number =>
  Number.parseFloat(text) * (text.endsWith('us') ? 0.001 : text.endsWith('ms') ? 1 : 1000);

async function withWrk(
  port: number,
  path: string,
  connections: number,
  seconds: number,
  headers: Readonly<Record<string, string>>,
): Promise<Load> {
  const child = spawn('wrk', [
    '-t1',
    `-c${connections}`,
    `-d${seconds}`,
    '--latency',
    ...Object.entries(headers).flatMap(([name, value]) => ['-H', `${name}: ${value}`]),
    `http://127.0.0.1:${port}${path}`,
  ]);
  let text = '';
  child.stdout.on('data', (c: Buffer) => (text += c.toString()));
  let cpuSeconds = 0;
  const look = setInterval(() => {
    cpuSeconds = cpuSecondsOf(child.pid ?? 0) ?? cpuSeconds;
  }, CPU_LOOK_MS);
  await new Promise(resolve => child.once('close', resolve));
  clearInterval(look);
  const of = (pattern: RegExp): string => pattern.exec(text)?.[1] ?? '0';
  const sum = (numbers: RegExpExecArray | null): number => (numbers ?? []).slice(1).reduce((n, s) => n + Number(s), 0);
  const failed =
    sum(/Non-2xx or 3xx responses: (\d+)/.exec(text)) +
    sum(/Socket errors: connect (\d+), read (\d+), write (\d+), timeout (\d+)/.exec(text));
  const requests = Number(of(/(\d+) requests in/));
  const reached = (share: number, pattern: RegExp): number =>
    failed > requests * (1 - share) ? Number.POSITIVE_INFINITY : toMs(of(pattern));
  const p99 = reached(0.99, /^ +99%\s+(\S+)/m);
  return {
    perSecond: Number(of(/Requests\/sec:\s+(\S+)/)),
    p50: reached(0.5, /^ +50%\s+(\S+)/m),
    p99,
    p999: p99,
    failed,
    generator: cpuSeconds / seconds,
  };
}

/** Processor time a process has used, or null when it has ended. */
export function cpuSecondsOf(pid: number): number | null {
  try {
    const fields = fs.readFileSync(`/proc/${pid}/stat`, 'latin1').split(') ')[1]?.split(' ') ?? [];
    return (Number(fields[11]) + Number(fields[12])) / TICKS_PER_SECOND;
  } catch {
    return null;
  }
}

/** Closed loop: every connection sends its next request when it has its answer. */
export async function closedLoop(
  port: number,
  path: string,
  connections: number,
  seconds: number,
  headers: Readonly<Record<string, string>> = {},
): Promise<Load> {
  if (wrk) return await withWrk(port, path, connections, seconds, headers);
  const request = bytesOf(port, path, headers);
  const latencies: number[] = [];
  let failed = 0;
  const end = performance.now() + seconds * 1000;
  await Promise.all(
    Array.from(
      { length: connections },
      () =>
        new Promise<void>(resolve => {
          const c = new Connection(port);
          const next = (): void => {
            const at = performance.now();
            if (at >= end) {
              c.close();
              return resolve();
            }
            c.send(request, status => {
              if (status === 200) latencies.push(performance.now() - at);
              else failed++;
              next();
            });
          };
          next();
        }),
    ),
  );
  return summary(latencies, seconds, failed);
}

const COMPILED = path.join(os.tmpdir(), `plugin-host-open-loop-${process.pid}`);
/** The generator in C where there is a compiler: one in Node is late by milliseconds itself. */
const inC = spawnSync('cc', ['-O2', '-o', COMPILED, path.join(import.meta.dirname, 'open-loop.c')]).status === 0;
process.once('exit', () => fs.rmSync(COMPILED, { force: true }));
export const openLoopGenerator = inC ? 'open-loop.c' : 'own generator (install a C compiler for a better one)';
const OPEN_CONNECTIONS = 64;

/**
 * Open loop: requests leave at a fixed rate; latency counts from when they should have left.
 *
 * @param course file for the latencies of each tenth of a second (`open-loop.c`); without a C compiler it is not written
 */
export async function openLoop(
  port: number,
  where: string,
  perSecond: number,
  seconds: number,
  course?: string,
): Promise<Load> {
  if (!inC) return await openLoopHere(port, where, perSecond, seconds);
  const words = [port, where, perSecond, seconds, OPEN_CONNECTIONS, ...(course === undefined ? [] : [course])];
  return await openLoopInC(words.map(String), seconds);
}

async function openLoopInC(words: readonly string[], seconds: number): Promise<Load> {
  const child = spawn(COMPILED, words);
  let text = '';
  child.stdout.on('data', (c: Buffer) => (text += c.toString()));
  await new Promise(resolve => child.once('close', resolve));
  const r = JSON.parse(text) as Record<'sent' | 'failed' | 'cpu', number> &
    Record<'p50' | 'p99' | 'p999', number | null>;
  const endless = (ms: number | null): number => ms ?? Number.POSITIVE_INFINITY;
  return {
    perSecond: (r.sent - r.failed) / seconds,
    p50: endless(r.p50),
    p99: endless(r.p99),
    p999: endless(r.p999),
    failed: r.failed,
    generator: r.cpu / seconds,
  };
}

async function openLoopHere(port: number, path: string, perSecond: number, seconds: number): Promise<Load> {
  const request = bytesOf(port, path);
  const latencies: number[] = [];
  let failed = 0;
  const idle: Connection[] = Array.from({ length: 64 }, () => new Connection(port));
  const due: number[] = [];
  const send = (): void => {
    while (due.length > 0) {
      const c = idle.pop();
      if (c === undefined) return;
      const at = due.shift() ?? 0;
      c.send(request, status => {
        if (status === 200) latencies.push(performance.now() - at);
        else failed++;
        idle.push(c);
        send();
      });
    }
  };
  const start = performance.now() + 50;
  const total = Math.round(perSecond * seconds);
  for (let k = 0; k < total; ) {
    const now = performance.now();
    for (; k < total && start + (k * 1000) / perSecond <= now; k++) due.push(start + (k * 1000) / perSecond);
    send();
    await new Promise(resolve => setTimeout(resolve, 1));
  }
  for (let k = 0; k < 500 && latencies.length + failed < total; k++)
    await new Promise(resolve => setTimeout(resolve, 10));
  for (const c of idle) c.close();
  return summary(latencies, seconds, total - latencies.length);
}
