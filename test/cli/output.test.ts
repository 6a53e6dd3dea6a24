import { spawn } from 'node:child_process';
import { once } from 'node:events';
import path from 'node:path';
import t from 'tap';
import { forTerminal } from '../../src/cli/print/terminal.ts';
import { BARE_ENV } from '../support/bare-env.ts';

const MAIN = path.resolve(import.meta.dirname, '../../src/main.ts');

t.test('a terminal gets the control characters of others written out', async t => {
  t.equal(forTerminal('a\tb\r\nc\n'), 'a\tb\nc\n', 'lines and tabs stay');
  t.equal(
    forTerminal('\u001b]52;c;aGk=\u0007\r\u009b2J\u007f'),
    '\\u001b]52;c;aGk=\\u0007\\u000d\\u009b2J\\u007f',
    'nothing moves the cursor or fills the clipboard',
  );
  const json = JSON.stringify({ a: '\u001b\u009b é' });
  t.same(JSON.parse(forTerminal(json)), { a: '\u001b\u009b é' }, 'JSON stays what it is');
});

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
