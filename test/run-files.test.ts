import fs from 'node:fs';
import path from 'node:path';
import t from 'tap';
import { type FileResult, firstFailure, type RunResult, runFiles } from './run-files.ts';
import { takePort } from './support/ports.ts';
import { listProcesses, readProcess } from './support/processes.ts';
import { killGroup, signalBackend, signalDescendant } from './support/signals.ts';

/** The runner of the tests, tried with files that do what no test should. */
const TAP = path.resolve(import.meta.dirname, '../node_modules/tap/dist/esm/index.js');
const GOOD = `import t from '${TAP}'; t.equal(1, 1, 'one is one');`;

type Test = { testdir(content: Record<string, string>): string };

async function run(
  t: Test,
  content: Record<string, string>,
): Promise<RunResult & { told: FileResult[]; of(name: string): FileResult | undefined; directory: string }> {
  const directory = t.testdir(content);
  const told: FileResult[] = [];
  const files = Object.keys(content).map(name => path.join(directory, name));
  const result = await runFiles(files, {
    jobs: 5,
    env: { ...process.env, DIRECTORY: directory },
    secondsMax: 8,
    outputBytesMax: 2 ** 20,
    ended: one => told.push(one),
  });
  const of = (name: string): FileResult | undefined => result.results.find(r => path.basename(r.file) === name);
  return { ...result, told, of, directory };
}

/** The tests of a file as it printed them, without those in them. What throws outside its test is printed again. */
const testsOf = ({ log }: FileResult): string[] => {
  const lines = fs.readFileSync(log, 'utf8').matchAll(/^((?:not )?ok) \d+ - (.*?)(?: # time=.*)?$/gm);
  return [...new Set([...lines].map(([, verdict, name]) => `${verdict} ${name}`))];
};

t.test('each file that misbehaves is one failure named with its file, and the rest of the run is whole', async t => {
  const { results, flaky, of, directory } = await run(t, {
    'good.ts': GOOD,
    'kills-all.ts': `${GOOD} process.kill(0, 'SIGKILL');`,
    'leaves-child.ts': `import { spawn } from 'node:child_process';
      import fs from 'node:fs';
      ${GOOD}
      const child = spawn('sleep', ['1000'], { detached: true, stdio: 'ignore' });
      child.unref();
      fs.writeFileSync(process.env.DIRECTORY + '/child.pid', String(child.pid));
      await new Promise(resolve => setTimeout(resolve, 600));`,
    'hangs.ts': `import t from '${TAP}'; t.test('waits for ever', () => new Promise(() => setInterval(() => {}, 1000)));`,
    'spins.ts': `import t from '${TAP}'; t.test('spins for ever', () => { for (;;); });`,
    'no-test.ts': 'process.exit(0);',
    'prints.ts': `import fs from 'node:fs'; for (;;) fs.writeSync(1, 'again and again\\n');`,
    'throws.ts': `${GOOD} throw new Error('thrown outside a test');`,
    'stray.ts': `import t from '${TAP}';
      const stray = () => new Promise(resolve => setTimeout(resolve, 100));
      t.test('in a timer', () => { setTimeout(() => { throw new Error('thrown in a timer'); }); return stray(); });
      t.test('in a promise', () => { Promise.reject(new Error('rejected and not caught')); return stray(); });
      t.test('frozen', () => { setTimeout(() => { throw Object.freeze(new Error('thrown frozen')); }); return stray(); });
      t.test('after them', t => { t.ok(true); t.end(); });`,
    'late.ts': `import t from '${TAP}';
      t.teardown(() => {});
      t.test('fine', t => { t.ok(true); t.end(); });
      setTimeout(() => { throw new Error('thrown after the end'); }, 500);`,
    'late-promise.ts': `import t from '${TAP}';
      t.teardown(() => {});
      t.test('fine', t => { t.ok(true); t.end(); });
      setTimeout(() => void Promise.reject(new Error('rejected after the end')), 500);`,
    'wrong.ts': `import t from '${TAP}'; t.test('a sum', t => { t.equal(1 + 1, 3, 'one and one'); t.end(); });`,
    'left-out.ts': `import t from '${TAP}'; t.test('a kit', { skip: 'there is no go' }, t => t.end());`,
    'to-do.ts': `${GOOD} t.test('a promise', { todo: 'later' }, t => t.end());`,
    'switched-off.ts': `${GOOD} t.test('a doubt', { skip: true }, t => t.end());`,
    'last.ts': GOOD,
  });
  t.same(flaky, []);
  t.equal(results.length, 16);
  // The library takes a test with the option `todo` for passed, so the runner refuses it. This one stands in a file made for it.
  t.match(of('to-do.ts'), { passed: 1, failed: 1, problem: 'tests with the option todo: 1; write or mend them' });
  t.match(of('switched-off.ts'), { passed: 1, failed: 1, problem: 'a test is left out without a reason' });
  t.match(of('good.ts'), { passed: 1, failed: 0, problem: null });
  t.match(of('left-out.ts'), { passed: 0, failed: 0, leftOut: ['a kit: there is no go'] });
  t.match(of('last.ts'), { passed: 1, failed: 0, problem: null });
  t.match(of('kills-all.ts'), { failed: 1, problem: 'ended by SIGKILL' });
  t.match(of('leaves-child.ts'), { failed: 1, problem: 'left running: sleep 1000' });
  const child = Number(fs.readFileSync(path.join(directory, 'child.pid'), 'utf8'));
  t.not(readProcess(child)?.isZombie, false, 'it does not outlive its file');
  const hangs = of('hangs.ts');
  t.match(hangs, { failed: 1 });
  t.match(hangs && firstFailure(hangs), /timeout/);
  t.match(of('spins.ts'), { failed: 1, problem: /^did not end within 8 s$/ });
  t.match(of('no-test.ts'), { passed: 0, failed: 1, problem: 'ended without a test' });
  t.match(of('prints.ts'), { failed: 1, problem: 'printed more than 1048576 bytes' });
  t.match(of('throws.ts'), { failed: 1 });
  for (const late of ['late.ts', 'late-promise.ts']) t.match(of(late), { passed: 1, failed: 1 }, late);
  const stray = of('stray.ts');
  t.match(stray, { passed: 1, problem: null });
  t.ok((stray?.failed ?? 0) >= 3, 'each fails');
  t.same(stray && testsOf(stray), ['not ok in a timer', 'not ok in a promise', 'not ok frozen', 'ok after them']);
  t.match(stray && firstFailure(stray), 'thrown in a timer');
  const wrong = of('wrong.ts');
  t.match(wrong, { passed: 0, failed: 1, problem: null });
  t.equal(wrong && firstFailure(wrong), 'one and one');
});

t.test('a file that passes the second time counts as passed, and is named as flaky', async t => {
  const { results, flaky, told } = await run(t, {
    'sometimes.ts': `import t from '${TAP}';
      import fs from 'node:fs';
      const mark = process.env.DIRECTORY + '/mark';
      t.ok(fs.existsSync(mark), 'it was here before');
      fs.writeFileSync(mark, '');`,
    'good.ts': GOOD,
  });
  t.match(results, { length: 2 });
  t.equal(
    results.reduce((n, r) => n + r.failed, 0),
    0,
  );
  t.match(flaky, [{ file: /sometimes\.ts$/, assertion: 'it was here before' }]);
  t.match(fs.readFileSync(flaky[0]?.log ?? '', 'utf8'), /not ok 1 - it was here before/, 'its first log is kept');
  t.same(told.map(r => [path.basename(r.file), r.failed]).at(-1), ['sometimes.ts', 0], 'after all others');
});

t.test('the folder of a test goes last, when what the test has started has ended', async t => {
  const { results } = await run(t, {
    'folder.ts': `import t from '${TAP}';
      import fs from 'node:fs';
      t.test('writes to its folder', async t => {
        const folder = t.testdir({});
        // Throws, if the folder is gone.
        t.teardown(() => fs.writeFileSync(folder + '/late', ''));
        await t.test('one in it', async t => {
          const inner = t.testdir({});
          t.teardown(() => fs.writeFileSync(inner + '/late', ''));
          t.pass('a test');
        });
      });`,
  });
  t.match(results, [{ failed: 0, problem: null }]);
});

t.test('what took longest last time starts first, and what is new before all', async t => {
  const directory = t.testdir({ 'a.ts': GOOD, 'b.ts': GOOD, 'c.ts': GOOD });
  const order: string[] = [];
  const files = ['a.ts', 'b.ts', 'c.ts'].map(name => path.join(directory, name));
  await runFiles(files, {
    jobs: 1,
    env: process.env,
    times: { [files[0] ?? '']: 1, [files[1] ?? '']: 5 },
    ended: r => order.push(path.basename(r.file)),
  });
  t.same(order, ['c.ts', 'b.ts', 'a.ts']);
});

t.test('signals go to living descendants only', t => {
  for (const pid of [undefined, 0, -1, 1, Number.NaN, 1.5, process.pid, process.ppid])
    t.throws(() => signalDescendant(pid, 'SIGKILL'), /SIGKILL/, String(pid));
  for (const pid of [undefined, 0, -1, 1, process.pid]) t.throws(() => killGroup(pid), /process group/, String(pid));
  const backend = listProcesses().find(p => p.parent > 1 && p.pid !== process.pid);
  t.throws(() => signalBackend(backend?.pid, 't_none', 'SIGKILL'), /serves no connection of the database t_none/);
  t.end();
});

t.test('a port that is taken lies below those of outgoing connections, and is taken once', async t => {
  const range = fs.readFileSync('/proc/sys/net/ipv4/ip_local_port_range', 'latin1');
  const ports = await Promise.all(Array.from({ length: 50 }, takePort));
  t.equal(new Set(ports).size, 50);
  t.ok(ports.every(port => port < Number.parseInt(range, 10)));
});
