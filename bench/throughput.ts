import { closedLoop, GENERATOR_LIMIT, type Load, openLoop } from './load.ts';
import { buildExtism, startPeer, startWasmtime, startWorkerd, stopPeers } from './peers.ts';
import { add, type Bound, median, spread } from './report.ts';

export const GREET = '/api/triggers/http/hello/greet';
const CONNECTIONS = 64;
const WARM_UP_SECONDS = 3;
/** Rounds in which the generator was the limit are measured again, so often in all. */
const TRIES = 3;
/** Rate at which the tails of all are compared: below what the slowest can do. */
const EQUAL_RATE = 1000;

type Peer = { name: string; port: number; loads: Load[]; limited: number };

/** Starts every server that can be started here; those that cannot are named in a row. */
async function startAll(port: number, directory: string): Promise<Peer[]> {
  const extism = buildExtism(directory);
  const ports: Record<string, number | string> = {
    bare: await startPeer('bare'),
    host: port,
    extism: await startPeer('extism', extism),
    'extism-wasi': await startPeer('extism-wasi', extism),
    'extism-pool': await startPeer('extism-pool', extism),
    workerd: (await startWorkerd(directory)) ?? 'it is not installed',
    wasmtime: await startWasmtime(directory, false),
    'wasmtime-pooling': await startWasmtime(directory, true),
  };
  const peers: Peer[] = [];
  for (const [name, at] of Object.entries(ports)) {
    if (typeof at === 'number') peers.push({ name, port: at, loads: [], limited: 0 });
    else add(name, 'left out', at);
  }
  return peers;
}

/** Measures one round of a peer; a round in which the generator was the limit counts only after several tries. */
async function round(peer: Peer, seconds: number): Promise<void> {
  for (let k = 0; ; k++) {
    const load = await closedLoop(peer.port, GREET, CONNECTIONS, seconds);
    if (load.generator > GENERATOR_LIMIT) {
      peer.limited++;
      if (k + 1 < TRIES) continue;
    }
    peer.loads.push(load);
    return;
  }
}

const BOUNDS: Readonly<Record<string, [string, string | Bound]>> = {
  bare: ['sample trigger / bare uWebSockets, 64 connections', { atLeast: 0.36, aim: 0.45 }],
  extism: ['sample trigger / Extism, fresh plugin per request', { atLeast: 4, aim: 9, unit: 'x' }],
  'extism-wasi': ['the same, plugins with WASI as other languages need it', ''],
  'extism-pool': ['the same, plugins in a pool of threads, used again without a new instance', ''],
  workerd: ['sample trigger / workerd with an instance per request', { atLeast: 4, aim: 8, unit: 'x' }],
  wasmtime: ['sample trigger / wasmtime serve', { atLeast: 6, aim: 8, unit: 'x' }],
  'wasmtime-pooling': ['the same with its pooling allocator', ''],
};

/** The sample against other servers: all warmed alike, in turns, and at a rate that is the same for all. */
export async function throughput(port: number, directory: string, rounds: number, seconds: number): Promise<void> {
  const peers = await startAll(port, directory);
  for (const peer of peers) await closedLoop(peer.port, GREET, CONNECTIONS, WARM_UP_SECONDS);
  // In turns, so that a noisy minute meets all of them.
  for (let k = 0; k < rounds; k++) for (const peer of peers) await round(peer, seconds);
  const rates = (p: Peer): number[] => p.loads.map(l => l.perSecond);
  for (const p of peers)
    add(
      `${p.name}: requests/s, p50, p99`,
      spread(rates(p), 0),
      `${median(p.loads.map(l => l.p50)).toFixed(2)} ms, ${median(p.loads.map(l => l.p99)).toFixed(2)} ms, failed ${p.loads.reduce((n, l) => n + l.failed, 0)}, generator ${median(p.loads.map(l => l.generator)).toFixed(2)} of a core${p.limited > 0 ? `, its limit in ${p.limited} rounds` : ''}`,
    );
  const host = peers.find(p => p.name === 'host');
  if (host === undefined) throw new Error('the host is not among its peers');
  for (const p of peers) {
    const [name, bounds] = BOUNDS[p.name] ?? [];
    if (name === undefined) continue;
    const ratios = rates(host).map((rate, k) => rate / (p.loads[k]?.perSecond ?? 1));
    add(name, spread(ratios, p.name === 'bare' ? 3 : 1), bounds);
  }
  for (const p of peers) {
    const tails: Load[] = [];
    for (let k = 0; k < 3; k++) tails.push(await openLoop(p.port, GREET, EQUAL_RATE, seconds));
    const failed = tails.reduce((n, l) => n + l.failed, 0);
    add(
      `${p.name}: p99 at ${EQUAL_RATE}/s`,
      `${spread(
        tails.map(l => l.p99),
        2,
      )} ms`,
      `failed ${failed}`,
    );
  }
  stopPeers();
  await tailsOfHost(port, median(rates(host)), seconds);
}

/** The tail of the host where nothing is saturated. */
async function tailsOfHost(port: number, saturation: number, seconds: number): Promise<void> {
  const half: Load[] = [];
  const one: Load[] = [];
  for (let k = 0; k < 3; k++) {
    half.push(await openLoop(port, GREET, saturation / 2, seconds));
    one.push(await closedLoop(port, GREET, 1, seconds));
  }
  add(
    `sample: p99 at ${Math.round(saturation / 2)}/s, half of its saturation, open loop`,
    `${spread(
      half.map(l => l.p99),
      2,
    )} ms`,
    { atMost: 3, aim: 1.5, unit: 'ms', also: `failed ${half.reduce((n, l) => n + l.failed, 0)}` },
  );
  add(
    'sample: p99 of one connection',
    `${spread(
      one.map(l => l.p99),
      2,
    )} ms`,
    { atMost: 1.5, aim: 0.6, unit: 'ms' },
  );
}
