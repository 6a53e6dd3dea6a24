import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { evaluations, outbox, policies } from './authz.ts';
import { type Account, makeCaller } from './caller.ts';
import { contention, growth, instanceTimes } from './executions.ts';
import { files } from './files.ts';
import { embeddedDatabaseUrl, type Host, startHost } from './host.ts';
import { identity } from './identity.ts';
import { hostCalls, kvTriggers } from './kv.ts';
import { languages } from './languages.ts';
import { lists } from './lists.ts';
import { generator } from './load.ts';
import { messages } from './messages.ts';
import { stopPeers } from './peers.ts';
import { people } from './people.ts';
import { pin } from './pin.ts';
import { pluginIo } from './plugin-io.ts';
import { processes } from './processes.ts';
import { rehearsal } from './rehearsal.ts';
import { add, writeReport } from './report.ts';
import { scale } from './scale.ts';
import { throughput } from './throughput.ts';
import { university } from './university.ts';

/** `npm run bench [-- GROUP...] [-- --seconds N --rounds N]` (bench/README.md). */

const here = import.meta.dirname;
const root = path.resolve(here, '..');
const directory = fs.mkdtempSync(path.join(os.tmpdir(), 'plugin-host-bench-'));
fs.chmodSync(directory, 0o711);

/** Seconds of each measurement, and how many there are of each. */
let seconds = 2;
let rounds = 3;

const hosts: Host[] = [];
let host: Promise<Host> | undefined;
/** The service under test: its second start, when everything is made. */
const theHost = (): Promise<Host> => {
  host ??= (async () => {
    const first = await startHost(directory);
    await first.stop();
    const second = await startHost(directory);
    hosts.push(second);
    return second;
  })();
  return host;
};
let caller: Promise<Account> | undefined;
const theCaller = async (): Promise<Account> => {
  caller ??= makeCaller((await theHost()).port);
  return await caller;
};

/** The embedded database of the service under test. */
const databaseUrl = (): string => embeddedDatabaseUrl(path.join(directory, 'data'));

/** The groups of rows, in the order in which they are measured. */
const GROUPS: Readonly<Record<string, () => Promise<void>>> = {
  async start() {
    const { startMs } = await theHost();
    add('start to ready, embedded, second start', `${(startMs / 1000).toFixed(2)} s`, {
      atMost: 3,
      aim: 1.5,
      unit: 's',
    });
  },
  throughput: async () => await throughput((await theHost()).port, directory, rounds, seconds),
  languages: async () => await languages((await theHost()).port, seconds, rounds),
  contention: async () => await contention((await theHost()).port, seconds),
  async kv() {
    const { port } = await theHost();
    await hostCalls(port, databaseUrl());
    await kvTriggers(port, databaseUrl(), rounds, seconds);
  },
  io: async () => await pluginIo((await theHost()).port, databaseUrl()),
  growth: async () => await growth((await theHost()).port),
  lists: async () => await lists((await theHost()).port, databaseUrl()),
  scale: async () => await scale(path.join(directory, 'many'), rounds, seconds),
  processes: async () => await processes(path.join(directory, 'processes'), rounds, seconds),
  policies: async () => await policies((await theHost()).port, await theCaller(), rounds, seconds),
  people: async () => await people(path.join(directory, 'people')),
  rehearsal: async () => await rehearsal((await theHost()).port, databaseUrl(), rounds),
  outbox: async () => await outbox((await theHost()).port, databaseUrl(), seconds),
  files: async () => await files((await theHost()).port, await theCaller(), directory, rounds),
  // Its logins end the session before.
  identity: async () => await identity((await theHost()).port, await theCaller(), rounds, seconds),
  messages: async () => await messages(path.join(directory, 'messages'), seconds),
  university: async () => await university(path.join(directory, 'university')),
  async executions() {
    await instanceTimes();
    evaluations();
  },
};

/** The groups that are asked for; ends the command when one is unknown. */
function chosenGroups(): string[] {
  const chosen: string[] = [];
  const words = process.argv.slice(2);
  for (let k = 0; k < words.length; k++) {
    const word = words[k] ?? '';
    const number = Number(words[k + 1]);
    if (word === '--seconds' && number > 0) [seconds, k] = [number, k + 1];
    else if (word === '--rounds' && number > 0) [rounds, k] = [number, k + 1];
    else if (Object.hasOwn(GROUPS, word)) chosen.push(word);
    else {
      console.error(
        `"${word}" is no group of rows; there are ${Object.keys(GROUPS).join(', ')}, --seconds N and --rounds N`,
      );
      process.exit(2);
    }
  }
  return chosen.length === 0 ? Object.keys(GROUPS) : Object.keys(GROUPS).filter(name => chosen.includes(name));
}

try {
  const groups = chosenGroups();
  const cores = pin();
  console.log(
    `cores ${cores ?? 'not pinned (install taskset, of util-linux)'}, Node ${process.version}, load from ${generator}, ${rounds} rounds of ${seconds} s, medians`,
  );
  for (const name of groups) {
    console.log(`\n${name}`);
    const began = performance.now();
    await GROUPS[name]?.();
    console.log(`  (${((performance.now() - began) / 1000).toFixed(0)} s)`);
  }
  console.log(`\nwritten to ${path.relative(root, writeReport(path.join(here, 'results')))}`);
} finally {
  stopPeers();
  for (const one of hosts) await one.stop();
  await new Promise(resolve => setTimeout(resolve, 500));
  fs.rmSync(directory, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 });
}
process.exit(0);
