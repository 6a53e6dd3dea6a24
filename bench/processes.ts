import fs from 'node:fs';
import path from 'node:path';
import { childrenOf, type Host, startHost } from './host.ts';
import { closedLoop, cpuSecondsOf, type Load, openLoop } from './load.ts';
import { add, spread } from './report.ts';
import { GREET } from './throughput.ts';

/** A rate that one process serves with room to spare. */
const RATE = 6000;

/** The supervisor, the serving processes and the one that stands by; neither the database nor the graph store. */
const processesOf = (host: Host): number[] => [
  host.pid,
  ...childrenOf(host.pid).filter(pid => fs.readFileSync(`/proc/${pid}/cmdline`, 'latin1').includes('main.ts\0serving')),
];

/** Processor time for each request of a load, in us. */
async function costOf(host: Host, run: () => Promise<Load>, seconds: number): Promise<number> {
  const pids = processesOf(host);
  const used = (): number => pids.reduce((sum, pid) => sum + (cpuSecondsOf(pid) ?? 0), 0);
  const before = used();
  const load = await run();
  return ((used() - before) * 1e6) / (load.perSecond * seconds);
}

/** What a second serving process costs each request. */
export async function processes(directory: string, rounds: number, seconds: number): Promise<void> {
  const hosts: Host[] = [];
  try {
    for (const n of [1, 2])
      hosts.push(await startHost(path.join(directory, String(n)), { BOT_SERVING_PROCESSES: String(n) }));
    const [one, two] = hosts;
    if (one === undefined || two === undefined) throw new Error('two hosts were started');
    for (const host of hosts) await closedLoop(host.port, GREET, 64, seconds);
    const loads: Array<[name: string, run: (port: number) => Promise<Load>]> = [
      [`at ${RATE}/s`, port => openLoop(port, GREET, RATE, seconds)],
      ['at saturation', port => closedLoop(port, GREET, 64, seconds)],
    ];
    for (const [name, run] of loads) {
      const ratios: number[] = [];
      for (let k = 0; k < rounds; k++) {
        const first = await costOf(one, () => run(one.port), seconds);
        ratios.push((await costOf(two, () => run(two.port), seconds)) / first);
      }
      add(`processor time of a request with two serving processes / one, ${name}`, spread(ratios, 2), {
        atMost: 1.15,
        aim: 1.05,
      });
    }
  } finally {
    for (const host of hosts) await host.stop();
  }
}
