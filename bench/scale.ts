import path from 'node:path';
import { buildExample } from '../test/support/sdk.ts';
import { assemble, manifestOf, withManifest } from '../test/support/wat.ts';
import { type Host, install, memoryMb, servingPid, startHost } from './host.ts';
import { closedLoop } from './load.ts';
import { add, median } from './report.ts';

const PLUGINS = 2000;
/** Uploads at a time; each is inspected and compiled on trial. */
const AT_ONCE = 4;

const idOf = (k: number): string => `p${String(k).padStart(4, '0')}`;

/** The sample under another id of the same length, so that nothing else in the module changes. */
function named(hello: Uint8Array, id: string): Uint8Array {
  const from = Buffer.from('"id":"hello"');
  const bytes = Buffer.from(hello);
  const at = bytes.indexOf(from);
  if (at < 0 || bytes.indexOf(from, at + 1) >= 0) throw new Error('the manifest of the sample has changed');
  bytes.write(`"id":"${id}"`, at);
  return bytes;
}

/** A plugin without a start, whose upload takes less time. */
const small = (id: string): Uint8Array =>
  withManifest(
    assemble('(module (memory (export "memory") 1) (func (export "plugin_handle") (result i32) (i32.const 0)))'),
    manifestOf({ id }),
  );

/** The last one is the sample, which is called. */
async function installMany(host: Host): Promise<void> {
  let k = 1;
  const worker = async (): Promise<void> => {
    while (k < PLUGINS - 1) await install(host.port, small(idOf(k++)));
  };
  await Promise.all(Array.from({ length: AT_ONCE }, worker));
  await install(host.port, named(await buildExample('hello'), idOf(PLUGINS - 1)));
}

/** What the last of many installed plugins costs: at the start of the service, memory while it is idle, and time on the request path. */
export async function scale(directory: string, rounds: number, seconds: number): Promise<void> {
  const filling = await startHost(directory);
  await installMany(filling);
  await filling.stop();
  // Both are started with what they have and asked once, so that none holds what installing or a load leaves behind.
  const hosts: Host[] = [];
  try {
    const many = await startHost(directory);
    hosts.push(many);
    add(`start to ready with ${PLUGINS} installed plugins`, `${(many.startMs / 1000).toFixed(2)} s`, {
      atMost: 3,
      aim: 1.5,
      unit: 's',
    });
    const one = await startHost(path.join(directory, 'one'));
    hosts.push(one);
    for (const host of [many, one]) await closedLoop(host.port, '/api/triggers/http/hello/greet', 1, 1);
    const grown = memoryMb(servingPid(many)) - memoryMb(servingPid(one));
    add(
      `memory per installed idle plugin (${PLUGINS} installed, after a start)`,
      `${(grown / (PLUGINS - 1)).toFixed(3)} MB`,
      { atMost: 2, aim: 0.3, unit: 'MB' },
    );
    const last = `/api/triggers/http/${idOf(PLUGINS - 1)}/greet`;
    const first = '/api/triggers/http/hello/greet';
    await closedLoop(many.port, last, 64, seconds);
    const costs: number[] = [];
    for (let k = 0; k < rounds; k++) {
      const alone = await closedLoop(one.port, first, 64, seconds);
      const among = await closedLoop(many.port, last, 64, seconds);
      if (among.failed > 0) throw new Error(`${among.failed} requests failed`);
      costs.push(alone.perSecond / among.perSecond);
    }
    add(`cost of the ${PLUGINS}th installed plugin on the request path / the first`, `${median(costs).toFixed(2)} x`, {
      atMost: 1.2,
      aim: 1,
      unit: 'x',
    });
  } finally {
    for (const host of hosts) await host.stop();
  }
}
