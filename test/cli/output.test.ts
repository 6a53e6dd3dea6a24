import { spawn } from 'node:child_process';
import { once } from 'node:events';
import path from 'node:path';
import t from 'tap';
import { BARE_ENV } from '../support/bare-env.ts';

const MAIN = path.resolve(import.meta.dirname, '../../src/main.ts');

t.test('a command whose reader has seen enough ends without an error', async t => {
  for (const args of [['config', 'check'], ['help'], ['version', '--json']]) {
    const child = spawn(process.execPath, [MAIN, ...args], {
      env: { ...BARE_ENV, NODE_NO_WARNINGS: '1' },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    child.stdout.destroy();
    let errors = '';
    child.stderr.on('data', (chunk: Buffer) => (errors += chunk.toString()));
    const [code] = await once(child, 'close');
    t.same([code, errors], [0, ''], args.join(' '));
  }
});
