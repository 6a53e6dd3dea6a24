import { spawn, spawnSync } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { takePort } from '../test/support/ports.ts';
import { closedLoop, openLoop } from './load.ts';
import { add } from './report.ts';
import { GREET } from './throughput.ts';

/**
 * What clients notice of an upgrade: `npm run upgrade -- OLD NEW`, two release trees with their embedded part
 * (`npm run release:tree -- DIR --embedded`). Load at half of saturation goes on for a minute; meanwhile the link is led to
 * the new release and the service reloaded. Another minute goes on over the way back. `COURSE` names a folder for the
 * latencies of each tenth of a second.
 */

const SECONDS = 60;
const QUIET_SECONDS = 20;
const AT_SECONDS = 10;

const [from, to] = process.argv.slice(2);
if (from === undefined || to === undefined) throw new Error('give two release trees: npm run upgrade -- OLD NEW');

const directory = fs.mkdtempSync(path.join(os.tmpdir(), 'upgrade-'));
const link = path.join(directory, 'current');
const lead = (tree: string): void => {
  fs.rmSync(link, { force: true });
  fs.symlinkSync(path.resolve(tree), link);
};
const port = await takePort();
const env = {
  PATH: process.env.PATH,
  BOT_DATA_DIR: path.join(directory, 'data'),
  BOT_HTTP_PORT: String(port),
  BOT_LOG_LEVEL: 'warn',
};
const program = path.join(link, 'bin/plugin-host');
lead(from);
const service = spawn(program, ['serve', '--sample'], { env, stdio: ['ignore', 'pipe', 'inherit'] });
await new Promise<void>((resolve, reject) => {
  service.stdout.on('data', (c: Buffer) => {
    if (c.includes('is ready')) resolve();
  });
  service.once('exit', code => reject(new Error(`the service ended with ${code}`)));
});
try {
  await closedLoop(port, GREET, 64, 5);
  const rate = Math.round((await closedLoop(port, GREET, 64, 5)).perSecond / 2);
  const quiet = await openLoop(port, GREET, rate, QUIET_SECONDS);
  for (const [way, tree] of [['an upgrade', to] as const, ['the way back', from] as const]) {
    const course = process.env.COURSE === undefined ? undefined : path.join(process.env.COURSE, `${way}.txt`);
    const load = openLoop(port, GREET, rate, SECONDS, course);
    await sleep(AT_SECONDS * 1000);
    lead(tree);
    const reload = spawnSync(program, ['reload'], { env, encoding: 'utf8' });
    console.log(`${way}: ${reload.stdout.trim()}${reload.stderr.trim()}`);
    const over = await load;
    add(`requests at half of saturation over ${way}`, `${Math.round(rate * SECONDS)}, ${rate}/s`, '');
    add('of these failed', String(over.failed), '0');
    add(
      `p99 over ${way} / quiet`,
      `${(over.p99 / quiet.p99).toFixed(2)} (${over.p99.toFixed(1)} ms / ${quiet.p99.toFixed(1)} ms)`,
      { atMost: 2 },
    );
  }
} finally {
  service.kill('SIGTERM');
  await new Promise(resolve => service.once('exit', resolve));
  fs.rmSync(directory, { recursive: true, force: true });
}
