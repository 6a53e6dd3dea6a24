import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import fs from 'node:fs';
import path from 'node:path';
import t from 'tap';

/** Standard output that is not read must stop neither the service nor its end. */

const LOG = path.resolve(import.meta.dirname, '../../src/base/log.ts');
const LINES = 4000;

/** Makes what is open block again, as each start of a child does that inherits it. */
const BLOCKS = `require('node:child_process').spawnSync('true', { stdio: ['ignore', 'inherit', 'inherit'] })`;

/** A process that logs more than waits for a reader, and ends, on request by its channel. */
const SCRIPT = `
  import { makeLog, standardOutput } from ${JSON.stringify(LOG)};
  const output = standardOutput(undefined);
  const log = makeLog('info', output);
  const require = (await import('node:module')).createRequire('/');
  ${BLOCKS};
  process.on('message', what => {
    if (what === 'log') for (let n = 0; n < ${LINES}; n++) log.info({ n, text: 'x'.repeat(500) }, 'line');
    if (what === 'one more') log.info({ n: -1 }, 'line');
    if (what === 'flush') output.flush();
    process.send(what);
    if (what === 'end') process.exit(0);
  });
  process.send('ready');`;

/** @param out a descriptor, or a socket of its own */
function logging(t: { teardown(fn: () => unknown): void }, out: number | 'pipe' = 'pipe') {
  const child = spawn(
    process.execPath,
    ['--disable-warning=ExperimentalWarning', '--input-type=module', '-e', SCRIPT],
    { stdio: ['ignore', out, 'inherit', 'ipc'] },
  );
  t.teardown(() => child.kill('SIGKILL'));
  /** Sends a word, and waits until the process has done it. */
  const does = async (what: string): Promise<void> => {
    child.send(what);
    await once(child, 'message');
  };
  return { child, does };
}

t.test('a process whose lines are not read goes on, and says how many it has dropped when they are', async t => {
  const { child, does } = logging(t);
  await once(child, 'message');
  await does('log');
  await does('flush');
  await does('anything');
  let text = '';
  child.stdout?.setEncoding('utf8').on('data', (chunk: string) => {
    text += chunk;
  });
  const dropped = async (): Promise<number> => {
    for (;;) {
      const [, lines] = /"lines":(\d+),"msg":"log lines were dropped: standard output was not read"/.exec(text) ?? [];
      if (lines !== undefined) return Number(lines);
      await once(child.stdout ?? child, 'data');
    }
  };
  const lost = await dropped();
  await does('one more');
  while (!text.includes('"n":-1')) await once(child.stdout ?? child, 'data');
  const numbers = text
    .trim()
    .split('\n')
    .map(line => JSON.parse(line) as { n?: number })
    .flatMap(({ n }) => n ?? []);
  t.ok(lost > 0 && lost < LINES, `${lost} of ${LINES} lines`);
  t.same(numbers, [...Array.from({ length: LINES - lost }, (_, n) => n), -1], 'the first lines, whole and in order');
});

t.test('the same where standard output is a pipe', async t => {
  const fifo = path.join(t.testdir(), 'fifo');
  execFileSync('mkfifo', [fifo]);
  const both = fs.openSync(fifo, 'r+');
  const { child, does } = logging(t, both);
  await once(child, 'message');
  for (const what of ['log', 'flush', 'anything']) await does(what);
  child.send('end');
  t.same(await once(child, 'exit'), [0, null]);
  fs.closeSync(both);
});

t.test('a process whose lines are not read can end, and one whose lines are read loses none at its end', async t => {
  const stuck = logging(t);
  await once(stuck.child, 'message');
  await stuck.does('log');
  stuck.child.send('end');
  t.same(await once(stuck.child, 'exit'), [0, null]);
  const file = path.join(t.testdir(), 'out');
  const fd = fs.openSync(file, 'w');
  const script = `import { makeLog, standardOutput } from ${JSON.stringify(LOG)};
    const log = makeLog('info', standardOutput(undefined));
    for (let n = 0; n < 1000; n++) log.info({ n }, 'line');
    process.exit(3);`;
  const child = spawn(
    process.execPath,
    ['--disable-warning=ExperimentalWarning', '--input-type=module', '-e', script],
    {
      stdio: ['ignore', fd, 'inherit'],
    },
  );
  t.same(await once(child, 'exit'), [3, null]);
  fs.closeSync(fd);
  t.equal(fs.readFileSync(file, 'utf8').trim().split('\n').length, 1000);
});

t.test('a log that cannot be written at all stops nothing: a full disk, a reader that is gone', async t => {
  const script = `import { makeLog, standardOutput } from ${JSON.stringify(LOG)};
    const log = makeLog('info', standardOutput(undefined));
    process.on('message', () => {
      for (let n = 0; n < 1000; n++) log.info({ n }, 'line');
      process.send('logged');
      setTimeout(() => { log.info('one more'); process.exit(4); }, 100);
    });
    process.send('ready');`;
  const flags = ['--disable-warning=ExperimentalWarning', '--input-type=module', '-e', script];
  const full = fs.openSync('/dev/full', 'w');
  for (const out of [full, 'pipe'] as const) {
    const child = spawn(process.execPath, flags, { stdio: ['ignore', out, 'inherit', 'ipc'] });
    t.teardown(() => child.kill('SIGKILL'));
    await once(child, 'message');
    child.stdout?.destroy();
    child.send('log');
    await once(child, 'message');
    t.same(await once(child, 'exit'), [4, null], out === full ? 'a full disk' : 'a reader that is gone');
  }
  fs.closeSync(full);
});
